# SPDX-License-Identifier: MIT
"""Copies to each chapter the files that it takes unchanged from the chapter before it.

  python3 -B -m chapters.inherit REGISTRY WRITTEN     the target `inherit`

chapters/<id>/inherited.txt names those files. After an edit of one in the chapter that it comes from, every chapter behind gets it. A
copy that was edited itself, so that it is neither the last commit's nor what this tool wrote last, is not overwritten: the edit
belongs into the chapter that the file comes from, or the file out of the list.

A header that a chapter includes, and only its predecessor has, is named: inherited.txt is missing, or lacks it.

A later chapter may have a version of its own. It is named where it still has a line that an edit since the last commit took out of the
file: it may want the same edit, by hand.

REGISTRY: a line ID=PREDECESSOR for each chapter, which CMake writes. WRITTEN: a file in which this tool remembers what it wrote.
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

CHAPTERS = Path(__file__).resolve().parent


class Refused(Exception):
    """A list or a copy that is not as it must be; the message is one sentence."""


def inherited(folder: Path) -> list[str]:
    """The names in a chapter's inherited.txt; none without one."""
    path = folder / "inherited.txt"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return [line for line in lines if line and not line.startswith("#")]


def owner(name: str, chapter: str, before: dict[str, str], chapters: Path = CHAPTERS) -> str:
    """The chapter that a chapter's file comes from: itself, or one before it. `before`: each chapter's predecessor."""
    while name in inherited(chapters / chapter):
        chapter = before[chapter]
    return chapter


def is_edited(path: Path, written: dict[str, str]) -> bool:
    """Is the file neither the last commit's nor the one that this tool wrote last? `written`: digests of those, by path."""
    if written.get(str(path)) == digest(path.read_bytes()):
        return False
    done = subprocess.run(["git", "-C", path.parent, "diff", "--quiet", "HEAD", "--", path.name], capture_output=True)
    tracked = subprocess.run(["git", "-C", path.parent, "ls-files", "--error-unmatch", path.name], capture_output=True)
    return done.returncode != 0 or tracked.returncode != 0


def digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def copies(before: dict[str, str], chapters: Path = CHAPTERS) -> Iterator[tuple[Path, Path]]:
    """(file of the chapter before, its copy) for each name of each list, in order of the registry."""
    for chapter, previous in before.items():
        for name in inherited(chapters / chapter):
            if not previous:
                raise Refused(f"{chapter}/inherited.txt: the chapter has no AFTER in chapters/CMakeLists.txt to inherit from")
            original = chapters / previous / name
            if Path(name).name != name or (not original.is_file() and name not in inherited(chapters / previous)):
                raise Refused(f"{chapter}/inherited.txt: {previous} has no file {name}")
            yield original, chapters / chapter / name


def inherit(before: dict[str, str], memory: Path, chapters: Path = CHAPTERS) -> list[str]:
    """Makes each copy what its original is; returns a line for each that was not. Nothing is written if a copy is refused.
    `memory`: the file of what was written last."""
    written = json.loads(memory.read_text(encoding="utf-8")) if memory.is_file() else {}
    found = list(copies(before, chapters))
    texts: dict[Path, bytes] = {}
    for original, copy in found:  # an original may be a copy that is still to be written
        texts[copy] = texts[original] if original in texts else original.read_bytes()
    changed = [(original, copy) for original, copy in found if not copy.is_file() or copy.read_bytes() != texts[copy]]
    for _, copy in changed:
        if copy.is_file() and is_edited(copy, written):
            source = owner(copy.name, copy.parent.name, before, chapters)
            raise Refused(f"{copy.parent.name}/{copy.name} was edited, but comes from {source}: move the edit to "
                          f"chapters/{source}/{copy.name}, or take the name out of {copy.parent.name}/inherited.txt")
    for _, copy in changed:
        copy.write_bytes(texts[copy])
        written[str(copy)] = digest(texts[copy])
    memory.write_text(json.dumps(written, indent=1), encoding="utf-8")
    return [f"{copy.parent.name}/{copy.name}: as in {original.parent.name}" for original, copy in changed]


def descends(chapter: str, ancestor: str, before: dict[str, str]) -> bool:
    """Does a chapter come after another one, over any number of predecessors?"""
    while before[chapter]:
        chapter = before[chapter]
        if chapter == ancestor:
            return True
    return False


def taken_out(path: Path) -> list[str]:
    """The lines that the last commit's version of a file has and its text has not, without indentation; those with some words."""
    done = subprocess.run(["git", "-C", path.parent, "show", f"HEAD:./{path.name}"], capture_output=True, text=True)
    kept = {line.strip() for line in path.read_text(encoding="utf-8").splitlines()}
    lines = (line.strip() for line in done.stdout.splitlines())
    return [line for line in lines if line not in kept and len(line.split()) >= 3]


def left_behind(before: dict[str, str], chapters: Path = CHAPTERS) -> list[str]:
    """A sentence for each chapter whose own version of a file still has a line that an edit took out of an earlier version."""
    found = []
    for chapter in before:
        for path in sorted((chapters / chapter).glob("*.cuh")):
            gone = [] if path.name in inherited(chapters / chapter) else taken_out(path)
            for later in before if gone else ():
                own = chapters / later / path.name
                if not descends(later, chapter, before) or path.name in inherited(own.parent) or not own.is_file():
                    continue
                has = {line.strip() for line in own.read_text(encoding="utf-8").splitlines()}
                if still := [line for line in gone if line in has]:
                    found.append(f"{later}/{path.name} is its own and still has what was taken out of {chapter}'s: {still[0]}")
    return found


def unlisted(before: dict[str, str], chapters: Path = CHAPTERS) -> list[str]:
    """A sentence for each header that a chapter includes and has not, but its predecessor has."""
    found = []
    for chapter, previous in before.items():
        sources = sorted((chapters / chapter).glob("*.cu*")) if previous else []
        names = {name for path in sources for name in re.findall(r'(?m)^#include "(\w+\.cuh)"', path.read_text(encoding="utf-8"))}
        found += [f"{chapter} includes {name} and has no such file: name it in {chapter}/inherited.txt, to have {previous}'s"
                  for name in sorted(names) if not (chapters / chapter / name).is_file() and (chapters / previous / name).is_file()]
    return found


def registry(path: Path) -> dict[str, str]:
    """Each chapter's predecessor, "" for none, in order of reading, of a file that CMake wrote."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {chapter: previous for chapter, _, previous in (line.partition("=") for line in lines)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("registry", type=Path, metavar="REGISTRY")
    parser.add_argument("written", type=Path, metavar="WRITTEN")
    options = parser.parse_args()
    try:
        found = inherit(registry(options.registry), options.written)
    except Refused as error:
        print(f"inherit: {error}", file=sys.stderr)
        return 2
    print("\n".join(found) or "inherit: every copy is what it comes from")
    for sentence in unlisted(registry(options.registry)) + left_behind(registry(options.registry)):
        print(f"inherit: {sentence}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
