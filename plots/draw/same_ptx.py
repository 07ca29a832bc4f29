# SPDX-License-Identifier: MIT
"""Which kernels are in PTX what they were when they were timed, though their sources have changed: with other names,
comments in between, an assertion more.

  python3 -B -m plots.draw.same_ptx [--commit COMMIT] [CHAPTER ..]

For each chapter and each commit at which it was timed and after which its sources changed, compiles main.cu of both
trees to PTX with the nvcc of the build tree, and compares kernel by kernel, whatever names and labels are. Where all are
the same, a row of plots/measure/data/same_ptx.csv says so, and publish writes that a kernel has changed only if code of
the host has, which is not in PTX. Which of its configurations a chapter is compiled for is the host's, too: only those
that both trees have are compared. A row names the sources by their fingerprints (changes.py): it holds for them alone.
Exit code 1: some differ.
"""

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from plots.draw.changes import History
from plots.draw.results import in_their_own_names
from plots.measure.chapters import read_chapters
from plots.measure.files import DATA, SAME_PTX, SAME_PTX_COLUMNS, read_csv, read_rows, write_csv

REPO = Path(__file__).resolve().parents[2]


class NotCompiled(Exception):
    """A tree that nvcc refuses; the message is its first error."""


def kernels(ptx: str) -> Counter[str]:
    """The functions and variables of a PTX text, each with its own names numbered in the order of their appearance."""
    return Counter(map(normalised, functions(ptx)))


def functions(ptx: str) -> list[str]:
    text = re.sub(r"//[^\n]*|^\s*\.(loc|file)\b[^\n]*", "", ptx, flags=re.M)
    return re.split(r"(?m)^(?=\.(?:visible|weak|extern|global|func|entry|const)\b)", text)[1:]


def normalised(part: str) -> str:
    """A function without what a compiler numbers through: labels, and names that hold types."""
    names = {}
    part = re.sub(r"\$L__BB\d+_", "L", part)
    part = re.sub(r"\b\w*_Z\w+|\b_{2,}\w+|\b_\$\w+", lambda name: names.setdefault(name[0], f"name{len(names)}"), part)
    return "\n".join(line.strip() for line in part.splitlines() if line.strip())


def configurations(ptx: str) -> dict[str, str]:
    """Kernels whose template argument is a `Config`, by their mangled names without parameters, which hold its numbers."""
    found = (re.match(r"[^(]*?(_Z\w+?ConfigI\w+?EEEv)\w*\(", part) for part in functions(ptx))
    return {each[1]: normalised(each.string) for each in found if each}


def same_kernels(then: str, now: str) -> bool:
    """Whether two PTX texts have the same kernels, but for configurations that only one of them has."""
    if kernels(then) == kernels(now):
        return True
    one, other = configurations(then), configurations(now)
    both = one.keys() & other.keys()
    rest = [kernels(text) - Counter(some.values()) for text, some in ((then, one), (now, other))]
    return bool(both) and rest[0] == rest[1] and all(one[each] == other[each] for each in both)


def command_for(chapter: str) -> list[str]:
    """The command that compiles a chapter's main.cu in the build tree."""
    for entry in json.loads((REPO / "build" / "compile_commands.json").read_text(encoding="utf-8")):
        if f"/chapters/{chapter}/main.cu" in entry["file"]:
            words = shlex.split(entry["command"])
            return words[next(at for at, word in enumerate(words) if word.endswith("nvcc")):]
    raise NotCompiled(f"build/compile_commands.json has no {chapter}: configure all chapters first")


@cache
def ptx_of(chapter: str, tree: Path) -> str:
    words = command_for(chapter)
    arch = re.search(r"arch=(compute_\w+)", " ".join(words))[1]
    kept = [word for word in words if word.startswith(("-D", "-std", "-O", "-isystem", "--expt")) or word == words[0]]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "main.ptx"
        source = tree / "chapters" / chapter / "main.cu"
        done = subprocess.run([*kept, f"-I{tree}", f"-arch={arch}", "--ptx", "-x", "cu", source, "-o", out], capture_output=True, text=True)
        if done.returncode:
            raise NotCompiled(next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[:200]))
        return out.read_text(encoding="utf-8")


def changed_pairs(history: History, chapters: list[str], only: str) -> Iterator[tuple[str, str]]:
    """Chapters and commits, that begin with `only`, at which they were timed, of which publish would say that they have
    changed since."""
    # A chapter is timed as another's peer, too.
    rows = in_their_own_names(read_rows(REPO / DATA), read_chapters(REPO))
    timed = dict.fromkeys((row.chapter, row.commit) for row in rows if not row.peer and row.timed)
    for chapter, commit in sorted(timed):
        if (not chapters or chapter in chapters) and commit.startswith(only) and history.changed(chapter, commit):
            yield chapter, commit


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="the whole id; all where none is named")
    parser.add_argument("--commit", default="", help="at which they were timed; any where none is given")
    args = parser.parse_args()
    history, path, differ = History(REPO), REPO / DATA / SAME_PTX, 0
    rows = {tuple(row[column] for column in SAME_PTX_COLUMNS) for row in (read_csv(path, SAME_PTX_COLUMNS) if path.exists() else [])}
    for chapter, commit in changed_pairs(history, args.chapters, args.commit):
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder) / "then"
            subprocess.run(["git", "-C", REPO, "worktree", "add", "--quiet", "--detach", tree, commit], check=True)
            try:
                same = same_kernels(ptx_of(chapter, tree), ptx_of(chapter, REPO))
                print(f"{chapter}: in PTX {'what it was' if same else 'another than'} at {commit}", flush=True)
                differ += not same
                if same:
                    rows.add((chapter, history.fingerprint(chapter, commit), history.fingerprint(chapter)))
            except NotCompiled as error:
                print(f"{chapter}: not compared with {commit}: {error}", flush=True)
            finally:
                subprocess.run(["git", "-C", REPO, "worktree", "remove", "--force", tree], check=True)
    now = {chapter: history.fingerprint(chapter) for chapter in {row[0] for row in rows}}
    # A row of older sources would never be read again.
    write_csv(path, SAME_PTX_COLUMNS, (dict(zip(SAME_PTX_COLUMNS, row)) for row in sorted(rows) if row[2] == now[row[0]]))
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
