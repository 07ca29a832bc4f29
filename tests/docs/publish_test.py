# SPDX-License-Identifier: MIT
"""What publish takes into the data, from a tour on this or another GPU, and what it leaves out."""

import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "plots"), str(Path(__file__).parent)]

from draw import publish  # noqa: E402
from measure.files import COUNT_COLUMNS, DATA, read_counts, read_csv  # noqa: E402
from plots_case import HAVE_MATPLOTLIB, ROOT, PlotsCase, counted, main, row, save  # noqa: E402


class PublishTest(PlotsCase):
    def test_publish_takes_a_tour_in_once(self):
        tour = self.repo / "build" / "tour"
        save(tour / "run.csv", [row("01_naive", "prefill", [2048] * 8, 12),
                                row("01_naive", "prefill", [2048] * 8, 13),
                                row("01_naive", "smoke", [4], 1, device="emulator", ok=0)])
        self.fill(publish, "--run", tour)
        written = (self.data / "01_naive.csv").read_text()
        self.assertEqual(self.cells("README.md", "[01_naive]")[3], "13.0")
        self.assertEqual(len(written.splitlines()), 2)
        self.assertFalse((self.data.parent / "emulator.csv").exists())
        _, out, _ = self.fill(publish, "--run", tour)
        self.assertEqual((self.data / "01_naive.csv").read_text(), written)
        self.assertNotIn("publish:", out)

    def test_publish_takes_counts_in_and_keeps_the_newest(self):
        with open(self.repo / "chapters/02_tiled/README.md", "a") as readme:
            readme.write("<!-- counts -->\n<!-- /counts -->\n")
        tour, there = self.repo / "build" / "tour", self.data.parent / "emulator.csv"
        save(tour / "01.counts.csv", counted("01_naive", 3) + counted("01_naive", 9, order="1:skew"),
             COUNT_COLUMNS)
        save(tour / "02.counts.csv", counted("02_tiled", 5), COUNT_COLUMNS)
        self.fill(publish, "--run", tour)
        self.assertEqual([line.split(",")[:3] for line in there.read_text().splitlines()[1::11]],
                         [["01_naive", "smoke", "0:fair"], ["01_naive", "smoke", "1:skew"], ["02_tiled", "smoke", "0:fair"]])
        self.assertEqual(self.cells("chapters/02_tiled/README.md", "counter")[1:], ["01_naive", "02_tiled"])
        self.assertEqual(self.cells("chapters/02_tiled/README.md", "`shared_bank_conflicts`")[1:], ["3", "5"])
        self.assertEqual(self.cells("chapters/02_tiled/results.md", "wasted")[1:], ["75 %", "75 %"])
        self.assertNotIn("instructions_mma", (self.repo / "chapters/02_tiled/results.md").read_text())
        save(tour / "01.counts.csv", counted("01_naive", 4), COUNT_COLUMNS)
        self.fill(publish, "--run", tour)
        found = {key: some["shared_bank_conflicts"] for key, some in read_counts(there).items()}
        self.assertEqual(found, {("01_naive", "smoke", "0:fair"): 4, ("01_naive", "smoke", "1:skew"): 9,
                                 ("02_tiled", "smoke", "0:fair"): 5})
        _, out, _ = self.fill(publish, "--run", tour)
        self.assertNotIn("publish:", out)

    def test_rows_of_uncommitted_changes_are_left_out(self):
        tour = self.repo / "build" / "tour"
        save(tour / "run.csv", [row("01_naive", "prefill", [2048] * 8, 12),
                                row("01_naive", "decode", [16] * 32, 13, commit="0123456789abcdef-dirty")])
        _, out, _ = self.fill(publish, "--run", tour)
        self.assertIn("run.csv: 1 of 2 rows left out, as their program was built from changes that were not "
                      "committed\n", out)
        self.assertEqual([row["set"] for row in read_csv(self.data / "01_naive.csv")], ["prefill"])
        save(self.data / "01_naive.csv", [row("01_naive", "prefill", [2048] * 8, 12, commit="0123456789abcdef-dirty"),
                                          row("01_naive", "decode", [16] * 32, 13, date="2026-01-01")])
        self.fill(publish)
        text = (self.repo / "chapters/01_naive/README.md").read_text()
        self.assertIn(" · commit 0123456789-dirty, 0123456789.", text)  # what is there already says so
        self.assertIn("| 01_naive, of 2026-01-01 at 0123456789 |", text)

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

    def test_nothing_that_a_tool_leaves_behind_is_committed(self):
        files = subprocess.run(["git", "ls-files", "plots"], cwd=ROOT, check=True, capture_output=True, text=True)
        kinds = {Path(file).suffix for file in files.stdout.split()}
        self.assertEqual(kinds, {".csv", ".svg", ".py", ".mplstyle", ".md", ".txt", ".cpp", ".cu", ".cuh", ".h"})


if __name__ == "__main__":
    main()
