# SPDX-License-Identifier: MIT
"""Which commit results carry: python3 commit_test.py CMAKE GIT runs the build's script in a repository of its own."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "common" / "cmake" / "commit.cmake"


class Commit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.source = Path(folder.name) / "a clone"
        self.source.mkdir()
        self.file = Path(folder.name) / "a build" / "commit.cpp"

    def git(self, *arguments):
        who = ["-c", "user.name=reader", "-c", "user.email=reader@example.org", "-c", "commit.gpgsign=false"]
        return subprocess.run([GIT, "-C", self.source, *who, *arguments], check=True, capture_output=True,
                              text=True).stdout.strip()

    def commit(self, text):
        (self.source / "kernel.cuh").write_text(text, encoding="utf-8")
        self.git("add", "kernel.cuh")
        self.git("commit", "-q", "-m", text)
        return self.git("rev-parse", "--short=12", "HEAD")

    def says(self, given=""):
        """What the source that the script writes returns."""
        subprocess.run([CMAKE, "-D", f"git={GIT}", "-D", f"source={self.source}", "-D", f"commit={given}", "-D",
                        f"file={self.file}", "-P", SCRIPT],
                       check=True, env=os.environ | {"GIT_CEILING_DIRECTORIES": str(self.source.parent)})
        return self.file.read_text(encoding="utf-8").split('return "')[1].split('"')[0]

    def test_is_asked_for_each_time(self):
        self.git("init", "-q")
        first = self.commit("one idea")
        self.assertEqual(self.says(), first)
        (self.source / "kernel.cuh").write_text("another", encoding="utf-8")
        self.assertEqual(self.says(), f"{first}-dirty")
        second = self.commit("another idea")
        self.assertNotEqual(first, second)
        self.assertEqual(self.says(), second)

    def test_the_same_answer_compiles_nothing(self):
        self.git("init", "-q")
        self.commit("one idea")
        self.says()
        os.utime(self.file, (1, 1))
        self.says()
        self.assertEqual(self.file.stat().st_mtime, 1)

    def test_a_given_commit_stands(self):
        self.assertEqual(self.says("a release"), "a release")

    def test_outside_a_clone_it_is_unknown(self):
        self.assertEqual(self.says(), "unknown")


if __name__ == "__main__":
    CMAKE, GIT = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
