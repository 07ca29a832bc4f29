# SPDX-License-Identifier: MIT
"""Shows what a tour on a GPU that is not here would fill: its tables and figures without numbers.

  python3 -B -m plots.draw.preview b200 --out DIR      # the tour's --like b200

Writes DIR/tables.md, with the ladder and each chapter's table that a run there would write into the READMEs, and
DIR/figures. A dash stands where that GPU's number would. Nothing in DIR is measured, and `publish` never reads it.
"""

import argparse
import os
import sys
from pathlib import Path

from plots.draw import plot, tables
from plots.draw.results import Data, variant
from plots.measure.chapters import Chapter, read_chapters
from plots.measure.costs import TileCounts, read_costs
from plots.measure.files import DATA, BadData, Row, Shape
from plots.measure.sets import problems

REPO = Path(__file__).resolve().parents[2]
# What the driver calls them, and the architectures whose chapters they run: PTX of sm_80 anywhere.
DEVICES = {"a100": ("NVIDIA A100-SXM4-80GB", {"sm_80"}), "h100": ("NVIDIA H100 80GB HBM3", {"sm_80", "sm_90a"}),
           "h200": ("NVIDIA H200", {"sm_80", "sm_90a"}), "b200": ("NVIDIA B200", {"sm_80", "sm_100a"})}
# The sets that the tour times and those that figures show beside, and the library that it times
# beside bf16 on each (common/tour/tour.py).
SETS = {"prefill": "cublas_strided", "decode": "cublas_grouped", "step": ""}


def shape_of(rows: list[int], n: int, k: int, pads: bool) -> Shape:
    """pads: the rows of each group are rounded up to 256, as chapters with block scales want them."""
    if pads:
        rows = [-(-m // 256) * 256 for m in rows]
    return len(rows), sum(rows), max(rows), n, k


def rows_of(chapters: list[Chapter], device: str, archs: set[str]) -> list[Row]:
    """One row for each measurement that a tour there would make, all without a time."""
    rows = []
    for chapter in (chapter for chapter in chapters if chapter.arch in archs):
        for name, peer in SETS.items():
            if name not in chapter.sets:
                continue
            shapes = dict.fromkeys(shape_of(*problem, chapter.pads) for problem in problems()[name])
            for shape, who, warm in ((shape, who, warm) for shape in shapes for warm in (False, True)
                                     for who in ("", peer)[:2 if peer and chapter.format == "bf16" else 1]):
                groups, m_total, m_max, n, k = shape
                row = Row(chapter=chapter.id, kernel="grouped_gemm", device=device, set=name, groups=groups, m_total=m_total,
                          m_max=m_max, n=n, k=k, format=chapter.format, warm=warm, peer=who, ok=True)
                row.variant = variant(row, chapters)
                rows.append(row)
    return rows


def preview_data(name: str, chapters: list[Chapter], directory: Path) -> Data:
    """Data of a device of which nothing is known but its name."""
    device, archs = DEVICES[name]
    data = plot.Data([directory / "emulator.csv"], "", chapters)  # its counts, and no rows
    data.device, data.is_preview, data.everywhere, data.compared, data.extra, data.others = device, True, [], [], [], []
    data.rows = rows_of(chapters, device, archs)
    data.measured_on = dict.fromkeys((row.chapter for row in data.rows), device)
    return data


def tables_page(data: Data, predicted: TileCounts) -> str:
    """The tables, a heading above each."""
    parts = [f"# What a tour on an {data.device} fills\n\nNothing here is measured: a dash stands where its number would.",
             "## The ladder\n\n" + tables.ladder_table(data)[0].replace("](", "](chapters/")]
    for chapter in data.chapters:
        if chapter.id in data.measured_on:
            parts.append(f"## {chapter.id}\n\n" + tables.chapter_table(data, chapter, everything=True)[0].rstrip())
            if any(who == chapter.id for who, *_ in predicted):
                parts.append(tables.costs_table(data, chapter, predicted))
    return "\n\n".join(parts) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", choices=sorted(DEVICES))
    parser.add_argument("--out", type=Path, required=True, help="where tables.md and figures/ go")
    parser.add_argument("--repo", type=Path, default=REPO, help=argparse.SUPPRESS)
    args = parser.parse_args()
    try:
        directory = args.repo / DATA
        data = preview_data(args.device, read_chapters(args.repo), directory)
        args.out.mkdir(parents=True, exist_ok=True)
        text, here = tables_page(data, read_costs(directory / "costs.csv")), os.path.relpath(args.repo, args.out)
        # Links of READMEs, as seen from there.
        text = text.replace("](../../", "](").replace("](", f"]({here}/")
        (args.out / "tables.md").write_text(text, encoding="utf-8")
        print(f"like: {args.out / 'tables.md'}")
        return 0 if plot.draw(data, args.out / "figures") else 1
    except BadData as error:
        print(f"like: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"like: cannot write: {error}", file=sys.stderr)
        return 4


if __name__ == "__main__":
    sys.exit(main())
