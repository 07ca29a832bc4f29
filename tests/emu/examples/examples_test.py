# SPDX-License-Identifier: MIT
"""gg-emu and gg-ptx as somebody else uses them: installed, moved, and run on this folder's examples, as
common/emu/README.md says.

    python examples_test.py Installed|Cuda|Triton|Cutlass    one of the classes below

GG_BUILD names the build tree, GG_NVCC and GG_HOST_COMPILER the compilers, GG_CUDART CUDA's shared runtime, CUTLASS the
folder of CUTLASS. What is not there makes a skipped test that says so; without Triton the committed PTX of its example runs.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from array import array
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BUILD = Path(os.environ.get("GG_BUILD", ROOT / "build")).resolve()
NVCC = os.environ.get("GG_NVCC") or shutil.which("nvcc")
HOST_COMPILER = os.environ.get("GG_HOST_COMPILER")
CUDART = os.environ.get("GG_CUDART")
CUTLASS = os.environ.get("CUTLASS")
CMAKE = os.environ.get("GG_CMAKE", "cmake")
COMMITTED_PTX = HERE / "triton_twice.ptx"  # what triton_twice.py printed


def run(*words, **keywords):
    """The command as it ended, in an environment that leads to no other runtime."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH" and not name.startswith("GG_EMU")}
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300,
                          env=environment | keywords.pop("env", {}), **keywords)


def example(name):
    """The lines of a file between its marks."""
    text = (HERE / name).read_text(encoding="utf-8")
    return re.search(r"(?s)^(?:#|//) \[example\]\n(.*?)^(?:#|//) \[/example\]$", text, re.M)[1]


class Example(unittest.TestCase):
    """The tools in a folder to which they were moved after they were installed, and a folder to work in."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        done = run(CMAKE, "--install", BUILD, "--prefix", cls.folder / "first")
        if done.returncode:
            raise AssertionError(done.stdout + done.stderr)
        cls.prefix = cls.folder / "moved"
        (cls.folder / "first").rename(cls.prefix)
        cls.gg_emu, cls.gg_ptx = cls.prefix / "bin" / "gg-emu", cls.prefix / "bin" / "gg-ptx"

    def ran(self, *words, **keywords):
        done = run(*words, cwd=self.folder, **keywords)
        self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout}{done.stderr}")
        return done

    def compiled(self, name, *flags):
        """The program that nvcc makes of an example, with the flags that the README shows."""
        program = self.folder / Path(name).stem
        host = ["-ccbin", HOST_COMPILER] if HOST_COMPILER else []
        command = [NVCC, *host, "-std=c++17", "-gencode", "arch=compute_80,code=compute_80", *flags, HERE / name]
        if " " not in NVCC:
            self.ran(*command, "-cudart", "shared", "-o", program)
        else:  # -lcudart is not found in a folder with a space in its name
            self.ran(*command, "-c", "-o", f"{program}.o")
            self.ran(HOST_COMPILER, f"{program}.o", CUDART, "-o", program)
        return program



class Installed(Example):
    def test_nothing_leads_back_to_the_build_tree(self):
        programs = [self.gg_emu, self.gg_ptx, *(self.prefix / "lib" / "emu").iterdir()]
        self.assertEqual(sorted(path.name for path in programs if not path.is_symlink()),
                         ["gg-emu", "gg-ptx", "libcuda.so.1", "libcudart.so.13"])
        for path in programs:
            self.assertNotIn(os.fsencode(BUILD) + b"/", path.read_bytes(), path.name)

    def test_the_texts_that_faults_name_are_there(self):
        for name in ("FAULTS.md", "SUPPORTED.md", "LICENSE"):
            self.assertTrue((self.prefix / "share" / "doc" / "gg-emu" / name).is_file(), name)

    def test_a_test_program_runs_on_the_runtime_beside_it(self):
        program = [BUILD / "tests" / "ends_early", "one"]
        done = run(self.gg_emu, "--report", *program, cwd=self.folder)
        self.assertIn("counts of small", done.stderr, done.stdout)
        runtime = self.prefix / "lib" / "emu" / "libcudart.so.13"
        runtime.rename(self.folder / "away")
        try:
            without = run(self.gg_emu, "--report", *program, cwd=self.folder)
        finally:
            (self.folder / "away").rename(runtime)
        self.assertEqual(without.returncode, 2)
        self.assertIn(f"{runtime} is missing", without.stderr)


class Cuda(Example):
    def test_a_file_of_ones_own(self):
        self.assertIn(f"\n{example('twice.cu')}```\n", (ROOT / "common/emu/README.md").read_text(encoding="utf-8"),
                      "common/emu/README.md does not quote twice.cu as it is")
        if not NVCC:
            self.skipTest("no nvcc")
        self.assertEqual(self.ran(self.gg_emu, self.compiled("twice.cu")).stdout, "x[31] = 62\n")


class Triton(Example):
    def ptx(self):
        """The example's PTX: made now where Triton is, else what is committed."""
        fetched = BUILD / "foreign" / "venv" / "bin" / "python"  # the preset `foreign` leaves it
        python = fetched if fetched.exists() else sys.executable
        made = run(python, "-B", HERE / "triton_twice.py", env={"TRITON_CACHE_DIR": str(self.folder), "TRITON_DEFAULT_FP_FUSION": "1"})
        if made.returncode == 0:
            return made.stdout
        self.assertIn("No module named 'triton'", made.stderr)
        return COMMITTED_PTX.read_text(encoding="utf-8")

    def test_a_kernel(self):
        (self.folder / "twice.ptx").write_text(self.ptx(), encoding="utf-8")
        header = "{'descr': '<f4', 'fortran_order': False, 'shape': (300,), }".ljust(117) + "\n"
        file, numbers = self.folder / "x.npy", array("f", range(300))
        file.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + numbers.tobytes())
        self.ran(self.gg_ptx, "twice.ptx", "--buf", "x=out:x.npy", "--entry", "twice", "--grid", "3", "--block", "128",
                 "--arg", "x", "--arg", "i32:300", "--arg", "null", "--arg", "null")
        doubled = array("f", file.read_bytes()[-300 * 4:])
        self.assertEqual(list(doubled), [2.0 * i for i in range(300)])


class Cutlass(Example):
    def test_a_product(self):
        if not NVCC or not CUTLASS:
            self.skipTest("no nvcc" if not NVCC else "the variable CUTLASS names no folder of CUTLASS")
        program = self.compiled("cutlass_gemm.cu", "-I", Path(CUTLASS) / "include")
        self.assertEqual(self.ran(self.gg_emu, program).stdout, "Success: d[0] = 256\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
