# SPDX-License-Identifier: MIT
"""The table of what a chapter was measured at, in its README and, whole, in its results.md."""

import math
import re
from dataclasses import replace

from plots.draw import unfused
from plots.draw.changes import short_commit
from plots.draw.markdown import cell, peer_and_version, table
from plots.draw.results import COMPARED_SETS, Data, in_turns, run_of
from plots.measure.chapters import Chapter
from plots.measure.counts_ini import count_plan
from plots.measure.files import Choices, Row, Shape
from plots.measure.sets import problems

# Chapters for Hopper and Blackwell, until one times them.
NOT_TIMED = "Checked on the emulator, not timed."
ORDER = ["prefill", "decode", "skewed", "helion", "peers"]  # then the others by name
DRAWN = ["step", "skew"]  # sets with a figure of their own: too many rows for a table
ROWS = 7  # of a table in a README; results.md has all


def type_of_d(row: Row, default_d: dict[str, str]) -> str:
    """Of a row: its own word for it, the inputs' type for a library, the chapter's default."""
    return row.choices.d or (row.format if row.peer else default_d.get(row.chapter) or row.format)


def table_order(problem: tuple[str, str, Shape]) -> tuple:
    """Where a problem stands in a chapter's table."""
    name, fmt, shape = problem
    return ORDER.index(name) if name in ORDER else len(ORDER), name, fmt != "bf16", fmt, str(shape)


def p_number(name: str, shape: Shape) -> str:
    """P1, P2 .. are the problems of the set `peers`, in its order; other problems have no such name."""
    peers = [(len(m), sum(m), max(m), n, k) for m, n, k in problems()["peers"]]
    return f"P{peers.index(shape) + 1}" if name == "peers" and shape in peers else ""


def words_for(name: str, shape: Shape) -> set[str]:
    """What a problem is called in checks/counts.ini: its set, its place in it, as moe9, and P1 .. of `peers`."""
    places = [(len(m), sum(m), max(m), n, k) for m, n, k in problems().get(name, [])]
    place = {f"{name}{places.index(shape) + 1}"} if shape in places else set()
    return {name, p_number(name, shape)} | place


def shown_first(timed: list[tuple[str, str, Shape]], names: list[str]) -> list[tuple[str, str, Shape]]:
    """Problems that were timed, as set, format and shape: first those that are named, as decode, moe9 or P8, then the others."""
    def at(problem):
        name, _, shape = problem
        return min((names.index(word) for word in words_for(name, shape) if word in names), default=len(names))
    return sorted(timed, key=at)


def chapter_table(data: Data, chapter: Chapter, everything: bool = False) -> tuple[str, list[Row]]:
    """Rows of the chapter, of its fastest variant, its predecessor and the libraries timed beside it. They stand side by
    side only if they are of one kind and one run: a label says where the type of D or the run is another. A README has
    ROWS rows at most, and of the libraries the fastest; `everything` is for results.md."""
    default_d, here = {each.id: each.d for each in data.chapters}, data.rows_of(chapter)
    mine = [row for row in here if row.chapter == chapter.id and row.set not in DRAWN]
    marked = chapter.readme.read_text(encoding="utf-8")
    # That table has the rows that are left out here.
    mine = [row for row in mine if row.set not in COMPARED_SETS or f"<!-- {row.set} -->" not in marked]
    if not mine:
        return "Nothing is measured yet." if chapter.arch == "sm_80" else NOT_TIMED, []
    names, main_run = count_plan(chapter.folder).problems, run_of(next((row for row in reversed(mine) if not row.variant.others), mine[-1]))

    def label(row):
        name = peer_and_version(row) if row.peer else row.chapter
        who = f"{name} {replace(row.variant, d='')}".rstrip()
        d = type_of_d(row, default_d)
        return who + (f", D {d}" if d != row.format else "") + \
            (f", of {row.date[:10]} at {short_commit(row.commit)}" if run_of(row) != main_run else "")

    lines, shown, there = [], [], []
    in_order = sorted({(row.set, row.format, row.shape) for row in mine}, key=table_order)
    for name, fmt, shape in in_order if everything else shown_first(in_order, names):
        groups, m_total, m_max, n, k = shape
        first = f"`{name}` {p_number(name, shape)}".rstrip() + f"{'' if fmt == 'bf16' else ' ' + fmt}: " \
                f"G={groups}, M={m_total} (≤ {m_max}), N={n}, K={k}"
        rows = [row for row in here if (row.set, row.format, row.shape) == (name, fmt, shape)]
        found = {(row.chapter, row.peer, row.variant, row.warm): row for row in rows}
        kernels = kernels_to_show(chapter, rows, found, fmt, default_d)
        if everything:
            shared = shared_choices(rows)
            kernels += [(chapter.id, *each) for each in sorted({(row.peer, row.variant) for row in rows if row.variant in shared}, key=str)]
        else:
            runs = {each: [found[(*each, warm)] for warm in (False, True) if (*each, warm) in found] for each in kernels}
            fastest = {}  # library for each type of D
            for each in kernels:
                took = min((row.us_median for row in runs[each] if row.timed), default=math.inf)
                if each[1] and took < fastest.get(each[2], (math.inf,))[0]:
                    fastest[each[2]] = took, each
            kept = {each for _, each in fastest.values()}
            kernels = [each for each in kernels if runs[each] and (not each[1] or each in kept)]
            if len(lines) + len(kernels) > ROWS:
                continue
        for who, peer, variant in kernels:
            cold, warm = (found.get((who, peer, variant, warm)) for warm in (False, True))
            some = [row for row in (cold, warm) if row]
            if some:
                shown += some
                there += library_time_ratios(found, chapter, some[0]) if who == chapter.previous else []
                lines.append([first, label(some[0]), cell(cold, "us_median"), cell(warm, "us_median"),
                              cell(cold, "tflops"), cell(warm, "tflops"),
                              cell(cold, "gbytes_per_s"), cell(cold, "% of roof")])
                first = ""
    head = ["set and shape", "kernel", "µs cold", "µs warm", "TFLOP/s cold", "TFLOP/s warm", "GB/s cold",
            "% of roof cold"]
    text = table(head, 2, lines) + "\n"
    if not everything:
        text += "\n[All problems, and libraries beside it](results.md#measured).\n"
    if not data.is_preview:
        text += how_timed(chapter, shown, there)
    return text, shown


def how_timed(chapter: Chapter, shown: list[Row], ratios: list[float]) -> str:
    """Whether the predecessor's times, if some are shown, are of the same rounds as the chapter's. `ratios`: of
    library_time_ratios."""
    pairs = [(before, own) for before in shown for own in shown if (before.chapter, own.chapter) == (chapter.previous, chapter.id)
             and not before.peer and not own.peer and (before.set, before.shape, before.warm) == (own.set, own.shape, own.warm)]
    alone = sorted({before.set for before, own in pairs if not in_turns(before, own)})
    if not alone:
        return f"\n{chapter.previous} and {chapter.id} were timed in turns, in the same rounds." if pairs else ""
    where = "" if len(alone) == len({before.set for before, _ in pairs}) else f" on {' and '.join(f'`{name}`' for name in alone)}"
    return f"\n{chapter.previous} was timed by its own program{where}, at the clock of its own rounds: " + \
        (f"libraries beside it took {percent_range(ratios)} of their time here." if ratios
         else "no library was timed beside both.")


def kernels_to_show(chapter: Chapter, rows: list[Row], found: dict[tuple[str, str, Choices, bool], Row], fmt: str,
                    default_d: dict[str, str]) -> list[tuple[str, str, Choices]]:
    """Chapter, peer and variant of each row that a chapter's table shows of one problem, where there is one."""
    ours = [row for row in rows if row.chapter == chapter.id and row.variant not in shared_choices(rows)]
    others = sorted((row for row in ours if row.variant and not row.variant.off and not row.variant.d and row.timed),
                    key=lambda row: row.us_median)
    # Rows of which D has the inputs' type stand beside those of which it has the chapter's.
    same = [(chapter.id, "", Choices(d=fmt))] if default_d.get(chapter.id) not in ("", fmt) else []
    before = Choices(d=default_d.get(chapter.id) or fmt)
    if not any((chapter.previous, "", before, warm) in found for warm in (False, True)):
        before = Choices()
    peers = sorted({row.peer for row in ours if row.peer})
    return [(chapter.id, "", Choices()), *((chapter.id, "", row.variant) for row in others[:1]),
            *((chapter.id, peer, Choices()) for peer in peers if same), *same, (chapter.previous, "", before),
            *((chapter.id, peer, same[0][2] if same else Choices()) for peer in peers)]


def shared_choices(rows: list[Row]) -> set[Choices]:
    """The choices that a chapter's kernel and libraries beside it share, such as accumulate: they are another operation than the
    chapter's own, and have rows of their own."""
    return {row.variant for row in rows if row.peer and row.variant.others}


def before_and_after(data: Data, chapter: Chapter) -> tuple[str, Row, Row] | None:
    """The problem that a chapter is about, which its README's table shows first, and the cold rows of its predecessor and its
    own there; with an epilogue that the predecessor has not, those of the product with kernels after it, in the same run. None
    where one was not timed."""
    names = count_plan(chapter.folder).problems
    if not names or not chapter.previous:
        return None
    before = next((each for each in data.chapters if each.id == chapter.previous), None)
    as_much = chapter.operator and before and before.operator == chapter.operator
    fused = {} if as_much else unfused.on_problem(data, chapter, names[0])
    if fused:
        before, after = fused["unfused"], fused[""]
    else:
        before, after = (next((row for row in data.rows_of(chapter) if row.chapter == who and not row.peer and not row.warm
                               and not row.variant and names[0] in words_for(row.set, row.shape)), None)
                         for who in (chapter.previous, chapter.id))
    if not before or not after:
        return None
    name = names[0] if re.fullmatch(r"P\d+", names[0]) else f"`{before.set}`"
    if place := re.fullmatch(r"[a-z_]+?(\d+)", names[0]):
        name += f" no. {place[1]}"
    return name + (", unfused" if fused else ""), before, after


def not_of_one_run(before: Row, after: Row) -> bool:
    """Whether two chapters were timed in different rounds, at different clocks. One chapter beside its unfused way was not."""
    return before.chapter != after.chapter and not in_turns(before, after)


def library_time_ratios(found: dict[tuple[str, str, Choices, bool], Row], chapter: Chapter, before: Row) -> list[float]:
    """What each library took beside the predecessor, whose row `before` is, of what it took beside ours: each in the
    run of that kernel, and with one type of D."""
    mine = found.get((chapter.id, "", Choices(), False))
    pairs = [(row, found.get((chapter.id, peer, Choices(), False))) for (who, peer, _, warm), row in found.items()
             if who == chapter.previous and peer and not warm]
    return [theirs.us_median / ours.us_median for theirs, ours in pairs
            if ours and mine and theirs.timed and ours.timed and run_of(theirs) == run_of(before)
            and run_of(ours) == run_of(mine) and type_of_d(theirs, {}) == type_of_d(ours, {})]


def percent_range(ratios: list[float]) -> str:
    low, high = (f"{100 * ratio:.0f}" for ratio in (min(ratios), max(ratios)))
    return f"{low} %" if low == high else f"{low} to {high} %"
