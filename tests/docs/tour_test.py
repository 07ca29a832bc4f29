# SPDX-License-Identifier: MIT
"""The tour with programs that answer as chapters do: what it keeps, and how it ends. No GPU is needed."""

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "common" / "tools"))
import tour  # noqa: E402

# A chapter's program: it checks, then appends two counts, and ends between them where FAILS says so.
CHAPTER = """
import json, sys
if "--describe" in sys.argv:
    print(json.dumps({"title": "an idea", "sets": ["smoke"]})), sys.exit(0)
if RESULT == 77:
    sys.exit(77)
if "--bench" in sys.argv:
    with open(sys.argv[sys.argv.index("--counts-csv") + 1], "a") as table:
        table.write("chapter,set,order,counter,value\\n")
        table.write("x,smoke,0:fair,useful_multiply_adds,1000\\n")
        if RESULT:
            sys.exit(RESULT)
        for name in ("instructions", "shared_bank_conflicts", *(f"global_{what}_{unit}" for unit in ("bytes", "sectors")
                     for what in ("load", "store", "atomic"))):
            table.write(f"x,smoke,0:fair,{name},8\\n")
"""


class TourTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = Path(folder.name)
        (self.build / "bin").mkdir()

    def chapter(self, name, result):
        """A program that ends with a result: 0, 1 for a check that fails, 77 for want of a device."""
        program = self.build / "bin" / name
        program.with_suffix(".py").write_text(f"RESULT = {result}\n{CHAPTER}")
        program.write_text(f"#!/bin/sh\n# {result}\nexec '{sys.executable}' -B \"$0.py\" \"$@\"\n")
        program.chmod(0o755)

    def run_tour(self, *names, terminal=False):
        """Exit code and output of the tour of these chapters on a machine without a GPU."""
        out = io.StringIO()
        out.isatty = lambda: terminal
        with mock.patch.object(tour, "find_device", lambda: ""), contextlib.redirect_stdout(out), \
                mock.patch.object(sys, "argv", ["tour.py", "--build", str(self.build), *names]), \
                mock.patch.dict("os.environ"):
            code = tour.main()
        return code, out.getvalue()

    def test_like_another_gpu_runs_no_chapter(self):
        ran = []

        def run(*command):
            ran.append([str(word) for word in command])
            (self.build / "tour" / "like-b200").mkdir(parents=True)
            (self.build / "tour" / "like-b200" / "tables.md").write_text("# T\n\n## The ladder\n\n| – |\n\n## 01_one\n\nmore\n")
            return 0

        out = io.StringIO()
        with mock.patch.object(tour, "run", run), contextlib.redirect_stdout(out), mock.patch.dict("os.environ"), \
                mock.patch.object(sys, "argv", ["tour.py", "--build", str(self.build), "--like", "b200", "01_one"]):
            self.assertEqual(tour.main(), 0)
        self.assertEqual([words[2:4] for words in ran], [[str(tour.REPO / "plots" / "draw" / "like.py"), "b200"]])
        self.assertIn("The ladder\n\n| – |", out.getvalue())
        self.assertNotIn("more", out.getvalue())

    def test_what_passed_is_counted_and_kept(self):
        self.chapter("01_one", 0)
        code, out = self.run_tour("01_one")
        self.assertEqual(code, 0, out)
        self.assertIn("tour: 1 chapters passed, 0 failed, 0 not run", out)
        self.assertRegex(out, r"(?m)^page: .*tour/index\.html$")
        self.assertTrue((self.build / "tour" / "index.html").is_file())
        self.assertIn("passed on the emulator, kept from", self.run_tour("01_one")[1])

    def test_a_terminal_is_told_which_chapter_of_how_many(self):
        self.chapter("01_one", 0)
        self.chapter("02_two", 0)
        out = self.run_tour("02_two", "01_one", terminal=True)[1]
        first, second = out.index("\ntour: chapter 1 of 2, 01_one\n"), out.index("\ntour: chapter 2 of 2, 02_two\n")
        self.assertLess(first, out.index("01_one --device emu --check"))
        self.assertLess(out.index("01_one --device emu --check"), second)
        self.assertLess(second, out.index("02_two --device emu --check"))
        self.assertNotIn("tour: chapter", self.run_tour("01_one", "02_two")[1])  # piped

    def test_a_failed_run_leaves_the_earlier_table_whole(self):
        self.chapter("01_one", 0)
        self.run_tour("01_one")
        table = self.build / "tour" / "01_one.counts.csv"
        whole = table.read_text()
        self.chapter("01_one", 1)
        code, out = self.run_tour("01_one")
        self.assertEqual(code, 1)
        self.assertIn("tour: 0 chapters passed, 1 failed, 0 not run", out)
        self.assertEqual(table.read_text(), whole)
        self.assertEqual([path.name for path in table.parent.glob("*.part")], [])

    def test_a_tour_in_which_nothing_ran_fails(self):
        self.chapter("01_one", 77)
        self.chapter("02_two", 77)
        code, out = self.run_tour("01_one", "02_two")
        self.assertEqual(code, 1)
        self.assertIn("tour: 0 chapters passed, 0 failed, 2 not run", out)
        self.chapter("02_two", 0)
        self.assertEqual(self.run_tour("01_one", "02_two")[0], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
