# SPDX-License-Identifier: MIT
"""The figures of libraries beside a chapter: their rate over ours on each problem of a set."""

from types import ModuleType
from typing import TYPE_CHECKING

from plots.draw import measured
from plots.draw.canvas import DARK, PALETTE, NoData, canvas
from plots.draw.results import Data
from plots.measure.files import Choices, Row, Shape

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARKERS = "osD^vP*X"


def peers(plt: ModuleType, data: Data) -> tuple["Figure", list[Row]]:
    timed = [row for row in data.compared if (row.set, row.format, row.warm) == ("peers", "bf16", True)
             and row.timed and row.peer != "cublas_plain"]
    rows = [row for row in timed if not row.variant]
    last = max((row.chapter for row in rows if row.peer), default="")
    ours = {row.shape: row for row in rows if not row.peer and row.chapter == last}
    if not ours:
        raise NoData("no chapter was timed beside a library on set peers in bf16")
    alone = {row.shape: row for row in timed if row.variant == Choices(off="pdl") and row.chapter == last}
    after = ours.keys() <= alone.keys()
    if after:  # the stricter count: some libraries were tried with an early start too
        ours = {shape: alone[shape] for shape in ours}
    below = "their rate over ours, warm inputs, bf16; below 1 they are slower. M: rows of all groups" + \
        ". Ours starts when the launch before it has ended" * after
    return drawn(plt, data, below, ours, [row for row in rows if row.chapter == last and row.peer])


def gradients(plt: ModuleType, data: Data) -> tuple["Figure", list[Row]]:
    """Of a chapter that stores D as f32 unless it is told otherwise, with D of bf16, as most libraries have it alone."""
    timed = [row for chapter in data.chapters for row in data.rows_of(chapter) if row.chapter == chapter.id and row.timed
             and (row.set, row.format, row.warm) == ("wgrad", "bf16", False)]
    ours = {row.shape: row for row in timed if not row.peer and row.choices == Choices(d="bf16")}
    if not ours:
        raise NoData("no chapter was timed on set wgrad with D of bf16")
    below = "their rate over ours, cold inputs, D of bf16; below 1 they are slower. M: rows of all groups"
    return drawn(plt, data, below, ours, [row for row in timed if row.peer and not row.choices])


def drawn(plt: ModuleType, data: Data, below: str, ours: dict[Shape, Row], rows: list[Row]) -> tuple["Figure", list[Row]]:
    """Each library's rate over ours, problem after problem. `rows`: of libraries, beside the chapter of `ours`."""
    chapter = next(iter(ours.values())).chapter
    libraries = {}  # what cuBLAS is asked for in several ways is one library
    for row in rows:
        if row.shape in ours:
            best = libraries.setdefault(row.peer.split("_")[0], {})
            best[row.shape] = min(best.get(row.shape, row), row, key=lambda each: each.us_median)
    fig, ax = canvas(plt, f"Libraries beside {chapter}", below, width=11, bottom=110)
    ax.axhline(1, color=data.colours[chapter], lw=1.6)
    look = dict(ls="", ms=6, mec="white", mew=0.5, zorder=4)
    shades = [DARK, *PALETTE]
    rates = {name: [(i, ours[shape].us_median / found[shape].us_median) for i, shape in enumerate(ours)
                    if shape in found] for name, found in sorted(libraries.items())}
    for i, (name, found) in enumerate(rates.items()):
        aside = 0.14 * (i - (len(libraries) - 1) / 2)  # so that none hides another
        ax.plot([place + aside for place, _ in found], [rate for _, rate in found], marker=MARKERS[i % len(MARKERS)],
                color=shades[i % len(shades)], label=name, **look)
    names = ["\n".join(filter(None, [
        measured.p_number(row.set, shape), f"G={row.groups}", f"M={row.m_total}", f"N={row.n}", f"K={row.k}",
        "" if row.m_max * row.groups == row.m_total else "uneven"])) for shape, row in ours.items()]
    ax.set(xlim=(-0.5, len(names) - 0.5), ylabel="rate over ours",
           ylim=(0, 1.12 * max([1, *(rate for found in rates.values() for _, rate in found)])))
    ax.set_xticks(range(len(names)), names)
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    return fig, rows + list(ours.values())
