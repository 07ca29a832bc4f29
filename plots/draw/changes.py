# SPDX-License-Identifier: MIT
"""What git says of the chapters' code: how many lines a chapter changes, which files changed after a commit."""

import hashlib
import posixpath
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from plots.measure.files import DATA, SAME_PTX, SAME_PTX_COLUMNS, read_csv

NOT_COUNTED = {"README.md", "results.md", "WORKLOG.md", "inherited.txt", "main.cu"}
# Headers of what runs on the host alone: it measures kernels, says what went wrong and makes tensor
# maps. Their sources are not looked at, so neither they nor what they include ages a measurement;
# nor does main.cu, which says what is measured.
HARNESS = {"common/harness/harness.cuh", "common/kernel/check.h", "common/kernel/list.h",
           "common/kernel/tensor_map.h"}
# Files of common/ had other folders before its three doors.
MOVED = [(re.compile(r"common/harness\.cuh"), "common/harness/harness.cuh"),
         (re.compile(r"common/(?:base/)?((?:ptx/)?[\w.]+\.(?:h|cuh))"), r"common/kernel/\1")]
CODE = {".cu", ".cuh", ".h"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<[^>\n]+>)', re.M)
# What stands around definitions and says nothing by itself; what a header includes is read too.
AROUND = re.compile(INCLUDE.pattern + r"|^[ \t]*#[ \t]*pragma[ \t]+once|\bnamespace(?:[ \t]+[\w:]+)?[ \t]*\{", re.M)
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\')', re.S)

ASSERTION = re.compile(r"\b(?:static_assert|GG_REQUIRE)\s*\(")
END_OF_STATEMENT = re.compile(r"\s*;?")
BRACKET_OR_TEXT = re.compile(r'[()]|"(?:\\.|[^"\\])*"')
DEVICE = re.compile(r"\b__(?:device|global)__\b")
# As Config, which a launch reads too.
STRUCT_OF_CONSTANTS = re.compile(r"^(?:template<[^{]*>)?struct\b.*\bconstexpr\b")
NAME = re.compile(r"\b[A-Za-z_]\w*")
CONSTANTS = re.compile(r"(?:\bstatic )?\bconstexpr (?:[\w:]+ )+(\w+=[^;{}=]*(?:,\w+=[^;{}=]*)*);")
AT_COMMA = re.compile(r",(?=\w+=)")


def is_kernel(path: str) -> bool:
    return Path(path).suffix in CODE and posixpath.basename(path) != "main.cu"


def lines_changed(before: Path | None, chapter: Path) -> tuple[int, int]:
    """Lines added and removed from one chapter's folder to another's, or from none to it; whitespace is ignored.
    All of a folder counts but README.md, results.md, a worklog, inherited.txt, main.cu and what is in checks/."""
    command = "git diff --no-index --no-ext-diff --no-renames --diff-algorithm=myers --numstat -z -w --".split()
    with tempfile.TemporaryDirectory() as nothing:
        said = subprocess.run([*command, before or nothing, chapter], capture_output=True, text=True).stdout.split("\0")
    added = removed = 0
    # Each file that differs; a side that lacks it is /dev/null
    for numbers, old, new in zip(*3 * [iter(said)]):
        path = old if new == "/dev/null" else new
        name = posixpath.basename(path)
        if name not in NOT_COUNTED and not name.startswith(".") and posixpath.basename(posixpath.dirname(path)) != "checks":
            more, less, _ = numbers.split("\t")
            added, removed = added + int(more), removed + int(less)
    return added, removed


def without_assertions(text: str) -> str:
    """A source without its static_asserts and its refusals of bad input: no time depends on them."""
    kept, at = "", 0
    while found := ASSERTION.search(text, at):
        kept, at, depth = kept + text[at:found.start()], found.end(), 1
        while depth and (part := BRACKET_OR_TEXT.search(text, at)):
            at, depth = part.end(), depth + {"(": 1, ")": -1}.get(part[0], 0)
        at = END_OF_STATEMENT.match(text, at).end()
    return kept + text[at:]


@cache
def definitions(text: str) -> set[str]:
    """The functions, types and constants of a source, in any order, without comments and assertions and with blank
    space only where it parts words."""
    text = without_assertions(COMMENT_OR_TEXT.sub(lambda found: found[1] or " ", text))
    found, now, depth = set(), "", 0
    for word in re.findall(r'"(?:\\.|[^"\\])*"|[{};]|[^"{};]+|"', AROUND.sub(" ", text)):
        now += word
        depth = max(0, depth + (word == "{") - (word == "}"))
        if depth == 0 and word in "};":
            found.add(now)
            now = ""
    plain = {re.sub(r" (?=\W)|(?<=\W) ", "", " ".join(each.split())) for each in found | {now}}
    return plain - {"", "}", ";"}


def host_code(code: dict[str, set[str]]) -> dict[str, set[str]]:
    """What PTX says nothing of: a launch, its choice of a tile, and constants that it may read, each by itself with its
    value. Names but a definition's own are numbered in the order of their appearance, so that a name that was changed
    everywhere is no difference."""
    def numbered(definition):
        names = {name_of(definition): name_of(definition)}
        return NAME.sub(lambda name: names.setdefault(name[0], f"name{len(names)}"), definition)

    found, values = {}, {}
    for path, each in code.items():
        found[path] = set()
        for definition in each:
            if DEVICE.search(definition) and not STRUCT_OF_CONSTANTS.search(definition):
                continue
            owner = name_of(definition) if STRUCT_OF_CONSTANTS.search(definition) else ""
            for constant in CONSTANTS.finditer(definition):
                for name, value in (part.split("=", 1) for part in AT_COMMA.split(constant[1])):
                    values[path, owner, name] = value
            rest = CONSTANTS.sub("", definition)
            found[path] |= {numbered(rest)} if rest else set()
    plain = {name: value for (_, owner, name), value in values.items() if not owner}
    for (path, owner, name), value in values.items():
        known = plain | {each: text for (where, whose, each), text in values.items() if (where, whose) == (path, owner)}
        found[path].add(f"{owner}::{name}={evaluated(value, known)}")
    return found


def evaluated(value: str, known: dict[str, str]) -> str:
    """A constant's value as a number, if it is made of numbers and constants that are known, else its text."""
    for _ in range(9):  # a constant of constants of ..
        value = NAME.sub(lambda name: f"({known[name[0]]})" if name[0] in known else name[0], value)
    return str(eval(value.replace("/", "//"))) if re.fullmatch(r"[\d()+*/%<>-]+", value) else value


def name_of(definition: str) -> str:
    """What a function or type is called: the word before the first bracket."""
    found = re.match(r"(?:template<>)?[^({=;]*?(\w+)(?:<[^(){}]*>)?(?=[({=;\[]|$)", definition)
    return found[1] if found else definition


def current_path(path: str) -> str:
    """The path that a file of common/ has today."""
    return next((pattern.sub(new, path) for pattern, new in MOVED if pattern.fullmatch(path)), path)


def with_headers(paths: Iterable[str], read: Callable[[str], str | None]) -> dict[str, set[str]]:
    """The definitions in some files and in all headers of the repository that they include, by path."""
    found, ahead = {}, list(paths)
    while ahead:
        path = ahead.pop()
        text = None if path in found or current_path(path) in HARNESS else read(path)
        if text is not None:
            found[path] = definitions(text)
            for name in filter(None, INCLUDE.findall(text)):
                ahead += [posixpath.normpath(posixpath.join(posixpath.dirname(path), name)), name]
    return found


def used(code: dict[str, set[str]]) -> set[str]:
    """All that the chapters' files define, and of the others what that names, or what these name, and so on. A macro is
    always used, and so is what has no name."""
    found = {each for path, each_file in code.items() if path.startswith("chapters/") for each in each_file}
    rest = set().union(*code.values()) - found
    ahead = list(found) + [each for each in rest if "#" in each or name_of(each) == each]
    words = set()
    while ahead:
        found.update(ahead)
        words.update(word for each in ahead for word in NAME.findall(each))
        ahead = [each for each in rest - found if name_of(each) in words]
    return found


def fingerprint(code: dict[str, set[str]]) -> str:
    """Sixteen digits for all that a chapter's files use, in whichever files it stands."""
    return hashlib.sha256("\n".join(sorted(used(code))).encode()).hexdigest()[:16]


class History:
    """Which files of a kernel are no longer what they were at a commit."""

    def __init__(self, repo: Path) -> None:
        self.repo, self.known = Path(repo), {}
        self.texts = {}  # by commit what files_at gave: chapters share commits and headers
        self.lacking = set()  # commits that were asked for and that git does not have
        same = self.repo / DATA / SAME_PTX
        self.same_ptx = {tuple(row.values()) for row in (read_csv(same, SAME_PTX_COLUMNS) if same.exists() else [])}

    def git(self, *words: str) -> str | None:
        """What git prints, or None where it fails or is not there."""
        try:
            done = subprocess.run(["git", "-C", self.repo, *words], capture_output=True, encoding="utf-8")
        except OSError:
            return None
        return None if done.returncode else done.stdout

    def has(self, commit: str) -> bool:
        return bool(re.fullmatch(r"[0-9a-f]{7,40}", commit)) and self.git("cat-file", "-e", commit + "^{commit}") is not None

    def changed(self, chapter: str, commit: str) -> tuple[str, ...]:
        """The files that differ in code between a commit and the tree as it stands: paths in a tuple, those of the
        chapter's folder without it. What was moved is the same. What is new or gone in a header of common/ does not
        count, only what is another under its name: a kernel that uses the others has changed itself. Where
        same_ptx.py found that all is the same in PTX, only code of the host counts, and of it only what is another under
        its name."""
        if (chapter, commit) not in self.known:
            base = commit.removesuffix("-dirty")  # what else was in such a tree nobody knows
            if not self.has(base):
                self.lacking.add(base)
                return ()
            then, now, own = self.code_at(base, chapter), self.code_now(chapter), f"chapters/{chapter}/"
            if self.is_the_same_in_ptx(chapter, commit):
                then, now = host_code(then), host_code(now)
                # What is new or gone is used by nothing that stayed the same.
                names = [{name_of(each) for each in set().union(*code.values())} for code in (then, now)]
                then, now = ({path: {each for each in found if name_of(each) in names[0] & names[1]} for path, found in code.items()}
                             for code in (then, now))
            before, after = (set().union(*code.values()) for code in (then, now))
            another = {name_of(each) for each in before - after} & {name_of(each) for each in after - before}
            files = {current_path(path) for code, other in ((then, after), (now, before)) for path in code
                     if any(path.startswith(own) or name_of(each) in another for each in code[path] - other)}
            self.known[chapter, commit] = tuple(sorted(path.removeprefix(own) for path in files))
        return self.known[chapter, commit]

    def is_the_same_in_ptx(self, chapter: str, commit: str) -> bool:
        """Whether same_ptx.py found that."""
        return (chapter, self.fingerprint(chapter, commit), self.fingerprint(chapter)) in self.same_ptx

    def fingerprint(self, chapter: str, commit: str = "") -> str:
        """The fingerprint of a chapter's sources at a commit, or as they stand."""
        return fingerprint(self.code_at(commit.removesuffix("-dirty"), chapter) if commit else self.code_now(chapter))

    def code_at(self, commit: str, chapter: str) -> dict[str, set[str]]:
        if commit not in self.texts:
            self.texts[commit] = self.files_at(commit)
        files = self.texts[commit]
        return with_headers([path for path in files if posixpath.dirname(path) == f"chapters/{chapter}" and is_kernel(path)], files.get)

    def files_at(self, commit: str) -> dict[str, str]:
        """All that kernels are made of as it was at a commit: texts by path, in two runs of git."""
        entries = (each.partition("\t") for each in (self.git("ls-tree", "-r", "-z", commit) or "").split("\0"))
        blobs = {path: about.split()[2] for about, _, path in entries if path.startswith(("chapters/", "common/"))}
        done = subprocess.run(["git", "-C", self.repo, "cat-file", "--batch"], capture_output=True,
                              input="".join(f"{blob}\n" for blob in blobs.values()).encode())
        said, at, texts = done.stdout, 0, {}
        # For each a line with name, kind and size, its bytes and a line's end; or
        # name and "missing".
        for path in blobs:
            end = said.index(b"\n", at)
            words, at = said[at:end].split(), end + 1
            if len(words) == 3:
                texts[path] = said[at:at + int(words[2])].decode("utf-8", "replace")
                at += int(words[2]) + 1
        return texts

    def code_now(self, chapter: str) -> dict[str, set[str]]:
        def read(path):
            file = self.repo / path
            return file.read_text(encoding="utf-8") if file.is_file() else None

        names = [path.relative_to(self.repo).as_posix() for path in (self.repo / "chapters" / chapter).glob("*")]
        return with_headers([name for name in names if is_kernel(name)], read)


def changed_since_measured(measured: Iterable[tuple[str, str]], history: History, name_files: bool = True) -> list[str]:
    """A sentence for each commit after which kernels have changed, or their host code alone, of chapters and the commits
    that they were measured at. Where files are not named, nothing is said of host code."""
    found = {}
    for chapter, commit in sorted(dict.fromkeys(pair for pair in measured if pair[1]), key=lambda pair: pair[0]):
        files = history.changed(chapter, commit)
        if files:
            on_host = history.is_the_same_in_ptx(chapter, commit)
            if name_files or not on_host:
                found.setdefault((commit, files if name_files else (), on_host), []).append(chapter)
    return [("The kernel{} of {} {} changed since commit {}" if not on_host else
             "The kernel{} of {} {} not changed since commit {}, but host code has").format(
                 "s" if len(who) > 1 else "", " and ".join(filter(None, [", ".join(who[:-1]), who[-1]])),
                 "have" if len(who) > 1 else "has", short_commit(commit)) + f"{': ' * bool(files)}{', '.join(files)}."
            for (commit, files, on_host), who in found.items()]


def short_commit(commit: str) -> str:
    """Ten digits of a commit, and the -dirty of a tree that held changes besides."""
    return re.sub(r"^(\w{10})\w*", r"\1", commit)
