# SPDX-License-Identifier: MIT
"""Takes a tour's measurements and counts into plots/measure/data, then writes the READMEs' tables and plots/figures.

  cmake --build build --target publish        # the only thing that changes plots/figures and the tables

A table stands between the marks <!-- table --> and <!-- /table -->, one of counts between <!-- counts --> and
<!-- /counts -->, what ncu_counts.py found in the emulator's COUNTS.md between <!-- ncu --> and <!-- /ncu -->, the
tree of the chapters between <!-- tree --> and <!-- /tree --> and their problems
between <!-- problems --> and <!-- /problems --> in chapters/LADDER.md, what the front page shows of the chapters between
<!-- milestones --> and <!-- /milestones -->, on how many problems the last one is faster than any library between
<!-- tally --> and <!-- /tally -->, what tiles should cost on a B200, from cost_counts.py, between
<!-- costs --> and <!-- /costs -->, an epilogue beside the unfused way between
<!-- unfused --> and <!-- /unfused -->, timed between <!-- fused --> and <!-- /fused -->, the Hadamard transforms
between <!-- transforms --> and <!-- /transforms -->, NVIDIA's kernels beside ours, from cudnn/compare.py, between
<!-- cudnn --> and <!-- /cudnn -->, and single numbers of sentences where sentence_numbers.py finds their marks; the rest of
a README is left as it is. A chapter's results.md has the tables of which its README shows a part. Under a table whose
kernel has changed since it was measured a sentence says so. Rows of programs that were built from changes that were not
committed are left out.
"""

import argparse
import re
import sys
from pathlib import Path

from plots.draw import plot, sentence_numbers, tables
from plots.draw.changes import History
from plots.draw.results import Data
from plots.measure.chapters import read_chapters
from plots.measure.files import COLUMNS, COUNT_COLUMNS, DATA, BadData, csv_text, folder_of, read_counts, read_csv, write_whole

# These name a measurement.
SAME = "chapter kernel set groups m_total m_max n k format warm peer".split()


def write(path: Path, text: str) -> None:
    """Writes what has changed."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)
    print(f"publish: {path}")


def of_commits(path: Path) -> list[dict[str, str]]:
    """A file's rows, but those of a tree with changes that no commit holds: nobody could measure them again."""
    rows = read_csv(path)
    kept = [row for row in rows if not row["commit"].endswith("-dirty")]
    if len(kept) < len(rows):
        print(f"publish: {path}: {len(rows) - len(kept)} of {len(rows)} rows left out, "
              "as their program was built from changes that were not committed")
    return kept


def collect(run: Path, data: Path) -> None:
    """Adds the measurements of a run to data/<gpu>/<chapter>.csv; of two of one thing the newer stays."""
    rows = [row for path in sorted(run.glob("*.csv")) for row in of_commits(path)]
    # The emulator is none: it never times.
    devices = {row["device"] for row in rows if row["us_median"]}
    found = {}
    for row in rows:
        if row["device"] in devices and (row["us_median"] or row["ok"] == "0"):
            found.setdefault(data / folder_of(row["device"]) / f"{row['chapter']}.csv", []).append(row)
    for path, rows in found.items():
        rows = sorted((read_csv(path) if path.exists() else []) + rows, key=lambda row: row["date"])
        latest = {tuple(row[column] for column in SAME): at for at, row in enumerate(rows)}
        write(path, csv_text(COLUMNS, (rows[at] for at in sorted(latest.values()))))


def collect_counts(run: Path, table: Path) -> None:
    """Adds the counts of a run to a table of all chapters'; of two of one chapter, set and order the run's stay."""
    counts = read_counts(table) | read_counts(run)
    if counts:
        write(table, csv_text(COUNT_COLUMNS, (dict(zip(COUNT_COLUMNS, (*key, counter, value)))
                                              for key, some in sorted(counts.items()) for counter, value in some.items())))


def fill(readme: Path, text: str, mark: str) -> None:
    """Puts a table between the marks of a README; says so where a README has no place for its main table."""
    old = readme.read_text(encoding="utf-8") if readme.exists() else ""
    marked = f"<!-- {mark} -->\n{text}\n<!-- /{mark} -->"
    new, count = re.subn(rf"(?s)<!-- {mark} -->.*?<!-- /{mark} -->", lambda _: marked, old, count=1)
    if count:
        write(readme, new)
    elif mark == "table":
        print(f"publish: {readme}: no <!-- {mark} --> and <!-- /{mark} -->, so no table")


def fill_sentences(repo: Path, data: Data) -> None:
    """The numbers that sentences of the READMEs mark (sentence_numbers.py)."""
    numbers = sentence_numbers.MarkedNumbers(data, sentence_numbers.counted(repo / DATA))
    for readme in [repo / "README.md", repo / "chapters" / "LADDER.md", *(chapter.readme for chapter in data.chapters)]:
        if readme.exists():
            write(readme, numbers.filled(readme.read_text(encoding="utf-8")))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="directory with the CSV files of a tour, taken in first")
    parser.add_argument("--gpu", default="", help="part of the device's name, where several are measured")
    parser.add_argument("--repo", type=Path, default=plot.REPO, help=argparse.SUPPRESS)
    args = parser.parse_args()
    folder = args.repo / DATA
    try:
        if args.run:
            collect(args.run, folder)
            collect_counts(args.run, folder / "emulator.csv")
        data = plot.Data([folder], args.gpu, read_chapters(args.repo))
        history = History(args.repo)
        for readme, mark, text in tables.all_tables(args.repo, data, history):
            fill(readme, text, mark)
        for page, text in tables.pages(args.repo, data, history):
            write(page, text)
        fill_sentences(args.repo, data)
        if history.lacking:
            print(f"publish: git lacks {', '.join(sorted(history.lacking))}: whether kernels have changed since is not "
                  "said", file=sys.stderr)
        return 0 if plot.draw(data, args.repo / "plots" / "figures") else 1
    except (BadData, sentence_numbers.BadMark) as error:
        print(f"publish: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"publish: cannot write: {error}", file=sys.stderr)
        return 4


if __name__ == "__main__":
    sys.exit(main())
