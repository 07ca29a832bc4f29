# SPDX-License-Identifier: MIT
"""What nvcc-launcher makes of a compiler's words and of what it writes. The compiler here is a few lines of sh."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

LAUNCHER = Path(__file__).resolve().parents[2] / "common/cmake/nvcc-launcher"
SPILLED = "echo 'ptxas warning : Registers are spilled to local memory in function f' >&2; "


class Launcher(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "x.cu").write_text("source")
        (self.folder / "x.o").write_text("old")

    def compile(self, body, spills=None):
        """Runs `compiler -c x.cu -o x.o`, which does `body` and then writes "new"."""
        (self.folder / "compiler").write_text(f"#!/bin/sh\n{body}\nprintf new >\"$4\"\n")
        (self.folder / "compiler").chmod(0o755)
        env = {name: value for name, value in os.environ.items() if name != "GG_SPILLS"}
        return subprocess.run([LAUNCHER, "./compiler", "-c", "x.cu", "-o", "x.o"], cwd=self.folder,
                              env=env | ({"GG_SPILLS": spills} if spills else {}), capture_output=True, text=True)

    def left(self, text):
        """The object has this text, and nothing else is left in the folder."""
        self.assertEqual((self.folder / "x.o").read_text(), text)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir() if path.name != "seen"),
                         ["compiler", "x.cu", "x.o"])

    def test_a_spill_is_an_error_that_names_the_way_round(self):
        for spills in (None, "yes"):
            done = self.compile(SPILLED, spills)
            self.assertEqual(done.returncode, 1)
            self.assertIn("error: ptxas spilled registers to local memory", done.stderr)
            self.assertIn("set the environment variable GG_SPILLS=allow and build again\n", done.stderr)
            self.left("old")

    def test_an_allowed_spill_is_a_warning(self):
        done = self.compile(SPILLED, "allow")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("warning: ptxas spilled registers to local memory, which GG_SPILLS=allow lets pass\n", done.stderr)
        self.left("new")

    def test_products_one_by_one_are_an_error_all_the_same(self):
        done = self.compile(SPILLED + "echo 'Potential Performance Loss: wgmma.mma_async instructions are serialized'",
                            "allow")
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: ptxas serialized wgmma instructions", done.stderr)
        self.left("old")

    def test_the_object_is_whole_at_any_time(self):
        done = self.compile("printf half >\"$4\"; cat x.o >seen")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.folder / "seen").read_text(), "old")
        self.left("new")

    def test_a_source_that_is_edited_meanwhile_is_newer(self):
        self.compile("sleep 0.05; printf edited >x.cu")
        self.left("new")
        self.assertGreater((self.folder / "x.cu").stat().st_mtime_ns, (self.folder / "x.o").stat().st_mtime_ns)

    def test_the_compilers_failure_is_its_own(self):
        done = self.compile("echo it fails >&2; printf half >\"$4\"; exit 7")
        self.assertEqual((done.returncode, done.stderr), (7, "it fails\n"))
        self.left("old")

    def test_a_command_that_writes_nothing_is_just_run(self):
        done = subprocess.run([LAUNCHER, "sh", "-c", "echo \"$1\"", "-", "a  b"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, "a  b\n"))


if __name__ == "__main__":
    unittest.main()
