# SPDX-License-Identifier: MIT
"""Which figures are drawn of which measurements, the same each time, and that nothing lies over a text of made-up ones."""

import contextlib
import csv
import io
import os
import subprocess
import sys
import tempfile
from unittest import mock

from plots.draw import canvas, figures, plot, preview
from plots.measure.chapters import read_chapters
from plots.measure.files import COLUMNS, COUNT_COLUMNS, DATA
from tests.docs.plots_case import CHAPTERS, ROOT, SETS, PlotsCase, counted, laid_out, main, row, save, with_matplotlib


class DrawingTest(PlotsCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        os.environ.setdefault("MPLCONFIGDIR", folder.name)  # for what matplotlib keeps

    @with_matplotlib
    def test_counts_are_drawn_without_a_gpu(self):
        tour = self.repo / "build" / "tour"
        save(self.data / "old.csv", counted("01_naive", 77), COUNT_COLUMNS)
        save(tour / "new.csv", counted("01_naive", 0) + counted("02_tiled", 12), COUNT_COLUMNS)
        _, out, _ = self.run_tool(plot, "--data", self.data, "--data", tour, "--out", self.repo / "out")
        self.assertIn("plots: counts: ", out)
        text = (self.repo / "out/counts.svg").read_text()
        for word in (">768<", ">30 (12)<", ">30 (0)<", ">not counted<", "counted by the emulator in order"):
            self.assertIn(word, text)
        self.assertNotIn(">77<", text)

    @with_matplotlib
    def test_figures_are_the_same_bytes_each_time(self):
        self.measure()
        save(self.data / "peers.csv", [row("03_tensor_cores", name, m, 90, peer="cublas_loop")
                                       for name in ("prefill", "step") for m in SETS[name]])
        save(self.data / "z.csv", [row("02_tiled", "step", [64] * 8, 1, ok=0),
                                   row("01_naive", "prefill", [2048] * 8, 1, ok=0)])
        tour = self.repo / "build" / "tour"
        save(tour / "run.csv", [row("02_tiled", "prefill", [2048] * 8, 7, device="NVIDIA A100-SXM4-80GB")])
        names = {"ladder", "roofline", "skew", "occupancy", *(f"step_{name}" for name, _, _ in CHAPTERS)}
        outs = [self.repo / "out1", self.repo / "out2"]
        for out in outs:
            status, _, err = self.run_tool(plot, "--data", self.data, "--data", tour, "--out", out)
            self.assertEqual((status, err), (0, ""))
            self.assertEqual({path.stem for path in out.glob("*.svg")}, names)
        for name in names:
            first, second = ((out / f"{name}.svg").read_text() for out in outs)
            self.assertEqual(first, second)
            self.assertNotIn("<dc:date>", first)
            if name != "occupancy":
                self.assertIn("NVIDIA H200 · 1980 MHz · CUDA 13.0 · 2026-01-02 · commit 0123456789", first)
        ladder = (outs[0] / "ladder.svg").read_text()
        for text in ("measured roof 100", "cublas_loop 90", "failed", "×0.75", "slower", "this run: NVIDIA"):
            self.assertIn(text, ladder)
        self.assertIn("failed", (outs[0] / "step_02_tiled.svg").read_text())

    def drawn(self, data, wanted=None):
        """Of each figure of some data, by its title, what laid_out finds. Nothing is saved."""
        with contextlib.redirect_stdout(io.StringIO()):
            return {fig.get_suptitle(): laid_out(fig) for _, fig in plot.each_figure(data, wanted)}

    @with_matplotlib
    def test_what_lies_over_a_text_is_found(self):
        committed = plot.Data([ROOT / DATA], "", read_chapters(ROOT))
        with mock.patch.object(canvas, "NAMES", 60):  # too little room: names reach into bars
            _, wrong = self.drawn(committed, ["ladder"])["What each chapter gains"]
        self.assertIn(("04 persistent", "a bar"), wrong)
        # Such numbers reach into the next panel's.
        with mock.patch.object(figures, "three_digits", lambda value: "9" * 40):
            wrong = self.drawn(committed, ["counts"])["What each chapter asks of the machine"][1]
        self.assertIn(("9" * 40,) * 2, [(told, other.split(" ")[0]) for told, other in wrong])

    @with_matplotlib
    def test_the_ladder_has_a_row_for_each_chapter_that_was_timed(self):
        chapters = read_chapters(ROOT)

        def ladder(timed, *more):
            save(self.data / "a.csv", [
                row(c.id, "prefill", SETS["prefill"][0], 5.4 * 1.29 ** i * (0.7 if i % 3 == 1 else 1), format=c.format,
                    kernel=f"grouped_gemm {c.tile}", roof_tflops=735, device="NVIDIA " + timed(c))
                for i, c in enumerate(chapters) if timed(c)])
            with open(self.data / "a.csv", "a", newline="") as file:
                csv.DictWriter(file, COLUMNS).writerows(more)
            data = plot.Data([self.data], "", chapters)
            texts, wrong = self.drawn(data, ["ladder"])["What each chapter gains"]
            self.assertEqual(wrong, [])
            names = {c.id.replace("_", " "): c.id for c in chapters}
            return [names[text] for text in texts if text in names], texts

        library = row("06a_tma", "prefill", SETS["prefill"][0], 675, peer="cublas_loop", roof_tflops=735)
        rows, texts = ladder(lambda c: "B200" if c.arch == "sm_100a" else "H200", library)
        self.assertEqual(rows, [c.id for c in chapters])
        self.assertEqual([text for text in texts if text.startswith("not timed")], [])
        for text in ("measured roof 735 on H200", "cublas_loop 675 on H200", "B200", "nvfp4, B200", "×0.90, slower, other run",
                     "×1.16 on 07a, other run"):
            self.assertIn(text, texts)

        first = [c.id for c in chapters[:2]]
        rows, texts = ladder(lambda c: c.id in first and "H200", library)
        self.assertEqual(rows, first)
        self.assertRegex("\n".join(texts), r"(?m)^not timed yet: 03 to 05b, 06a to 07\w, 08a to \d\d\w(, 10\w)?$")

        rows, texts = ladder(lambda c: "H200" if chapters.index(c) % 2 else "", row(
            "03_tensor_cores", "prefill", SETS["prefill"][0], 1, ok=0, kernel="grouped_gemm"))
        self.assertEqual(rows, [c.id for i, c in enumerate(chapters) if i % 2 or c.id == "03_tensor_cores"])
        self.assertIn("failed", texts)
        self.assertIn("not timed yet: 01, 05a, 06a, 07a, 07c,", " ".join(texts))

        for title, (texts, wrong) in self.drawn(preview.preview_data("b200", chapters, ROOT / DATA)).items():
            self.assertEqual(wrong, [], title)
            if title == "What each chapter gains":
                self.assertRegex("\n".join(texts), r"(?m)^not run there: 06a to 07\w(, 10\w)?$")
                self.assertEqual(texts.count("?"), sum(c.arch != "sm_90a" for c in chapters))

    @with_matplotlib
    def test_figures_come_without_caches(self):
        self.data.mkdir(parents=True)  # with nothing measured one figure is drawn, of a formula
        environment = {name: value for name, value in os.environ.items() if name != "MPLCONFIGDIR"}
        command = [sys.executable, "-B", "-m", "plots.draw.plot", "--repo", self.repo, "--data", self.data, "--out",
                   self.repo / "out"]
        subprocess.run(command, cwd=ROOT, env=environment | {"HOME": str(self.repo)}, check=True, capture_output=True)
        self.assertEqual([path.name for path in (self.repo / "out").iterdir()], ["occupancy.svg"])
        self.assertEqual([path for path in self.repo.iterdir() if path.name.startswith(".")], [], "nothing goes home")

    @with_matplotlib
    def test_what_cannot_be_drawn_is_said(self):
        save(self.data / "a.csv", [row("01_naive", "prefill", [2048] * 8, 12, warm=1, roof_tflops="")])
        status, out, _ = self.run_tool(plot, "--data", self.data, "--out", self.repo / "out")
        self.assertEqual(status, 0)
        for what in ("no roofs:", "no libraries:", "skew: not drawn,", "step_02_tiled: not drawn,"):
            self.assertIn(f"plots: {what}", out)
        self.assertIn("warm inputs, bf16", (self.repo / "out/ladder.svg").read_text())


if __name__ == "__main__":
    main()
