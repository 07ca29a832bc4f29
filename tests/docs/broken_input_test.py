# SPDX-License-Identifier: MIT
"""The Python tools on inputs that somebody broke: one sentence that names the file, exit code 2, never a traceback."""

import contextlib
import csv
import io
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from plots.draw import plot
from plots.measure import files

ROOT = Path(__file__).resolve().parents[2]
GOOD = dict.fromkeys(files.COLUMNS, "") | {
    "chapter": "03_tensor_cores", "kernel": "grouped_gemm", "device": "NVIDIA H200", "date": "2026-01-01", "set": "prefill",
    "groups": "8", "m_total": "16384", "m_max": "2048", "n": "4096", "k": "7168", "format": "bf16", "warm": "0",
    "us_median": "2400", "us_p10": "2390", "us_p90": "2410", "tflops": "400", "gbytes_per_s": "300", "ok": "1"}
HEADER = ",".join(files.COLUMNS)
COUNT_HEADER = ",".join(files.COUNT_COLUMNS)


class Broken(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def says(self, parts, *command):
        """Runs a tool; it must end with 2 and one sentence that has these parts."""
        done = subprocess.run([sys.executable, "-B", *map(str, command)], capture_output=True, text=True, cwd=ROOT,
                              env=os.environ | {"CUDA_VISIBLE_DEVICES": ""})  # the tour has no GPU
        self.assertEqual(done.returncode, 2, f"{done.stdout}\n{done.stderr}")
        self.assertNotIn("Traceback", done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)
        return done

    def plot(self, content, *parts):
        """plot.py with one file of this content: in this process, as to start Python takes longer than to read the file."""
        file = self.folder / "x.csv"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        command = ["plot.py", "--data", str(self.folder), "--out", str(self.folder / "figures")]
        out, err = io.StringIO(), io.StringIO()
        with mock.patch.object(sys, "argv", command), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            self.assertEqual(plot.main(), 2, err.getvalue())
        self.assertEqual((out.getvalue(), len(err.getvalue().splitlines())), ("", 1), err.getvalue())
        for part in (str(file), *parts):
            self.assertIn(part, err.getvalue())

    def with_field(self, column, value):
        row = GOOD | {column: value}
        return f"{HEADER}\n" + ",".join(row[name] for name in files.COLUMNS) + "\n"

    def test_files_that_are_no_measurements(self):
        for content, part in ((b"\xff\xfe\x00\x01", "cannot be read"), ("", "its header"), ("a,b\n1,2\n", "its header"),
                              (f"{HEADER}\n1,2\n", "does not have"), (b"\0" * 100, ""), (f"{HEADER}\n\0\n", ""),
                              (f"{COUNT_HEADER}\n01_naive,smoke\n", "")):
            with self.subTest(content[:20]):
                self.plot(content, part)

    def test_fields_that_are_no_numbers(self):
        for column in ("groups", "m_total", "n", "us_median", "us_p10", "tflops", "roof_tflops", "power_w", "clock_mhz"):
            for value in ("nan", "inf", "-1", "1e400", "9" * 400, "\u00b2", "four"):
                with self.subTest(column=column, value=value[:8]):
                    self.plot(self.with_field(column, value), "line 2", f"{column} is '{value[:20]}'")

    def test_fields_that_must_be_there_or_above_zero(self):
        for column, value in (("groups", ""), ("m_max", ""), ("n", "0"), ("us_median", "0"), ("k", "1.5")):
            with self.subTest(column=column):
                self.plot(self.with_field(column, value), f"{column} is '{value}'")
        self.plot(self.with_field("tflops", ""), "us_median is there without tflops")

    def test_a_count_that_is_none(self):
        self.plot(f"{COUNT_HEADER}\n01_naive,smoke,0:fair,instructions,many\n", "instructions is 'many'")

    def test_folders_and_devices_that_are_not_there(self):
        nowhere = self.folder / "nowhere"
        self.says([f"{nowhere}: is no folder"], "-m", "plots.draw.plot", "--data", nowhere, "--out", self.folder)
        self.says(["README.md: is no folder"], "-m", "plots.draw.plot", "--data", "README.md", "--out", self.folder)
        self.says(["--gpu abacus: no device of that name was measured"], "-m", "plots.draw.plot", "--gpu", "abacus",
                  "--out", self.folder)

    def tour(self, *parts):
        return self.says(parts, "common/tour/tour.py", "--build", self.folder, "x")

    def program(self, text):
        program = self.folder / "bin" / "x"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)

    def test_tour_of_programs_that_are_none(self):
        self.tour("bin/x: there is no such program")
        self.program("echo this is no chapter")
        self.tour("--describe: its answer is not a chapter's")
        self.program('echo "[1, 2]"')
        self.tour("--describe: its answer is not a chapter's")

    def test_tour_with_what_an_earlier_one_left(self):
        answer = '{"title": "an idea", "sets": ["smoke"]}'
        for state in ("[1]", '{"x.counts.csv": 3}', "{", ""):
            (self.folder / "tour").mkdir(exist_ok=True)
            (self.folder / "tour" / "state.json").write_text(state)
            for counts in ("chapter,set,order,counter,value\\nx,smoke,0:fair,instructions,many\\n", "no table", "\\377"):
                with self.subTest(state=state, counts=counts):
                    self.program(f"case \"$*\" in *describe*) echo '{answer}';; *) for last; do :; done; "
                                 f"printf '{counts}' > \"$last\";; esac")
                    self.tour("x.counts.csv: ")


class Good(unittest.TestCase):
    def test_the_row_that_is_broken_above_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(Path(folder, "x.csv"), "w", newline="") as file:
                csv.DictWriter(file, files.COLUMNS).writeheader()
                csv.DictWriter(file, files.COLUMNS).writerow(GOOD)
            (row,) = files.read_rows(folder)
        self.assertEqual((row.groups, row.us_median, row.roof_tflops, row.timed), (8, 2400, None, True))


class Peers(unittest.TestCase):
    """plots/measure/peers/build.py, where what a peer is built from is not whole."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.file("cutlass/include/cutlass/cutlass.h")
        self.file("deepgemm/deep_gemm/include/deep_gemm/impls/sm90_bf16_gemm.cuh")
        self.file("python/triton/__init__.py")
        self.file("bin/nvcc").chmod(0o755)

    def file(self, name, content=b""):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def build(self, code, *words):
        """What it says of one peer, by a Python that has the modules of this test alone."""
        done = subprocess.run([sys.executable, "-S", "-B", ROOT / "plots/measure/peers/build.py", *words],
                              capture_output=True, text=True, cwd=self.folder,
                              env={"PYTHONPATH": "python", "PATH": str(self.folder / "bin")})
        self.assertEqual((done.returncode, done.stderr), (code, ""), done.stdout)
        return done.stdout

    def test_a_clone_that_lacks_a_file(self):
        about = self.folder / "deepgemm/deep_gemm/__init__.py"
        words = ("deepgemm", "--cutlass", "cutlass", "--deepgemm", "deepgemm")
        wanted = "deepgemm: not built, --deepgemm deepgemm: deepgemm/deep_gemm/__init__.py cannot be read ({})\n"
        self.assertEqual(self.build(0, *words), wanted.format("No such file or directory"))
        about.write_bytes(b"\xff")
        self.assertEqual(self.build(0, *words), wanted.format("it is not UTF-8"))
        about.unlink()
        about.mkdir()
        self.assertEqual(self.build(0, *words), wanted.format("Is a directory"))

    def test_a_module_without_its_version(self):
        self.assertEqual(self.build(0, "triton_tma"), f"triton_tma: not built, the triton in {self.folder}/python/triton was "
                                                      "not installed by pip, which would say its version\n")

    def test_a_folder_that_cannot_be_made(self):
        self.file("python/triton-3.9.dist-info/METADATA", b"Metadata-Version: 2.1\nName: triton\nVersion: 3.9\n")
        self.file("taken")
        self.assertEqual(self.build(1, "triton_tma", "--out", "taken"), "triton_tma: triton 3.9 found, building\n"
                                                                       "triton_tma: not built, taken/new: Not a directory\n")


if __name__ == "__main__":
    unittest.main()
