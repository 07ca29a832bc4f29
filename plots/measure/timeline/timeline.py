# SPDX-License-Identifier: MIT
"""When each multiprocessor begins and ends its tiles in the last Hopper chapter, and how long it waits for slices.

  python3 -B -m plots.measure.timeline.timeline --stamp FOLDER
  python3 -B -m plots.measure.timeline.timeline --program FILE [--set NAME] --out FILE

--stamp copies the chapter there, with stamps of time: gg-timeline is built of the copy. --program runs gg-timeline on a
Hopper GPU, and writes the stamps of its last launch, a warm one, as rows of TIMELINE_COLUMNS.

The first consumer of a block stamps each tile: when it has the tile, when its products are done, and how long it waited
at the barriers of slices. The chapter itself has no stamps; STAMPS says where they go.
"""

import argparse
import csv
import subprocess
import sys
import tempfile
from pathlib import Path

from plots.measure.files import COLUMNS, TIMELINE_COLUMNS, BadData, read_csv, write_csv

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[2]
CHAPTER = "07l_peak_hopper"
FILE = "timeline.csv"  # what gg-timeline writes, in the directory in which it runs
# Of each file: a line of it, or its beginning, that is there once, and what stands behind it (or,
# with "-", in its place).
STAMPS = {
    "multiply.cuh": [
        ('#include "split_k.cuh"', '#include "stamps.cuh"'),
        ("  Ring<C::STAGES> ring;", "  Stamps stamps;"),
        ("    const Tile tile = next;  // a copy: do_tile overwrites `next` before it stores `tile`", "    stamps.begin();"),
        ("        const int stage = ring.stage;", "        stamps.wait_begins();"),
        ("        gg::ptx::mbarrier_wait_parity(memory.full_addr + stage * 8, ring.phase);  // it has landed",
         "        stamps.wait_ends();"),
        ("      release(last);", "      stamps.end();"),
    ],
    "main.cu": [
        ("  return gg::run<gg::Same<bf16>,", "-  const int code = gg::run<gg::Same<bf16>,"),
        ("      });", f'  return code ? code : chapter::write_stamps("{FILE}");'),
    ],
}


def stamped(text: str, places: list[tuple[str, str]], name: str) -> str:
    """The text with what belongs behind these lines."""
    lines = text.split("\n")
    for line, new in places:
        found = [i for i, each in enumerate(lines) if each == line or (new.startswith("-") and each.startswith(line))]
        if len(found) != 1:
            raise BadData(f"{CHAPTER}/{name}: {len(found)} lines are `{line.strip()}`, one is wanted: "
                          "mend STAMPS in plots/measure/timeline/timeline.py")
        at = found[0]
        if new.startswith("-"):
            lines[at] = new[1:] + lines[at][len(line):]
        else:
            lines.insert(at + 1, new)
    return "\n".join(lines)


def stamp(folder: Path) -> None:
    """Copies the chapter's sources to a folder, with stamps."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in [*sorted((REPO / "chapters" / CHAPTER).glob("*.cu*")), HERE / "stamps.cuh"]:
        text = path.read_text(encoding="utf-8")
        (folder / path.name).write_text(stamped(text, STAMPS.get(path.name, []), path.name), encoding="utf-8")


def run(program: Path, name: str, out: Path) -> int:
    """Runs the program on a set of one problem and writes its stamps; returns the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([str(program.resolve()), "--device", "gpu", "--bench", "--set", name, "--csv", "run.csv"],
                              cwd=folder)
        if done.returncode:
            return done.returncode
        timed = read_csv(Path(folder) / "run.csv", COLUMNS)[-1]
        with open(Path(folder) / FILE, newline="", encoding="utf-8") as file:
            stamps = [{column: int(value) for column, value in row.items()} for row in csv.DictReader(file)]
    start = min(row["begin_ns"] for row in stamps)
    end = max(row["end_ns"] for row in stamps) - start
    print(f"timeline: {len(stamps)} tiles in {end / 1000:.1f} us; a launch takes {timed['us_median']} us with stamps")
    for row in stamps:
        row["begin_ns"] -= start
        row["end_ns"] -= start
    stamps.sort(key=lambda row: (row["sm"], row["begin_ns"]))
    write_csv(out, TIMELINE_COLUMNS, ({column: row.get(column, timed.get(column)) for column in TIMELINE_COLUMNS} for row in stamps))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stamp", type=Path, metavar="FOLDER", help="copy the chapter there, with stamps")
    parser.add_argument("--program", type=Path, help="gg-timeline as it was built")
    parser.add_argument("--set", default="skewed", help="a set of one problem (default: skewed)")
    parser.add_argument("--out", type=Path, help="the CSV file to write")
    args = parser.parse_args()
    if not args.stamp and not (args.program and args.out):
        parser.error("--stamp FOLDER, or --program FILE and --out FILE are wanted")
    try:
        if args.stamp:
            stamp(args.stamp)
            return 0
        return run(args.program, args.set, args.out)
    except BadData as error:
        print(f"timeline: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"timeline: cannot write: {error}", file=sys.stderr)
        return 4


if __name__ == "__main__":
    sys.exit(main())
