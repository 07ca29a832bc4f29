# SPDX-License-Identifier: MIT
"""The exercises of the lessons against chapters/*/checks: each Break has its edits, which apply to the tree, and what they
must print is what the lesson says. tests/exercises/exercises.py makes the edits and runs them."""

import re
import tempfile
import unittest
from pathlib import Path

from tests.exercises import exercises, statements

ROOT = Path(__file__).resolve().parents[2]
APART = 2  # words that may stand in a lesson between two that a statement has side by side


def checks_of(chapter):
    return ROOT / "chapters" / chapter / "checks"


def lessons():
    """(chapter, Break, Extend, whole README) of every chapter, each text as `plain` leaves it."""
    for path in sorted(ROOT.glob("chapters/*/README.md")):
        text = path.read_text(encoding="utf-8")
        items = re.split(r"^(?=\d\. \*\*)", text.partition("\n## Exercises\n")[2], flags=re.M)
        named = {name: plain(item) for item in items for name in re.findall(r"^\d\. \*\*(\w+)\.", item)}
        yield path.parent.name, named.get("Break", ""), named.get("Extend", ""), plain(text)


def plain(text):
    """A text without marks of code and thousands' commas, in single spaces."""
    return " ".join(re.sub(r"(?<=\d),(?=\d{3})", "", text.replace("`", "").replace("\\|", "|")).split())


def said(words, text):
    """Do a statement's words stand in a text, in order and nearly side by side?"""
    between = rf"[\s,]+(?:\S+\s+){{0,{APART}}}"
    return re.search(r"(?<![\w.])" + between.join(map(re.escape, plain(words).split())) + r"(?!\w)", text)


def unsaid(wanted, text):
    """What of some commands and of what they must print a lesson does not say. Readers have --device emu or not."""
    for command in wanted.commands:
        variables, name, arguments = statements.words_of(command.line)
        asked = [f"{key}={value}" for key, value in variables.items()] + arguments
        shown = [word for word in asked if word not in ("--device", "emu")]
        yield from (word for word in [name, *shown] if not said(word, text.replace("build/bin/", "")))
        for kind, rest in command.wanted:
            if kind == "says" and not said(rest, text):
                yield rest
            if kind == "count" and not said(rest.split()[2], text):
                yield rest


class Exercises(unittest.TestCase):
    def test_each_has_its_files(self):
        chapters = [chapter for chapter, *_ in lessons()]
        for chapter in chapters:
            names = {path.name for path in checks_of(chapter).glob("*") if path.name.startswith(("break_", "extend."))} - {"extend.patch"}
            count = sum(name.startswith("break_") for name in names) // 2
            wanted = {f"break_{n}.{end}" for n in range(1, count + 1) for end in ("patch", "txt")}
            with self.subTest(chapter):
                self.assertEqual(names, wanted | {"extend.txt"}, "its checks/ want extend.txt, and break_1.patch with break_1.txt")
                self.assertGreaterEqual(count, 1, "its checks/ want break_1.patch and break_1.txt")

    def test_patches_apply(self):
        for patch in sorted(exercises.checks("*.patch")):
            chapter = exercises.chapter_of(patch)
            with self.subTest(patch=f"{chapter}/{patch.name}"):
                self.assertEqual(exercises.apply(patch, ROOT, "--check"), "")
            files = re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(encoding="utf-8"), re.M)
            self.assertTrue(files, patch)
            for file in files:
                self.assertTrue(file.startswith((f"chapters/{chapter}/", "common/")), f"{patch} changes {file}")

    def test_lessons_say_what_is_wanted(self):
        for chapter, broken, _, whole in lessons():
            text = whole if re.search(r"lines? of the table|hazards of the table", broken) else broken
            for path in sorted(checks_of(chapter).glob("break_*.txt")):
                with self.subTest(chapter=chapter, file=path.name):
                    self.assertEqual(list(unsaid(statements.parse(path), f"{chapter} {text}")), [])

    def test_extensions_have_statements(self):
        for chapter, *_ in lessons():
            if not (checks_of(chapter) / "extend.txt").exists():
                continue  # test_each_has_its_files says so
            wanted = statements.parse(checks_of(chapter) / "extend.txt")
            self.assertTrue(wanted.commands or wanted.open or wanted.gpu, chapter)
            solution = (checks_of(chapter) / "extend.patch").exists()
            self.assertTrue(wanted.commands or not solution, f"{chapter}: a solution that nothing judges")

    def test_a_lesson_that_says_something_else_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "break_1.txt")
            path.write_text("$ A=2 build/bin/x --check --device emu --m 64,5\nexit 1\nsays 13 of 15 problems\n", encoding="utf-8")
            wanted = statements.parse(path)
        good = "A=2 build/bin/x --check --m 64,5 fails 13 of its 15 problems"
        self.assertEqual(list(unsaid(wanted, plain(f"`{good}`."))), [])
        for old, new in (("A=2", "A=1"), ("/x", "/y"), ("64,5", "64"), ("13", "14"), ("--check", "--bench"),
                         ("its", "all but of its")):
            self.assertNotEqual(list(unsaid(wanted, good.replace(old, new))), [], new)


if __name__ == "__main__":
    unittest.main(verbosity=2)
