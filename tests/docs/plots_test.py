# SPDX-License-Identifier: MIT
"""Figures and tables from made-up measurements, in a temporary folder: nothing in the tree changes."""

import contextlib
import csv
import importlib.util
import io
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "plots"))

from draw import canvas, like, plot, publish, tables  # noqa: E402
from draw.changes import History, aged, lines_changed  # noqa: E402
from draw.results import newest  # noqa: E402
from measure import choice, ncu_counts  # noqa: E402
from measure.chapters import first_format, first_tile, read_chapters  # noqa: E402
from measure.files import (COLUMNS, COUNT_COLUMNS, DATA, NCU_COLUMNS, REFERENCE_COLUMNS, BadData, read_counts,  # noqa: E402
                           read_csv, read_rows)

HAVE_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None
CHAPTERS = [("01_naive", "", 10), ("02_tiled", "01_naive", 40), ("03_tensor_cores", "02_tiled", 30)]
SETS = {"prefill": [[2048] * 8], "decode": [[16] * 32], "skewed": [[4096, 0, 64, 32]],
        "step": [[1] * 8, [64] * 8, [8192] * 8], "skew": [[2048] * 8, [9216] + [1024] * 7]}


def row(chapter, name, m, tflops, **changed):
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


def counted(chapter, conflicts, name="smoke", order="0:fair"):
    """The lines of a chapter's counts, of 1000 useful FLOP."""
    counters = dict(instructions=7, global_load_sectors=20, global_store_sectors=4, global_atomic_sectors=0,
                    shared_wavefronts=30, shared_bank_conflicts=conflicts, instructions_mma=0,
                    barrier_waits=0, global_load_bytes=600, multiply_adds=2000, useful_multiply_adds=500)
    return [dict(zip(COUNT_COLUMNS, (chapter, name, order, *each))) for each in counters.items()]


def save(path, rows, columns=COLUMNS):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


class PlotsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.repo = Path(folder.name)
        self.data = self.repo / DATA / "h200"
        text = "# Title\n<!-- table -->\nold\n<!-- /table -->\nkept\n"
        for name, previous, _ in CHAPTERS:
            chapter = self.repo / "chapters" / name
            chapter.mkdir(parents=True)
            (chapter / "main.cu").write_text(
                f'gg::Chapter info = {{.id = "{name}",\n  .arch = gg::Arch::sm_80,\n'
                f'  .title = "Idea of {name}",\n  .tiles = {{{{128, 64}}, {{64, 64}}}},\n'
                f'  .previous = "{previous}"}};\n')
            (chapter / "kernel.cuh").write_text("same\n  " + name + "\n")
            (chapter / "README.md").write_text(text)
        (self.repo / "README.md").write_text(text)

    def measure(self, name="all.csv", **changed):
        shapes = [(name, m) for name, some in SETS.items() for m in some]
        save(self.data / name, [row(chapter, name, m, tflops, **changed)
                                for chapter, _, tflops in CHAPTERS for name, m in shapes])

    def run_tool(self, tool, *arguments):
        """Exit status, stdout and stderr of plot.py or publish.py."""
        out, err = io.StringIO(), io.StringIO()
        command = [tool.__name__, "--repo", str(self.repo), *map(str, arguments)]
        with mock.patch.object(sys, "argv", command):
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                status = tool.main()
        return status, out.getvalue(), err.getvalue()

    def cells(self, path, start):
        text = (self.repo / path).read_text()
        lines = [line for line in text.splitlines() if line.startswith(f"| {start}")]
        self.assertEqual(len(lines), 1, text)
        return [cell.strip() for cell in lines[0].strip("|").split("|")]

    def test_ladder_table(self):
        self.measure()
        save(self.data / "later.csv", [
            row("02_tiled", "prefill", [2048] * 8, 50, date="2026-01-03"),
            row("03_tensor_cores", "prefill", [2048] * 8, 97, date="2026-01-01", peer="cublas_loop"),
            row("03_tensor_cores", "decode", [16] * 32, 1, ok=0, date="2026-01-03"),
            row("01_naive", "prefill", [2048] * 8, 70, date="2026-01-03", warm=1),
            row("02_tiled", "prefill", [2048] * 8, 90, date="2026-01-03", peer="cublas_loop", version="cuBLAS 13.0"),
            row("02_tiled", "prefill", [2048] * 8, 96, peer="cutlass_grouped"),
            row("02_tiled", "prefill", [2048] * 8, 60, kernel="grouped_gemm 64x64", date="2026-01-04"),
            row("02_tiled", "prefill", [2048] * 8, 99, date="2026-01-03", peer="cublas_plain"),
            row("02_tiled", "prefill", [2048] * 8, 80, date="2026-01-03", peer="cublas_strided"),
            row("01_naive", "prefill", [2048] * 8, 98, peer="triton_tma")])
        (self.repo / "chapters/02_tiled/schedule.cuh").write_text("one\n\ntwo\n")
        (self.repo / "chapters/03_tensor_cores/schedule.cuh").write_text("  one\ntwo\n")
        self.run_tool(publish)
        self.assertEqual(self.cells("README.md", "[01_naive]")[1:5],
                         ["Idea of 01_naive", "sm_80", "10.0", "10 %"])
        self.assertEqual(self.cells("README.md", "[02_tiled]")[3:5], ["50.0", "50 %"], "the newest row wins")
        self.assertEqual(self.cells("README.md", "[02_tiled]")[6], "+4 −1", "the whole folder")
        self.assertEqual(self.cells("README.md", "[03_tensor_cores]")[6], "+1 −2")
        self.assertEqual(self.cells("README.md", "[03_tensor_cores]")[5], "failed")
        text = (self.repo / "README.md").read_text()
        self.assertIn("cold inputs; measured roof 100 TFLOP/s on `prefill`.\n"
                      "Each chapter is timed by its own program, at the clock that its rounds have.\nLibraries timed on `prefill` beside "
                      "02_tiled, in its run: cublas_loop (cuBLAS 13.0), cublas_strided.\n"
                      "The fastest of these: cublas_loop, 90 TFLOP/s.\n", text)
        self.assertIn("H200 · 1980 MHz · CUDA 13.0 · 2026-01-01 to 2026-01-03 · commit 0123456789.", text)
        self.assertTrue(text.startswith("# Title\n") and text.endswith("<!-- /table -->\nkept\n"))

    def test_chapter_table(self):
        self.measure()
        save(self.data / "more.csv", [row("02_tiled", "prefill", [2048] * 8, 44, warm=1),
                                      row("02_tiled", "prefill", [2048] * 8, 47, kernel="grouped_gemm 64x64"),
                                      row("02_tiled", "prefill", [2048] * 8, 90, peer="cublas_loop")])
        self.run_tool(publish)
        path = "chapters/02_tiled/README.md"
        first = self.cells(path, "`prefill`")
        self.assertEqual(first[0], "`prefill`: G=8, M=16384 (≤ 2048), N=4096, K=7168")
        self.assertEqual([first[1], *first[4:6], first[7]], ["02_tiled", "40.0", "44.0", "40 %"])
        table = (self.repo / path).read_text()
        self.assertRegex(table, r"\|  \| 02_tiled 64x64 \| .* \| 47.0 \| – \|")
        self.assertRegex(table, r"\|  \| 01_naive \| .* \| 10.0 \| – \|")
        self.assertRegex(table, r"\|  \| cublas_loop \| .* \| 90.0 \| – \|")
        self.assertNotIn("`step`", table)

    def test_nothing_measured(self):
        status, out, _ = self.run_tool(publish)
        self.assertEqual(status, 0 if HAVE_MATPLOTLIB else 1)
        self.assertEqual(self.cells("README.md", "[01_naive]")[3:], ["–", "–", "–", "+2"])
        self.assertIn("Nothing is measured yet.", (self.repo / "chapters/01_naive/README.md").read_text())
        if HAVE_MATPLOTLIB:
            self.assertIn("plots: ladder: not drawn, no chapter was timed on set prefill in bf16\n", out)

    def test_publish_takes_a_tour_in_once(self):
        tour = self.repo / "build" / "tour"
        save(tour / "run.csv", [row("01_naive", "prefill", [2048] * 8, 12),
                                row("01_naive", "prefill", [2048] * 8, 13),
                                row("01_naive", "smoke", [4], 1, device="emulator", ok=0)])
        self.run_tool(publish, "--run", tour)
        written = (self.data / "01_naive.csv").read_text()
        self.assertEqual(self.cells("README.md", "[01_naive]")[3], "13.0")
        self.assertEqual(len(written.splitlines()), 2)
        self.assertFalse((self.data.parent / "emulator.csv").exists())
        _, out, _ = self.run_tool(publish, "--run", tour)
        self.assertEqual((self.data / "01_naive.csv").read_text(), written)
        self.assertNotIn("publish:", out)

    def test_publish_takes_counts_in_and_keeps_the_newest(self):
        with open(self.repo / "chapters/02_tiled/README.md", "a") as readme:
            readme.write("<!-- counts -->\n<!-- /counts -->\n")
        tour, there = self.repo / "build" / "tour", self.data.parent / "emulator.csv"
        save(tour / "01.counts.csv", counted("01_naive", 3) + counted("01_naive", 9, order="1:skew"),
             COUNT_COLUMNS)
        save(tour / "02.counts.csv", counted("02_tiled", 5), COUNT_COLUMNS)
        self.run_tool(publish, "--run", tour)
        self.assertEqual([line.split(",")[:3] for line in there.read_text().splitlines()[1::11]],
                         [["01_naive", "smoke", "0:fair"], ["01_naive", "smoke", "1:skew"], ["02_tiled", "smoke", "0:fair"]])
        self.assertEqual(self.cells("chapters/02_tiled/README.md", "counter")[1:], ["01_naive", "02_tiled"])
        self.assertEqual(self.cells("chapters/02_tiled/README.md", "`shared_bank_conflicts`")[1:], ["3", "5"])
        self.assertEqual(self.cells("chapters/02_tiled/results.md", "wasted")[1:], ["75 %", "75 %"])
        self.assertNotIn("instructions_mma", (self.repo / "chapters/02_tiled/results.md").read_text())
        save(tour / "01.counts.csv", counted("01_naive", 4), COUNT_COLUMNS)
        self.run_tool(publish, "--run", tour)
        found = {key: some["shared_bank_conflicts"] for key, some in read_counts(there).items()}
        self.assertEqual(found, {("01_naive", "smoke", "0:fair"): 4, ("01_naive", "smoke", "1:skew"): 9,
                                 ("02_tiled", "smoke", "0:fair"): 5})
        _, out, _ = self.run_tool(publish, "--run", tour)
        self.assertNotIn("publish:", out)

    @unittest.skipUnless(HAVE_MATPLOTLIB, "no matplotlib")
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

    def test_rows_of_another_kind_or_run_say_so(self):
        main = self.repo / "chapters/02_tiled/main.cu"
        main.write_text(main.read_text() + "return gg::run<gg::Operands<bf16, bf16, float>, gg::Same<bf16>>(\n")
        m = SETS["prefill"][0]
        save(self.data / "all.csv", [
            row("02_tiled", "prefill", m, 40), row("02_tiled", "prefill", m, 44, kernel="grouped_gemm d=bf16"),
            row("02_tiled", "prefill", m, 70, kernel="cublas_loop d=f32", peer="cublas_loop"),
            row("01_naive", "prefill", m, 10, date="2026-01-01"), row("03_tensor_cores", "prefill", m, 30),
            row("01_naive", "prefill", m, 84, kernel="cublas_loop d=f32", peer="cublas_loop", date="2026-01-01"),
            row("02_tiled", "prefill", m, 80, peer="cublas_grouped"),
            row("03_tensor_cores", "prefill", m, 50, peer="cublas_loop"),  # D as 03 has it, and 02's run had not
            row("03_tensor_cores", "prefill", m, 90, peer="cublas_grouped", date="2026-01-01")])
        self.run_tool(publish)

        self.assertIn("bf16, D of 02_tiled: f32; cold inputs", (self.repo / "README.md").read_text())

        def labels(chapter):
            text = (self.repo / "chapters" / chapter / "results.md").read_text().partition("## Measured")[2]
            return [line.split("|")[2].strip() for line in text.splitlines() if line.startswith("| ")][2:]

        self.assertEqual(labels("02_tiled"), ["02_tiled, D f32", "02_tiled", "01_naive, of 2026-01-01 at 0123456789",
                                              "cublas_grouped", "cublas_loop, D f32"])
        self.assertEqual(labels("03_tensor_cores"), ["03_tensor_cores", "02_tiled",  # its rows with D as 03 has it
                                                     "cublas_grouped, of 2026-01-01 at 0123456789", "cublas_loop"])
        for chapter, note in [("02_tiled", "01_naive was timed by its own program, at the clock of its own rounds: "
                                           "libraries beside it took 83 % of their time here."),
                              ("03_tensor_cores", ": no library was timed beside both.")]:
            self.assertIn(note, (self.repo / "chapters" / chapter / "README.md").read_text())
        readme = (self.repo / "chapters/02_tiled/README.md").read_text()  # of libraries the fastest alone
        self.assertNotIn("| cublas_loop, D f32 |", readme)
        self.assertIn("| cublas_grouped |", readme)

    def test_ideas_and_libraries_of_a_chapter(self):
        path = "chapters/03_tensor_cores/README.md"
        with open(self.repo / path, "a") as readme:
            readme.writelines(f"<!-- {mark} -->\n<!-- /{mark} -->\n" for mark in ("ideas", "peers", "moe", "sustained"))
        self.run_tool(publish)
        self.assertEqual((self.repo / path).read_text().count("Nothing is measured yet."), 5)

        def timed(m, us, **changed):
            return row("03_tensor_cores", "peers", m, 100, us_median=us, **dict(warm=1) | changed)

        one, two = [512] * 8, [900, 100]
        save(self.data / "all.csv", [
            timed(one, 10, roof_tflops=600, roof_kind="matrix", power_w=650.4, clock_after_mhz=1500),
            timed(one, 8, kernel="grouped_gemm 128x64 sustained", power_w=700, clock_after_mhz=1400),
            timed(one, 7.6, kernel="cublas_loop sustained", peer="cublas_loop"),
            timed(one, 8.8, kernel="grouped_gemm off=tail sustained"), timed(one, 1, kernel="grouped_gemm off=tail"),
            timed(one, 7.84, kernel="grouped_gemm off=pdl sustained"),
            timed(one, 99, kernel="grouped_gemm off=pdl b=kn sustained"), timed(one, 77, kernel="grouped_gemm 64x64"),
            timed(one, 12, peer="cublas_loop"), timed(one, 10.5, peer="cublas_strided", version="cuBLAS 13"),
            timed(one, 1, peer="cublas_plain"), timed(one, 15, warm=0), timed(one, 30, warm=0, peer="cublas_loop"),
            timed(two, 99), timed(two, 22, kernel="grouped_gemm sustained"),
            timed(two, 33, kernel="grouped_gemm off=tail sustained"),
            timed(two, 30, kernel="all_ideas off=tail sustained", peer="all_ideas"),
            timed(two, 20, kernel="all_ideas off=tail", peer="all_ideas"),  # no library: ours, of this run
            timed(two, 18, kernel="grouped_gemm", date="2099-01-01"),  # later, and alone
            timed(one, 1, kernel="all_ideas off=pdl sustained", peer="all_ideas", ok=0),
            timed(two, 14, peer="deepgemm", version="DeepGEMM 2.6.1", date="2026-01-01"),
            timed(two, 24, peer="deepgemm", version="DeepGEMM 2.6.1"),
            timed(two, 25, peer="cublas_loop"), timed(two, 36, peer="deepgemm", version="DeepGEMM 2.6.1", warm=0),
            timed(two, 30, warm=0), timed(two, 1, peer="torch_grouped_mm", ok=0),
            *(row("03_tensor_cores", "moe", two, 100, us_median=us, warm=1, peer=peer)
              for us, peer in ((10, ""), (13, "cublas_loop")))])
        reference = dict(device="NVIDIA H200", m_total=1000, m_max=900, n=4096, k=7168, groups=2, peer="other",
                         us_median=15, cublas_8192_tflops=800, date="2026-11")
        save(self.data / "reference.csv", [reference, reference | dict(peer="slow", us_median=99),
                                           reference | dict(peer="far", us_median=1, device="NVIDIA A100"),
                                           reference | dict(peer="deepgemm", us_median=1),
                                           reference | dict(peer="cublas_loop", us_median=1, m_max=512, groups=8,
                                                            m_total=4096)], REFERENCE_COLUMNS)
        self.run_tool(publish)
        self.assertEqual(self.cells(path, "µs warm"), ["µs warm", "without `tail`", "without `pdl`"])
        text = (self.repo / path).read_text()
        for line in ("| G=8 M=512 N=4096 K=7168 | 8.800 / 8.000 (+10.0 %) | 7.840 / 8.000 (−2.0 %) |",
                     "| G=2 1000 rows (≤ 900) N=4096 K=7168 | 33.00 / 30.00 (+10.0 %) | – |", "but not in turns",
                     "| G=8 M=512 N=4096 K=7168 | 8.00 | 100 | 7.60 | cublas_loop | 0.950 | 0.969 | – | "
                     "1400 MHz 700 W |",
                     " by `--off pdl`.\n", "won. Level: p10 to p90 of the two times overlap, or they differ by less than "
                     "1 %.\n2 won, 0 level, 0 lost.", "\n0 won, 0 level, 1 lost.",
                     "| G=8 M=512 N=4096 K=7168 | 10.0 | 100 | 10.5 | cublas_strided (cuBLAS 13) | 1.050 | 2.000 | – | "
                     "1500 MHz 650 W |",
                     "| G=2 1000 rows (≤ 900) N=4096 K=7168 | 20.0 | 100 | 24.0 | deepgemm (DeepGEMM 2.6.1) | 1.200 | 1.200 | "
                     "1.000, level, scaled: other | – |", "over 600 TFLOP/s in this run.",
                     "| G=2 1000 rows (≤ 900) N=4096 K=7168 | 10.0 | 100 | 13.0 | cublas_loop | 1.300 | – | – |",
                     "\nLibraries timed: cublas_loop, cublas_strided (cuBLAS 13) on 1 of 2, "
                     "deepgemm (DeepGEMM 2.6.1) on 1 of 2.\n"):
            self.assertIn(line, text)
        if HAVE_MATPLOTLIB:
            figure = (self.repo / "plots/figures/peers.svg").read_text()
            for name, drawn in (("cublas", True), ("deepgemm", True), ("torch", False)):  # torch's check failed
                self.assertEqual(f">{name}</text>" in figure, drawn, name)

    def test_what_is_within_the_noise_is_level(self):
        path = "chapters/03_tensor_cores/README.md"
        with open(self.repo / path, "a") as readme:
            readme.writelines(f"<!-- {mark} -->\n<!-- /{mark} -->\n" for mark in ("ideas", "peers"))

        def timed(m, us, low, high, **changed):
            return row("03_tensor_cores", "peers", [m] * 8, 100, us_median=us, us_p10=low, us_p90=high, warm=1,
                       **changed)

        loop, idea, whole = (dict(peer="cublas_loop"), dict(kernel="grouped_gemm off=tail sustained"),
                             dict(kernel="all_ideas off=tail sustained", peer="all_ideas"))
        save(self.data / "all.csv", [
            timed(1, 10, 9.9, 10.1), timed(1, 10.5, 10.1, 10.6, **loop),    # 5 %, but they overlap
            timed(2, 10, 10, 10), timed(2, 10.09, 10.09, 10.09, **loop),    # less than 1 %
            timed(3, 10, 10, 10), timed(3, 9.91, 9.91, 9.91, **loop),
            timed(4, 10, 9, 10.2), timed(4, 10.5, 10.3, 11, **loop),
            timed(5, 10, 9.8, 11), timed(5, 9.7, 9.6, 9.7, **loop), timed(6, 10, 9, 11),
            timed(1, 10, 9, 11), timed(1, 103, 102, 104, **idea), timed(1, 100, 99, 101, **whole),
            timed(2, 103, 99, 104, **idea), timed(2, 100, 99, 101, **whole),
            timed(3, 100.5, 101, 102, **idea), timed(3, 100, 99, 100.5, **whole),
            timed(4, 97, 96, 98, **idea), timed(4, 100, 99, 101, **whole),
            timed(5, 2.4694, 2.46, 2.47, **idea), timed(5, 2.3506, 2.35, 2.36, **whole)])
        self.run_tool(publish)
        text = (self.repo / path).read_text()
        for cells in ("| 1.050, level |", "| 1.009, level |", "| 0.991, level |", "| 1.050 |", "| 0.970 |",
                      "| 103.0 / 100.0 (+3.0 %) |", "| 103.0 / 100.0 (level) |", "| 100.5 / 100.0 (level) |",
                      "| 97.00 / 100.0 (−3.0 %) |",
                      "| 2.469 / 2.351 (+5.0 %) |",  # of the numbers printed; +5.1 of the others
                      "\n1 won, 3 level, 1 lost.\n"):
            self.assertIn(cells, text)

    def test_a_ratio_without_pdl_is_of_the_same_run(self):
        path = "chapters/03_tensor_cores/README.md"
        with open(self.repo / path, "a") as readme:
            readme.write("<!-- peers -->\n<!-- /peers -->\n")

        def timed(us, **changed):
            return row("03_tensor_cores", "peers", [512] * 8, 100, us_median=us, warm=1, **changed)

        both = [timed(10), timed(12, peer="cublas_loop")]
        for changed, cell in ((dict(), "0.960"), (dict(date="2026-01-01"), ""), (dict(commit="fedcba9876543210"), "")):
            save(self.data / "all.csv", [*both, timed(12.5, kernel="grouped_gemm off=pdl", **changed)])
            self.run_tool(publish)
            text = (self.repo / path).read_text()
            self.assertEqual("without PDL" in text, bool(cell))
            self.assertIn(f"| 1.200 | {cell} | – |" if cell else "| 1.200 | – | – |\n", text)

    def test_rows_of_uncommitted_changes_are_left_out(self):
        tour = self.repo / "build" / "tour"
        save(tour / "run.csv", [row("01_naive", "prefill", [2048] * 8, 12),
                                row("01_naive", "decode", [16] * 32, 13, commit="0123456789abcdef-dirty")])
        _, out, _ = self.run_tool(publish, "--run", tour)
        self.assertIn("run.csv: 1 of 2 rows left out, as their program was built from changes that were not "
                      "committed\n", out)
        self.assertEqual([row["set"] for row in read_csv(self.data / "01_naive.csv")], ["prefill"])
        save(self.data / "01_naive.csv", [row("01_naive", "prefill", [2048] * 8, 12, commit="0123456789abcdef-dirty"),
                                          row("01_naive", "decode", [16] * 32, 13, date="2026-01-01")])
        self.run_tool(publish)
        text = (self.repo / "chapters/01_naive/README.md").read_text()
        self.assertIn(" · commit 0123456789-dirty, 0123456789.", text)  # what is there already says so
        self.assertIn("| 01_naive, of 2026-01-01 at 0123456789 |", text)

    def test_a_chapter_that_chooses_its_tile_has_no_default(self):
        main = self.repo / "chapters/02_tiled/main.cu"
        main.write_text(main.read_text().replace(".previous", ".chooses_tile = true,\n  .previous"))
        self.assertEqual([c.tile for c in read_chapters(self.repo)], ["128x64", "", "128x64"])

    def blackwell(self, name, previous, formats):
        """A chapter for Blackwell, with the first of some formats."""
        chapter = self.repo / "chapters" / name
        chapter.mkdir(parents=True)
        (chapter / "main.cu").write_text(
            f'gg::Chapter info = {{.id = "{name}", .arch = gg::Arch::sm_100a, .title = "Idea of {name}",\n'
            '  .sets = {"prefill", "decode", "step"}, .tiles = {{256, 256, 2}, {128, 256, 1}},\n'
            f'  .previous = "{previous}"}};\nreturn gg::run<{formats}>(argc, argv, info, launch);\n')
        (chapter / "kernel.cuh").write_text("same\n" + name + "\n")
        (chapter / "README.md").write_text("<!-- table -->\nold\n<!-- /table -->\n")

    def test_a_tour_on_a_b200_fills_its_chapters(self):
        self.measure()
        self.blackwell("08a_bf16", "03_tensor_cores", "gg::Same<bf16>")
        self.blackwell("08b_fp4", "08a_bf16", "gg::BlockScaled<gg::e2m1, 16, gg::ue4m3, bf16>")
        tour = self.repo / "tour"
        here = dict(device="NVIDIA B200", kernel="grouped_gemm 256x256 2x1", date="2026-02-02", roof_tflops=2000)
        shapes = [("prefill", [2048] * 8), ("decode", [16] * 32), ("step", [64] * 8), ("step", [8192] * 8)]
        rows = [row(chapter, name, m, tflops, **here | dict(format=fmt)) for name, m in shapes
                for chapter, fmt, tflops in (("08a_bf16", "bf16", 1500), ("08b_fp4", "nvfp4", 6000))]
        rows += [row("08b_fp4", "prefill", [2048] * 8, 7777, **here | dict(format="mxfp4")),
                 row("08b_fp4", "prefill", [2048] * 8, 5000, **here | dict(format="nvfp4", kernel="grouped_gemm 128x256 1x1")),
                 row("03_tensor_cores", "prefill", [2048] * 8, 60, **here | dict(kernel="grouped_gemm 128x64"))]
        save(tour / "a.csv", rows)
        status, out, _ = self.run_tool(publish, "--run", tour)
        self.assertEqual(status, 0 if HAVE_MATPLOTLIB else 1)
        written = self.repo / DATA / "b200"
        self.assertEqual(sorted(path.name for path in written.iterdir()),
                         ["03_tensor_cores.csv", "08a_bf16.csv", "08b_fp4.csv"])
        self.assertEqual(self.cells("README.md", "[08a_bf16]")[3:5], ["1500", "75 %"])
        self.assertEqual(self.cells("README.md", "[08b_fp4]")[3], "6000", "of its own format and its first tile")
        self.assertEqual(self.cells("README.md", "[03_tensor_cores]")[3], "30.0", "where the others are from")
        text = (self.repo / "README.md").read_text()
        self.assertIn("bf16, but 08b_fp4: nvfp4; cold inputs; measured roof 100 TFLOP/s", text)
        self.assertIn("Timed on NVIDIA B200, the others on NVIDIA H200: 08a_bf16, 08b_fp4.\n", text)
        self.assertNotIn("not timed", text)
        table = (self.repo / "chapters/08a_bf16/README.md").read_text()
        self.assertIn("| 03_tensor_cores |", table)
        self.assertIn("60.0", table, "its predecessor on that device")
        self.assertNotIn("30.0", table, "not on another")
        self.assertIn("NVIDIA B200 · ", table)
        self.assertIn("7777", (self.repo / "chapters/08b_fp4/README.md").read_text())
        if HAVE_MATPLOTLIB:
            self.assertIn("step_08a_bf16.svg", out)
            self.assertTrue((self.repo / "plots/figures/step_08b_fp4.svg").exists())

    def test_like_a_gpu_that_is_not_here(self):
        self.measure()
        self.blackwell("08a_bf16", "03_tensor_cores", "gg::Same<bf16>")
        self.blackwell("08b_fp4", "08a_bf16", "gg::BlockScaled<gg::e2m1, 32, gg::ue8m0, bf16>")
        text = (self.repo / "chapters/08b_fp4/main.cu").read_text()
        (self.repo / "chapters/08b_fp4/main.cu").write_text(text.replace(".tiles", ".pads_groups = true, .tiles"))
        before = sorted(self.repo.rglob("*"))
        out, err, folder = io.StringIO(), io.StringIO(), self.repo.parent / (self.repo.name + "-like")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        with mock.patch.object(sys, "argv", ["like", "b200", "--repo", str(self.repo), "--out", str(folder)]), \
                contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = like.main()
        self.assertEqual(status, 0 if HAVE_MATPLOTLIB else 1, err.getvalue())
        self.assertEqual(sorted(self.repo.rglob("*")), before, "nothing is published")
        text = (folder / "tables.md").read_text()
        for line in text.splitlines():
            if line.startswith("| [") or line.startswith("| `") or line.startswith("|  |"):
                numbers = line.strip("| ").split(" | ")[3:6] if line.startswith("| [") else line.strip("| ").split(" | ")[-6:]
                self.assertEqual(set(numbers), {"–"}, line)
        self.assertIn("| `prefill`: G=8, M=16384 (≤ 2048), N=4096, K=7168 | 08a_bf16 |", text)
        self.assertIn("| `decode` mxfp4: G=32, M=6656 (≤ 256), N=4096, K=7168 | 08b_fp4 |", text)
        self.assertIn("Nothing here is measured", text)
        for link in re.findall(r"\]\(([^)]+)\)", text):
            self.assertTrue((folder / link).exists(), link)
        for number in ("40.0", "30.0", "1980 MHz"):
            self.assertNotIn(number, text, "of another device")
        if HAVE_MATPLOTLIB:
            for name in ("ladder", "step_08a_bf16", "step_08b_fp4"):
                self.assertIn("as a run on an NVIDIA B200 would fill it; nothing is measured",
                              re.sub(r"<!-- (.*?) -->", r"\1", (folder / "figures" / f"{name}.svg").read_text()), name)

    def test_like_takes_what_is_committed(self):
        for gpu in like.DEVICES:
            data = like.data_like(gpu, read_chapters(ROOT), ROOT / "plots/measure/data")
            text = like.sheet(data, like.read_costs(ROOT / "plots/measure/data/costs.csv"))
            for chapter in data.chapters:
                self.assertEqual(f"## {chapter.id}\n" in text, chapter.id in data.home, gpu)

    def test_the_sets_that_like_shows_are_the_harness_s(self):
        text = (ROOT / "common/problem/shapes.cpp").read_text(encoding="utf-8")
        for name, (shapes, _) in like.SETS.items():
            self.assertIn(f"N={shapes[0][3]}, K={shapes[0][4]}\"", re.search(rf'{{"{name}", "[^"]*"', text)[0])
        known = {(row.set, row.shape) for row in read_rows(ROOT / "plots/measure/data/h200") if row.chapter == "07a_warp_specialized"}
        for name, (shapes, _) in like.SETS.items():
            for shape in shapes:
                self.assertIn((name, shape), known)

    def test_what_a_chapter_computes_unless_told_otherwise(self):
        self.assertEqual(first_format("gg::run<gg::BlockScaled<gg::e4m3, 32, gg::ue8m0, bf16>,"), "mxfp8")
        self.assertEqual(first_format("template <int V, class S>\nusing F = gg::BlockScaled<gg::e2m1, V, S, bf16>;\n"
                                      "return gg::run<F<16, gg::ue4m3>, F<32, gg::ue8m0>>("), "nvfp4")
        self.assertEqual(first_format("gg::run<gg::Same<bf16>>(argc, argv)"), "bf16")
        self.assertEqual(first_tile("{{128, 64}, {64, 64}}"), "128x64")
        self.assertEqual(first_tile("{{256, 256, 2}, {128, 256}}"), "256x256 2x1")
        self.assertEqual(first_tile("{{128, 256, 1}, {256, 256, 2}}"), "128x256 1x1")
        self.assertEqual(first_tile(""), "")

    def test_bad_files_are_refused_in_one_sentence(self):
        self.data.mkdir(parents=True)
        header = ",".join(COLUMNS)
        counts = ",".join(COUNT_COLUMNS)
        for text in ("chapter,us\n01_naive,3\n", header + "\n01_naive,3\n", "", header + "\n\0\n",
                     header + "\n" + "many," * (len(COLUMNS) - 1) + "\n",
                     counts + "\n01_naive,smoke\n", counts + "\n01_naive,smoke,0:fair,instructions,many\n"):
            (self.data / "bad.csv").write_text(text)
            status, out, err = self.run_tool(plot, "--data", self.data, "--out", self.repo / "out")
            self.assertEqual((status, out, err.count("\n")), (2, "", 1), text)
            self.assertIn("bad.csv", err)
        (self.data / "bad.csv").write_text("chapter,set,order,counter,value\n01_naive,smoke,0,bytes,3\n")
        self.assertEqual(read_rows(self.data), [], "counts are no measurements")
        with self.assertRaises(BadData):
            (self.data / "bad.csv").write_bytes(b"\xff\xfe")
            read_rows(self.data)

    def test_every_chapter_of_the_tree_says_what_the_ladder_needs(self):
        chapters = read_chapters(ROOT)
        for before, chapter in zip([None, *chapters], chapters):
            self.assertTrue(chapter.title and re.fullmatch(r"sm_\d+a?", chapter.arch), chapter)
            known = [c.id for c in chapters if c.id < chapter.id]
            self.assertIn(chapter.previous, known if before else [""], chapter)
            main = (chapter.folder / "main.cu").read_text()
            self.assertEqual(bool(chapter.tile), ".tiles" in main and ".chooses_tile" not in main)

    @unittest.skipUnless(HAVE_MATPLOTLIB, "no matplotlib")
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

    def drawn(self, tool, *arguments):
        """Of each figure that a tool draws, by its title: its texts, and those that lie over another text, a line or
        a bar, or beyond the paper."""
        from matplotlib.text import Text
        found, sign = {}, plot.sign

        def signed(fig, *rest):
            sign(fig, *rest)
            fig.draw_without_rendering()
            unseen = {label for ax in fig.axes for axis in (ax.xaxis, ax.yaxis) for tick in axis.get_major_ticks()
                      if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
                      for label in (tick.label1, tick.label2)}
            texts = [text for text in fig.findobj(Text) if text not in unseen and text.get_visible() and text.get_text()]
            boxes = [(text.get_text(), Text.get_window_extent(text)) for text in texts]  # an annotation's without its arrow
            lines = [line.get_transform().transform_path(line.get_path()) for ax in fig.axes for line in ax.lines
                     if line.get_linestyle() not in ("", "None")]
            bars = [bar.get_window_extent() for ax in fig.axes for bar in ax.patches]
            wrong = [(told, other) for i, (told, box) in enumerate(boxes) for other, its in boxes[:i] if box.overlaps(its)]
            wrong += [(told, "a line") for told, box in boxes for line in lines if line.intersects_bbox(box, filled=False)]
            wrong += [(told, "a bar") for told, box in boxes for bar in bars if bar.width and box.overlaps(bar)]
            wrong += [(told, "beyond the paper") for told, box in boxes
                      if box.x0 < 0 or box.y0 < 0 or box.x1 > fig.bbox.x1 or box.y1 > fig.bbox.y1]
            found[fig.get_suptitle()] = [told for told, _ in boxes], wrong

        with mock.patch.object(plot, "sign", signed):
            status, _, err = self.run_tool(tool, *arguments, "--out", self.repo / "out")
        self.assertEqual((status, err), (0, ""))
        return found

    @unittest.skipUnless(HAVE_MATPLOTLIB, "no matplotlib")
    def test_nothing_lies_over_a_text_of_the_figures(self):
        committed = ("--repo", ROOT, "--data", ROOT / "plots/measure/data")
        found = self.drawn(plot, *committed)
        chapters = [chapter.id.replace("_", " ") for chapter in read_chapters(ROOT)]
        self.assertEqual([text for text in found["What each chapter asks of the machine"][0] if text in chapters], chapters)
        self.assertGreater(len(found), 6)
        for title, (texts, wrong) in found.items():
            self.assertEqual(wrong, [], title)
            self.assertGreater(len(texts), 10, title)
        with mock.patch.object(canvas, "NAMES", 60):  # too little room: names reach into bars
            _, wrong = self.drawn(plot, *committed)["What each chapter gains"]
        self.assertIn(("04 persistent", "a bar"), wrong)
        with mock.patch.object(plot, "three", lambda value: "9" * 40):  # numbers reach into the next panel's
            wrong = self.drawn(plot, *committed)["What each chapter asks of the machine"][1]
        self.assertIn(("9" * 40,) * 2, [(told, other.split(" ")[0]) for told, other in wrong])

    @unittest.skipUnless(HAVE_MATPLOTLIB, "no matplotlib")
    def test_the_ladder_has_a_row_for_each_chapter_that_was_timed(self):
        chapters = read_chapters(ROOT)

        def ladder(timed, *more):
            save(self.data / "a.csv", [
                row(c.id, "prefill", SETS["prefill"][0], 5.4 * 1.29 ** i * (0.7 if i % 3 == 1 else 1), format=c.format,
                    kernel=f"grouped_gemm {c.tile}", roof_tflops=735, device="NVIDIA " + timed(c))
                for i, c in enumerate(chapters) if timed(c)])
            with open(self.data / "a.csv", "a", newline="") as file:
                csv.DictWriter(file, COLUMNS).writerows(more)
            texts, wrong = self.drawn(plot, "--repo", ROOT, "--data", self.data)["What each chapter gains"]
            self.assertEqual(wrong, [])
            names = {c.id.replace("_", " "): c.id for c in chapters}
            return [names[text] for text in texts if text in names], texts

        library = row("06a_tma", "prefill", SETS["prefill"][0], 675, peer="cublas_loop", roof_tflops=735)
        rows, texts = ladder(lambda c: "B200" if c.arch == "sm_100a" else "H200", library)
        self.assertEqual(rows, [c.id for c in chapters])
        self.assertEqual([text for text in texts if text.startswith("not timed")], [])
        for text in ("measured roof 735 on H200", "cublas_loop 675 on H200", "B200", "nvfp4, B200", "×0.90, slower",
                     "×1.16 on 07a"):
            self.assertIn(text, texts)

        first = [c.id for c in chapters[:2]]
        rows, texts = ladder(lambda c: c.id in first and "H200", library)
        self.assertEqual(rows, first)
        self.assertRegex("\n".join(texts), r"(?m)^not timed yet: 03 to 05b, 06a to 07\w, 08a to \d\d\w$")

        rows, texts = ladder(lambda c: "H200" if chapters.index(c) % 2 else "", row(
            "03_tensor_cores", "prefill", SETS["prefill"][0], 1, ok=0, kernel="grouped_gemm"))
        self.assertEqual(rows, [c.id for i, c in enumerate(chapters) if i % 2 or c.id == "03_tensor_cores"])
        self.assertIn("failed", texts)
        self.assertIn("not timed yet: 01, 05a, 06a, 07a, 07c,", " ".join(texts))

        for title, (texts, wrong) in self.drawn(like, "b200", "--repo", ROOT).items():
            self.assertEqual(wrong, [], title)
            if title == "What each chapter gains":
                self.assertRegex("\n".join(texts), r"(?m)^not run there: 06a to 07\w$")
                self.assertEqual(texts.count("?"), sum(c.arch != "sm_90a" for c in chapters))

    @unittest.skipUnless(HAVE_MATPLOTLIB, "no matplotlib")
    def test_figures_come_without_caches(self):
        self.measure()
        environment = {name: value for name, value in os.environ.items() if name != "MPLCONFIGDIR"}
        command = [sys.executable, "-B", plot.__file__, "--repo", self.repo, "--data", self.data, "--out",
                   self.repo / "out"]
        subprocess.run(command, env=environment, check=True, capture_output=True)
        self.assertEqual({path.suffix for path in (self.repo / "out").iterdir()}, {".svg"})

    def test_nothing_that_a_tool_leaves_behind_is_committed(self):
        files = subprocess.run(["git", "ls-files", "plots"], cwd=ROOT, check=True, capture_output=True, text=True)
        kinds = {Path(file).suffix for file in files.stdout.split()}
        self.assertEqual(kinds, {".csv", ".svg", ".py", ".mplstyle", ".md", ".txt", ".cpp", ".cu", ".cuh", ".h"})

    @unittest.skipUnless(HAVE_MATPLOTLIB, "no matplotlib")
    def test_what_cannot_be_drawn_is_said(self):
        save(self.data / "a.csv", [row("01_naive", "prefill", [2048] * 8, 12, warm=1, roof_tflops="")])
        status, out, _ = self.run_tool(plot, "--data", self.data, "--out", self.repo / "out")
        self.assertEqual(status, 0)
        for what in ("no roofs:", "no libraries:", "skew: not drawn,", "step_02_tiled: not drawn,"):
            self.assertIn(f"plots: {what}", out)
        self.assertIn("warm inputs, bf16", (self.repo / "out/ladder.svg").read_text())

    def test_newest_keeps_one_row_for_each_measurement(self):
        save(self.data / "a.csv", [row("01_naive", "prefill", [8], 3, date="2026-03-01"),
                                   row("01_naive", "prefill", [8], 2)])
        self.assertEqual([r.tflops for r in newest(read_rows(self.data))], [3])


class ChangesTest(unittest.TestCase):
    """Which kernels have changed since a commit, in a repository of the test's own."""

    KERNEL = '#include "common/ptx/a.cuh"\nint one() { return 1; }\nconstexpr int BM = 64;\n'
    A = '#include "common/b.h"\nnamespace gg {\n// loads\nint load(int x) { return x; }\n}  // namespace gg\n'
    B = "#pragma once\nint first(int x);\ntemplate <>\nint second<int>(const char* s) {\n  return 2;\n}\n"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.repo = Path(folder.name)
        self.files = {"chapters/01_naive/kernel.cuh": self.KERNEL, "chapters/01_naive/README.md": "old\n",
                      "chapters/01_naive/main.cu": '#include "common/harness.cuh"\n#include "kernel.cuh"\n'
                                                   'int main() { run({.title = "loops", .k = 8}); }\n',
                      "chapters/02_tiled/main.cu": '#include "kernel.cuh"\n',
                      "chapters/02_tiled/kernel.cuh": "int x;\n",
                      "common/ptx/a.cuh": self.A, "common/b.h": self.B, "common/harness.cuh": "int old;\n"}
        self.git("init", "--quiet")
        self.commit = self.committed()

    def git(self, *words):
        command = "git -c user.name=test -c user.email=test@localhost -c commit.gpgsign=false".split() + list(words)
        try:
            return subprocess.run(command, cwd=self.repo, check=True, capture_output=True, text=True).stdout.strip()
        except FileNotFoundError:
            self.skipTest("there is no git, which knows what kernels were")

    def write(self, **changed):
        for path, text in (self.files | changed).items():
            (self.repo / path).parent.mkdir(parents=True, exist_ok=True)
            (self.repo / path).write_text(text)

    def committed(self):
        self.write()
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "all")
        return self.git("rev-parse", "HEAD")

    def changed(self, chapter="01_naive", commit=None):
        return History(self.repo).changed(chapter, commit or self.commit)

    def test_code_of_a_kernel_and_its_headers(self):
        kernel, a, b = "chapters/01_naive/kernel.cuh", "common/ptx/a.cuh", "common/b.h"
        for path, old, new, files in [
                (kernel, "return 1", "return 2", ("kernel.cuh",)), (kernel, "64", "128", ("kernel.cuh",)),
                (kernel, "constexpr", "int two();\nconstexpr", ("kernel.cuh",)),
                (a, "return x", "return x + 1", (a,)), (b, "return 2", "return 3", (b,)), (b, "int x", "long x", (b,)),
                (a, "// loads", "int load(long);", ()), (b, "int first(int x);\n", "", ()),  # nothing of it was used
                (a, "loads", "loads // twice", ()), (kernel, "int one() {", "/* a */ int one()\n{\n\n ", ()),
                (kernel, "#include", "#include <cmath>\n#include", ()),
                ("chapters/01_naive/main.cu", "loops", "a loop", ()),
                ("chapters/01_naive/main.cu", "8", "16", ("main.cu",)),
                ("chapters/01_naive/README.md", "old", "new", ()), ("common/harness.cuh", "old", "another", ()),
                ("chapters/02_tiled/kernel.cuh", "x", "y", ())]:
            self.write(**{path: self.files[path].replace(old, new)})
            self.assertEqual(self.changed(), files, (path, new))
        self.write()
        self.assertEqual(self.changed(), ())

    def test_what_moved_is_the_same(self):
        (self.repo / "common/b.h").rename(self.repo / "common/c.h")
        (self.repo / "common/ptx/a.cuh").write_text(self.A.replace("b.h", "c.h"))
        self.assertEqual(self.changed(), ())

    def test_a_table_says_it(self):
        self.write(**{"common/b.h": self.B.replace("return 2", "return 3"),
                      "chapters/02_tiled/kernel.cuh": "int y;\n"})
        history = History(self.repo)
        rows = [SimpleNamespace(chapter=chapter, commit=commit) for chapter, commit in
                [("01_naive", self.commit), ("02_tiled", self.commit + "-dirty"),
                 ("01_naive", "0" * 40), ("01_naive", "")]]
        ten = self.commit[:10]
        self.assertEqual(aged(rows, history),
                         [f"The kernel of 01_naive has changed since commit {ten}: common/b.h.",
                          f"The kernel of 02_tiled has changed since commit {ten}-dirty: kernel.cuh."])
        self.assertEqual(history.lacking, {"0" * 40})
        self.write(**{"chapters/01_naive/kernel.cuh": "int y;\n", "chapters/02_tiled/kernel.cuh": "int y;\n"})
        rows[1].commit = self.commit
        self.assertEqual(aged(rows, History(self.repo)),
                         [f"The kernels of 01_naive and 02_tiled have changed since commit {ten}: kernel.cuh."])

    def test_publish_writes_and_takes_back_the_sentence(self):
        main = 'gg::Chapter info = {.id = "01_naive", .arch = gg::Arch::sm_80, .title = "Idea"};\n'
        self.files = {path: text for path, text in self.files.items() if "02_tiled" not in path}
        self.files |= {"chapters/01_naive/main.cu": main, "README.md": "<!-- table -->\n<!-- /table -->\n",
                       "chapters/01_naive/README.md": "<!-- table -->\n<!-- /table -->\n"}
        shutil.rmtree(self.repo / "chapters/02_tiled")
        commit = self.committed()
        save(self.repo / "plots/measure/data/h200/all.csv",
             [row("01_naive", "prefill", [8], 9, kernel="grouped_gemm", commit=commit),
              row("01_naive", "prefill", [8], 9, peer="cublas_loop", commit=self.commit)])  # no kernel of ours
        sentence = f"The kernel of 01_naive has changed since commit {commit[:10]}: kernel.cuh.\n<!-- /table -->"
        for kernel, there in ((self.KERNEL.replace("64", "32"), True), (self.KERNEL, False)):
            (self.repo / "chapters/01_naive/kernel.cuh").write_text(kernel)
            with mock.patch.object(sys, "argv", ["publish", "--repo", str(self.repo)]):
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                    publish.main()
            for readme in ("README.md", "chapters/01_naive/README.md"):
                self.assertEqual(sentence in (self.repo / readme).read_text(), there, readme)

    def test_lines_of_a_whole_folder(self):
        before, chapter = self.repo / "chapters/02_tiled", self.repo / "chapters/01_naive"
        self.assertEqual(lines_changed(before, chapter), (3, 1))
        self.assertEqual(lines_changed(None, chapter), (3, 0))
        (chapter / "parts.cuh").write_text("1\n2\n")
        (before / "old.cuh").write_text("1\n")
        (chapter / "main.cu").write_text("int other;\n")
        (chapter / "kernel.cuh").write_text("  int   x;\n")
        self.assertEqual(lines_changed(before, chapter), (2, 1))


class CommittedTablesTest(unittest.TestCase):
    """The READMEs of this repository."""

    def test_each_says_of_its_kernels_what_has_changed(self):
        history = History(ROOT)
        chapters = read_chapters(ROOT)
        wrong, several = [], 0
        for readme, mark, text in tables.every(ROOT, plot.Data([ROOT / DATA], "", chapters), history):
            found = re.search(rf"(?s)<!-- {mark} -->\n(.*?)\n<!-- /{mark} -->", readme.read_text(encoding="utf-8"))
            if found:
                several += 1
                said, needed = (re.findall(r"^The kernels? of .* changed since commit .*$", each, re.M)
                                for each in (found[1], text))
                wrong += [f"{readme.relative_to(ROOT)}, {mark}: says {said}, needs {needed}: run plots/draw/publish.py"
                          for _ in "1" if said != needed]
        if history.lacking:
            self.skipTest(f"git lacks {', '.join(sorted(history.lacking))} (a shallow clone, or no clone): whether "
                          "kernels have changed since is not known")
        self.assertGreater(several, len(chapters))
        if wrong:
            self.fail("\n  " + "\n  ".join(wrong))


# A program that answers as a chapter does: a row of measurements on a GPU, counts on the emulator.
CHAPTER = """
import csv, os, sys
arguments = sys.argv[1:]
option = "--csv" if "gpu" in arguments else "--counts-csv"
if "gpu" in arguments and os.environ.get("FAKE") == "no gpu":
    print("02_tiled: no GPU here"), sys.exit(77)
if "--check" in arguments:
    sys.exit(os.environ.get("FAKE") == "wrong")
with open(arguments[arguments.index(option) + 1], "w", newline="") as file:
    rows = {"--csv": ROWS, "--counts-csv": COUNTS}[option]
    writer = csv.DictWriter(file, rows[0])
    writer.writeheader(), writer.writerows(rows)
"""
# A program that answers as Nsight Compute 2025 does: FAKE chooses what is wrong with it.
NCU = """
import os, subprocess, sys
arguments, fake = sys.argv[1:], os.environ.get("FAKE")
if arguments == ["--version"]:
    print("NVIDIA (R) Nsight Compute Command Line Profiler\\nVersion 2025.3.1.0 (build 1)")
elif arguments == ["--query-metrics"]:
    print("Device NVIDIA H200 (GH100)\\nsmsp__inst_executed    Counter  inst  # of warp instructions executed")
elif "--import" in arguments:
    print("==PROF== remark")
    print(RAW if "raw" in arguments else "" if fake == "no section" else SOURCE)
else:
    program = arguments[arguments.index("--metrics") + 2:]
    code = subprocess.run(program).returncode
    if fake == "forbidden":
        print("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance "
              "Counters on the target device 0."), sys.exit(1)
    if code:
        sys.exit(code)
    if fake == "no ldsm" and "ldsm" in arguments[arguments.index("--metrics") + 1]:
        print("==ERROR== Failed to find metric smsp__inst_executed_op_ldsm.sum"), sys.exit(1)
    if fake == "no section" and "--section" in arguments:
        print("==ERROR== cannot sample"), sys.exit(1)
    open(arguments[arguments.index("--export") + 1] + ".ncu-rep", "w").close()
"""
RAW = """"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Device","CC","smsp__inst_executed.sum",\
"sm__inst_executed_pipe_tensor_op_hmma.sum","l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",\
"l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum","smsp__inst_executed_op_ldsm.sum"
"","","","","","","","","inst","inst","sector","sector",""
"0","12","02_tiled","127.0.0.1","grouped_gemm","1","0","9.0","1,234","8","100","20.000000","n/a"
"""
SOURCE = """"Kernel Name","void chapter::grouped_gemm<__nv_bfloat16>(int, int)"
"#","Address","Source","# Samples","Instructions Executed","Predicated-On Thread Instructions Executed",\
"L1 Wavefronts Shared","L1 Wavefronts Shared Ideal","L2 Theoretical Sectors Global"
"0","7f00","LDG.E.128 R4, [R2.64]","3","10","320","0","0","100"
"1","7f10","@!P0 LDGSTS.E.BYPASS.128 [R3], [R2.64]","0","5","160","20","16","20"
"2","7f20","HMMA.16816.F32.BF16 R4, R8, R10, R4","1","8","256","0","0","0"
"3","7f30","@P1 FFMA R1, R2, R3, R1","1","2","40","0","0","0"
"4","7f40","EXIT ","1","4","128","","",""
"""


class ChoiceTest(unittest.TestCase):
    """plots/measure/choice.py with a program that answers as --tune does."""

    def test_draws_the_same_problems_from_a_seed(self):
        def drawn(seed):
            rng = random.Random(seed)
            return [choice.draw(rng) for _ in range(40)]
        self.assertEqual(drawn(1), drawn(1))
        self.assertNotEqual(drawn(1), drawn(2))
        for m, n, k in drawn(1):
            self.assertIn((n, k), choice.SHAPES)
            self.assertIn(sum(m) / len(m), choice.ROWS)
        self.assertEqual({len(set(m)) > 1 for m, _, _ in drawn(1)}, {True, False})

    def test_says_what_the_choice_loses(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "chapter"
            program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -B \"$0.py\" \"$@\"\n")
            program.chmod(0o755)
            Path(folder, "chapter.py").write_text(
                "import sys\nwords = sys.argv[1:]\n"
                "assert words[:6] == ['--tune', '--m', '3,0,5', '--n', '64', '--k'], words\n"
                "open(words[-1], 'w').write('kernel,us_median\\ngrouped_gemm,11\\n"
                "grouped_gemm 256x128,10\\ngrouped_gemm 64x64,12\\n')\n")
            times = choice.tuned(program, [3, 0, 5], 64, 128)
        loss, best = choice.lost(times)
        self.assertEqual((round(loss, 3), best), (0.1, "256x128"))
        self.assertEqual(choice.distribution([0.0, 0.015, 0.3, -0.002]),
                         "4 problems: 2 within 1 %, 3 within 2 %, 3 within 5 %; mean 7.8 %, median 1.5 %, worst 30.0 %")

    def test_without_a_gpu_there_is_nothing_to_time(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "chapter"
            program.write_text("#!/bin/sh\nexit 77\n")
            program.chmod(0o755)
            with self.assertRaises(SystemExit) as stopped:
                choice.tuned(program, [1], 8, 8)
        self.assertEqual(stopped.exception.code, 77)


class NcuCountsTest(unittest.TestCase):
    """plots/measure/ncu_counts.py with programs that answer as chapters and ncu do: no GPU is needed."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "bin").mkdir()
        shape = row("02_tiled", "smoke", [5, 0, 17, 64], 1)
        counts = [dict(zip(COUNT_COLUMNS, ("02_tiled", "smoke", "0:fair", *each))) for each in
                  {"instructions": 617, "instructions_mma": 8, "global_load_sectors": 120,
                   "shared_wavefronts": 16, "shared_bank_conflicts": 0, "multiply_adds": 16424}.items()]
        for path, text, values in [("bin/02_tiled", CHAPTER, dict(ROWS=[shape], COUNTS=counts)),
                                   ("ncu", NCU, dict(RAW=RAW, SOURCE=SOURCE))]:
            given = "".join(f"{name} = {value!r}\n" for name, value in values.items())
            (self.folder / f"{path}.py").write_text(given + text)  # a first line takes no path with a space in it
            (self.folder / path).write_text(f"#!/bin/sh\nexec '{sys.executable}' -B \"$0.py\" \"$@\"\n")
            (self.folder / path).chmod(0o755)

    def compare(self, fake="", out_to=("--out", "ncu.csv")):
        """Exit status, stdout, stderr and the rows by counter and way."""
        out, err, table = io.StringIO(), io.StringIO(), self.folder / "ncu.csv"
        command = ["ncu_counts", "02_tiled", "--problem", "--set smoke", "--build", str(self.folder),
                   "--ncu", str(self.folder / "ncu"), *out_to[:1], *(str(self.folder / name) for name in out_to[1:])]
        with mock.patch.object(sys, "argv", command), mock.patch.dict("os.environ", FAKE=fake):
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                status = ncu_counts.main()
        rows = read_csv(table, NCU_COLUMNS) if table.exists() else []
        return status, out.getvalue(), err.getvalue(), {(r["counter"], r["way"]): r for r in rows}

    def test_compares_both_ways_of_counting(self):
        status, out, err, rows = self.compare()
        self.assertEqual((status, err), (0, ""))
        found = {key: (int(r["emulator"]), int(r["gpu"])) for key, r in rows.items()}
        self.assertEqual({key: value for key, value in found.items() if key[1] == "hardware"},
                         {("instructions", "hardware"): (617, 1234), ("instructions_mma", "hardware"): (8, 8),
                          ("global_load_sectors", "hardware"): (120, 120)})
        for counter, both in {"instructions": (617, 29), "instructions_mma": (8, 8), "shared_wavefronts": (16, 20),
                              "shared_bank_conflicts": (0, 4), "global_load_sectors": (120, 120),
                              "multiply_adds": (16424, 8 * 2048 + 40), "instructions_cp_async": (0, 5)}.items():
            self.assertEqual(found[counter, "instrumented"], both, counter)
        self.assertIn("PTX on the emulator, SASS on the GPU", out)
        one = rows["instructions", "hardware"]
        self.assertEqual((one["m_total"], one["device"], one["ncu"]), ("86", "NVIDIA H200", "2025.3.1.0"))

    def test_what_the_machine_lacks_is_said(self):
        for fake, why in [("forbidden", "ERR_NVGPUCTRPERM"), ("no gpu", "02_tiled: no GPU here")]:
            status, _, err, rows = self.compare(fake)
            self.assertEqual((status, rows), (77, {}))
            self.assertIn(why, err)

    def test_counts_of_uncommitted_changes_are_not_written_among_the_data(self):
        program = self.folder / "bin/02_tiled.py"
        program.write_text(program.read_text().replace("0123456789abcdef", "0123456789abcdef-dirty"))
        with mock.patch.object(ncu_counts, "REPO", self.folder):
            status, out, err, _ = self.compare(out_to=())
        self.assertEqual(status, 1)
        self.assertIn("PTX on the emulator, SASS on the GPU", out)
        self.assertIn("not written: the programs were built from changes that were not committed", err)
        self.assertFalse((self.folder / "plots").exists())
        status, _, _, rows = self.compare()
        self.assertEqual((status, {r["commit"] for r in rows.values()}), (0, {"0123456789abcdef-dirty"}))

    def test_what_is_wrong_is_not_counted(self):
        status, _, err, rows = self.compare("wrong")
        self.assertEqual((status, rows), (1, {}))
        self.assertIn("it ended with 1", err)

    def test_does_without_what_ncu_or_the_chip_lacks(self):
        for fake, why, ways in [("no ldsm", "Failed to find metric", {"hardware", "instrumented"}),
                                ("no section", "cannot sample", {"hardware"})]:
            status, out, _, rows = self.compare(fake)
            self.assertEqual(status, 0)
            self.assertIn(why, out)
            self.assertEqual({way for _, way in rows}, ways)

    def test_publish_tells_the_agreement(self):
        self.compare()
        table = self.folder / "ncu.csv"
        table.write_text(table.read_text().replace("0123456789abcdef", "0123456789abcdef-dirty"))
        readme = self.folder / "common" / "emu" / "COUNTS.md"
        readme.parent.mkdir(parents=True)
        readme.write_text("<!-- ncu -->\n<!-- /ncu -->\n")
        (self.folder / "README.md").write_text("<!-- table -->\n<!-- /table -->\n")
        (self.folder / DATA / "h200").mkdir(parents=True)
        (self.folder / "ncu.csv").rename(self.folder / DATA / "h200" / "ncu.csv")
        command = ["publish", "--repo", str(self.folder)]
        with mock.patch.object(sys, "argv", command), contextlib.redirect_stdout(io.StringIO()):
            with contextlib.redirect_stderr(io.StringIO()):
                publish.main()
        text = readme.read_text()
        for line in ("| `smoke`: G=4, M=86 (≤ 64), N=4096, K=7168 | `instructions` | hardware | 200 % |",
                     "|  | `instructions_mma` | hardware | same |",
                     "|  | `shared_bank_conflicts` | instrumented | 4 for 0 |",
                     "NVIDIA H200 · CUDA 13.0 · Nsight Compute 2025.3.1.0 · 2026-01-02 · commit 0123456789-dirty. "
                     "`-dirty`: of a program with changes that were not committed."):
            self.assertIn(line, text)


if __name__ == "__main__":
    if os.environ.get("GG_FIGURES") == "ON" and not HAVE_MATPLOTLIB:
        sys.exit("plots_test: the build has what draws the figures, and this Python does not")
    unittest.main(verbosity=2)
