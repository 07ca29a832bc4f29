# SPDX-License-Identifier: MIT
"""The front page's milestones, and the problems of the ladder."""

import re
from dataclasses import replace

from plots.draw.markdown import NONE, cell, table
from plots.draw.measured import before_and_after, not_of_one_run
from plots.draw.results import Data, card, run_of
from plots.measure import sets
from plots.measure.files import Row

# The chapters that the front page shows, each faster than the one before it on one of its three
# problems; chapters/LADDER.md has all.
MILESTONES = "01 02 03 07a 07d 07e 07f 07g 07l".split()


def cell_and_card(data: Data, row: Row | None, column: str) -> str:
    """A number, and the card where that is not the one of most."""
    return cell(row, column) + (f" ({card(row.device)})" if row and row.device != data.device else "")


def times_as_fast(before: Row, after: Row) -> str:
    """The ratio of two times; marked where they are of two runs, each with a clock of its own."""
    return "≈" * not_of_one_run(before, after) + f"{before.us_median / after.us_median:.2f}x" if before.timed and after.timed else NONE


def milestones_table(data: Data) -> str:
    """Some chapters on three problems, for the front page, as the card of the figures timed them. Below them what the last of them
    is compared with: the fastest call of cuBLAS in its run, and the roofs, each where it is the lower one."""
    columns = {"prefill": "tflops", "skewed": "tflops", "decode": "us_median"}
    rows = {name: [row for row in data.of_set(name)[0] if row.timed] for name in columns}
    ours = {name: {row.chapter: row for row in some if not row.peer} for name, some in rows.items()}

    def times(found):
        return [cell(found.get(name), column) for name, column in columns.items()]

    shown = [chapter for chapter in data.chapters if chapter.id.split("_")[0] in MILESTONES]
    lines = [[f"[{chapter.id}](chapters/{chapter.id}/README.md)", chapter.title,
              *times({name: some.get(chapter.id) for name, some in ours.items()})] for chapter in shown]
    last = max((chapter.id for chapter in shown if any(chapter.id in some for some in ours.values())), default="")
    own = {name: some[last] for name, some in ours.items() if last in some}
    calls = {name: [row for row in rows[name] if row.peer.startswith("cublas") and (row.chapter, run_of(row)) == (last, run_of(mine))]
             for name, mine in own.items()}
    fastest = {name: min(some, key=lambda row: row.us_median) for name, some in calls.items() if some}
    roof = {name: replace(row, tflops=row.roof_tflops, us_median=row.us_median * row.tflops / row.roof_tflops)
            for name, row in own.items() if row.roof_tflops}
    by_kind = {kind: {name: row for name, row in roof.items() if row.roof_kind == kind} for kind in ("matrix", "bandwidth")}
    for what, about, found in ((f"cuBLAS beside {last.split('_')[0]}", "the fastest of its calls", fastest),
                               ("ceiling: one large product", "by cuBLAS, 8192 in each direction", by_kind["matrix"]),
                               ("ceiling: one large copy", "the time that A, B and D would take at its rate", by_kind["bandwidth"])):
        if found:
            lines.append([what, about, *times(found)])
    return table(["chapter", "new", "`prefill`, TFLOP/s", "`skewed`, TFLOP/s", "`decode`, µs"], 2, lines)


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
