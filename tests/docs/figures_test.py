# SPDX-License-Identifier: MIT
"""The published figures are those that the committed data make, and made-up data land where they belong: on their axis, in
their column, the right way up. Exit code 77: there is no matplotlib, so no figure was compared."""

import contextlib
import importlib.util
import io
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "plots"), str(Path(__file__).parent)]

from draw import figures, plot, tables  # noqa: E402
from draw.results import Data  # noqa: E402
from measure.chapters import read_chapters  # noqa: E402
from measure.files import DATA  # noqa: E402
from plots_case import row, save  # noqa: E402

POINTS = 0.1  # that a place may differ, with another matplotlib: its fonts differ, not where data lie
SVG = "{http://www.w3.org/2000/svg}"
CHAPTERS = [("01_naive", ""), ("02_tiled", "01_naive")]
EQUAL, UNEVEN = [2048] * 8, [9216] + [1024] * 7


def drawn(text):
    """What an SVG shows: its texts, and the places of its paths and marks."""
    texts, places = [], []
    root = ElementTree.fromstring(text)
    legends = {part for group in root.iter() if group.get("id", "").startswith("legend") for part in group.iter()}
    for node in root.iter():
        if node.tag == SVG + "text":
            texts.append("".join(node.itertext()))
        numbers = node.get("d", "") if node.tag == SVG + "path" else f"{node.get('x')} {node.get('y')}" \
            if node.tag == SVG + "use" else ""
        numbers = "" if node in legends else numbers  # a font's height moves them
        places.append([float(each) for each in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", numbers)])
    return texts, [each for each in places if each]


def difference(one, other):
    """How two SVG texts differ in what they show, or nothing."""
    (texts, places), (others, there) = drawn(one), drawn(other)
    if texts != others:
        return f"texts: {sorted(set(texts) ^ set(others))}"
    if [len(each) for each in places] != [len(each) for each in there]:
        return "another number of paths or points"
    far = [(a, b) for each, same in zip(places, there) for a, b in zip(each, same) if abs(a - b) > POINTS]
    return f"{len(far)} places, the first is {far[0][0]}, not {far[0][1]}" if far else ""


class PublishedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.out = Path(folder.name)
        with contextlib.redirect_stdout(io.StringIO()):
            plot.draw(Data([ROOT / DATA], "", read_chapters(ROOT)), cls.out)

    def test_every_figure_is_what_the_data_make(self):
        committed = ROOT / "plots" / "figures"
        self.assertEqual(sorted(each.name for each in committed.iterdir()), sorted(each.name for each in self.out.iterdir()))
        for path in sorted(committed.iterdir()):
            with self.subTest(path.name):
                self.assertEqual(difference(path.read_text(encoding="utf-8"),
                                            (self.out / path.name).read_text(encoding="utf-8")), "",
                                 "cmake --build build --target publish")

    def test_a_moved_bar_and_an_edited_label_are_found(self):
        text = (self.out / "ladder.svg").read_text(encoding="utf-8")
        self.assertEqual(difference(text, text), "")
        bar = re.search(r'(<path d="M \S+ \S+ \nL )(\S+)( )', text)
        self.assertIn("places", difference(text.replace(bar[0], f"{bar[1]}{float(bar[2]) + 1}{bar[3]}", 1), text))
        label = re.search(r">(\d{3})</text>", text)
        self.assertIn("texts", difference(text.replace(label[0], ">999</text>", 1), text))


class MadeUpTest(unittest.TestCase):
    def setUp(self):
        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
        self.plt = plt
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(plt.close, "all")
        self.repo = Path(folder.name)
        for name, previous in CHAPTERS:
            (self.repo / "chapters" / name).mkdir(parents=True)
            (self.repo / "chapters" / name / "README.md").write_text("<!-- table -->\n<!-- /table -->\n")
            (self.repo / "chapters" / name / "main.cu").write_text(
                f'gg::Chapter info = {{.id = "{name}", .arch = gg::Arch::sm_80, .previous = "{previous}"}};\n')

    def data(self, *rows):
        save(self.repo / "data/h200/all.csv", [each | dict(kernel="grouped_gemm") for each in rows])
        return Data([self.repo / "data"], "", read_chapters(self.repo))

    def points(self, figure, *arguments):
        """The points of each line that a figure draws over data, and its bars as left, right and place."""
        fig, _ = figure(self.plt, *arguments)
        lines = [[(round(float(x), 3), round(float(y), 3)) for x, y in line.get_xydata()] for line in fig.axes[0].lines]
        bars = [(round(p.get_x(), 3), round(p.get_x() + p.get_width(), 3)) for p in fig.axes[0].patches]
        return lines, bars

    def test_skew_has_the_ratio_of_rows_across_and_of_times_up(self):
        data = self.data(row("01_naive", "skew", EQUAL, 10, us_median=100), row("01_naive", "skew", UNEVEN, 10, us_median=170))
        self.assertIn([(1.0, 1.0), (4.5, 1.7)], self.points(figures.skew, data)[0])

    def test_a_slower_library_lies_below_1(self):
        def timed(us, **more):
            return row("02_tiled", "peers", [512] * 8, 10, us_median=us, warm=1, **more)

        data = self.data(timed(10), timed(16, peer="cublas_loop"), timed(8, peer="triton_tma"))
        ys = sorted(y for line in self.points(figures.peers, data)[0][1:] for _, y in line)
        self.assertEqual(ys, [0.625, 1.25])

    def test_bars_of_the_ladder_end_at_the_rate(self):
        data = self.data(row("01_naive", "prefill", EQUAL, 12), row("02_tiled", "prefill", EQUAL, 40))
        self.assertEqual([right for _, right in self.points(figures.ladder, data)[1]], [12, 40])

    def test_step_has_rows_across_and_the_rate_up(self):
        data = self.data(*(row("02_tiled", "step", [m] * 8, rate) for m, rate in ((64, 20), (128, 30))),
                         row("01_naive", "step", [64] * 8, 5))
        lines = self.points(figures.step, data, data.chapters[1])[0]
        self.assertIn([(64, 20), (128, 30)], lines)
        self.assertIn([(64, 5)], lines)

    def test_roofline_has_intensity_across_and_the_rate_up(self):
        made = row("01_naive", "prefill", EQUAL, 12)
        data = self.data(made)
        self.assertIn([(round(1000 * 12 / made["gbytes_per_s"], 3), 12)], self.points(figures.roofline, data)[0])

    def test_each_column_of_a_chapters_table(self):
        cold, warm = row("01_naive", "prefill", EQUAL, 25), row("01_naive", "prefill", EQUAL, 50, warm=1)
        data = self.data(cold, warm)
        text, _ = tables.chapter_table(data, data.chapters[0])
        head, _, line = ([cell.strip() for cell in each.strip("|").split("|")] for each in text.splitlines()[:3])
        self.assertEqual(dict(zip(head[2:], line[2:])), {
            "µs cold": f"{cold['us_median']:.0f}", "µs warm": f"{warm['us_median']:.0f}", "TFLOP/s cold": "25.0",
            "TFLOP/s warm": "50.0", "GB/s cold": f"{cold['gbytes_per_s']:.3g}", "% of roof cold": "25 %"})


if __name__ == "__main__":
    if importlib.util.find_spec("matplotlib") is None:
        print("skipped: no matplotlib, so no figure was compared with the data")
        sys.exit(77)
    unittest.main()
