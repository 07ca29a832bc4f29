# SPDX-License-Identifier: MIT
"""A chapter and those before it, each the predecessor of the next, and what the files of their checks/ say."""

import json
from pathlib import Path

CHAPTERS = Path(__file__).resolve().parent


def described(build: Path) -> dict[str, dict]:
    """What each chapter of a build tree says by --describe, by id, in order of reading."""
    return {each["id"]: each for each in json.loads((build / "chapters.json").read_text(encoding="utf-8"))["chapters"]}


def lineage(chapter: str, about: dict[str, dict]) -> list[str]:
    """The first chapter, its successor, and so on to this one."""
    line = [chapter]
    while about[line[0]]["previous"]:
        line.insert(0, about[line[0]]["previous"])
    return line


def descendants(chapter: str, about: dict[str, dict]) -> list[str]:
    """This chapter and all that come after it, whatever is between."""
    return [each for each in about if chapter in lineage(each, about)]


def is_whole(folder: Path) -> bool:
    """Whether a chapter launches kernels of several chapters (WHOLE in CMakeLists.txt): a layer, which is no product and has no
    place in tables of products."""
    return "gg::run_layer(" in (folder / "main.cu").read_text(encoding="utf-8")


def lines_of(chapter: str, name: str) -> list[str]:
    """The lines of a file in a chapter's checks/ but comments; none without it."""
    path = CHAPTERS / chapter / "checks" / name
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return [line for line in text.splitlines() if line and not line.startswith("#")]
