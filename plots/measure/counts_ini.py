# SPDX-License-Identifier: MIT
"""What the tools of plots/ count for one chapter, as its checks/counts.ini says: sections shown, runs, unfused, transforms,
cudnn and costs, each only where the lesson has use for it."""

import configparser
from dataclasses import dataclass, field
from pathlib import Path

from plots.measure.files import BadData


@dataclass(frozen=True)
class Unfused:
    """A fused epilogue beside the product and one kernel for each step."""
    title: str                # of the table's first column
    run: str                  # of the chapter, a name in `runs`
    product: tuple[str, str]  # the chapter without an epilogue, and its run
    kernels: list[str]        # of gg-unfused


@dataclass(frozen=True)
class Costs:
    """What the predicted costs of a slice and of a tile need to know."""
    tiles: list[tuple[str, str, str]]  # format, MxN, and words of other options
    two_accumulators: bool = False     # products wait for the first part of an epilogue alone
    storing_warps: int = 4             # of a block


@dataclass(frozen=True)
class CountPlan:
    # Shown first in the README's tables, in order: sets, moe9 for the ninth problem of `moe`, P1
    # for one of `peers`; counters.
    problems: list[str] = field(default_factory=list)
    counters: list[str] = field(default_factory=list)
    runs: dict[str, list[str]] = field(default_factory=dict)  # options by name
    unfused: Unfused | None = None
    # First part of a run's name by --transform; "before": the predecessor's
    transforms: dict[str, str] = field(default_factory=dict)
    # What the operands are, by configuration shown
    cudnn: dict[str, str] = field(default_factory=dict)
    costs: Costs | None = None


def options_of(text: configparser.SectionProxy, path: Path, *known: str) -> dict[str, str]:
    """A section's values; a key that nobody reads is an error."""
    unknown = set(text) - set(known)
    if unknown:
        raise BadData(f"{path}: [{text.name}] has {', '.join(sorted(unknown))}; known are {', '.join(known)}")
    return dict(text)


def count_plan(folder: Path) -> CountPlan:
    """What is counted for the chapter in this folder. Raises BadData."""
    path = Path(folder, "checks", "counts.ini")
    text = configparser.ConfigParser(interpolation=None, delimiters="=")
    text.optionxform = str  # names have capital letters
    try:
        text.read_string(path.read_text(encoding="utf-8") if path.is_file() else "", str(path))
        unknown = set(text.sections()) - {"shown", "runs", "unfused", "transforms", "cudnn", "costs"}
        if unknown:
            raise BadData(f"{path}: nothing reads a section {', '.join(sorted(unknown))}")
        unfused, costs = None, None
        if "unfused" in text:
            keys = options_of(text["unfused"], path, "title", "run", "product", "kernels")
            product, run = keys["product"].split()
            unfused = Unfused(keys["title"], keys["run"], (product, run), keys["kernels"].split())
        if "costs" in text:
            keys = options_of(text["costs"], path, "two_accumulators", "storing_warps", "tiles")
            tiles = [(fmt, tile, " ".join(choice)) for fmt, tile, *choice in map(str.split, keys["tiles"].strip().splitlines())]
            costs = Costs(tiles, text["costs"].getboolean("two_accumulators", False), text["costs"].getint("storing_warps", 4))
        runs = {name: words.split() for name, words in text["runs"].items()} if "runs" in text else {}
        transforms, cudnn = (dict(text[name]) if name in text else {} for name in ("transforms", "cudnn"))
        keys = options_of(text["shown"], path, "problems", "counters") if "shown" in text else {}
        shown = {name: [word.strip() for word in words.split(",")] for name, words in keys.items()}
        return CountPlan(**shown, runs=runs, unfused=unfused, transforms=transforms, cudnn=cudnn, costs=costs)
    except (configparser.Error, KeyError, ValueError) as error:
        raise BadData(f"{path}: {error}") from error
