# SPDX-License-Identifier: MIT
"""Made-up measurements in a temporary folder, for the tests of plots/: nothing in the tree changes."""

import contextlib
import csv
import importlib.util
import io
import json
import os
import sys
import tempfile
import unittest
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING
from unittest import mock

from plots.measure.chapters import COMMITTED
from plots.measure.files import COLUMNS, COUNT_COLUMNS, DATA

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[2]
HAVE_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None
with_matplotlib = unittest.skipUnless(HAVE_MATPLOTLIB, "no matplotlib")
CHAPTERS = [("01_naive", "", 10), ("02_tiled", "01_naive", 40), ("03_tensor_cores", "02_tiled", 30)]
SETS = {"prefill": [[2048] * 8], "decode": [[16] * 32], "skewed": [[4096, 0, 64, 32]],
        "step": [[1] * 8, [64] * 8, [8192] * 8], "skew": [[2048] * 8, [9216] + [1024] * 7]}


FORMATS = {"bf16": {"in": "bf16", "d": "bf16"}, "f32": {"in": "bf16", "d": "f32"},  # the last: of D
           "mxfp4": {"in": "mxfp4", "d": "bf16", "element": "e2m1", "block": 32, "scale": "ue8m0"},
           "nvfp4": {"in": "nvfp4", "d": "bf16", "element": "e2m1", "block": 16, "scale": "ue4m3"}}
# Parts of the course by the numbers of chapters
PARTS = {"02": "01", "04": "03", "05": "03", "07": "06"}
BLACKWELL = dict(arch="100a", sets=["prefill", "decode", "step"], tile_clusters=["256x256 with 2x1", "128x256 with 1x1"])


def describe(repo: Path, name: str, previous: str = "", fmt: str = "bf16", **more: object) -> None:
    """Writes a chapter into a repository's chapters.json, in place of what stood there of it."""
    path = repo / COMMITTED
    described = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"chapters": [], "sets": {}}
    about = dict(id=name, title=f"Idea of {name}", part=PARTS.get(name[:2], name[:2]), arch="80", previous=previous, formats=[FORMATS[fmt]],
                 sets=[], tile_clusters=[],
                 chooses_tile=False, limits={"m_multiple": 1, "equal_groups": False}) | more
    chapters = {each["id"]: each for each in described["chapters"]} | {name: about}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(described | {"chapters": [chapters[each] for each in sorted(chapters)]}), encoding="utf-8")


def row(chapter: str, name: str, m: list[int], tflops: float, **changed: object) -> dict:
    """One line of a CSV file, its derived numbers consistent with each other."""
    n, k = 4096, 7168
    flop = 2 * sum(m) * n * k
    moved = 2 * (sum(m) * (n + k) + sum(rows > 0 for rows in m) * n * k)
    us = flop / tflops / 1e6
    fields = dict.fromkeys(COLUMNS, "")
    fields |= dict(chapter=chapter, kernel="grouped_gemm 128x64", device="NVIDIA H200", clock_mhz=1980,
                   cuda="13.0", commit="0123456789abcdef", date="2026-01-02", format="bf16", warm=0, ok=1)
    fields |= {"set": name, "groups": len(m), "m_total": sum(m), "m_max": max(m), "n": n, "k": k}
    fields |= dict(us_median=us, tflops=tflops, gbytes_per_s=moved / us / 1e3,
                   roof_tflops=min(100, 4 * flop / moved))
    fields |= changed
    if not fields["ok"]:
        fields |= dict(us_median="", tflops="", gbytes_per_s="")
    return fields


def counted(chapter: str, conflicts: int, name: str = "smoke", order: str = "0:fair") -> list[dict]:
    """The lines of a chapter's counts, of 1000 useful FLOP."""
    counters = dict(instructions=7, global_load_sectors=20, global_store_sectors=4, global_atomic_sectors=0,
                    shared_wavefronts=30, shared_bank_conflicts=conflicts, instructions_mma=0,
                    barrier_waits=0, global_load_bytes=600, multiply_adds=2000, useful_multiply_adds=500)
    return [dict(zip(COUNT_COLUMNS, (chapter, name, order, *each))) for each in counters.items()]


def save(path: Path, rows: Iterable[dict], columns: list[str] = COLUMNS) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


def laid_out(fig: "Figure") -> tuple[list[str], list[tuple[str, str]]]:
    """The texts of a figure, and those that lie over another text, a line or a bar, or beyond the paper."""
    from matplotlib.text import Text
    fig.draw_without_rendering()
    unseen = {label for ax in fig.axes for axis in (ax.xaxis, ax.yaxis) for tick in axis.get_major_ticks()
              if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
              for label in (tick.label1, tick.label2)}
    texts = [text for text in fig.findobj(Text) if text not in unseen and text.get_visible() and text.get_text()]
    # The box of an annotation without its arrow.
    boxes = [(text.get_text(), Text.get_window_extent(text)) for text in texts]
    lines = [line.get_transform().transform_path(line.get_path()) for ax in fig.axes for line in ax.lines
             if line.get_linestyle() not in ("", "None")]
    bars = [bar.get_window_extent() for ax in fig.axes for bar in ax.patches]
    wrong = [(text, other) for i, (text, box) in enumerate(boxes) for other, its in boxes[:i] if box.overlaps(its)]
    wrong += [(text, "a line") for text, box in boxes for line in lines if line.intersects_bbox(box, filled=False)]
    wrong += [(text, "a bar") for text, box in boxes for bar in bars if bar.width and box.overlaps(bar)]
    wrong += [(text, "beyond the paper") for text, box in boxes
              if box.x0 < 0 or box.y0 < 0 or box.x1 > fig.bbox.x1 or box.y1 > fig.bbox.y1]
    return [text for text, _ in boxes], wrong


class PlotsCase(unittest.TestCase):
    """A repository of three chapters, with READMEs that ask for tables."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.repo = Path(folder.name)
        self.data = self.repo / DATA / "h200"
        text = "# Title\n<!-- table -->\nold\n<!-- /table -->\nkept\n"
        for name, previous, _ in CHAPTERS:
            chapter = self.repo / "chapters" / name
            chapter.mkdir(parents=True)
            describe(self.repo, name, previous, tile_clusters=["128x64 with 1x1", "64x64 with 1x1"])
            (chapter / "kernel.cuh").write_text("same\n  " + name + "\n")
            (chapter / "README.md").write_text(text)
        (self.repo / "README.md").write_text("<!-- milestones -->\n<!-- /milestones -->\n")
        (self.repo / "chapters" / "LADDER.md").write_text(text + "<!-- tally -->\n<!-- /tally -->\n")

    def measure(self, name: str = "all.csv", **changed: object) -> None:
        shapes = [(name, m) for name, some in SETS.items() for m in some]
        save(self.data / name, [row(chapter, name, m, tflops, **changed)
                                for chapter, _, tflops in CHAPTERS for name, m in shapes])

    def run_tool(self, tool: ModuleType, *arguments: Path | str) -> tuple[int, str, str]:
        """Exit status, stdout and stderr of plot.py or publish.py."""
        out, err = io.StringIO(), io.StringIO()
        command = [tool.__name__, "--repo", str(self.repo), *map(str, arguments)]
        with mock.patch.object(sys, "argv", command), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = tool.main()
        return status, out.getvalue(), err.getvalue()

    def fill(self, publish: ModuleType, *arguments: Path | str) -> tuple[int, str, str]:
        """As run_tool does, without the figures, which take most of the time, for those that look at tables alone."""
        with mock.patch.object(publish.plot, "draw", return_value=True):
            return self.run_tool(publish, *arguments)

    def cells(self, path: str, start: str) -> list[str]:
        text = (self.repo / path).read_text()
        lines = [line for line in text.splitlines() if line.startswith(f"| {start}")]
        self.assertEqual(len(lines), 1, text)
        return [cell.strip() for cell in lines[0].strip("|").split("|")]

    def blackwell(self, name: str, previous: str, fmt: str, **more: object) -> None:
        """A chapter for Blackwell."""
        chapter = self.repo / "chapters" / name
        chapter.mkdir(parents=True)
        describe(self.repo, name, previous, fmt, **BLACKWELL, **more)
        (chapter / "kernel.cuh").write_text("same\n" + name + "\n")
        (chapter / "README.md").write_text("<!-- table -->\nold\n<!-- /table -->\n")


def main() -> None:
    """Runs the tests of a file; a build that has what draws the figures does not skip those that draw."""
    if os.environ.get("GG_FIGURES") == "ON" and not HAVE_MATPLOTLIB:
        sys.exit(f"{Path(sys.argv[0]).stem}: the build has what draws the figures, and this Python does not")
    unittest.main(verbosity=2)
