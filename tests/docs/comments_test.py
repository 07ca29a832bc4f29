# SPDX-License-Identifier: MIT
"""The shape of comments: none ends in a line of one or two words, none is wider than COLUMNS or makes its line so, and none
that stands behind code goes on below it. clang-format leaves comments as they are (ReflowComments: false), so this is
what looks after them.

    int a = 1;  // as many as
                // there are

A comment of several lines stands above what it is about."""

import io
import re
import subprocess
import tempfile
import tokenize
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

FOLDERS = ("common", "tests", "plots", "chapters")
OTHERS = "tests/emu/foreign"  # as other compilers' authors wrote it
COLUMNS = 100
ORPHAN_WORDS, ORPHAN_COLUMNS = 2, 40  # one word may be an instruction of PTX or an address
ORPHAN, WIDE, GOES_ON = "ends in an orphan", f"is wider than {COLUMNS} columns", "stands behind code and goes on below"
# Chapters were written for lines as wide as code's, and their READMEs quote them.
CHAPTERS_COLUMNS = 110

# Comments of C++, and what might be taken for one: strings (raw ones too), characters.
CPP = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\'', re.S)
# The same of CMake: bracket comments and arguments, strings.
CMAKE = re.compile(r'#?\[(=*)\[.*?\]\1\]|"(?:\\.|[^"\\])*"|#[^\n]*', re.S)
MARK = re.compile(r"//|#+!?")
REGION = re.compile(r"\[/?\w+\]")  # the marks of a quoted region
ITEM = re.compile(r"[A-Z]\w*: ")  # "Before: ..": the line begins an item, and continues none
FOR_A_TOOL = re.compile(r"noqa\b|NOLINT")  # these must stand in the line that they are about


def comments_of(suffix, text):
    """Line -> (column, text) of every comment that ends with its line."""
    if suffix == ".py":
        found = tokenize.generate_tokens(io.StringIO(text).readline)
        return {token.start[0]: (token.start[1], token.string) for token in found if token.type == tokenize.COMMENT}
    pattern, start = (CMAKE, "#") if suffix == ".cmake" else (CPP, "//")
    comments = {}
    for match in pattern.finditer(text):
        if match[0].startswith(start) and "\n" not in match[0]:
            at = match.start()
            comments[text.count("\n", 0, at) + 1] = at - text.rfind("\n", 0, at) - 1, match[0]
    return comments


def said(comment):
    """What a comment says; "" for a region's mark and for a line that is no sentence."""
    text = MARK.sub("", comment, count=1).strip()
    return "" if REGION.fullmatch(text) or comment.startswith("#!") else text


def errors_of(suffix, text, columns=COLUMNS):
    """(line, rule) of every comment that breaks one."""
    lines, comments = text.split("\n"), comments_of(suffix, text)
    full = {number for number, (column, _) in comments.items() if not lines[number - 1][:column].strip()}

    def joined(number):
        """Line `number` is all comment, in the column of a comment in the line before."""
        here, before = comments.get(number), comments.get(number - 1)
        return number in full and before is not None and before[0] == here[0] and said(here[1]) and said(before[1])

    for number, (_, comment) in sorted(comments.items()):
        words, goes_on = said(comment), joined(number + 1)
        if number not in full and goes_on:
            yield number, GOES_ON
        short = len(words.split()) <= ORPHAN_WORDS and len(words) <= ORPHAN_COLUMNS
        if joined(number) and not goes_on and short and not ITEM.match(words):
            yield number, ORPHAN
        if len(lines[number - 1]) > columns and not FOR_A_TOOL.match(words):
            yield number, WIDE


def listed(root):
    git = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                         capture_output=True)
    if git.returncode == 0 and (root / ".git").exists():
        names = {Path(name) for name in git.stdout.decode().split("\0") if name}
    else:
        names = {path.relative_to(root) for folder in FOLDERS for path in (root / folder).rglob("*")}
    return sorted(name for name in names if name.parts[0] in FOLDERS and not str(name).startswith(OTHERS)
                  and (root / name).is_file())


def comment_errors(root):
    """(path:line, rule, the line) of every comment that breaks one."""
    for path in listed(root):
        suffix = ".cmake" if path.name == "CMakeLists.txt" else path.suffix
        if suffix in (".h", ".cuh", ".cpp", ".cu", ".py", ".cmake"):
            text = (root / path).read_text(encoding="utf-8")
            for number, rule in errors_of(suffix, text, CHAPTERS_COLUMNS if path.parts[0] == "chapters" else COLUMNS):
                yield f"{path}:{number}", rule, text.split("\n")[number - 1].strip()


class TreeTest(unittest.TestCase):
    def test_comments_have_their_shape(self):
        errors = [f"{place}: the comment {rule}: {line}" for place, rule, line in comment_errors(ROOT)]
        self.assertFalse(errors, "\n" + "\n".join(errors))

    def test_the_formatter_leaves_comments_alone(self):
        self.assertIn("\nReflowComments: false\n", (ROOT / ".clang-format").read_text())


class PlantedTest(unittest.TestCase):
    """Comments that break a rule are found, and what only looks like one is not."""

    def found(self, text, suffix=".cpp"):
        return list(errors_of(suffix, text))

    def test_orphans(self):
        for text, line in [
                ("// Everything that is stored here goes out in\n// pairs.\nint a;\n", 2),
                ("// One.\n// Two, three, four.\n// Its bytes.\n", 3),
                ("int b;\n  // The size of all of them in\n  // four bytes.\n", 3),
                ("int b;  // the size of all of them in\n        // bytes.\n", 2)]:
            self.assertIn((line, ORPHAN), self.found(text), text)
        self.assertEqual(self.found("# What it all is\n# good for.\nx = 1\n", ".py"), [(2, ORPHAN)])
        self.assertEqual(self.found("# What it all is\n# good for.\nset(x 1)\n", ".cmake"), [(2, ORPHAN)])

    def test_trailing_comments_that_go_on(self):
        self.assertEqual(self.found("int a;  // so many as there are\n        // registers for a warp\n"), [(1, GOES_ON)])
        self.assertEqual(self.found("a = 1  # so many as there are\n       # registers for a warp\n", ".py"), [(1, GOES_ON)])

    def test_wide_lines(self):
        for lead, suffix in (("// ", ".cpp"), ("int x;  // ", ".cuh"), ("# ", ".py"), ("x = 1  # ", ".py"), ("# ", ".cmake")):
            fits = lead + "x" * (COLUMNS - len(lead))
            self.assertEqual(self.found(f"{fits}\n", suffix), [])
            self.assertEqual(self.found(f"{fits}x\n", suffix), [(1, WIDE)])

    def test_what_is_fine(self):
        for text, suffix in [
                ("// A sentence of its own.\n\n// pairs.\n", ".h"),
                ("// [load]\n// Loads.\nint x;\n// [/load]\n", ".h"),
                ("// A sentence over a region.\n// [load]\nint x;\n", ".h"),
                ("//\n// wgmma.\n//\n// Two paragraphs, one of a word.\n", ".h"),
                ("// Who: one thread, always the same one.\n// Before: `complete`.\n", ".h"),
                ("int a;  // one\nint b;  // another\n", ".h"),
                ("int a;  // one\n// Above b.\nint b;\n", ".h"),
                ("// One word may be long:\n// tcgen05.relinquish_alloc_permit.cta_group.sync.aligned;\n", ".cpp"),
                ('const char* text = R"(\n// of a kernel that is\n// text.\n)";\n', ".cpp"),
                ('f("http://a.b",\n  "// one two three"\n  "// four");\n', ".cpp"),
                ("#!/usr/bin/env python3\n# SPDX-License-Identifier: MIT\n", ".py"),
                (f"import a{'b' * COLUMNS}  # noqa: E402\n", ".py"),
                ('x = """\n# One two three\n# four\n"""\n', ".py"),
                ("file(WRITE a [[\n#include <vector>\n#include <map>\n]])\n", ".cmake"),
                ('set(a "\n# one two three\n# four\n")\n', ".cmake")]:
            self.assertEqual(self.found(text, suffix), [], text)

    def test_planted_in_a_tree(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            orphan = "// Everything that is stored here goes out in\n// pairs.\n"
            planted = ["chapters/01_naive/kernel.cuh", "common/harness/run/a.cpp", "plots/measure/roof.cu", "tests/emu/a_test.cpp"]
            for path in [*planted, f"{OTHERS}/clang/a.cu", "common/emu/README.md"]:
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(orphan)
            self.assertEqual([place for place, _, _ in comment_errors(root)], [f"{path}:2" for path in planted])


if __name__ == "__main__":
    unittest.main()
