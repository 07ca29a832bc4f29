# SPDX-License-Identifier: MIT
"""Numbers in the READMEs' sentences, filled from committed data, and those that nothing fills.

A marked number is <!-- n: 07d.smoke.instructions - 07d.empty.instructions -->15,936<!-- /n -->: a sum, difference,
product or ratio of counts (chapter, run of said.csv or set of the emulator's counts, counter), of what a tile of
256x256 takes in costs.csv (chapter, tile_<format>, counter), and of times (chapter,
set and place of the problem in it, cold or warm, column, as 07c.peers2.cold.us_median; 07c@H200.peers2.cold.us_median is
of that card, and not of the one that the chapter's tables show). `as .1f` behind it says how it is written, otherwise it
is whole, with commas.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from plots.draw.results import Data, card
from plots.measure import sets
from plots.measure.costs import read_costs
from plots.measure.files import read_run_counts

MARKED = re.compile(r"<!-- n: ([^>]*?) -->(.*?)<!-- /n -->", re.S)
NAME = re.compile(r"\b(\d\d[a-z]?|gg-unfused)(?:@(\w+))?\.(\w+)(?:\.(cold|warm))?\.(\w+)")


class BadMark(Exception):
    """A mark that says nothing that can be computed; the message is one sentence."""


def counted(folder: Path) -> dict[tuple[str, str], dict[str, int]]:
    """Counters by chapter and run, of said.csv and costs.csv in a folder."""
    tiles = {(chapter, f"tile_{fmt}"): parts["tile"] for (chapter, fmt, tile, choice), parts
             in read_costs(folder / "costs.csv").items() if tile == "256x256" and not choice}
    return read_run_counts(folder / "said.csv") | tiles


class MarkedNumbers:
    """What names in a mark stand for."""

    def __init__(self, data: Data, counted: dict[tuple[str, str], dict[str, int]]) -> None:
        self.data, self.counted = data, counted
        self.ids = {each.id.split("_")[0]: each.id for each in data.chapters}

    def of(self, found: re.Match) -> str:
        who, on, run, warmth, column = found.groups()
        chapter = self.ids.get(who, who)
        if warmth:
            return repr(self.time(chapter, on, run, warmth == "warm", column))
        counters = self.counted.get((chapter, run)) or self.data.counts.get((chapter, run, "0:fair"))
        if not counters or column not in counters:
            raise BadMark(f"{found[0]}: no such count in plots/measure/data")
        return str(counters[column])

    def time(self, chapter: str, on: str | None, problem: str, warm: bool, column: str) -> float:
        name, place = re.fullmatch(r"([a-z_]+)(\d*)", problem).groups()
        rows, n, k = sets.problems()[name][int(place or 1) - 1]
        shape = len(rows), sum(rows), max(rows), n, k
        rows = [row for row in self.data.everywhere if card(row.device) == on] if on else \
            next((self.data.rows_of(each) for each in self.data.chapters if each.id == chapter), [])
        found = [row for row in rows if (row.chapter, row.set, row.shape, row.warm) == (chapter, name, shape, warm)
                 and not row.peer and not row.variant and row.timed]
        if not found:
            raise BadMark(f"{chapter} was not timed on {problem}" + (f" on an {on}" if on else ""))
        return getattr(found[-1], column)

    def text(self, mark: str) -> str:
        """What a mark's expression comes to, as a reader sees it."""
        expression, _, style = mark.partition(" as ")
        plain = NAME.sub(self.of, expression)
        if not re.fullmatch(r"[\d\s+*/().e-]+", plain):
            raise BadMark(f"{mark}: {plain} is no sum, difference, product or ratio of numbers")
        # Digits and operators only, as just seen.
        return format(eval(plain, {"__builtins__": {}}), style or ",.0f")

    def filled(self, text: str) -> str:
        """A README with all marked numbers as the data have them."""
        return MARKED.sub(lambda found: f"<!-- n: {found[1]} -->{self.text(found[1])}<!-- /n -->", text)


UNIT = r"(?:µs|us|ms|TFLOP/s|GB/s|TB/s|%|bytes|sectors|cycles|KB|MB|instructions|times)"
NUMBER = re.compile(rf"(?<![\w.`=×-])(\d{{1,3}}(?:,\d{{3}})+|\d{{4,}}|\d+(?:\.\d+)?(?=\s{UNIT}(?![\w/])))")
SECTIONS = ("Measured", "Counted", "What limits it now")


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """The lines of the sections with results, with their numbers, without tables, quotes, links and marked numbers.

    A paragraph that opens with **Predicted is no result: it is arithmetic from before the measurement, and stays as
    it was whatever the data say.
    """
    text = MARKED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    text = re.sub(r"(?s)<!-- (\w+) -->.*?<!-- /\1 -->|```.*?```|<!--.*?-->|`[^`]*`|\]\([^)]*\)",
                  lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    section, predicted = "", False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("## "):
            section = line[3:].strip()
        predicted = line.startswith("**Predicted") or (predicted and bool(line.strip()))
        if section in SECTIONS and not line.startswith(("## ", "|")) and not predicted:
            yield number, line


def unmarked(text: str) -> list[tuple[int, str]]:
    """Line and number of each that looks measured or counted and that nothing fills."""
    return [(number, found[1]) for number, line in sentences(text) for found in NUMBER.finditer(line)]
