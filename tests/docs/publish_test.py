# SPDX-License-Identifier: MIT
"""What publish takes into the data, from a tour on this or another GPU, and what it leaves out."""

import contextlib
import io
import subprocess
from pathlib import Path

from plots.draw import publish
from plots.measure.files import COUNT_COLUMNS, DATA, read_counts, read_csv
from tests.docs.plots_case import HAVE_MATPLOTLIB, ROOT, PlotsCase, counted, main, row, save


def as_left(path):
    """Differs when a file has been written since."""
    return path.stat().st_ino, path.stat().st_mtime_ns


class PublishTest(PlotsCase):
    def test_publish_takes_a_tour_in_once(self):
        tour = self.repo / "build" / "tour"
        save(tour / "run.csv", [row("01_naive", "prefill", [2048] * 8, 12),
                                row("01_naive", "prefill", [2048] * 8, 13),
                                row("01_naive", "smoke", [4], 1, device="emulator", ok=0)])
        self.fill(publish, "--run", tour)
        written = (self.data / "01_naive.csv").read_text()
        self.assertEqual(self.cells("chapters/LADDER.md", "[01_naive]")[3], "13.0")
        self.assertEqual(len(written.splitlines()), 2)
        self.assertFalse((self.data.parent / "emulator.csv").exists())
        before = {path: as_left(path) for path in self.repo.rglob("*.*")}
        _, out, _ = self.fill(publish, "--run", tour)
        self.assertEqual({path: as_left(path) for path in self.repo.rglob("*.*")}, before)
        self.assertNotIn("publish:", out)

    def test_of_two_of_one_thing_the_newer_stays(self):
        """Rows of a file that is there, and of a run that is older, as old, newer, or of something else."""
        tour, prefill = self.repo / "build" / "tour", [2048] * 8
        for there, run, stays in (("2026-01-02", "2026-01-01", 10), ("2026-01-02", "2026-01-02", 20), ("2026-01-02", "2026-01-03", 20)):
            save(self.data / "01_naive.csv", [row("01_naive", "prefill", prefill, 10, date=there),
                                              row("01_naive", "decode", [16] * 32, 5, date="2026-01-04")])
            save(self.data / "02_tiled.csv", [row("02_tiled", "prefill", prefill, 40)])
            other = as_left(self.data / "02_tiled.csv")
            save(tour / "run.csv", [row("01_naive", "prefill", prefill, 20, date=run),
                                    row("01_naive", "step", [1] * 8, 2, date="2026-01-01")])
            self.fill(publish, "--run", tour)
            with self.subTest(run):
                self.assertEqual([(each["set"], float(each["tflops"])) for each in read_csv(self.data / "01_naive.csv")],
                                 [("step", 2), ("prefill", stays), ("decode", 5)], "by date, and nothing else is lost")
                self.assertEqual(self.cells("chapters/LADDER.md", "[01_naive]")[3], f"{stays}.0")
                self.assertEqual(as_left(self.data / "02_tiled.csv"), other)
        self.assertEqual([path.name for path in self.data.iterdir() if path.name.startswith(".")], [])

    def test_a_failed_check_replaces_an_older_time(self):
        tour = self.repo / "build" / "tour"
        save(self.data / "01_naive.csv", [row("01_naive", "prefill", [2048] * 8, 10)])
        save(tour / "run.csv", [row("01_naive", "prefill", [2048] * 8, 1, ok=0, date="2026-01-03"),
                                row("01_naive", "decode", [16] * 32, 1, date="2026-01-03")])
        self.fill(publish, "--run", tour)
        self.assertEqual(self.cells("chapters/LADDER.md", "[01_naive]")[3], "failed")
        self.assertEqual(self.cells("chapters/01_naive/README.md", "`prefill`")[2:], ["failed"] * 6, "cold and warm")
        self.assertEqual(len(read_csv(self.data / "01_naive.csv")), 2)

    def test_what_names_a_measurement(self):
        """Two rows that differ in one of these are two measurements, in anything else one."""
        tour, first = self.repo / "build" / "tour", row("01_naive", "prefill", [2048] * 8, 10, date="2026-01-01")
        for column, other, count in (
                ("kernel", "grouped_gemm 64x64", 2), ("set", "own", 2), ("groups", 9, 2), ("m_total", 16385, 2), ("m_max", 2049, 2),
                ("n", 8192, 2), ("k", 8192, 2), ("format", "mxfp8", 2), ("warm", 1, 2), ("peer", "cublas_loop", 2), ("commit", "f" * 16, 1),
                ("version", "13", 1), ("clock_mhz", 1, 1)):
            save(self.data / "01_naive.csv", [first])
            save(tour / "run.csv", [first | {column: other, "date": "2026-01-02"}])
            with contextlib.redirect_stdout(io.StringIO()):
                publish.collect(tour, self.repo / DATA)
            self.assertEqual(len(read_csv(self.data / "01_naive.csv")), count, column)

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
        # A commit that is there already says so.
        self.assertIn(" · commit 0123456789-dirty, 0123456789.", text)
        self.assertIn("| 01_naive, of 2026-01-01 at 0123456789 |", text)

    def test_a_tour_on_a_b200_fills_its_chapters(self):
        self.measure()
        self.blackwell("08a_bf16", "03_tensor_cores", "bf16")
        self.blackwell("08b_fp4", "08a_bf16", "nvfp4")
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
        self.assertEqual(self.cells("chapters/LADDER.md", "[08a_bf16]")[3], "1500 (B200)")
        self.assertEqual(self.cells("chapters/LADDER.md", "[08b_fp4]")[3], "6000 (B200)", "of its own format and its first tile")
        self.assertEqual(self.cells("chapters/LADDER.md", "[03_tensor_cores]")[3], "30.0", "where the others are from")
        text = (self.repo / "chapters/LADDER.md").read_text()
        self.assertIn("bf16, but 08b_fp4: nvfp4; cold inputs; measured roof 100 TFLOP/s", text)
        self.assertIn("Timed on NVIDIA B200, the others on NVIDIA H200: 08a, 08b. There 03 has 60.0 TFLOP/s on `prefill`.\n", text)
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
        kinds = {Path(file).suffix for file in files.stdout.split() if file != "plots/figures/tour.png"}
        self.assertEqual(kinds, {".csv", ".svg", ".py", ".mplstyle", ".md", ".txt", ".cpp", ".cu", ".cuh", ".h"})


if __name__ == "__main__":
    main()
