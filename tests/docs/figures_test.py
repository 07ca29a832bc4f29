# SPDX-License-Identifier: MIT
"""The published figures are those that the committed data make, and made-up data land where they belong: on their axis, in
their column, the right way up. Exit code 77: there is no matplotlib, so no figure was compared."""

import contextlib
import importlib.util
import io
import math
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from plots.draw import beside, canvas, figures, plot, preview, tables
from plots.draw.canvas import DARK, GREY, PALE
from plots.draw.results import Data
from plots.measure import costs
from plots.measure.chapters import read_chapters
from plots.measure.files import COUNT_COLUMNS, DATA, ERROR_COLUMNS, TIMELINE_COLUMNS
from tests.docs.plots_case import counted, describe, laid_out, row, save

ROOT = Path(__file__).resolve().parents[2]
# A place may differ by this, with another matplotlib: its fonts differ, not where data lie.
POINTS = 0.1
SVG = "{http://www.w3.org/2000/svg}"
CHAPTERS = [("01_naive", ""), ("02_tiled", "01_naive")]
EQUAL, UNEVEN = [2048] * 8, [9216] + [1024] * 7


def timed(chapter, name, m, tflops, **changed):
    """A row of a chapter that has no choice of tiles."""
    return row(chapter, name, m, tflops, **dict(kernel="grouped_gemm") | changed)


def drawn(text):
    """What an SVG shows: its texts, the places of its paths and marks, and their colours, how opaque and of which dashes."""
    texts, places, looks = [], [], []
    root = ElementTree.fromstring(text)
    legends = {part for group in root.iter() if group.get("id", "").startswith("legend") for part in group.iter()}
    for node in root.iter():
        if node.tag == SVG + "text":
            texts.append("".join(node.itertext()))
        numbers = node.get("d", "") if node.tag == SVG + "path" else f"{node.get('x')} {node.get('y')}" \
            if node.tag == SVG + "use" else ""
        numbers = "" if node in legends else numbers  # a font's height moves them
        places.append([float(each) for each in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", numbers)])
        looks += re.findall(r"(?:fill|stroke|opacity|stroke-opacity|stroke-dasharray): [^;]+", node.get("style", ""))
    return texts, [each for each in places if each], looks


def difference(one, other):
    """How two SVG texts differ in what they show, or nothing."""
    (texts, places, looks), (others, there, otherwise) = drawn(one), drawn(other)
    if looks != otherwise:
        return f"looks: {sorted(set(looks) ^ set(otherwise))}"
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
        cls.out, cls.laid_out, each_figure = Path(folder.name), {}, plot.each_figure

        def looked_at(*arguments):
            for name, fig in each_figure(*arguments):
                cls.laid_out[name] = laid_out(fig)
                yield name, fig

        cls.chapters = read_chapters(ROOT)
        with contextlib.redirect_stdout(io.StringIO()), mock.patch.object(plot, "each_figure", looked_at):
            plot.draw(Data([ROOT / DATA], "", cls.chapters), cls.out)

    def test_nothing_lies_over_a_text(self):
        self.assertGreater(len(self.laid_out), 6)
        for name, (texts, wrong) in self.laid_out.items():
            self.assertEqual(wrong, [], name)
            self.assertGreater(len(texts), 10, name)
        names = [chapter.id.replace("_", " ") for chapter in self.chapters]
        self.assertEqual([text for text in self.laid_out["counts"][0] if text in names], names)

    def test_every_figure_is_what_the_data_make(self):
        committed = ROOT / "plots" / "figures"
        # tour.png alone is no drawing: a screenshot of a tour's page, made by hand.
        drawn = sorted(each for each in committed.iterdir() if each.name != "tour.png")
        self.assertEqual([each.name for each in drawn], sorted(each.name for each in self.out.iterdir()))
        for path in drawn:
            with self.subTest(path.name):
                self.assertEqual(difference(path.read_text(encoding="utf-8"),
                                            (self.out / path.name).read_text(encoding="utf-8")), "",
                                 "cmake --build build --target publish")

    def test_a_moved_bar_an_edited_label_and_another_colour_are_found(self):
        text = (self.out / "ladder.svg").read_text(encoding="utf-8")
        self.assertEqual(difference(text, text), "")
        bar = re.search(r'(<path d="M \S+ \S+ \nL )(\S+)( )', text)
        self.assertIn("places", difference(text.replace(bar[0], f"{bar[1]}{float(bar[2]) + 1}{bar[3]}", 1), text))
        self.assertIn("looks", difference(text.replace("fill: #0b7a69", "fill: #a8650f", 1), text))
        label = re.search(r">(\d{3})</text>", text)
        self.assertIn("texts", difference(text.replace(label[0], ">999</text>", 1), text))


def near(number):
    return None if math.isnan(number) else round(float(number), 3)


class Seen:
    """What axes show, in the units of their data."""

    def __init__(self, ax):
        self.ax = ax
        # The points of each line, and of those without a line the points of their marks.
        self.lines = [[(near(x), near(y)) for x, y in line.get_xydata()] for line in ax.lines if line.get_linestyle() != "None"]
        self.marks = [[(near(x), near(y)) for x, y in line.get_xydata()] for line in ax.lines if line.get_linestyle() == "None"]
        # Left, right, bottom and top of each bar.
        self.bars = [tuple(map(near, (bar.get_x(), bar.get_x() + bar.get_width(), bar.get_y(), bar.get_y() + bar.get_height())))
                     for bar in ax.patches]
        # Each text with the point that it belongs to.
        self.texts = [(text.get_text(), *map(near, getattr(text, "xy", text.get_position()))) for text in ax.texts]
        self.labels = ax.get_xlabel(), ax.get_ylabel()
        self.limits = [tuple(map(near, limits)) for limits in (ax.get_xlim(), ax.get_ylim())]
        self.scales = ax.get_xscale(), ax.get_yscale()
        self.ticks = [[(near(at), label.get_text()) for at, label in zip(axis.get_majorticklocs(), axis.get_ticklabels())]
                      for axis in (ax.xaxis, ax.yaxis)]

    def colours(self):
        return [line.get_color() for line in self.ax.lines]

    def inks(self):
        return ["#" + "".join(f"{round(255 * part):02x}" for part in bar.get_facecolor()[:3]) for bar in self.ax.patches]

    def rows(self):
        """Of each row from the top its name and, from left to right, what stands beside its bar."""
        def across(text):
            return text.xy[0], text.get_position()[0]

        some = sorted((text for text in self.ax.texts if text.get_text()), key=across)
        return [[name, *(text.get_text() for text in some if text.xy[1] == y)] for y, name in self.ticks[1]]


class MadeUpTest(unittest.TestCase):
    """Each figure of a few numbers, made up so that what it must show can be worked out by hand."""

    @classmethod
    def setUpClass(cls):
        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
        plt.style.use(plot.HERE / "style.mplstyle")
        cls.plt = plt

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(self.plt.close, "all")
        self.repo = Path(folder.name)
        for name, previous in CHAPTERS:
            self.chapter(name, previous)

    def chapter(self, name, previous, fmt="bf16", **more):
        folder = self.repo / "chapters" / name
        folder.mkdir(parents=True)
        (folder / "README.md").write_text("<!-- table -->\n<!-- /table -->\n")
        describe(self.repo, name, previous, fmt, **more)

    def data(self, *rows, run=()):
        """Measurements; those of `run` are a reader's."""
        for folder, some in (("data", rows), ("tour", run)):
            save(self.repo / folder / "h200/all.csv", some)
        return Data([self.repo / "data", self.repo / "tour"], "", read_chapters(self.repo))

    def seen(self, figure, *arguments):
        """The figure's axes as they are seen, its title and the line below, and the source that it names."""
        fig, source = figure(self.plt, *arguments)
        title, below = (each.get_text() for each in fig.texts[:2])
        self.fig = fig
        return [Seen(ax) for ax in fig.axes], title, below, source

    def test_ladder(self):
        for name, previous in (("03_mma", "02_tiled"), ("04_more", "02_tiled"), ("05a_none", "04_more"), ("06a_bad", "04_more")):
            self.chapter(name, previous)
        self.chapter("08a_fp4", "04_more", "nvfp4", arch="100a")
        data = self.data(
            timed("01_naive", "prefill", EQUAL, 12, roof_tflops=480), timed("02_tiled", "prefill", EQUAL, 150, roof_tflops=500),
            timed("02_tiled", "prefill", EQUAL, 200, warm=1), timed("03_mma", "prefill", EQUAL, 140.4, roof_tflops=500),
            timed("04_more", "prefill", EQUAL, 400, roof_tflops=500, date="2026-01-03"),
            *(timed("04_more", "prefill", EQUAL, rate, peer=peer, date="2026-01-03", roof_tflops=500)
              for peer, rate in (("cublas_loop", 380), ("triton", 330))),
            # Not beside the last.
            timed("03_mma", "prefill", EQUAL, 390, peer="deepgemm", roof_tflops=500),
            timed("06a_bad", "prefill", EQUAL, 1, ok=0),
            timed("08a_fp4", "prefill", EQUAL, 1500, device="NVIDIA B200", format="nvfp4", roof_tflops=9000),
            run=[timed("02_tiled", "prefill", EQUAL, 160, date="2026-02-02")])
        (ax,), title, below, source = self.seen(figures.ladder, data)
        self.assertEqual((title, below), ("What each chapter gains", "TFLOP/s on set prefill and the gain over the predecessor; "
                                          "cold inputs, bf16 unless named"))
        self.assertEqual(ax.rows(), [
            ["01 naive", "not timed yet: 05a", "12"], ["02 tiled", "150", "×12.5, other run"],
            ["03 mma", "140", "×0.94, slower, other run"],
            ["04 more", "400", "×2.67 on 02, other run"], ["06a bad", "failed"], ["08a fp4", "1500", "nvfp4, B200"]])
        self.assertEqual([bar[:2] for bar in ax.bars], [(1, 12), (1, 150), (1, 140.4), (1, 400), (1, 1500)])
        self.assertEqual([(bar[2] + bar[3]) / 2 for bar in ax.bars], [0, 1, 2, 3, 5])
        self.assertEqual((ax.scales[0], ax.limits, ax.labels[0]), ("log", [(1, 1650), (5.5, -0.5)], "TFLOP/s, log scale"))
        self.assertEqual([line[0] for line in ax.lines], [(380, 0), (500, 0)])
        self.assertEqual([text for text in ax.texts if text[2] == -0.5], [
            ("TFLOP/s", 1, -0.5), ("gain", 1, -0.5), ("cublas_loop 380 on H200", 380, -0.5), ("measured roof 500 on H200", 500, -0.5)])
        self.assertIn(("not timed yet: 05a", 0, 0), ax.texts)
        self.assertEqual(ax.marks, [[(160, 1.2)]])
        self.assertEqual([row.tflops for row in source if row in data.extra], [160])
        self.assertEqual(ax.inks(), ["#a8650f", "#a8650f", "#0b7a69", "#0b7a69", "#7b3fb0"])

    def test_ladder_with_each_chapter_on_its_own_problem(self):
        self.chapter("03_mma", "02_tiled")
        for name, problems in (("02_tiled", "decode"), ("03_mma", "prefill")):
            (self.repo / "chapters" / name / "checks").mkdir(parents=True)
            (self.repo / "chapters" / name / "checks" / "counts.ini").write_text(f"[shown]\nproblems = {problems}\n")
        few = [16] * 32
        data = self.data(timed("01_naive", "prefill", EQUAL, 12), timed("02_tiled", "prefill", EQUAL, 150),
                         timed("03_mma", "prefill", EQUAL, 120), timed("01_naive", "decode", few, 2), timed("02_tiled", "decode", few, 5),
                         timed("02_tiled", "decode", few, 9, warm=1), timed("02_tiled", "decode", few, 8, peer="cublas_loop"))
        (ax, own), _, _, source = self.seen(figures.ladder, data)
        own.ticks = ax.ticks  # which they share
        self.assertEqual(own.rows(), [["01 naive", "12"], ["02 tiled", "150", "×12.5, other run", "×2.50 on decode, other run"],
                                      ["03 mma", "120", "×0.80, slower, other run", "×0.80 on prefill, other run"]])
        self.assertEqual([text for text in own.texts if text[2] == -0.5],
                         [("TFLOP/s", 1, -0.5), ("gain", 1, -0.5), ("on its own problem", 1, -0.5)])
        self.assertEqual((own.scales[0], own.labels[0]), ("log", "times as fast on its own problem, log scale"))
        self.assertEqual([(round(float(line.get_xdata()[0]), 2), line.get_ydata()[0]) for line in own.ax.lines if line.get_marker() == "o"],
                         [(2.5, 1), (0.8, 2)])
        self.assertIn((1, 0), own.lines[0], "a line at as fast as before")
        self.assertEqual({row.set for row in source}, {"prefill", "decode"})

    def test_ladder_of_slow_chapters(self):
        data = self.data(timed("01_naive", "prefill", EQUAL, 1.234, warm=1), timed("02_tiled", "prefill", EQUAL, 300, warm=1))
        (ax,), _, below, _ = self.seen(figures.ladder, data)
        self.assertEqual(below, "TFLOP/s on set prefill and the gain over the predecessor; warm inputs, bf16")
        self.assertEqual(ax.rows(), [["01 naive", "1.23"], ["02 tiled", "300", "×243.1, other run"]])
        self.assertEqual([bar[:2] for bar in ax.bars], [(0.1, 1.234), (0.1, 300)])
        self.assertEqual(ax.limits[0], (0.1, 330))

    def test_step(self):
        roofs = {64: 60, 128: 80, 256: 85, 512: 90}

        def made(chapter, m, rate, **more):
            return timed(chapter, "step", [m] * 8, rate, roof_tflops=roofs[m], **more)

        data = self.data(
            made("02_tiled", 512, 50), made("02_tiled", 64, 20), made("02_tiled", 128, 30), made("02_tiled", 256, 1, ok=0),
            made("02_tiled", 64, 99, kernel="grouped_gemm 64x64"), made("01_naive", 64, 5), made("01_naive", 512, 8),
            *(made("02_tiled", m, rate, peer=peer) for peer, m, rate in
              (("triton", 64, 70), ("cublas_loop", 64, 40), ("cublas_loop", 512, 60), ("deepgemm", 64, 10), ("deepgemm", 512, 61))),
            made("02_tiled", 512, 70, peer="cublas_plain"), run=[made("02_tiled", 128, 33)])
        (ax,), title, below, _ = self.seen(figures.step, data, data.chapters[1])
        self.assertEqual((title, below), ("02_tiled: Idea of 02_tiled", "8 equal groups, N = 4096, K = 7168; cold inputs, bf16"))
        self.assertEqual(ax.lines, [[(64, 40), (512, 60)], [(64, 5), (512, 8)], [(64, 20), (128, 30), (256, None), (512, 50)]])
        self.assertEqual(ax.colours()[:3], [DARK, GREY, "#a8650f"])
        self.assertEqual(ax.marks, [[(128, 33)]])
        self.assertEqual(ax.texts, [(" above the measured roof", 64, round(95.4 * 0.98, 3)), ("failed", 256, round(95.4 * 0.06, 3)),
                                    ("cublas_loop 60", 512, 60), ("01_naive 8", 512, 8), ("02_tiled 50", 512, 50)])
        self.assertEqual(ax.limits, [(53.333, 614.4), (0, 95.4)])  # 1.06 of the roof
        self.assertEqual((ax.labels, ax.scales), (("rows per group, log scale", "TFLOP/s"), ("log", "linear")))
        self.assertEqual(ax.ticks[0], [(64, "64"), (128, "128"), (256, "256"), (512, "512")])
        shade = ax.ax.collections[0].get_paths()[0].vertices
        self.assertEqual({tuple(point) for point in shade}, {*roofs.items(), *((m, 95.4) for m in roofs)})

    def test_step_and_ladder_of_a_gpu_that_is_not_here(self):
        for name, previous in CHAPTERS:
            describe(self.repo, name, previous, sets=["prefill", "step"])
        self.chapter("08a_fp4", "02_tiled", "nvfp4", arch="100a", sets=["prefill", "step"])
        data = preview.preview_data("b200", read_chapters(self.repo), self.repo)
        (ax,), _, _, _ = self.seen(figures.step, data, data.chapters[2])
        self.assertEqual(ax.texts, [(" data sheet 9000", 1, 9000)])
        self.assertEqual((ax.lines[0], ax.limits[1]), ([(0, 9000), (1, 9000)], (0, 9810)))
        (ax,), _, _, _ = self.seen(figures.ladder, data)
        self.assertEqual(ax.rows(), [["01 naive", "?"], ["02 tiled", "?"], ["08a fp4", "?", "nvfp4"]])
        self.assertIn(("data sheet 2250", 2250, -0.5), ax.texts)

    def test_roofline(self):
        def made(chapter, name, intensity, rate, roof, **more):
            return timed(chapter, name, EQUAL, rate, gbytes_per_s=1000 * rate / intensity, roof_tflops=roof,
                         roof_kind="matrix" if name == "prefill" else "bandwidth", **more)

        data = self.data(
            made("01_naive", "decode", 16, 4, 40), made("01_naive", "prefill", 512, 20, 600), made("02_tiled", "decode", 16, 8, 40),
            made("02_tiled", "prefill", 512, 90, 600), made("02_tiled", "skewed", 64, 30, 160),
            made("02_tiled", "prefill", 512, 300, 600, peer="cublas_loop"), made("02_tiled", "decode", 16, 30, 40, peer="cublas_loop"),
            made("02_tiled", "prefill", 700, 900, 5000, format="mxfp8"), run=[made("02_tiled", "skewed", 64, 33, 160)])
        (ax,), title, below, _ = self.seen(figures.roofline, data)
        self.assertEqual((title, below), ("Every chapter under the roofs", "sets decode, skewed and prefill; cold inputs, bf16"))
        left, right = 16 / 1.9, 512 * 1.2
        # 4 / 2.5, and 1.5 of 989.
        self.assertEqual(ax.limits, [(round(left, 3), round(right, 3)), (1.6, 1483.5)])
        # 2.5 TB/s and 600 TFLOP/s meet at 240 FLOP a byte, 4.8 and 989 at 206.
        self.assertEqual(ax.lines[:2], [[(round(left, 3), round(2.5 * left, 3)), (240, 600), (round(right, 3), 600)],
                                        [(round(left, 3), round(4.8 * left, 3)), (206.042, 989), (round(right, 3), 989)]])
        self.assertEqual(sorted(line[0] for line in ax.lines[2:5]), [(16, 0), (64, 0), (512, 0)])
        self.assertEqual(ax.lines[5:], [[(16, 4), (512, 20)], [(16, 8), (64, 30), (512, 90)]])
        self.assertEqual(ax.marks, [[(512, 300)], [(64, 33)]])
        self.assertEqual(sorted(ax.texts, key=str), sorted([
            ("decode", 16, 1.6), ("skewed", 64, 1.6), ("prefill", 512, 1.6), ("measured 600, 2.5 TB/s", round(right, 3), 600),
            ("data sheet 989, 4.8 TB/s", round(right, 3), 989), ("01_naive", 512, 20), ("02_tiled", 512, 90),
            ("cublas_loop", 512, 300)], key=str))
        self.assertEqual(ax.labels, ("FLOP per byte of unavoidable traffic (A, B and D once each), log scale", "TFLOP/s, log scale"))
        self.assertEqual((ax.scales, [text for _, text in ax.ticks[0]]), (("log", "log"), ["16", "32", "64", "128", "256", "512"]))

    def test_skew(self):
        data = self.data(
            timed("01_naive", "skew", EQUAL, 1, us_median=100), timed("01_naive", "skew", UNEVEN, 1, us_median=170),
            timed("02_tiled", "skew", EQUAL, 1, us_median=40), timed("02_tiled", "skew", UNEVEN, 1, us_median=80),
            timed("02_tiled", "skew", [4096] * 2 + [1365] * 6, 1, us_median=30, peer="cublas_loop"))
        (ax,), title, below, _ = self.seen(figures.skew, data)
        self.assertEqual((title, below), ("What uneven groups cost", "16384 rows in 8 groups, N = 4096, K = 7168; cold inputs, bf16"))
        # 9216 of a mean of 2048.
        self.assertEqual(ax.lines, [[(0, 1), (1, 1)], [(1, 1), (4.5, 1.7)], [(1, 1), (4.5, 2)]])
        self.assertEqual(ax.texts, [("01_naive", 4.5, 1.7), ("02_tiled", 4.5, 2)])
        self.assertEqual(ax.limits, [(round(1 / 1.06, 3), 4.77), (0, 2.2)])
        self.assertEqual(ax.ticks[0], [(1, "1"), (4.5, "4.5")])
        self.assertEqual(ax.labels, ("rows of the largest group / mean rows, log scale", "time / time of equal groups"))

    def test_occupancy(self):
        (ax,), title, below, source = self.seen(figures.occupancy, None)
        self.assertEqual((title, below), ("What a tile of BM rows wastes", "useful rows of a group of M rows: M / (BM · ⌈M / BM⌉)"))
        for line, bm in zip(ax.lines, (64, 128, 256)):
            found = dict(line)
            self.assertEqual((min(found), max(found), len(found)), (1, 1024, 1024))
            self.assertEqual([found[m] for m in (1, bm // 4, bm, bm + bm // 2, 1024)], [round(100 / bm, 3), 25, 100, 75, 100])
        self.assertEqual(ax.texts, [("BM 64", 64, 102), ("BM 128", 128, 102), ("BM 256", 256, 102)])
        self.assertEqual((ax.limits, ax.scales), ([(1, 1024), (0, 108)], ("log", "linear")))
        self.assertEqual(ax.labels, ("rows per group, log scale", "useful rows, % of computed rows"))
        self.assertEqual(source, "drawn from the formula, nothing measured")

    def test_peers(self):
        def warm(m, us, **more):
            return timed("02_tiled", "peers", m, 10, us_median=us, **dict(warm=1) | more)

        some = [
            warm([512] * 8, 10), warm([300, 100], 20), warm([512] * 8, 16, peer="cublas_loop"),
            warm([512] * 8, 12.5, peer="cublas_grouped"),
            warm([512] * 8, 8, peer="triton_tma"), warm([300, 100], 80, peer="triton_tma"), warm([512] * 8, 1, peer="cublas_plain"),
            warm([512] * 8, 2, peer="deepgemm", warm=0), warm([512] * 8, 3, peer="torch", ok=0),
            warm([512] * 8, 1, kernel="grouped_gemm 64x64"), warm([512] * 8, 12.5, kernel="grouped_gemm off=pdl"),
            timed("01_naive", "peers", [512] * 8, 1, us_median=9, warm=1)]
        (ax,), title, below, source = self.seen(beside.peers, self.data(*some))
        self.assertEqual((title, below), ("Libraries beside 02_tiled", "their rate over ours, warm inputs, bf16; below 1 they are slower. "
                                          "M: rows of all groups"))
        self.assertEqual(ax.lines, [[(0, 1), (1, 1)]])
        # For cuBLAS its quicker way.
        self.assertEqual(ax.marks, [[(-0.07, 0.8)], [(0.07, 1.25), (1.07, 0.25)]])
        self.assertEqual([text.get_text() for text in ax.ax.get_legend().get_texts()], ["cublas", "triton"])
        self.assertEqual(ax.ticks[0], [(0, "G=8\nM=4096\nN=4096\nK=7168"), (1, "G=2\nM=400\nN=4096\nK=7168\nuneven")])
        self.assertEqual((ax.limits, ax.labels[1]), ([(-0.5, 1.5), (0, 1.4)], "rate over ours"))
        self.assertEqual({row.chapter for row in source}, {"02_tiled"})
        # Without dependent launch on all problems: that is what they are compared with.
        (ax,), _, below, source = self.seen(beside.peers, self.data(*some, warm([300, 100], 40, kernel="grouped_gemm off=pdl")))
        self.assertIn("M: rows of all groups. Ours starts when the launch before it has ended", below)
        self.assertEqual(ax.marks, [[(-0.07, 1)], [(0.07, 1.562), (1.07, 0.5)]])
        self.assertEqual(sorted(row.us_median for row in source if not row.peer), [12.5, 40])

    def test_gradients(self):
        def cold(m, us, d="", **more):
            return timed("02_tiled", "wgrad", m, 10, us_median=us, kernel="grouped_gemm" + d, **more)

        (ax,), title, below, source = self.seen(beside.gradients, self.data(
            cold([512] * 8, 10), cold([512] * 8, 8, " d=bf16"), cold([512] * 8, 16, peer="cutlass_wgrad"),
            cold([512] * 8, 1, " d=f32", peer="cutlass_wgrad"), cold([512] * 8, 2, warm=1, peer="triton_wgrad"),
            cold([512] * 8, 2, " d=bf16", warm=1), cold([300, 100], 4, peer="cutlass_wgrad")))
        self.assertEqual((title, below), ("Libraries beside 02_tiled", "their rate over ours, cold inputs, D of bf16; below 1 they are "
                                          "slower. M: rows of all groups"))
        self.assertEqual((ax.marks, ax.ticks[0]), ([[(0, 0.5)]], [(0, "G=8\nM=4096\nN=4096\nK=7168")]))
        self.assertEqual(sorted(row.us_median for row in source), [4, 8, 16])

    def test_counts(self):
        def counters(chapter, atomics, conflicts, **more):
            found = [each for each in counted(chapter, conflicts) if each["counter"] not in more]
            # 3000 useful FLOP.
            more["global_atomic_sectors"], more["useful_multiply_adds"] = atomics, 1500
            found = [each | dict(value=more.pop(each["counter"], each["value"])) for each in found]
            return found + [dict(found[0], counter=name, value=value) for name, value in more.items()]

        self.chapter("03_none", "02_tiled")
        save(self.repo / "data/emulator.csv", counters("01_naive", 6, 12) + counters("02_tiled", 0, 0, shared_wavefronts=0)
             + counted("02_tiled", 99, order="1:skew") + counted("02_tiled", 99, name="own"), COUNT_COLUMNS)
        axes, title, below, source = self.seen(figures.counts, self.data())
        self.assertEqual((title, below), ("What each chapter asks of the machine",
                                          "counts for 1000 useful FLOP of its smoke set; log scales"))
        names = ["01 naive", "02 tiled", "03 none"]
        for ax, told, values, texts in zip(axes, (
                "global memory: bytes of\nthe 32-byte sectors\nthat warps touch",
                "shared memory: wavefronts\n(of them, what bank\nconflicts cost)", "instructions of warps"),
                ((32 * 30 / 3, 32 * 24 / 3), (10, 0), (7 / 3, 7 / 3)),
                (("320", "256"), ("10 (4)", "0 (0)"), ("2.33", "2.33"))):
            floor = min(value for value in values if value) / 2
            self.assertEqual([bar[:2] for bar in ax.bars],
                             [(near(floor), near(max(value, floor))) for value in (*values, 0)])
            self.assertEqual([(bar[2] + bar[3]) / 2 for bar in ax.bars], [0, 1, 2])
            ax.ticks = axes[0].ticks
            self.assertEqual(ax.texts, [(told, 0, 1), *((text, near(max(value, floor)), y) for y, (text, value) in
                                                        enumerate(zip((*texts, "not counted"), (*values, 0))))])
            self.assertEqual((ax.scales[0], ax.limits[0][0], ax.limits[1]), ("log", near(floor), (2.5, -0.5)))
        self.assertEqual([name for _, name in axes[0].ticks[1]], names)
        self.assertEqual(source, "counted by the emulator in order 0:fair, the same on every machine; no GPU has a part in it")

    def test_timeline(self):
        self.chapter("03_mma", "02_tiled")
        self.chapter("07l_peak_hopper", "03_mma")
        tiles = [(7, 0, 2000, 500), (7, 2000, 5000, 1000), (7, 5000, 6000, 0), (9, 1000, 9000, 1300)]
        fields = dict(chapter="07l_peak_hopper", device="NVIDIA H200", cuda="13.0", commit="0123456789ab", clock_mhz="1980",
                      date="2026-01-02", set="skewed")
        save(self.repo / "data/timeline.csv", [fields | dict(zip(TIMELINE_COLUMNS[-4:], tile)) for tile in tiles], TIMELINE_COLUMNS)
        (ax,), title, below, source = self.seen(figures.timeline, self.data())
        self.assertEqual(title, "One launch of 07l_peak_hopper on set skewed")
        self.assertEqual(below, "a bar is a tile, its dark part the time in which its products wait for slices: 20.0 % of all")
        gap = (None, None)
        self.assertEqual(ax.lines, [
            [(0, 0), (2, 0), gap, (5, 0), (6, 0), gap, (1, 1), (9, 1), gap], [(2, 0), (5, 0), gap],
            [(0, 0), (0.5, 0), gap, (2, 0), (3, 0), gap, (5, 0), (5, 0), gap, (1, 1), (2.3, 1), gap]])
        self.assertEqual([(line.get_color(), line.get_alpha()) for line in ax.ax.lines], [("#1f62c9", 0.9), ("#1f62c9", 0.6), (DARK, 1)])
        # A round end is time.
        self.assertEqual({line.get_solid_capstyle() for line in ax.ax.lines}, {"butt"})
        # The waits are drawn last.
        self.assertEqual([line.get_zorder() for line in ax.ax.lines], [2, 2, 2])
        self.assertEqual((ax.limits, ax.labels), ([(0, 9.045), (1.5, -0.5)],
                                                  ("microseconds from the first tile's begin", "multiprocessors")))
        self.assertEqual(source, "NVIDIA H200 · 1980 MHz · CUDA 13.0 · 2026-01-02 · commit 0123456789 · "
                                 "stamps of the global timer, of each block's first consumer")

    def test_error(self):
        self.chapter("07l_peak_hopper", "02_tiled")
        self.chapter("08c_fp4", "02_tiled", "nvfp4", arch="100a")
        rows = [("07l_peak_hopper", "bf16", "quantised", -2, 7), ("07l_peak_hopper", "bf16", "quantised", -12, 50),
                ("07l_peak_hopper", "bf16", "drawn", -1.75, 3), ("07l_peak_hopper", "bf16", "drawn", 3, 4),
                ("08c_fp4", "nvfp4", "quantised", 0.25, 5), ("08c_fp4", "nvfp4", "drawn", -3, 5), ("08c_fp4", "nvfp4", "drawn", 1, 5)]
        save(self.repo / "data/errors.csv", [dict(zip(ERROR_COLUMNS, (*row[:3], 256, 128, 2048, *row[3:]))) for row in rows], ERROR_COLUMNS)
        (ax, other), title, below, source = self.seen(figures.error, self.data())
        self.assertEqual(title, "What a product is off by in bf16, MXFP8 and NVFP4")
        self.assertEqual(below, "M = 256, N = 128, K = 2048, normal numbers; error of D over the limit of the check, log scale")

        def bar(low, count):
            return near(2**low), near(2 ** (low + 0.25)), 0, count

        self.assertEqual(ax.bars, [bar(-2, 7), bar(-1.75, 3), bar(3, 4)])  # -12 is left of the axis
        self.assertEqual(other.bars, [bar(0.25, 5), bar(-3, 5), bar(1, 5)])
        self.assertEqual([ax.texts, other.texts], [
            [("bf16, 07l_peak_hopper\nmedian of the pale ones: 8 limits", 0, 1)],
            [("nvfp4, 08c_fp4\nmedian of the pale ones: 0.125 limits", 0, 1)]])
        self.assertEqual((ax.limits[0], ax.scales[0], ax.labels), ((near(2**-9), 2**13), "log", ("error / limit", "elements of D")))
        self.assertEqual(ax.lines, [[(1, 0), (1, 1)]])
        self.assertEqual([text for _, text in ax.ticks[0]], ["1/256", "1/16", "1", "16", "256", "4096"])
        self.assertEqual(ax.inks(), [DARK, PALE, PALE])
        legend, = self.fig.legends
        self.assertEqual([(text.get_text(), patch.get_facecolor()[:3]) for text, patch in zip(legend.get_texts(), legend.get_patches())], [
            ("against the product of the quantised numbers, which the check judges", ax.ax.patches[0].get_facecolor()[:3]),
            ("against the product of the numbers before they were quantised", ax.ax.patches[1].get_facecolor()[:3])])
        self.assertEqual(source, "computed on the emulator and checked; no GPU has a part in it")

    def test_fused(self):
        def ways(chapter, m, **us):
            return [timed(chapter, "moe", m, 1, us_median=time, peer=peer.strip("_")) for peer, time in us.items()]

        data = self.data(*ways("01_naive", [32, 5], _=90, unfused=100, product=80, library=10),
                         *ways("02_tiled", [32, 5], _=90, butterfly=85, unfused=120, product=50),
                         *ways("02_tiled", [64, 5], _=60, butterfly=65, unfused=75, product=60),
                         *ways("02_tiled", [99, 5], _=60, unfused=75))  # without its product
        (ax, other), title, below, _ = self.seen(figures.fused, data)
        self.assertEqual(title, "What an epilogue costs behind a product")
        self.assertEqual(below, "time in % of the product's alone, cold: hollow as kernels of their own, full in the same launch, "
                                "with the quicker transform where it has two")
        self.assertEqual(ax.lines, [[(100, 0), (100, 1)], [(112.5, 0), (125, 0)]])
        self.assertEqual(ax.marks, [[(125, 0)], [(112.5, 0)]])
        self.assertEqual(other.marks, [[(240, 0)], [(170, 0)], [(125, 1)], [(100, 1)]])
        self.assertEqual([line.get_markerfacecolor() for line in ax.ax.lines[2:]], ["white", "#a8650f"])
        self.assertEqual(ax.ticks[1], [(0, "moe: 37 rows, N=4096, K=7168"), (1, "moe: 69 rows, N=4096, K=7168")])
        self.assertEqual([each.labels[0] for each in (ax, other)],
                         ["01 on H200, %", "02 on H200, %"])
        self.assertEqual(ax.limits[1], (1.5, -0.5))

    def test_colours_and_the_chapters_that_a_figure_names(self):
        shades = {"#a8650f": ("01_a", "02_b"), "#0b7a69": ("03_a", "05b_b"), "#1f62c9": ("06a_a", "07o_b"), "#7b3fb0": ("08a_a", "08n_b"),
                  "#bf2c50": ("09a_a", "09c_b")}
        colours = canvas.colours_of([SimpleNamespace(id=each, part=shade) for shade, chapters in shades.items() for each in chapters])
        self.assertEqual(colours, {each: shade for shade, chapters in shades.items() for each in chapters})
        rates = {"01_a": 1, "02_b": 5, "03_a": 9, "05b_b": 7, "06a_a": 3, "07o_b": 3}
        # The later of equals
        self.assertEqual(canvas.chapters_to_name(rates, colours), {"01_a", "02_b", "03_a", "07o_b"})
        self.assertEqual([canvas.three_digits(each) for each in (0.01234, 9.876, 12.34, 99.96, 100.4, 1235.6)],
                         ["0.0123", "9.88", "12.3", "100", "100", "1236"])

    def test_a_line_is_broken_where_a_check_failed_and_told_by_its_colour(self):
        _, ax = canvas.canvas(self.plt, "", "")
        canvas.curve(ax, [SimpleNamespace(at=at, y=10 * at, timed=at != 2) for at in (3, 1, 2)], lambda row: row.at, lambda row: row.y, {})
        self.assertEqual(Seen(ax).lines, [[(1, 10), (2, None), (3, 30)]])
        self.assertEqual([canvas.line_style("09a_x", told, {"09a_x": "#bf2c50"})["color"] for told in ({"09a_x"}, {"01_x"})],
                         ["#bf2c50", PALE])

    def test_chapters_that_are_not_known_are_named_by_their_ends(self):
        chapters = [SimpleNamespace(id=f"{name}_x", arch=arch) for name, arch in (
            ("01", "sm_80"), ("02", "sm_80"), ("03", "sm_80"), ("06a", "sm_90a"), ("06b", "sm_90a"), ("08a", "sm_100a"))]
        self.assertEqual(figures.ranges(chapters, {"06a_x"}), "01 to 03, 06b, 08a")
        self.assertEqual(figures.ranges(chapters, {"02_x", "08a_x"}), "01, 03, 06a to 06b")

    def test_what_the_makers_state(self):
        """Dense bf16 TFLOP/s and TB/s; of a B200 what the predictions have too."""
        b200 = costs.TFLOPS["bf16"], 8.0
        self.assertEqual(figures.DATASHEET, {"NVIDIA A100-SXM4-80GB": (312, 2.04), "NVIDIA H100 80GB HBM3": (989, 3.35),
                                             "NVIDIA H200": (989, 4.8), "NVIDIA B200": b200})
        self.assertEqual(figures.TIMES_BF16, {form: costs.TFLOPS[kind] / costs.TFLOPS["bf16"] for form,
                                              (kind, *_) in costs.ELEMENTS.items()})

    def test_names_of_line_ends_are_pushed_apart(self):
        _, ax = canvas.canvas(self.plt, "", "")
        ax.set(xlim=(0, 1), ylim=(0, 100))
        canvas.label_ends(ax, [(1, 50, "b", DARK), (1, 51, "c", DARK), (1, 10, "a", DARK)])
        places = {text.get_text(): ax.transData.transform(text.xy)[1] + text.get_position()[1] for text in ax.texts}
        self.assertAlmostEqual(places["c"] - places["b"], 11.5, 1)
        self.assertAlmostEqual(places["a"], ax.transData.transform((1, 10))[1], 1)
        self.assertAlmostEqual((places["b"] + places["c"]) / 2, ax.transData.transform((1, 50.5))[1], 1)

    def test_the_foot_says_where_the_rows_are_from(self):
        data = self.data(timed("01_naive", "prefill", EQUAL, 12, clock_mhz=1980, clock_after_mhz=1500, commit="aaaaaaaaaaaa1",
                               date="2026-01-01"),
                         timed("01_naive", "prefill", UNEVEN, 12, clock_mhz=1600, cuda="12.9", commit="bbbbbbbbbbbb2", date="2026-01-03"),
                         timed("02_tiled", "prefill", EQUAL, 12, commit="cccccccccccc3", date="2026-01-02"),
                         run=[timed("02_tiled", "prefill", EQUAL, 13, date="2026-02-02")])
        fig = self.plt.figure()
        plot.add_footer(fig, data.rows + data.extra, data)
        self.assertEqual(fig.texts[0].get_text(), "NVIDIA H200 · 1500 to 1980 MHz · CUDA 12.9 to 13.0 · 2026-01-01 to 2026-01-03 · "
                         "commit bbbbbbbbbb, cccccccccc and 1 more\n"
                         "diamonds, this run: NVIDIA H200 · 1980 MHz · CUDA 13.0 · 2026-02-02 · commit 0123456789")

    def test_each_column_of_a_chapters_table(self):
        cold, warm = timed("01_naive", "prefill", EQUAL, 25), timed("01_naive", "prefill", EQUAL, 50, warm=1)
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
