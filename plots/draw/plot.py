# SPDX-License-Identifier: MIT
"""Draws every figure that the measurements and counts allow; one line each says what was not drawn and why.

  python3 -B -m plots.draw.plot --data DIR [--data DIR ...] --out DIR

The figures show the first directory that holds measurements; those of the others are added as diamonds. Counts
are the same on every machine: of two of one thing the later directory's is drawn.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from plots.draw import figures, results
from plots.draw.canvas import GREY, NoData
from plots.draw.results import Data
from plots.measure.chapters import read_chapters
from plots.measure.files import DATA, BadData, Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[1]


def add_footer(fig: "Figure", source: str | list[Row], data: Data) -> None:
    """The footer: where the numbers come from, in words or as rows."""
    if isinstance(source, str):
        text = source
    elif data.is_preview:
        text = f"as a run on an {data.device} would fill it; nothing is measured"
    else:
        run = [row for row in source if row in data.extra]
        text = results.provenance([row for row in source if row not in run])
        text += "\ndiamonds, this run: " + results.provenance(run) if run else ""
    fig.text(6 / fig.bbox.width, 6 / fig.bbox.height, text, size=7, color=GREY, va="bottom")


def draw(data: Data, out: Path) -> bool:
    """Writes the figures; returns False if matplotlib is missing."""
    out.mkdir(parents=True, exist_ok=True)
    # Matplotlib's cache, which goes neither home nor among the figures.
    with tempfile.TemporaryDirectory() as cache:
        os.environ.setdefault("MPLCONFIGDIR", cache)
        return draw_each(data, out)


def each_figure(data: Data, wanted: list[str] | None = None) -> Iterator[tuple[str, "Figure"]]:
    """Name and figure, signed, of each that can be drawn, or of the wanted ones alone; of the others a line says why
    they cannot. A figure is closed when the next one is asked for. Without matplotlib: ImportError."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    matplotlib.rcdefaults()  # not the reader's own settings
    plt.style.use(HERE / "style.mplstyle")
    for name, function in figures.all_figures(data.chapters):
        if wanted and name not in wanted:
            continue
        try:
            fig, source = function(plt, data)
        except NoData as reason:
            print(f"plots: {name}: not drawn, {reason}")
            continue
        add_footer(fig, source, data)
        yield name, fig
        plt.close(fig)


def draw_each(data: Data, out: Path) -> bool:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        print(f"plots: no figures: {sys.executable} has no matplotlib; `cmake --preset tour` fetches it",
              file=sys.stderr)
        return False
    if data.rows and not data.is_preview and not any(row.roof_tflops for row in data.rows):
        print("plots: no roofs: no row has one; build/bin/gg-roof measures them before the chapters run")
    if data.rows and not data.is_preview and not any(row.peer for row in data.rows):
        print("plots: no libraries: no row has a peer; --peer times them")
    for device in data.others:
        print(f"plots: {device}: not drawn, {data.device} has more rows; --gpu chooses")
    for name, fig in each_figure(data):
        beside = out / f".{name}.svg"
        fig.savefig(beside, format="svg", metadata={"Date": None, "Creator": None, "Title": name})
        beside.replace(out / f"{name}.svg")
        print(f"plots: {name}: {out / name}.svg")
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", action="append", type=Path, help="with CSV files (default: plots/measure/data)")
    parser.add_argument("--out", type=Path, required=True, help="where the .svg files go")
    parser.add_argument("--chapters", type=Path, help="a chapters.json (default: chapters/chapters.json)")
    parser.add_argument("--gpu", default="", help="part of the device's name, where several are measured")
    parser.add_argument("--repo", type=Path, default=REPO, help=argparse.SUPPRESS)
    args = parser.parse_args()
    try:
        folders = args.data or [REPO / DATA]
        for folder in folders:
            # The folder of a tour is there behind a tour.
            if not folder.is_dir() and (folder.exists() or folder == folders[0]):
                raise BadData(f"{folder}: is no folder; one with CSV files is wanted")
        data = Data(folders, args.gpu, read_chapters(args.repo, args.chapters))
        if args.gpu and not data.device:
            raise BadData(f"--gpu {args.gpu}: no device of that name was measured")
        return 0 if draw(data, args.out) else 1
    except BadData as error:
        print(f"plots: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"plots: cannot write: {error}", file=sys.stderr)
        return 4


if __name__ == "__main__":
    sys.exit(main())
