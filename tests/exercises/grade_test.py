# SPDX-License-Identifier: MIT
"""Statements of exercises and who judges them: with programs made up here, and with the Extend exercise of chapter 03,
which the tree does not meet and a copy with its solution does."""

import contextlib
import io
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tests.exercises import exercises, grade, statements

HERE = Path(__file__).resolve().parent
BUILD = Path(sys.argv.pop()) if len(sys.argv) > 1 and not sys.argv[-1].startswith("-") else HERE.parents[1] / "build"
CHAPTER = "03_tensor_cores"
CHECKS = grade.CHAPTERS / CHAPTER / "checks"
# Says its arguments, a counter's two rows and a report; fails with --bad.
PROGRAM = """#!/bin/sh
# Text as PTX: elect.sync
echo "ran $*" "$SAID"
[ -z "$GG_EMU_REPORT" ] || printf 'counts of %s\\n  bytes     %s\\n' one 30 other 12 'all kernels' 42 >&2
[ "$1" != --counts-csv ] || printf 'chapter,set,order,counter,value\\nx,a,0,bytes,%s\\nx,b,0,bytes,%s\\n' 3 4 > "$2"
[ "$1" != --bad ]
"""


class MadeUp(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for name in ("one", "other"):
            (self.folder / name).write_text(PROGRAM, encoding="utf-8")
            os.chmod(self.folder / name, 0o755)

    def path(self, text):
        path = self.folder / "extend.txt"
        path.write_text(text, encoding="utf-8")
        return path

    def graded(self, text):
        return grade.graded(self.path(text), self.folder)

    def test_what_holds_is_met(self):
        for line in ("says ran", "says with  a", "count bytes = 7", "count bytes < 8", "count bytes > 6", "total bytes = 42",
                     "same build/bin/other with a", "ptx elect.sync", "exit 0"):
            arguments = "" if line.startswith("count") else " with a"
            text = f"$ build/bin/one{arguments}\n" + (line if line == "exit 0" else f"exit 0\n{line}")
            self.assertEqual(self.graded(text), (grade.MET, ""), line)

    def test_what_does_not_hold_is_named(self):
        for line, why in (("says run", "does not say: run"), ("count bytes = 8", "bytes is 7; wanted = 8"),
                          ("count bytes < 7", "bytes is 7; wanted < 7"), ("count bytes > 7", "bytes is 7; wanted > 7"),
                          ("count sectors = 7", "sectors is not counted; wanted = 7"),
                          ("total bytes = 30", "bytes is 42; wanted = 30"),
                          ("same build/bin/other with a", "does not print what build/bin/other with a prints"),
                          ("ptx elect.async", "has no elect.async in its PTX")):
            verdict = self.graded(f"$ build/bin/one\nexit 0\n{line}\n")
            self.assertEqual(verdict, (grade.NOT_MET, f"build/bin/one: {why}"))

    def test_another_exit_code_comes_first(self):
        verdict = self.graded("$ build/bin/one --bad\nsays run\nexit 0\n")
        self.assertEqual(verdict, (grade.NOT_MET, "build/bin/one --bad: exit code 1: ran --bad; wanted exit code 0"))

    def test_every_command_is_asked(self):
        verdict, why = self.graded("$ build/bin/one\nexit 0\n$ SAID=that build/bin/one\nexit 0\nsays that\n"
                                   "$ build/bin/one\nexit 1\n")
        self.assertEqual((verdict, why[:27]), (grade.NOT_MET, "build/bin/one: exit code 0:"))

    def test_what_nobody_can_judge_is_said(self):
        self.assertEqual(self.graded("gpu a Hopper\n"), (grade.NOT_GRADED, "left to you: needs a Hopper"))
        self.assertEqual(self.graded("open why\n"), (grade.NOT_GRADED, "left to you: why"))
        self.assertEqual(self.graded("$ build/bin/one\nexit 0\ngpu a Hopper\nopen why\n"),
                         (grade.MET, "left to you: needs a Hopper; left to you: why"))
        for text in ("$ build/bin/none\nexit 0\n", "$ build/bin/one\nexit 0\nsame build/bin/none\n"):
            self.assertEqual(self.graded(text), (grade.NOT_GRADED, "there is no build/bin/none, which it runs"))

    def test_the_whole_report(self):
        """A line for each chapter in the order asked for, whatever becomes of the others, and exit code 0."""
        for chapter, text in (("03_met", "$ build/bin/one\nexit 0\nopen why\n"), ("01_unmet", "$ build/bin/one\nexit 0\nsays that\n"),
                              ("04_a_longer_name_than_others", "$ build/bin/none --check\nexit 0\n"), ("05_words", "gpu a Hopper\n"),
                              ("06_both", "$ build/bin/one\nexit 0\n$ build/bin/other\nsame build/bin/nowhere\nexit 0\n"),
                              ("07_empty", "# nothing\n")):
            (self.folder / chapter / "checks").mkdir(parents=True)
            (self.folder / chapter / "checks/extend.txt").write_text(text, encoding="utf-8")
        (self.folder / "02_unsaid").mkdir()
        (self.folder / "bin").symlink_to(self.folder)
        asked, out = ["03_met", "02_unsaid", "01_unmet", "04_a_longer_name_than_others", "05_words", "06_both", "07_empty"], io.StringIO()
        with mock.patch.object(grade, "CHAPTERS", self.folder), mock.patch.object(sys, "argv", ["grade.py", str(self.folder), *asked]), \
                contextlib.redirect_stdout(out):
            self.assertEqual(grade.main(), 0)
        self.assertEqual(out.getvalue(), f"""\
03_met                 met         left to you: why
02_unsaid              not graded  nobody has said how
01_unmet               not met     build/bin/one: does not say: that
04_a_longer_name_than_others not graded  there is no build/bin/none, which it runs
05_words               not graded  left to you: needs a Hopper
06_both                not graded  there is no build/bin/nowhere, which it runs
07_empty               not graded  {self.folder}/07_empty/checks/extend.txt: states nothing
grade: 1 of 7 Extend exercises met, 5 not graded
""")

    def test_what_is_no_statement_is_refused(self):
        for text in ("", "# nothing\n", "$ build/bin/one\n", "exit 0\n", "$ ls\nexit 0\n", "$ build/bin/one\nexit 0\nexit 1\n",
                     "$ build/bin/one\nexit 0\nsay ran\n", "$ build/bin/one\nexit 0\nsays\n", "$ build/bin/one\nexit zero\n",
                     "$ build/bin/one\nexit 0\ncount bytes 7\n", "$ build/bin/one\nexit 0\ncount bytes = many\n"):
            with self.assertRaises(ValueError, msg=text):
                statements.parse(self.path(text))


@unittest.skipUnless((BUILD / "bin" / CHAPTER).exists(), f"{CHAPTER} was not built")
class Built(unittest.TestCase):
    def test_the_tree_does_not_meet_it_and_says_by_how_much(self):
        verdict, why = grade.graded(CHECKS / "extend.txt", BUILD / "bin")
        self.assertEqual(verdict, grade.NOT_MET)
        self.assertRegex(why, r"--bench: multiply_adds is \d+; wanted = 6291456$")

    def test_with_its_solution_it_is_met(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder).resolve()
            self.assertEqual(exercises.copied(CHAPTER, CHECKS / "extend.patch", tree), "")
            self.assertEqual(exercises.Compiler(BUILD).program(CHAPTER, tree), "")
            verdict, why = grade.graded(CHECKS / "extend.txt", tree / "build" / "bin")
            self.assertEqual((verdict, why[:12]), (grade.MET, "left to you:"))

    def test_what_is_wrong_with_an_exercise_is_said(self):
        compiler = exercises.Compiler(BUILD)
        with tempfile.TemporaryDirectory() as folder:
            own = Path(folder, CHAPTER, "checks")
            own.mkdir(parents=True)
            good = (CHECKS / "break_1.patch").read_text(encoding="utf-8")
            for name, patch in (("old", good.replace(" ^ r % 8", " ^ r % 7")), ("bad", good.replace("/ VEC)", "/ VEC")),):
                (own / f"{name}.patch").write_text(patch, encoding="utf-8")
                (own / f"{name}.txt").write_text(f"$ build/bin/{CHAPTER} --help\nexit 0\n", encoding="utf-8")
            self.assertRegex(exercises.tried(compiler, own / "old.patch")[0], "does not apply: .*kernel.cuh")
            self.assertRegex(exercises.tried(compiler, own / "bad.patch")[0], "(?s)does not compile: .*kernel.cuh")


if __name__ == "__main__":
    unittest.main(verbosity=2)
