# SPDX-License-Identifier: MIT
"""Tools of plots/measure, with programs that answer as chapters and Nsight Compute do: no GPU is needed."""

import contextlib
import io
import random
import re
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from plots.draw import publish
from plots.measure import choice, ncu_counts, recount
from plots.measure.files import (
    CHOICE_COLUMNS,
    COUNT_COLUMNS,
    DATA,
    NCU_COLUMNS,
    RUN_COUNT_COLUMNS,
    BadData,
    read_csv,
    read_errors,
    read_timeline,
)
from plots.measure.timeline import timeline
from tests.docs.plots_case import ROOT, describe, main, row

try:
    from plots.measure import errors
except ImportError:
    errors = None


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
        models = [sum(m) / len(m) in choice.ROWS for m, n, k in drawn(1) if (n, k) in choice.SHAPES]
        self.assertTrue(models and all(models))
        others = [(n, k) for _, n, k in drawn(1) if (n, k) not in choice.SHAPES]
        self.assertGreater(len(others), 10)
        for size in {size for pair in others for size in pair}:
            self.assertTrue(256 <= size <= 8192 and size % 8 == 0, size)
        self.assertEqual({len(set(m)) > 1 for m, _, _ in drawn(1)}, {True, False})

    def test_says_what_the_choice_loses(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "chapter"
            program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -B \"$0.py\" \"$@\"\n")
            program.chmod(0o755)
            Path(folder, "chapter.py").write_text(
                "import sys\nwords = sys.argv[1:]\n"
                "assert words[:6] == ['--tune', '--m', '3,0,5', '--n', '64', '--k'], words\n"
                "open(words[-1], 'w').write('kernel,device,us_median\\ngrouped_gemm,NVIDIA H200,11\\n"
                "grouped_gemm 256x128,NVIDIA H200,10\\ngrouped_gemm 64x64,NVIDIA H200,12\\n')\n")
            device, times = choice.tuned(program, [3, 0, 5], 64, 128)
        self.assertEqual(device, "NVIDIA H200")
        loss, best = choice.loss_of_choice(times)
        self.assertEqual((round(loss, 3), best), (0.1, "256x128"))
        committed = (ROOT / "plots/measure/data/choice.csv").read_text(encoding="utf-8").splitlines()
        of_each = {tile: index + 0.5 for index, tile in enumerate(CHOICE_COLUMNS[8:])}
        line = choice.line_of(device, [3, 0, 5], 64, 128, of_each).split(",")
        self.assertEqual(line[2:], ["132", "4917", "unseen", "3 0 5", "64", "128", "0.5", "1.5", "2.5", "3.5", "4.5", "5.5", "6.5", "7.5"])
        self.assertEqual(committed[0].split(","), CHOICE_COLUMNS)
        with self.assertRaises(SystemExit) as left, contextlib.redirect_stderr(io.StringIO()) as said:
            choice.line_of("NVIDIA A100", [3], 64, 128, of_each)
        self.assertEqual(left.exception.code, 2)
        self.assertIn("the rates of NVIDIA A100 are not known", said.getvalue())
        self.assertEqual(choice.distribution([0.0, 0.018, 0.3, -0.002, 0.025, 0.043]),
                         "6 problems: 2 within 1 %, 3 within 2 %, 5 within 5 %; mean 6.4 %, median 2.1 %, worst 30.0 %")
        self.assertEqual(choice.distribution([0.06, 0.04, 0.011]),
                         "3 problems: 0 within 1 %, 1 within 2 %, 2 within 5 %; mean 3.7 %, median 4.0 %, worst 6.0 %")

    def test_without_a_gpu_there_is_nothing_to_time(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "chapter"
            program.write_text("#!/bin/sh\nexit 77\n")
            program.chmod(0o755)
            with self.assertRaises(SystemExit) as stopped:
                choice.tuned(program, [1], 8, 8)
        self.assertEqual(stopped.exception.code, 77)


class RecountTest(unittest.TestCase):
    """plots/measure/recount.py with counts that are there already: nothing is run."""

    COUNTS = {"emulator.csv": (COUNT_COLUMNS, [dict(zip(COUNT_COLUMNS, ("01_a", "smoke", "0:fair", *each))) for each in (
        ("instructions", "7"), ("global_load_bytes", "64"))]),
        "said.csv": (RUN_COUNT_COLUMNS, [dict(zip(RUN_COUNT_COLUMNS, ("09b_glu", "nvfp4", "global_store_bytes", "5")))])}

    def ran(self, *more, files=None, nvcc="13.0", data=None):
        """Exit code and what was said."""
        files = files or self.COUNTS
        with mock.patch.object(recount, "measure", lambda build: files), mock.patch.object(recount, "compiler", lambda build: nvcc), \
                mock.patch.object(sys, "argv", ["recount", "--data", str(data), *more]), contextlib.redirect_stdout(io.StringIO()) as said:
            return recount.main(), said.getvalue()

    def changed(self, file, at, value):
        rows = [dict(row) for row in self.COUNTS[file][1]]
        rows[at]["value"] = value
        return self.COUNTS | {file: (self.COUNTS[file][0], rows)}

    def test_writes_and_compares(self):
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder)
            self.assertEqual(self.ran(data=data), (0, ""))
            self.assertEqual(read_csv(data / "emulator.csv", COUNT_COLUMNS), self.COUNTS["emulator.csv"][1])
            before = {path.name: path.read_bytes() for path in data.iterdir()}
            self.assertEqual(sorted(before), ["emulator.csv", "nvcc.txt", "said.csv"])
            self.assertEqual(self.ran("--compare", data=data), (0, ""))
            another = "recount: emulator.csv: 01_a smoke 0:fair instructions is 8, not 7\n"
            self.assertEqual(self.ran("--compare", data=data, files=self.changed("emulator.csv", 0, "8")), (1, another))
            self.assertEqual(self.ran("--compare", data=data, files=self.changed("said.csv", 0, "6")),
                             (1, "recount: said.csv: 09b_glu nvfp4 global_store_bytes is 6, not 5\n"))
            note = "recount: instructions are not compared: nvcc is 13.1, not that of nvcc.txt\n"
            self.assertEqual(self.ran("--compare", data=data, nvcc="13.1", files=self.changed("emulator.csv", 0, "8")), (0, note))
            self.assertEqual(self.ran("--compare", data=data, nvcc="13.1", files=self.changed("emulator.csv", 1, "65")),
                             (1, note + "recount: emulator.csv: 01_a smoke 0:fair global_load_bytes is 65, not 64\n"))
            fewer = self.COUNTS | {"said.csv": (RUN_COUNT_COLUMNS, [])}
            self.assertEqual(self.ran("--compare", data=data, files=fewer),
                             (1, "recount: said.csv: 09b_glu nvfp4 global_store_bytes is None, not 5\n"))
            self.assertEqual({path.name: path.read_bytes() for path in data.iterdir()}, before, "--compare writes nothing")

    def test_counts_of_each_kernel_of_a_report(self):
        report = "counts of scale\n  instructions    12\n  barrier_waits 5\ncounts of glu\n  global_load_bytes 7\n  instructions 3\n"
        with mock.patch.object(recount, "run", lambda command: report):
            self.assertEqual(recount.steps(Path()), {"scale": {"instructions": 12}, "glu": {"global_load_bytes": 7, "instructions": 3}})

    def test_a_program_that_fails_is_named(self):
        with self.assertRaisesRegex(recount.Failed, "(?s)^sh -c .*exit 3 ended with 3:\nout\nerr\n$"):
            recount.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
        with self.assertRaisesRegex(recount.Failed, "^there is no bin/01_none: all chapters have to be built "):
            recount.run([Path("bin/01_none")])


class TimelineTest(unittest.TestCase):
    """plots/measure/timeline/timeline.py, which puts stamps of time into a copy of a chapter."""

    def test_stamps_find_their_lines_in_the_chapter(self):
        with tempfile.TemporaryDirectory() as folder:
            timeline.stamp(Path(folder))
            text = (Path(folder) / "multiply.cuh").read_text()
            self.assertEqual([text.count(f"stamps.{what}();") for what in ("begin", "wait_begins", "wait_ends", "end")],
                             [1, 1, 1, 1])
            self.assertIn("  return code ? code : chapter::write_stamps(", (Path(folder) / "main.cu").read_text())
        with self.assertRaisesRegex(BadData, "multiply.cuh: 2 lines are `x;`, one is wanted: mend STAMPS"):
            timeline.stamped("x;\ny;\nx;", [("x;", "stamp();")], "multiply.cuh")

    def test_times_count_from_the_first_stamp(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "gg-timeline"
            program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -B \"$0.py\" \"$@\"\n")
            program.chmod(0o755)
            Path(folder, "gg-timeline.py").write_text(
                f"import csv, sys\nassert sys.argv[1:6] == ['--device', 'gpu', '--bench', '--set', 'skewed']\n"
                f"row = {row('07l_peak_hopper', 'skewed', [64], 1, warm=1, us_median=12.5)!r}\n"
                "with open(sys.argv[7], 'w', newline='') as file:\n"
                "    writer = csv.DictWriter(file, row)\n    writer.writeheader()\n"
                "    writer.writerow(row | {'us_median': 99, 'cuda': '1.0'})\n"
                "    writer.writerow(row)\n"
                "open('timeline.csv', 'w').write('sm,begin_ns,end_ns,waited_ns\\n3,1500,1900,7\\n2,1600,1700,1\\n2,1040,1400,9\\n')\n")
            out = Path(folder) / "out.csv"
            with contextlib.redirect_stdout(io.StringIO()) as said:
                self.assertEqual(timeline.run(program, "skewed", out), 0)
            rows = read_timeline(folder)
        self.assertEqual([(tile.sm, tile.begin_ns, tile.end_ns, tile.waited_ns) for tile in rows],
                         [(2, 0, 360, 9), (2, 560, 660, 1), (3, 460, 860, 7)])
        self.assertEqual({(tile.chapter, tile.cuda, tile.set) for tile in rows}, {("07l_peak_hopper", "13.0", "skewed")})
        self.assertIn("3 tiles in 0.9 us; a launch takes 12.5 us", said.getvalue())

    def test_a_program_that_fails_leaves_the_earlier_stamps(self):
        with tempfile.TemporaryDirectory() as folder:
            program, out = Path(folder) / "gg-timeline", Path(folder) / "out.csv"
            program.write_text("#!/bin/sh\nexit 77\n")
            program.chmod(0o755)
            out.write_text("earlier")
            self.assertEqual((timeline.run(program, "skewed", out), out.read_text()), (77, "earlier"))


@unittest.skipUnless(errors, "NumPy is missing")
class ErrorsTest(unittest.TestCase):
    """plots/measure/errors.py: its formats. What it counted stands in errors.csv."""

    def test_formats_round_to_nearest_even(self):
        self.assertEqual(list(errors.E2M1), [0, 0.5, 1, 1.5, 2, 3, 4, 6])
        self.assertEqual((errors.E4M3[1], errors.E4M3[8], errors.E4M3[-1]), (2**-9, 2**-6, 448))
        x = errors.np.array([0.25, 0.75, 2.5, 3.5, 5, 5.1, -9])
        self.assertEqual(list(errors.nearest(errors.E2M1, x)), [0, 2, 4, 6, 6, 7, 7])
        self.assertEqual(list(errors.bf16(errors.np.array([1, 1 + 2**-8, 1 + 3 * 2**-8]))), [0x3F80, 0x3F80, 0x3F82])

    def test_scales_fit_their_blocks(self):
        x = errors.np.linspace(-3, 3, 2 * 64, dtype=errors.np.float32).reshape(2, 64)
        for quantise, block, most in ((errors.as_mxfp8, 32, 2**-3), (errors.as_nvfp4, 16, 2**-1)):
            codes, scales, values = quantise(x)
            self.assertEqual((scales.shape, codes.dtype.name), ((2, 64 // block), "uint8"))
            self.assertLess(abs(values - x).max(), most)
        # 2^(1 - 8) and 2^(0 - 8), of 3 and 1.49.
        self.assertEqual(list(errors.as_mxfp8(x)[1][0]), [120, 119])

    def test_classes_of_a_quarter_of_a_power_of_two(self):
        counts = errors.classes(errors.np.array([1, 1.18, 1.2, 2**-0.25, 2**-0.26, 0, 1e9]) * 3, 3.0)
        first = -errors.FIRST * errors.PER_POWER  # the class from 1 to 2^0.25
        self.assertEqual({int(at) - first: int(counts[at]) for at in errors.np.flatnonzero(counts)},
                         {-first: 1, -2: 1, -1: 1, 0: 2, 1: 1, len(counts) - 1 - first: 1})

    def test_no_element_of_the_committed_ones_is_beyond_the_limit(self):
        counted = {}
        for tile in read_errors(ROOT / DATA):
            some = counted.setdefault((tile.format, tile.against), [0, -99])
            some[0] += tile.count
            some[1] = max(some[1], tile.log2_low)
        self.assertEqual({form for form, _ in counted}, {"bf16", "mxfp8", "nvfp4"})
        for (form, against), (count, last) in counted.items():
            self.assertEqual(count, 256 * 256, form)
            self.assertEqual(last < 0, against == "quantised", form)


class PeersTest(unittest.TestCase):
    """plots/measure/peers: what its scripts give to a compiler is there."""

    def test_headers_are_where_triton_tma_says(self):
        script = Path(__file__).resolve().parents[2] / "plots" / "measure" / "peers" / "triton_tma.py"
        levels = re.findall(r"-I\{here\.parents\[(\d)\]\}", script.read_text(encoding="utf-8"))
        self.assertEqual(len(levels), 1)
        self.assertTrue((script.parent.parents[int(levels[0])] / "common/harness/bench/peer_library.h").exists())


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
            # A first line takes no path with a space in it.
            (self.folder / f"{path}.py").write_text(given + text)
            (self.folder / path).write_text(f"#!/bin/sh\nexec '{sys.executable}' -B \"$0.py\" \"$@\"\n")
            (self.folder / path).chmod(0o755)

    def compare(self, fake="", out_to=("--out", "ncu.csv")):
        """Exit status, stdout, stderr and the rows by counter and way."""
        out, err, table = io.StringIO(), io.StringIO(), self.folder / "ncu.csv"
        command = ["ncu_counts", "02_tiled", "--problem", "--set smoke", "--build", str(self.folder),
                   "--ncu", str(self.folder / "ncu"), *out_to[:1], *(str(self.folder / name) for name in out_to[1:])]
        with mock.patch.object(sys, "argv", command), mock.patch.dict("os.environ", FAKE=fake), \
                contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
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
        describe(self.folder, "01_naive")
        (self.folder / DATA / "h200").mkdir(parents=True)
        (self.folder / "ncu.csv").rename(self.folder / DATA / "h200" / "ncu.csv")
        command = ["publish", "--repo", str(self.folder)]
        with mock.patch.object(sys, "argv", command), \
                contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            publish.main()
        text = readme.read_text()
        for line in ("| `smoke`: G=4, M=86 (≤ 64), N=4096, K=7168 | `instructions` | hardware | 200 % |",
                     "|  | `instructions_mma` | hardware | same |",
                     "|  | `shared_bank_conflicts` | instrumented | 4 for 0 |",
                     "NVIDIA H200 · CUDA 13.0 · Nsight Compute 2025.3.1.0 · 2026-01-02 · commit 0123456789-dirty. "
                     "`-dirty`: of a program with changes that were not committed."):
            self.assertIn(line, text)


if __name__ == "__main__":
    main()
