# SPDX-License-Identifier: MIT
"""The front page's milestones, and the problems of the ladder."""

import re

from plots.draw.markdown import NONE, cell, table
from plots.draw.measured import before_and_after, not_of_one_run
from plots.draw.results import Data, card
from plots.measure import sets
from plots.measure.files import Row, Shape

# The chapters that the front page shows; chapters/LADDER.md has all.
MILESTONES = "01 02 03 07a 07c 07d 07e 07f 07j 07l 07m 07p".split()


def cell_and_card(data: Data, row: Row | None, column: str) -> str:
    """A number, and the card where that is not the one of most."""
    return cell(row, column) + (f" ({card(row.device)})" if row and row.device != data.device else "")


def times_as_fast(before: Row, after: Row) -> str:
    """The ratio of two times; marked where they are of two runs, each with a clock of its own."""
    return "≈" * not_of_one_run(before, after) + f"{before.us_median / after.us_median:.2f}x" if before.timed and after.timed else NONE


def sizes(shape: Shape) -> str:
    """A problem in words."""
    groups, m_total, m_max, n, k = shape
    rows = f"{groups} experts of {m_max} rows" if groups * m_max == m_total else f"{m_total} rows over {groups} experts"
    return f"{rows}, N = {n}, K = {k}"


def milestones_table(data: Data) -> str:
    """Some chapters, for the front page: how many times as fast each is on its own problem, as which other, and its times on three
    problems. Before the first that only another card timed stands the last of this card, as that card timed it."""
    columns = {"prefill": "tflops", "skewed": "tflops", "decode": "us_median"}
    known = {}  # by set and device, the rows by chapter
    for name in columns:
        rows, inputs = data.of_set(name)
        for row in rows + data.from_other_devices(name, inputs):
            if not row.peer:
                known.setdefault((name, row.device), {})[row.chapter] = row
        for device in data.others:
            for row in data.on(device):
                if row.set == name and not row.peer and not row.variant and row.warm == (inputs == "warm"):
                    known.setdefault((name, device), {}).setdefault(row.chapter, row)

    def times(chapter, device):
        return [cell(known.get((name, device), {}).get(chapter.id), column) for name, column in columns.items()]

    lines, before_it, last_device = [], None, data.device
    for chapter in (chapter for chapter in data.chapters if chapter.id.split("_")[0] in MILESTONES):
        device = data.measured_on.get(chapter.id, data.device)
        where = f", {card(device)}" if device != data.device else ""
        if before_it and device != last_device and any(each != NONE for each in times(before_it, device)):
            lines.append([before_it.id + where, "", NONE, NONE, NONE, *times(before_it, device)])
        problem, gain, other = NONE, NONE, NONE
        if found := before_and_after(data, chapter):
            name, before, after = found
            problem = name if name.strip("`") in columns else sizes(after.shape)
            other = "two launches" if before.chapter == after.chapter else before.chapter.split("_")[0]
            gain = times_as_fast(before, after)
        lines.append([f"[{chapter.id}](chapters/{chapter.id}/README.md)" + where, chapter.title, problem, other, gain,
                      *times(chapter, device)])
        before_it, last_device = chapter, device
    return table(["chapter", "idea", "its own problem", "compared with", "times as fast", "`prefill`, TFLOP/s", "`skewed`, TFLOP/s",
                  "`decode`, µs"], 4, lines)


def problems_table(data: Data) -> str:
    """The problems of the ladder: those of its columns, of its chapters, and all of the set `peers`."""
    named = dict.fromkeys(["`prefill`", "`decode`"])
    for chapter in data.chapters:
        if found := before_and_after(data, chapter):
            named.setdefault(found[0].partition(",")[0])
    named = [name for name in named if name.startswith("`")] + [f"P{i + 1}" for i in range(len(sets.problems()["peers"]))]
    lines = []
    for name in named:
        of, place = re.fullmatch(r"`(\w+)`(?: no\. (\d+))?", name).groups() if name.startswith("`") else ("peers", name[1:])
        m, n, k = sets.problems()[of][int(place or 1) - 1]
        each = str(m[0]) if len(set(m)) == 1 else f"{min(m)} to {max(m)}"
        lines.append([name, str(len(m)), each, str(sum(m)), str(n), str(k)])
    return table(["problem", "experts", "rows of one", "rows in all", "N", "K"], 1, lines)
