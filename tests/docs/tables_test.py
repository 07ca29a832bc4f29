# SPDX-License-Identifier: MIT
"""Tables of READMEs and results.md, made of made-up measurements."""

import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

from plots.draw import beside_cudnn, front_page, measured, plot, publish, tables, unfused
from plots.draw.markdown import cell, digits
from plots.draw.results import within_noise
from plots.measure import sets
from plots.measure.chapters import read_chapters
from plots.measure.counts_ini import count_plan
from plots.measure.files import Row
from tests.docs.plots_case import FORMATS, HAVE_MATPLOTLIB, ROOT, SETS, PlotsCase, describe, main, row, save


class TablesTest(PlotsCase):
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
        (self.repo / "chapters/02_tiled/checks").mkdir()
        (self.repo / "chapters/02_tiled/checks/counts.ini").write_text("[shown]\nproblems = decode\n")
        (self.repo / "chapters/03_tensor_cores/schedule.cuh").write_text("  one\ntwo\n")
        self.fill(publish)
        self.assertEqual(self.cells("chapters/LADDER.md", "[01_naive]")[1:5],
                         ["Idea of 01_naive", "–", "10.0", "3006"])
        self.assertEqual(self.cells("chapters/LADDER.md", "[02_tiled]")[3], "50.0", "the newest row wins")
        self.assertEqual(self.cells("chapters/LADDER.md", "[02_tiled]")[5], "+4 −1", "the whole folder")
        self.assertEqual(self.cells("chapters/LADDER.md", "[03_tensor_cores]")[5], "+1 −2")
        self.assertEqual(self.cells("chapters/LADDER.md", "[03_tensor_cores]")[4], "failed")
        text = (self.repo / "chapters/LADDER.md").read_text()
        self.assertEqual(text.count("| chapter | idea | its own problem | TFLOP/s on `prefill` | µs on `decode` | lines changed |\n"), 2,
                         "a table for each part")
        self.assertEqual(self.cells("chapters/LADDER.md", "[02_tiled]")[2], "`decode`: 3006 → 752 µs, ≈4.00x",
                         "what checks/counts.ini names first")
        # 2 * 512 * 4096 * 7168 FLOP at 10 TFLOP/s
        self.assertEqual(self.cells("chapters/LADDER.md", "[01_naive]")[4:], ["3006", "+2"])
        text = (self.repo / "chapters/LADDER.md").read_text()
        self.assertIn("cold inputs; measured roof 100 TFLOP/s on `prefill`.\n"
                      "Each chapter is timed by its own program, at the clock that its rounds have.\nLibraries timed on `prefill` beside "
                      "02_tiled, in its run: cublas_loop (cuBLAS 13.0), cublas_strided.\n"
                      "The fastest of these: cublas_loop, 90 TFLOP/s.\n", text)
        self.assertIn("H200 · 1980 MHz · CUDA 13.0 · 2026-01-01 to 2026-01-03 · commit 0123456789.", text)
        self.assertTrue(text.startswith("# Title\n") and "<!-- /table -->\nkept\n" in text)

    def test_fused_table(self):
        self.measure()
        path = "chapters/02_tiled/README.md"
        with (self.repo / path).open("a") as readme:
            readme.write("<!-- fused -->\n<!-- /fused -->\n")

        def ways(m, **us):
            return [row("02_tiled", "moe", m, 10, us_median=time, peer=peer, version=f"{peer} 1.0",
                        date="2026-02-01") for peer, time in us.items()]

        def fused(m_total, m_max):  # where the line of the fused table begins
            return f"`moe`: G=2, M={m_total} (≤ {m_max}), N=4096, K=7168 | 90.0"

        self.fill(publish)
        self.assertIn("<!-- fused -->\nNothing is measured yet.\n", (self.repo / path).read_text())
        save(self.data / "fused.csv", ways([32, 5], **{"": 90, "unfused": 100, "product": 80}))
        self.fill(publish)
        self.assertEqual(self.cells(path, fused(37, 32))[1:], ["90.0", "100", "80.0", "-10.0 %", "+12.5 %"])
        save(self.data / "fused.csv", [*ways([32, 5], **{"": 90, "unfused": 100, "product": 80, "a_glu": 120, "b_glu": 95}),
                                       *ways([64, 5], **{"": 90, "unfused": 100, "product": 80, "b_glu": 75})])
        self.fill(publish)
        self.assertEqual(self.cells(path, "set and shape | fused, µs")[4:],
                         ["a_glu, µs", "b_glu, µs", "fused over unfused", "fused over product", "fused over the fastest library"])
        self.assertEqual(self.cells(path, fused(37, 32))[4:], ["120", "95.0", "-10.0 %", "+12.5 %", "-5.3 %"])
        self.assertEqual(self.cells(path, fused(69, 64))[4:], ["–", "75.0", "-10.0 %", "+12.5 %", "+20.0 %"])
        # Another chapter that does the same is no library.
        save(self.data / "fused.csv", ways([32, 5], **{"": 90, "unfused": 100, "product": 80, "07x": 96, "a_glu": 120}))
        self.fill(publish)
        self.assertEqual(self.cells(path, fused(37, 32))[1:],
                         ["90.0", "96.0", "100", "80.0", "120", "-10.0 %", "+12.5 %", "+20.0 %", "-25.0 %"])
        self.assertIn("\nLibraries: a_glu (a_glu 1.0).\n", (self.repo / path).read_text())
        save(self.data / "fused.csv", [*ways([32, 5], **{"": 90, "unfused": 100, "product": 80, "a_glu": 120, "b_glu": 95}),
                                       *ways([64, 5], **{"": 90, "unfused": 100, "product": 80, "b_glu": 75})])
        (self.repo / "chapters/02_tiled/checks").mkdir()
        (self.repo / "chapters/02_tiled/checks/counts.ini").write_text("[shown]\nproblems = moe1\n")
        # The first problem of `moe` has fewer rows.
        save(self.data / "padded.csv", ways([128] * 32, **{"": 70, "unfused": 110, "product": 60}))
        self.fill(publish)
        self.assertEqual(self.cells("chapters/LADDER.md", "[02_tiled]")[2], "`moe` no. 1, unfused: 110 → 70.0 µs, 1.57x",
                         "no predecessor did as much")
        for name in ("01_naive", "02_tiled"):
            describe(self.repo, name, "01_naive" * (name == "02_tiled"), tile_clusters=["128x64 with 1x1"], epilogue=dict(operator="glu"))
        m, _, _ = sets.problems()["moe"][0]
        save(self.data / "before.csv", [row("01_naive", "moe", m, 10, us_median=140), *ways(m, **{"": 70, "unfused": 110, "product": 60})])
        self.fill(publish)
        self.assertEqual(self.cells("chapters/LADDER.md", "[02_tiled]")[2], "`moe` no. 1: 140 → 70.0 µs, ≈2.00x",
                         "its predecessor does as much")
        text = (self.repo / path).read_text()
        self.assertIn("\nLibraries: a_glu (a_glu 1.0), b_glu (b_glu 1.0).\n", text)
        table = text[text.index("<!-- table -->"):text.index("<!-- /table -->")]
        self.assertNotIn("_glu", table + (self.repo / "chapters/LADDER.md").read_text(), "they are no libraries for products")

    def test_chapter_table(self):
        self.measure()
        save(self.data / "more.csv", [row("02_tiled", "prefill", [2048] * 8, 44, warm=1),
                                      row("02_tiled", "prefill", [2048] * 8, 47, kernel="grouped_gemm 64x64"),
                                      row("02_tiled", "prefill", [2048] * 8, 45, kernel="grouped_gemm 32x64"),
                                      row("02_tiled", "prefill", [2048] * 8, 90, peer="cublas_loop")])
        self.fill(publish)
        path = "chapters/02_tiled/README.md"
        first = self.cells(path, "`prefill`")
        self.assertEqual(first[0], "`prefill`: G=8, M=16384 (≤ 2048), N=4096, K=7168")
        self.assertEqual([first[1], *first[4:6], first[7]], ["02_tiled", "40.0", "44.0", "40 %"])
        table = (self.repo / path).read_text()
        self.assertRegex(table, r"\|  \| 02_tiled 64x64 \| .* \| 47.0 \| – \|")
        self.assertRegex(table, r"\|  \| 01_naive \| .* \| 10.0 \| – \|")
        self.assertRegex(table, r"\|  \| cublas_loop \| .* \| 90.0 \| – \|")
        self.assertNotIn("`step`", table)
        self.assertNotIn("32x64", table, "of variants the fastest alone")

    def test_nothing_measured(self):
        status, out, _ = self.run_tool(publish)
        self.assertEqual(status, 0 if HAVE_MATPLOTLIB else 1)
        self.assertEqual(self.cells("chapters/LADDER.md", "[01_naive]")[1:], ["Idea of 01_naive", "+2"])
        self.assertIn("Nothing is measured yet.", (self.repo / "chapters/01_naive/README.md").read_text())
        if HAVE_MATPLOTLIB:
            self.assertIn("plots: ladder: not drawn, no chapter was timed on set prefill in bf16\n", out)

    def test_rows_of_another_kind_or_run_say_so(self):
        describe(self.repo, "02_tiled", "01_naive", formats=[FORMATS["f32"], FORMATS["bf16"]], tile_clusters=["128x64 with 1x1"])
        m = SETS["prefill"][0]
        save(self.data / "all.csv", [
            row("02_tiled", "prefill", m, 40), row("02_tiled", "prefill", m, 44, kernel="grouped_gemm d=bf16"),
            row("02_tiled", "prefill", m, 70, kernel="cublas_loop d=f32", peer="cublas_loop"),
            row("01_naive", "prefill", m, 10, date="2026-01-01"), row("03_tensor_cores", "prefill", m, 30),
            row("01_naive", "prefill", m, 84, kernel="cublas_loop d=f32", peer="cublas_loop", date="2026-01-01"),
            row("02_tiled", "prefill", m, 80, peer="cublas_grouped"),
            # D as 03 has it, and 02's run had not.
            row("03_tensor_cores", "prefill", m, 50, peer="cublas_loop"),
            row("03_tensor_cores", "prefill", m, 90, peer="cublas_grouped", date="2026-01-01")])
        self.fill(publish)

        self.assertIn("bf16, D of 02_tiled: f32; cold inputs", (self.repo / "chapters/LADDER.md").read_text())

        def labels(chapter):
            text = (self.repo / "chapters" / chapter / "results.md").read_text().partition("## Measured")[2]
            return [line.split("|")[2].strip() for line in text.splitlines() if line.startswith("| ")][2:]

        self.assertEqual(labels("02_tiled"), ["02_tiled, D f32", "cublas_loop, D f32", "02_tiled",
                                              "01_naive, of 2026-01-01 at 0123456789", "cublas_grouped"])
        # Its rows with D as 03 has it.
        self.assertEqual(labels("03_tensor_cores"), ["03_tensor_cores", "02_tiled",
                                                     "cublas_grouped, of 2026-01-01 at 0123456789", "cublas_loop"])
        for chapter, note in [("02_tiled", "01_naive was timed by its own program, at the clock of its own rounds: "
                                           "libraries beside it took 83 % of their time here."),
                              ("03_tensor_cores", ": no library was timed beside both.")]:
            self.assertIn(note, (self.repo / "chapters" / chapter / "README.md").read_text())
        # Among libraries with one type of D the fastest alone.
        readme = (self.repo / "chapters/02_tiled/README.md").read_text()
        for library in ("cublas_loop, D f32", "cublas_grouped"):
            self.assertIn(f"| {library} |", readme)
        self.assertNotIn("| cublas_loop |", (self.repo / "chapters/03_tensor_cores/README.md").read_text())

    def test_choices_that_libraries_share(self):
        """Rows of another operation, such as added to D, stand behind the chapter's own, with the libraries that ran beside
        them; a README has none of them, and they are no later run of the chapter's own rows."""
        m, added = SETS["prefill"][0], dict(date="2026-01-03")
        save(self.data / "all.csv", [
            row("01_naive", "prefill", m, 40), row("01_naive", "prefill", m, 50, peer="cublas_loop", kernel="cublas_loop"),
            row("01_naive", "prefill", m, 90, kernel="grouped_gemm 128x64 accumulate", **added),
            row("01_naive", "prefill", m, 80, kernel="cublas_loop accumulate", peer="cublas_loop", **added)])
        self.fill(publish)
        page, readme = ((self.repo / "chapters/01_naive" / name).read_text() for name in ("results.md", "README.md"))
        labels = [line.split("|")[2].strip() for line in page.partition("## Measured")[2].splitlines() if line.startswith("| ")][2:]
        later = "accumulate, of 2026-01-03 at 0123456789"
        self.assertEqual(labels, ["01_naive", "cublas_loop", f"01_naive {later}", f"cublas_loop {later}"])
        self.assertIn("| cublas_loop |", readme)
        self.assertNotIn("accumulate", readme)

    def test_chapters_that_were_timed_in_turns(self):
        m, decode = SETS["prefill"][0], SETS["decode"][0]

        def run(name, rows):  # of 03, with the others as its peers
            return [row("03_tensor_cores", name, rows, tflops, peer=peer, kernel=peer or "grouped_gemm 128x64", date="2026-01-03")
                    for tflops, peer in [(60, ""), (50, "02_tiled"), (20, "01_naive"), (70, "cublas_loop")]]

        save(self.data / "all.csv", [row("01_naive", "prefill", m, 10), row("02_tiled", "prefill", m, 40), *run("prefill", m),
                                     row("02_tiled", "decode", decode, 3), row("01_naive", "decode", decode, 2)])
        self.fill(publish)
        path = "chapters/02_tiled/README.md"
        self.assertEqual(self.cells(path, "`prefill`")[4], "50.0", "the newest row of 02 is in 03's rounds")
        beside = [line.split("|")[2].strip() for line in (self.repo / path).read_text().splitlines() if line.startswith("|  |")]
        self.assertEqual(beside, ["01_naive", "cublas_loop", "01_naive, of 2026-01-02 at 0123456789"],
                         "the library of these rounds is beside each of them")
        self.assertIn("01_naive was timed by its own program on `decode`, at the clock of its own rounds: ", (self.repo / path).read_text())
        self.assertIn("02_tiled and 03_tensor_cores were timed in turns, in the same rounds.",
                      (self.repo / "chapters/03_tensor_cores/README.md").read_text())
        front = (self.repo / "chapters/LADDER.md").read_text()
        self.assertIn("Timed in turns, in the same rounds: 01 to 03.\n", front)
        self.assertIn("The fastest of these: cublas_loop, 70 TFLOP/s.", front)
        save(self.data / "later.csv", [row("02_tiled", "prefill", m, 51, date="2026-01-04")])
        self.fill(publish)
        self.assertIn("01_naive was timed by its own program, at", (self.repo / path).read_text())
        self.assertIn("in the same rounds: 01, 03. Each other one by its own program, at the clock that its rounds have: 02.\n",
                      (self.repo / "chapters/LADDER.md").read_text())

    def test_short_ids(self):
        course = [SimpleNamespace(id=each) for each in ("01_one", "02_two", "03_three", "04_four", "05_five")]
        for names, said in (("", ""), ("05 01 02", "01, 02, 05"), ("03 02 01 05", "01 to 03, 05"), ("01 02 03 04 05", "01 to 05")):
            self.assertEqual(tables.short_ids([each.id for each in course if each.id[:2] in names], course), said)

    def test_chapters_that_the_ladder_has_no_time_of(self):
        """Timed on other problems is not untimed."""
        self.measure()
        for name in ("04_other_problems", "05_emulator"):
            (self.repo / "chapters" / name).mkdir()
            describe(self.repo, name, "03_tensor_cores", part="03", arch="90a")
            (self.repo / "chapters" / name / "kernel.cuh").write_text("same\n")
        save(self.data / "other.csv", [row("04_other_problems", "wgrad", [64] * 2, 10)])
        self.fill(publish)
        self.assertIn("\nTimed on problems of its own alone: 04.\nChecked on the emulator, not timed: 05.\n",
                      (self.repo / "chapters/LADDER.md").read_text())

    def test_front_page(self):
        """Some chapters as one card timed them; below them the fastest call of cuBLAS in the last one's run, and the roof."""
        even, few, here = [2048] * 8, [16] * 32, dict(device="NVIDIA H100 80GB HBM3", roof_kind="matrix")
        save(self.data / "a.csv", [
            row("01_naive", "prefill", even, 10, **here), row("01_naive", "prefill", even, 99, **here, peer="cublas_loop"),
            row("02_tiled", "prefill", even, 20, **here), row("02_tiled", "prefill", even, 30),
            row("03_tensor_cores", "prefill", even, 40, **here), row("03_tensor_cores", "prefill", even, 99, **here, warm=1),
            *(row("03_tensor_cores", "prefill", even, rate, **here, peer=peer) for rate, peer in (
                (35, "cublas_loop"), (38, "cublas_strided"), (50, "cublas_plain"), (60, "triton"))),
            row("03_tensor_cores", "decode", few, 5, **here | dict(roof_tflops=10, roof_kind="bandwidth")),
            row("03_tensor_cores", "decode", few, 8, **here, peer="cublas_grouped", date="2026-01-01")])
        self.fill(publish)
        self.assertEqual([self.cells("README.md", each) for each in (
            "[01_naive]", "[02_tiled]", "[03_tensor_cores]", "cuBLAS", "ceiling: one large product", "ceiling: one large copy")], [
            ["[01_naive](chapters/01_naive/README.md)", "Idea of 01_naive", "10.0", "–", "–"],
            ["[02_tiled](chapters/02_tiled/README.md)", "Idea of 02_tiled", "20.0", "–", "–"],
            ["[03_tensor_cores](chapters/03_tensor_cores/README.md)", "Idea of 03_tensor_cores", "40.0", "–", "6013"],
            ["cuBLAS beside 03", "the fastest of its calls", "38.0", "–", "–"],
            ["ceiling: one large product", "by cuBLAS, 8192 in each direction", "100", "–", "–"],
            ["ceiling: one large copy", "the time that A, B and D would take at its rate", "–", "–", "3006"]])

    def test_front_page_without_libraries(self):
        """A row of which nothing is known is left out."""
        save(self.data / "a.csv", [row("01_naive", "prefill", [2048] * 8, 10, roof_tflops="")])
        self.fill(publish)
        self.assertEqual([line.split(" |")[0] for line in (self.repo / "README.md").read_text().splitlines()[3:]], [
            "| [01_naive](chapters/01_naive/README.md)", "| [02_tiled](chapters/02_tiled/README.md)",
            "| [03_tensor_cores](chapters/03_tensor_cores/README.md)", "<!-- /milestones -->"])
        self.assertIn("<!-- tally -->\nNothing is measured yet.\n<!-- /tally -->", (self.repo / "chapters/LADDER.md").read_text())

    def test_tally_and_problems(self):
        """On how many problems the last chapter is faster than a library; and the sizes of the problems."""
        (self.repo / "chapters" / "02_tiled" / "checks").mkdir()
        (self.repo / "chapters/02_tiled/checks/counts.ini").write_text("[shown]\nproblems = decode\n")

        def peers(chapter, m, us, **changed):
            return row(chapter, "peers", m, 1, us_median=us, **changed)

        two, few, uneven = [2048] * 8, [16] * 32, [9, 3]
        save(self.data / "a.csv", [
            row("01_naive", "decode", few, 2), row("02_tiled", "decode", few, 5),
            *(peers("03_tensor_cores", m, us, warm=1, peer=peer) for m, us, peer in (
                (two, 10, ""), (two, 12, "cublas_loop"), (few, 10, ""), (few, 10.05, "triton"), (uneven, 10, ""), (uneven, 8, "triton"),
                (uneven, 9, "cublas_loop"), ([1], 5, ""))),
            *(peers("03_tensor_cores", m, 13, warm=1, kernel="grouped_gemm off=pdl") for m in (two, few)),
            peers("03_tensor_cores", two, 20, warm=1, device="NVIDIA B200", date="2025-12-31"),
            peers("03_tensor_cores", two, 30, warm=1, device="NVIDIA B200", date="2025-12-31", peer="triton")])
        self.fill(publish)
        there = (self.repo / "chapters/LADDER.md").read_text()
        # Of the card that was timed last.
        self.assertIn("""
| sets | early start | problems | 03 faster | level | slower |
| --- | --- | ---: | ---: | ---: | ---: |
| `peers` | without | 2 | 0 | 0 | 2 |
| `peers` | with | 2 | 1 | 1 | 0 |
| `peers` | with | 1 | 0 | 0 | 1 |

NVIDIA H200""", there)
        text = front_page.problems_table(plot.Data([self.data.parent], "", read_chapters(self.repo)))
        self.assertEqual([line.split(" |")[0] for line in text.splitlines()[2:]], [
            "| `prefill`", "| `decode`", *(f"| P{i}" for i in range(1, 11))])
        self.assertIn("| `decode` | 32 | 0 to 143 | 512 | 4096 | 7168 |\n| P1 | 8 | 512 | 4096 | 64 | 512 |", text)

    def test_libraries_of_a_chapter(self):
        path = "chapters/03_tensor_cores/results.md"

        def timed(m, us, **changed):
            return row("03_tensor_cores", "peers", m, 100, us_median=us, **dict(warm=1) | changed)

        one, two = [512] * 8, [900, 100]
        save(self.data / "all.csv", [
            timed(one, 10, roof_tflops=600, roof_kind="matrix", power_w=650.4, clock_after_mhz=1500),
            timed(one, 8, kernel="grouped_gemm 128x64 sustained", power_w=700, clock_after_mhz=1400),
            timed(one, 7.6, kernel="cublas_loop sustained", peer="cublas_loop"),
            timed(one, 1, kernel="grouped_gemm off=tail"), timed(one, 77, kernel="grouped_gemm 64x64"),
            timed(one, 12, peer="cublas_loop"), timed(one, 10.5, peer="cublas_strided", version="cuBLAS 13"),
            timed(one, 1, peer="cublas_plain"), timed(one, 15, warm=0), timed(one, 30, warm=0, peer="cublas_loop"),
            timed(two, 99), timed(two, 22, kernel="grouped_gemm sustained"),
            # No library: ours, of this run
            timed(two, 20, kernel="all_ideas off=tail", peer="all_ideas"),
            timed(two, 18, kernel="grouped_gemm", date="2099-01-01"),  # later, and alone
            timed(one, 1, kernel="all_ideas off=pdl", peer="all_ideas", ok=0),
            timed(two, 14, peer="deepgemm", version="DeepGEMM 2.6.1", date="2026-01-01"),
            timed(two, 24, peer="deepgemm", version="DeepGEMM 2.6.1"),
            timed(two, 25, peer="cublas_loop"), timed(two, 36, peer="deepgemm", version="DeepGEMM 2.6.1", warm=0),
            timed(two, 30, warm=0), timed(two, 1, peer="torch_grouped_mm", ok=0),
            *(row("03_tensor_cores", "moe", two, 100, us_median=us, warm=1, peer=peer)
              for us, peer in ((10, ""), (13, "cublas_loop")))])
        self.run_tool(publish)
        text = (self.repo / path).read_text()
        for line in ("won. Level: p10 to p90 of the two times overlap, or they differ by less than 1 %.\n2 won, 0 level, 0 lost.",
                     "| G=8 M=512 N=4096 K=7168 | 10.0 | 100 | 10.5 | cublas_strided (cuBLAS 13) | 1.050 | 2.000 | "
                     "1500 MHz 650 W |",
                     "| G=2 1000 rows (≤ 900) N=4096 K=7168 | 20.0 | 100 | 24.0 | deepgemm (DeepGEMM 2.6.1) | 1.200 | 1.200 | – |",
                     "| G=2 1000 rows (≤ 900) N=4096 K=7168 | 10.0 | 100 | 13.0 | cublas_loop | 1.300 | – | – |",
                     "\nLibraries timed: cublas_loop, cublas_strided (cuBLAS 13) on 1 of 2, "
                     "deepgemm (DeepGEMM 2.6.1) on 1 of 2.\n"):
            self.assertIn(line, text)
        if HAVE_MATPLOTLIB:
            figure = (self.repo / "plots/figures/peers.svg").read_text()
            # Torch's check failed.
            for name, drawn in (("cublas", True), ("deepgemm", True), ("torch", False)):
                self.assertEqual(f">{name}</text>" in figure, drawn, name)

    def test_what_is_within_the_noise_is_level(self):
        path = "chapters/03_tensor_cores/results.md"

        def timed(m, us, low, high, **changed):
            return row("03_tensor_cores", "peers", [m] * 8, 100, us_median=us, us_p10=low, us_p90=high, warm=1,
                       **changed)

        loop = dict(peer="cublas_loop")
        save(self.data / "all.csv", [
            timed(1, 10, 9.9, 10.1), timed(1, 10.5, 10.1, 10.6, **loop),    # 5 %, but they overlap
            timed(2, 10, 10, 10), timed(2, 10.09, 10.09, 10.09, **loop),    # less than 1 %
            timed(3, 10, 10, 10), timed(3, 9.91, 9.91, 9.91, **loop),
            timed(4, 10, 9, 10.2), timed(4, 10.5, 10.3, 11, **loop),
            timed(5, 10, 9.8, 11), timed(5, 9.7, 9.6, 9.7, **loop), timed(6, 10, 9, 11)])
        self.run_tool(publish)
        text = (self.repo / path).read_text()
        for cells in ("| 1.050, level |", "| 1.009, level |", "| 0.991, level |", "| 1.050 |", "| 0.970 |",
                      "\n1 won, 3 level, 1 lost.\n"):
            self.assertIn(cells, text)

    def test_a_ratio_without_pdl_is_of_the_same_run(self):
        path = "chapters/03_tensor_cores/results.md"

        def timed(us, **changed):
            return row("03_tensor_cores", "peers", [512] * 8, 100, us_median=us, warm=1, **changed)

        both = [timed(10), timed(12, peer="cublas_loop")]
        for changed, shown in ((dict(), "0.960"), (dict(date="2026-01-01"), ""), (dict(commit="fedcba9876543210"), "")):
            save(self.data / "all.csv", [*both, timed(12.5, kernel="grouped_gemm off=pdl", **changed)])
            self.run_tool(publish)
            text = (self.repo / path).read_text()
            self.assertEqual("without PDL" in text, bool(shown))
            self.assertIn(f"| 1.200 | {shown} | – |" if shown else "| 1.200 | – | – |\n", text)


class CellsTest(unittest.TestCase):
    def test_numbers_as_a_reader_wants_them(self):
        self.assertEqual([digits(each) for each in (0.01234, 9.996, 99.94, 100.4, 999.6, 12345.6)],
                         ["0.0123", "10.0", "99.9", "100", "1000", "12346"])
        self.assertEqual([digits(each, 4) for each in (2.46942, 99.98, 1000.4)], ["2.469", "99.98", "1000"])

        def of_roof(tflops, roof, ok=True):
            return cell(Row(ok=ok, tflops=tflops, roof_tflops=roof), "% of roof")

        self.assertEqual([of_roof(12.4, 100), of_roof(0.52, 100), of_roof(9.94, 100), of_roof(1, None), of_roof(1, 2, False)],
                         ["12 %", "0.52 %", "9.9 %", "–", "failed"])
        self.assertEqual([measured.percent_range(ratios) for ratios in ([1.204, 0.83], [0.834, 0.826])], ["83 to 120 %", "83 %"])

    def test_level_is_within_one_percent_or_where_p10_to_p90_overlap(self):
        def us(median, low=None, high=None):
            return Row(us_median=median, us_p10=low, us_p90=high)

        for one, other, same in ((us(100), us(100.9), True), (us(101.1), us(100), False), (us(100, 99, 104), us(105, 104, 106), True),
                                 (us(100, 99, 103.9), us(105, 104, 106), False), (us(100, 99, 200), us(105), False)):
            self.assertEqual((within_noise(one, other), within_noise(other, one)), (same, same))

    def test_places_and_names_of_problems(self):
        shapes = [(8, 4096, 512, 64, 512), (32, 640, 20, 6144, 7168)]
        self.assertEqual([measured.p_number("peers", shape) for shape in shapes], ["P1", "P10"])
        self.assertEqual([measured.p_number("moe", shapes[0]), measured.p_number("peers", (1, 2, 3, 4, 5))], ["", ""])
        names = ["peers", "moe", "prefill", "few_tiles", "helion", "decode", "skewed"]
        problems = [(name, form, (1,)) for name in names for form in ("mxfp8", "bf16")]
        in_order = sorted(problems, key=measured.table_order)
        self.assertEqual([name for name, *_ in in_order[::2]], ["prefill", "decode", "skewed", "helion", "peers", "few_tiles", "moe"])
        self.assertEqual([form for _, form, _ in in_order[:2]], ["bf16", "mxfp8"])


class CountedTablesTest(unittest.TestCase):
    """Tables that are made of counts alone, of numbers that are all different."""

    def cells(self, text):
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if not line.startswith("| ---")]

    @staticmethod
    def counts(instructions, floating, loaded, stored):
        return dict(instructions=instructions, instructions_floating=floating, global_load_bytes=loaded, global_store_bytes=stored)

    def test_counters_that_are_named_and_those_that_change_most(self):
        with tempfile.TemporaryDirectory() as folder:
            named = Path(folder)
            (named / "checks").mkdir()
            (named / "checks/counts.ini").write_text("[shown]\ncounters = barrier_waits\n")
            before = dict(instructions=100, instructions_mma=0, global_load_bytes=100, global_load_sectors=100, global_store_sectors=10,
                          shared_wavefronts=50, shared_bank_conflicts=10, barrier_waits=4, multiply_adds=1000, useful_multiply_adds=250)
            after = before | dict(instructions_mma=5000, global_load_bytes=90, global_load_sectors=60, global_store_sectors=8,
                                  shared_wavefronts=100, shared_bank_conflicts=7, useful_multiply_adds=240)
            data = SimpleNamespace(counts={("01_a", "smoke", "0:fair"): before, ("02_b", "smoke", "0:fair"): after})
            text = tables.counts_table(data, SimpleNamespace(id="02_b", previous="01_a", folder=named))
            alone = tables.counts_table(data, SimpleNamespace(id="01_a", previous="", folder=named))
        self.assertEqual(self.cells(text.partition("\n\n")[0]), [
            ["counter", "01_a", "02_b"], ["`instructions`", "100", "100"], ["`instructions_mma`", "0", "5,000"],
            ["`global_load_sectors`", "100", "60"], ["`shared_wavefronts`", "50", "100"], ["`shared_bank_conflicts`", "10", "7"],
            ["`barrier_waits`", "4", "4"]])
        self.assertIn("Set `smoke` on the emulator, order 0:fair.", text)
        self.assertEqual([line[0] for line in self.cells(alone.partition("\n\n")[0])], [
            "counter", "`instructions`", "`global_load_bytes`", "`global_load_sectors`", "`global_store_sectors`", "`shared_wavefronts`",
            "`barrier_waits`"])
        self.assertEqual(tables.counted_lines(data, SimpleNamespace(id="02_b", previous="01_a"))[2][-1][2],
                         ["wasted multiply-adds", "75 %", "76 %"])

    def test_counts_of_a_gpu_in_parts_of_the_emulators(self):
        def row(chapter, counter, emulator, gpu, way="hardware", **more):
            return dict(set="smoke", groups=2, m_total=9, m_max=7, n=64, k=32, device="NVIDIA H200", cuda="13.0", ncu="2025",
                        commit="0" * 12,
                        date="2026-01-02T03") | dict(chapter=chapter, counter=counter, emulator=emulator, gpu=gpu, way=way) | more

        text = tables.ncu_table([row("02_b", "instructions", 200, 50), row("01_a", "instructions", 200, 200), row("01_a", "bytes", 0, 1234),
                                 row("01_a", "bytes", 300, 100, "instrumented", k=64), row("02_b", "bytes", 3, 3, "instrumented", k=64)])
        table, _, below = text.partition("\n\n")
        first, second = "`smoke`: G=2, M=9 (≤ 7), N=64, K=32", "`smoke`: G=2, M=9 (≤ 7), N=64, K=64"
        self.assertEqual(self.cells(table), [
            ["problem", "counter", "on the GPU", "01_a", "02_b"], [first, "`instructions`", "hardware", "same", "25 %"],
            ["", "`bytes`", "hardware", "1,234 for 0", "–"], [second, "`bytes`", "instrumented", "33.33 %", "same"]])
        self.assertEqual(below, "2 of 5 are the same. NVIDIA H200 · CUDA 13.0 · Nsight Compute 2025 · 2026-01-02 · commit 0000000000.")

    def fused(self, name):
        """A chapter, and what its table of the unfused way is made of."""
        return SimpleNamespace(id=name), count_plan(ROOT / "chapters" / name).unfused

    def test_an_epilogue_beside_the_unfused_way(self):
        said = {("08d_two_cta", "mxfp8"): self.counts(1000, 1, 20, 300), ("gg-unfused", "scale"): self.counts(50, 2, 6, 7000),
                ("gg-unfused", "largest"): self.counts(4, 3, 100, 8), ("08e_epilogue", "mxfp8"): self.counts(1234, 5, 5678, 91011),
                ("08d_two_cta", "nvfp4"): self.counts(9, 9, 9, 9), ("09b_glu", "nvfp4"): self.counts(1, 2, 3, 4),
                **{("gg-unfused", name): self.counts(9, 9, 9, 9) for name in ("scale_sums", "glu", "largest_output")}}
        self.assertEqual(self.cells(unfused.unfused_table(*self.fused("08e_epilogue"), said)), [
            ["`mxfp8`, D bf16", "launches", "`instructions`", "`global_load_bytes`", "`global_store_bytes`"],
            ["08d_two_cta, then `scale`, `largest`", "4", "1,054", "126", "7,308"], ["08e_epilogue", "2", "1,234", "5,678", "91,011"]])
        self.assertEqual([row[:3] for row in self.cells(unfused.unfused_table(*self.fused("09b_glu"), said))[1:]],
                         [["08d_two_cta, then `scale_sums`, `glu`, `largest_output`", "5", "36"], ["09b_glu", "2", "1"]])

    def test_one_more_tile_with_each_transform(self):
        transforms = count_plan(ROOT / "chapters/09c_glu_hadamard").transforms
        said = {(chapter, run + size): self.counts(*values) for chapter, run, values in (
            ("09b_glu", "plain", ((100, 10, 1, 1), (350, 25, 1, 1))), ("09c_glu_hadamard", "tensor", ((200, 20, 1, 1), (1700, 70, 1, 1))),
            ("09c_glu_hadamard", "butterfly", ((300, 30, 1, 1), (900, 99, 1, 1)))) for size, values in zip(("256", "512"), values)}
        self.assertEqual(self.cells(unfused.transforms_table(SimpleNamespace(id="09c_glu_hadamard", previous="09b_glu"), transforms, said)),
                         [
            ["instructions of warps, a tile", "all", "f32"], ["09b_glu, without a transform", "250", "15"],
            ["`--transform tensor`", "1,500", "50"], ["`--transform butterfly`", "600", "69"]])

    def test_nvidias_kernels_beside_ours(self):
        """Eight tiles were counted. Products of half a tile of fp4 take 4096 cycles at K = 2048 and 14336 at 7168. Ours wait for
        none of an epilogue and outlast it, 4096 and 14336; theirs wait for an eighth, 1000, and the epilogue outlasts the first."""
        configurations = count_plan(ROOT / "chapters/09c_glu_hadamard").cudnn
        values = {"ours": (800, 1600, 8000, 4000), "theirs": (880, 1680, 16000, 8000)}
        names = "machine_instructions", "global_store_sectors", "global_load_bytes", "epilogue_cycles"
        rows = [dict(configuration=name, side=side, name=counter, value=str(value)) for name in configurations
                for side, some in values.items() for counter, value in zip(names, some)]
        head, first, *_ = self.cells(beside_cudnn.beside_cudnn_table(configurations, rows))
        self.assertEqual(list(zip(head, first)), [
            ("ours / theirs, a tile", "nvfp4 swiglu, Hadamard"), ("machine instructions", "100 / 110"), ("sectors stored", "200 / 210"),
            ("bytes loaded", "1,000 / 2,000"), ("cycles of the epilogue", "4,000 / 8,000"), ("a tile at K = 2048", "0.51"),
            ("a tile at K = 7168", "0.93")])


if __name__ == "__main__":
    main()
