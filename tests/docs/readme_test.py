# SPDX-License-Identifier: MIT
"""The lessons against the tree: quoted code, limits, diff budgets, links, commands, licence lines.

A quote in a README is a fence of `cuda` after a comment that names a file, from the README's folder, and a
region of it, which stands there between `// [load]` and `// [/load]`; it loses the indentation of that mark:

    <!-- kernel.cuh load -->
    ```cuda
    ...
    ```
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from functools import cache
from itertools import pairwise
from pathlib import Path

from chapters.lineage import is_whole
from plots.draw.changes import lines_changed
from plots.draw.front_page import MILESTONES

ROOT = Path(__file__).resolve().parents[2]
# What was built, maybe not everything
PROGRAMS = Path(os.environ.get("GG_PROGRAMS", ROOT / "build" / "bin"))

SECTIONS = ["Question", "What you need to know", "Picture", "What changes", "Rules of the new instruction", "Measured",
            "Counted", "What limits it now", "Exercises"]
ONLY_IF_NEW = ("What you need to know", "Rules of the new instruction")  # words, instructions
# At most, or the README says why; the ladder prints how many, and fewer are read sooner
CHANGED_LINES = 300
COLUMNS = 120  # of its lines, without tables and what is quoted
FUNCTION_LINES = 120  # of a chapter whose roles have files of their own
HANGS_S = 600  # a program that runs for longer than any machine takes

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
QUOTE = re.compile(r"^<!-- (\S+) (\w+) -->\n```cuda\n(.*?)^```$", re.M | re.S)
COMMENT = re.compile(r"<!--.*?-->", re.S)


@cache
def read(path):
    return path.read_text(encoding="utf-8")


def prose(text):
    """A README without its fences and comments."""
    return COMMENT.sub("", FENCE.sub("", text))


def own_text(text):
    """A README without what the tool writes between the marks of a table: that is not the author's."""
    return re.sub(r"(?s)<!-- (table|counts|costs|fused|cudnn) -->.*?<!-- /\1 -->", "", text)


@cache
def files():
    """What is committed, or would be: nothing that a build leaves behind."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True)
    names = listed.stdout.decode().split("\0") if listed.returncode == 0 and (ROOT / ".git").exists() else []
    if not any(names):
        for folder, below, here in os.walk(ROOT):
            at_top = Path(folder) == ROOT
            below[:] = [b for b in below if b not in (".git", "__pycache__")
                        and not (at_top and b.startswith("build"))]
            names += [str(Path(folder, name).relative_to(ROOT)) for name in here]
    return sorted(ROOT / name for name in names if name and (ROOT / name).is_file())


@cache
def readmes():
    """All that is Markdown; a lesson counts before it is committed too."""
    found = {path for path in files() if path.suffix == ".md"}
    return sorted(found | set(ROOT.glob("*.md")) | set(ROOT.glob("chapters/*/*.md")))


@cache
def chapters():
    return sorted(path.parent for path in ROOT.glob("chapters/*/main.cu"))


@cache
def predecessors():
    """By the registry: chapters.json lacks a new chapter until `publish` has written it."""
    lines = re.findall(r"(?m)^gg_chapter\((\w+) \w+ AFTER (\w+) (?!WHOLE)", read(ROOT / "chapters" / "CMakeLists.txt"))
    return dict(lines)


def previous_of(chapter):
    known = predecessors()
    return chapter.with_name(known[chapter.name]) if known.get(chapter.name) else None


def has_roles(chapter):
    """Do loading, multiplying and storing have files of their own?"""
    return (chapter / "load.cuh").exists()


def region(path, name):
    """The lines between a region's marks, without the indentation of the first."""
    inside = re.findall(rf"^( *)// \[{name}\]\n(.*?)^ *// \[/{name}\]\n", read(path), re.M | re.S)
    return re.sub(rf"^{inside[0][0]}", "", inside[0][1], flags=re.M) if len(inside) == 1 else None


def commands(text):
    """Command lines of `sh` fences, and those among inline code that start one of our programs."""
    lines = []
    for language, body in FENCE.findall(text):
        if language == "sh":
            lines += body.replace("\\\n", " ").splitlines()
    lines += [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", prose(text))]
    for line in lines:
        for part in line.split("&&"):
            if part.strip().startswith("build/bin/"):
                yield shlex.split(part, comments=True)


@cache
def help_of(program):
    path = PROGRAMS / program
    if not path.exists():
        return ""
    return subprocess.run([path, "--help"], capture_output=True, text=True, timeout=HANGS_S).stdout


class EveryCase(unittest.TestCase):
    """Reports all that is wrong, not only the first."""

    def setUp(self):
        self.wrong = []

    def expect(self, condition, *words):
        if not condition:
            self.wrong.append(" ".join(str(w.relative_to(ROOT) if isinstance(w, Path) else w) for w in words))

    def tearDown(self):
        if self.wrong:
            self.fail("\n  " + "\n  ".join(self.wrong))


def functions(text):
    """Names and lines of functions, by clang-format's braces: one opens at the end of a line and is closed in the column where
    its declaration begins."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        head = re.match(r"( *)(?!.*\b(?:struct|class|namespace|enum)\b)[\w<>:&*~ ]*\b(\w+)\(", line)
        if not head or line.lstrip().startswith(("//", "for", "if", "while", "return", "}")) or len(head[1]) > 2:
            continue
        opened = next((i for i in range(at, len(lines)) if lines[i].endswith(("{", ";", "}"))), at)
        if not lines[opened].endswith("{"):
            continue
        closed = next((i for i in range(opened + 1, len(lines)) if lines[i].startswith(head[1] + "}")), None)
        if closed:
            yield head[2], closed - at + 1


class Chapters(EveryCase):
    def test_there_are_chapters(self):
        self.expect(len(chapters()) >= 6, "only", len(chapters()), "chapters found")
        for folder in (ROOT / "chapters").iterdir():
            self.expect(not folder.is_dir() or folder in chapters(), folder, "has no main.cu")

    def test_files_within_their_limits(self):
        for chapter in chapters():
            for name in ("kernel.cuh", "main.cu", "README.md"):
                self.expect((chapter / name).exists(), chapter / name, "is missing")
            path = chapter / "README.md"
            own = own_text(read(path)) if path.exists() else ""
            for line in prose(own).splitlines():
                self.expect(len(line) <= COLUMNS or line.startswith("|"), path, "has a line of", len(line),
                            "columns, at most", COLUMNS, f"are allowed: {line[:40]}..")
            for path in chapter.iterdir():
                code = path.suffix == ".cuh" or (is_whole(chapter) and path.suffix == ".cu")
                self.expect(code or path.name in ("main.cu", "README.md", "results.md", "WORKLOG.md", "inherited.txt", "checks"),
                            path, "is no header")

    def test_comments_are_sentences(self):
        """None opens with a word that leaves its subject to the line below. `Who:` says who calls a function."""
        paths = [path for folder in ("chapters", "common", "plots", "tests") for path in (ROOT / folder).rglob("*")
                 if path.suffix in (".cuh", ".cu", ".h", ".cpp")]
        self.assertTrue(paths)
        for path in sorted(paths):
            for line in re.findall(r"(?m)^ *// ((?:Of|What|Who|One of|Whose|Which) .*)$", read(path)):
                self.expect(False, path, "has a comment that is no sentence:", line)

    def test_functions_are_short(self):
        """A kernel that says who does what is a table of contents; what each role does is a function of its own."""
        for path in (path for chapter in chapters() for path in chapter.glob("*.cuh")):
            if not has_roles(path.parent):
                continue
            for name, lines in functions(read(path)):
                self.expect(lines <= FUNCTION_LINES, path, f"has a function of {lines} lines, {name}, at most", FUNCTION_LINES,
                            "are allowed")

    def test_what_launches_share_is_said(self):
        """A variable on the device is one for all launches: the lesson says which of them may run at once."""
        for chapter in chapters():
            if not (chapter / "README.md").exists():
                continue  # said above
            shared = [path.name for path in sorted(chapter.glob("*.cuh"))
                      if re.search(r"^(static )?__device__ [\w ]+(\[\w+\];| \{$)", read(path), re.M)]
            at_once = r"(?:launch|instance)[^.]*\s(at\s+once|at\s+a\s+time|at\s+the\s+same\s+time)"
            said = re.search(at_once, read(chapter / "README.md"), re.I)
            self.expect(said or not shared, chapter / "README.md", "does not say which launches may run at once:",
                        *shared, "has a variable on the device, so a sentence has to have `launch .. at the same time`, or `at once`")

    def test_chapters_differ_little_from_their_predecessors(self):
        for chapter in chapters():
            before = previous_of(chapter)
            if not before or not (chapter / "README.md").exists():
                continue
            changed = sum(lines_changed(before, chapter))
            self.expect(changed > 0, chapter, "cannot be compared with", before)
            explained = re.search(r"more\s+than\s+300\s+lines\s+because\s", read(chapter / "README.md"))
            self.expect(changed <= CHANGED_LINES or explained, chapter, f"changes {changed} lines of", before.name + "'s, at most",
                        CHANGED_LINES, "are allowed")


class Lessons(EveryCase):
    def setUp(self):
        super().setUp()
        self.lessons = [(c, read(c / "README.md")) for c in chapters() if (c / "README.md").exists()]
        self.assertTrue(self.lessons)

    def test_sections_in_order(self):
        for chapter, text in self.lessons:
            found = re.findall(r"^## (.*)$", FENCE.sub("", text), re.M)
            wanted = [name for name in SECTIONS if name in found or name not in ONLY_IF_NEW]
            self.expect(found == wanted, chapter / "README.md", "has the sections", found, "and not", wanted)
            for name, body in zip(found, re.split(r"^## .*$", text, flags=re.M)[1:]):
                self.expect(len(prose(body).strip()) + len(FENCE.findall(body)) > 20, chapter / "README.md",
                            "wants a sentence beside its tables and fences under", name)

    def test_quotes_equal_their_files(self):
        for chapter, text in self.lessons:
            path, quotes = chapter / "README.md", QUOTE.findall(text)
            own = [(file, name) for file, name, _ in quotes if file.endswith(".cuh")]
            self.expect(own, path, "quotes no region of the chapter's .cuh files (tests/docs/readme_test.py shows how one is quoted)")
            self.expect(len(set(own)) == len(own), path, "quotes a region twice")
            before = previous_of(chapter)
            for file in {file for file, _ in own if before and has_roles(chapter)}:
                same = (before / file).exists() and read(before / file) == read(chapter / file)
                self.expect(not same, path, f"quotes {file}, which is {before.name}'s")
            unmarked = sum(language in ("cuda", "cpp", "c") for language, _ in FENCE.findall(text)) - len(quotes)
            self.expect(unmarked == 0, path, "has", unmarked, "fences of code that name no region")
            for file, name, quoted in quotes:
                source = chapter / file
                actual = region(source, name) if source.exists() else None
                self.expect(actual is not None, path, f"quotes {file} {name}: there is no such region, or two")
                self.expect(actual in (None, quoted), path, f"quotes {file} {name}, but not as it is there")

    def test_marks_come_in_pairs(self):
        for path in [*ROOT.glob("chapters/*/*.cuh"), *ROOT.glob("tests/isa/*.cu")]:
            marks = re.findall(r"^ *// \[(/?\w+)\]$", read(path), re.M)
            for name in {mark.strip("/") for mark in marks}:
                pair = [mark for mark in marks if mark.strip("/") == name]
                self.expect(pair == [name, "/" + name], path, "marks a region wrongly:", pair)

    def test_the_diff_is_shown(self):
        for chapter, text in self.lessons:
            before = previous_of(chapter)
            if before:
                line = re.search(rf"^git diff --no-index (-w )?chapters/{before.name}(/\w+\.cuh)? "
                                 rf"chapters/{chapter.name}(?(2)\2)$", text, re.M)
                self.expect(line, chapter / "README.md", "does not show the diff with", before.name)

    def test_measured_has_a_table_and_the_figure(self):
        marks = r"(?s)<!-- table -->\n(.*?\n)?<!-- /table -->\n"
        for chapter, text in self.lessons:
            path = chapter / "README.md"
            if is_whole(chapter):
                continue  # no product, no set
            measured = re.search(r"(?ms)^## Measured$(.*?)^## ", text)
            self.expect(measured and re.search(marks, measured[1]), path, "has no table marks under Measured")
            self.expect(text.count("<!-- table -->") == text.count("<!-- /table -->") == 1, path,
                        "must have one table")
            rows = [read(csv) for csv in ROOT.glob(f"plots/measure/data/*/{chapter.name}.csv")]
            figure, drawn = f"(../../plots/figures/step_{chapter.name}.svg)", any(",step," in some for some in rows)
            self.expect(measured and (figure in measured[1]) == drawn, path,
                        "shows its step figure just if the set step was timed")
            self.expect(rows or "Checked on the emulator, not timed." in text, path,
                        "was not timed, and does not say so: `publish` writes it between the marks of its table")

    def test_three_exercises_that_can_be_done(self):
        for chapter, text in self.lessons:
            items = re.split(r"^(?=\d\. )", text.partition("\n## Exercises\n")[2], flags=re.M)[1:]
            names = [re.match(r"\d\. \*\*(\w+)\.\*\*", item) for item in items]
            names = [name and name[1] for name in names]
            self.expect(names == ["Read", "Break", "Extend"], chapter / "README.md", "has the exercises", names,
                        "and not Read, Break, Extend")
            for item in items:
                self.expect("Done when" in " ".join(item.split()), chapter / "README.md", "has an exercise without `Done when`:", item[:40])

    def test_root_readme_has_the_ladder(self):
        text, page = read(ROOT / "README.md"), ROOT / "chapters" / "LADDER.md"
        for path, marks in ((ROOT / "README.md", ["milestones"]), (page, ["table", "tree", "tally", "problems"])):
            for mark in marks:
                self.expect(read(path).count(f"<!-- {mark} -->") == read(path).count(f"<!-- /{mark} -->") == 1, path, "has no marks:", mark)
        shown = re.findall(r"(?m)^\| \[(\w+?)_\w+\]\(chapters/", text)
        self.expect(shown == MILESTONES, "the front page shows", shown)
        programs = len(list((ROOT / "chapters").glob("*/main.cu")))
        for said in (f" in {programs} programs,", f" of {programs} lessons,"):
            self.expect(said in text, f"the course has {programs} programs: write `{said.strip()}` in README.md, by hand")


class Features(EveryCase):
    def test_each_has_tests_that_exist(self):
        sources = "".join(read(path) for path in files() if path.suffix in (".cpp", ".cu") and "tests" in path.parts)
        there = {f"{suite}.{case}" for suite, case in re.findall(r"^TEST(?:_P|_F)?\((\w+), (\w+)\)", sources, re.M)}
        there |= set(re.findall(r"add_test\(NAME (\w+\.\w+)\.", read(ROOT / "tests/chapters/CMakeLists.txt")))
        path = ROOT / "tests" / "epilogues.md"
        rows = [line.split(" | ") for line in read(path).splitlines() if line.startswith("| ") and "---" not in line]
        for feature, *_, named in [row for row in rows if row[0] != "| feature"]:
            tests = re.findall(r"`(\w+\.\w+)`", named)
            self.expect(tests, path, "has no test beside:", feature)
            for test in tests:
                self.expect(test in there, path, "names", test, "which is not there")


class Texts(EveryCase):
    def test_links_lead_somewhere(self):
        for path in readmes():
            for target in re.findall(r"\]\(([^)\s]+)\)", prose(read(path))):
                if re.match(r"[a-z]+:", target):
                    continue
                file, _, heading = target.partition("#")
                there = (path.parent / file).resolve() if file else path
                self.expect(there.exists() and there.is_relative_to(ROOT), path, "links to", target)
                if heading and there.suffix == ".md" and there.exists():
                    titles = re.findall(r"^#+ (.*)$", FENCE.sub("", read(there)), re.M)
                    known = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
                    self.expect(heading in known, path, "links to", target, "where no such heading is")

    def test_reports_show_lines_as_they_are(self):
        """A report of a fault names lines of chapters, and a README that shows one has their text, or its beginning."""
        shown = [(path, *found) for path in readmes() for _, body in FENCE.findall(read(path))
                 for found in re.findall(r"(chapters/\w+/\w+\.cuh?):(\d+)   (\S.*)", body)]
        self.assertTrue(any(path == ROOT / "README.md" for path, *_ in shown))
        for path, file, number, text in shown:
            lines = read(ROOT / file).splitlines() if (ROOT / file).is_file() else []
            there = lines[int(number) - 1] if int(number) <= len(lines) else ""
            self.expect(text.removesuffix(" ...") in there, path, "shows", f"{file}:{number}", "not as it is:", there.strip())

    def test_nothing_is_left_to_do(self):
        for path in readmes():
            for number, line in enumerate(read(path).splitlines(), 1):
                self.expect("TODO" not in line, path, f"line {number}: {line.strip()}")

    def test_commands_exist(self):
        builds = "".join(read(ROOT / folder / "CMakeLists.txt") for folder in ("common/emu", "plots"))
        tools = set(re.findall(r"add_executable\((gg-\w+)", builds))
        known = tools | {chapter.name for chapter in chapters()}
        for path in readmes():
            for command in commands(read(path)):
                program, shown = Path(command[0]).name, " ".join(command)
                self.expect(program in known, path, "starts", program, "which there is not:", shown)
                options = [word for word in command[1:] if word.startswith("--")]
                text = help_of(program) if options and program in known else ""
                if not text:
                    continue  # nothing to look up, or not built
                for option in options:
                    self.expect(re.search(rf"^\s*{option}(\s|$)", text, re.M), path, "uses", option, "in", shown)
                for option, values in pairwise(command):
                    for value in values.split(",") if option == "--set" else []:
                        self.expect(re.search(rf"^  {value} ", text, re.M), path, "uses set", value, "in", shown)

    def test_python_programs_exist(self):
        for path in readmes():
            for module, file in re.findall(r"python3? (?:-B )?(?:-m ([\w.]+)|([\w./]+\.py))", read(path)):
                program = ROOT / (file or module.replace(".", "/") + ".py")
                self.expect(program.is_file() or (not module.startswith(("plots.", "tests.", "chapters.")) and "/" not in file),
                            path, "starts", file or module, "which there is not")

    def test_python_examples_run(self):
        """In a folder where `build` is the build tree, with whatever Python has NumPy. Without one: not tested."""
        python = os.environ.get("GG_NUMPY_PYTHON") or sys.executable
        if subprocess.run([python, "-B", "-c", "import numpy"], capture_output=True).returncode:
            self.assertNotEqual(os.environ.get("GG_FIGURES"), "ON", "NumPy comes with what draws the figures")
            self.skipTest("no NumPy")
        for path in readmes():
            for language, body in FENCE.findall(read(path)):
                programs = re.findall(r"build/bin/(\w+)", body)
                if language != "python" or not all((PROGRAMS / each).exists() for each in programs):
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    Path(folder, "build").symlink_to(PROGRAMS.parent.resolve())
                    done = subprocess.run([python, "-B", "-c", body], cwd=folder, capture_output=True, text=True, timeout=HANGS_S)
                    self.expect(done.returncode == 0, path, "shows Python that fails:", done.stderr[-400:])

    def test_presets_exist(self):
        presets = json.loads(read(ROOT / "CMakePresets.json"))
        kinds = {"--workflow": "workflowPresets", "--build": "buildPresets", "": "configurePresets"}
        for path in readmes():
            for kind, name in re.findall(r"cmake (--workflow|--build|) ?--preset (\w+)", read(path)):
                names = [preset["name"] for preset in presets[kinds[kind]]]
                self.expect(name in names, path, "uses the preset", name)


class Files(EveryCase):
    def test_every_file_names_its_licence(self):
        for path in files():
            here = path.relative_to(ROOT)
            if path.name in ("LICENSE", "names.txt") or path.suffix in (".json", ".npy", ".bin") \
                    or here.is_relative_to("plots/measure/data") or here.is_relative_to("plots/figures"):
                continue
            top = path.read_bytes()[:400].decode("utf-8", "replace").splitlines()[:3]
            self.expect(any("SPDX-License-Identifier: MIT" in line for line in top), path, "has no SPDX line")

    def test_no_program_begins_with_a_path_that_may_have_a_space(self):
        """The kernel ends such a first line's path at the space: what a test writes begins with /bin/sh."""
        for path in files():
            if path.suffix == ".py":
                self.expect("#!" + "{" not in read(path), path, "writes a program whose first line is a path of this machine")

    def test_no_file_knows_where_it_was_written(self):
        absolute = re.compile(rb"(?<![\w.}/~-])/(?:work|home|root|tmp)(?![\w.-])")
        for path in files():
            for number, line in enumerate(path.read_bytes().splitlines(), 1):
                self.expect(not absolute.search(line), path, f"line {number} has an absolute path:",
                            line.strip().decode("utf-8", "replace")[:80])


if __name__ == "__main__":
    unittest.main(verbosity=2)
