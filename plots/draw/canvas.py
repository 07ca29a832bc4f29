# SPDX-License-Identifier: MIT
"""What figures are drawn with: colours, axes, lines and their names."""

import math
from collections.abc import Callable
from itertools import pairwise
from types import ModuleType
from typing import TYPE_CHECKING

from plots.measure.chapters import Chapter
from plots.measure.files import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GREY, DARK, SHADE, PALE = "#6e7681", "#24292f", "#f3f4f6", "#c3c9d0"
PALETTE = ["#a8650f", "#0b7a69", "#1f62c9", "#7b3fb0", "#bf2c50"]
NAMES = 114  # points at the left of bars for the names of chapters


def colours_of(chapters: list[Chapter]) -> dict[str, str]:
    """Each chapter's colour, one for each part of the course."""
    parts = list(dict.fromkeys(chapter.part for chapter in chapters))
    return {chapter.id: PALETTE[parts.index(chapter.part) % len(PALETTE)] for chapter in chapters}


class NoData(Exception):
    """Why a figure cannot be drawn."""


def chapters_to_name(value: dict[str, float], colours: dict[str, str]) -> set[str]:
    """The few chapters that a figure of all names: the first and, of each part of the course, the one of most `value`."""
    best = {}
    for chapter in sorted(value):
        best[colours[chapter]] = max(best.get(colours[chapter], chapter), chapter, key=lambda each: (value[each], each))
    return {*sorted(value)[:1], *best.values()}


def line_style(chapter_id: str, to_name: set[str], colours: dict[str, str]) -> dict:
    """A line of its part's colour for a chapter that is named, a thin grey one for the others."""
    if chapter_id in to_name:
        return dict(color=colours[chapter_id], marker="o", lw=1.6, ms=6, mec="white", mew=0.6, zorder=3)
    return dict(color=PALE, marker="o", lw=0.8, ms=3, zorder=2)


def canvas(plt: ModuleType, title: str, below: str, width: float = 8, bars: int = 0, right: float = 150, top: float = 48,
           bottom: float = 62, panels: int = 1, left: float = 0) -> tuple["Figure", "Axes"]:
    """A figure with axes side by side, for so many bars if any; margins in points, so that they stay as it grows."""
    left, wide, high = (left or NAMES) if bars else 50, 72 * width, top + bottom + 15 * bars if bars else 324
    fig, axes = plt.subplots(1, panels, sharey=True, figsize=(width, high / 72))
    fig.subplots_adjust(left / wide, bottom / high, 1 - right / wide, 1 - top / high, wspace=0.12)
    x = 6 if bars else left
    fig.suptitle(title, x=x / wide, y=1 - 26 / high, ha="left", va="baseline")
    fig.text(x / wide, 1 - 43 / high, below, color=GREY)
    return fig, axes


def label_rows(ax: "Axes", names: list[str], left: float = 0) -> None:
    """Chapters, or what else a row is of, at the left of their bars, in order from the top; in so many points."""
    ax.set(ylim=(len(names) - 0.5, -0.5))
    ax.set_yticks(range(len(names)), [name.replace("_", " ") for name in names], ha="left")
    ax.tick_params(axis="y", length=0, pad=(left or NAMES) - 6)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.grid(axis="y", visible=False)


def three_digits(value: float) -> str:
    """Three digits, or a whole number."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def log2(ax: "Axes", ticks: list[float]) -> list[float]:
    ax.set_xscale("log", base=2)
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    return ticks


def curve(ax: "Axes", rows: list[Row], x: Callable[[Row], float], y: Callable[[Row], float], look: dict) -> list[Row]:
    """A line through rows in order of x, broken where a check failed."""
    rows = sorted(rows, key=x)
    ax.plot([x(row) for row in rows], [y(row) if row.timed else math.nan for row in rows],
            clip_on=False, **look)
    return rows


def label_ends(ax: "Axes", ends: list[tuple[float, float, str, str]], gap: float = 11.5) -> None:
    """Names, (x, y, text, colour) each, beside the axes where lines end, pushed apart until none overlaps."""
    point = 72 / ax.figure.dpi
    box = ax.get_window_extent()
    places = [ax.transData.transform((x, y)) * point for x, y, _, _ in ends]
    heights = [height for _, height in places]
    for _ in range(500):
        for low, high in pairwise(sorted(range(len(ends)), key=lambda i: places[i][1])):
            overlap = max(0, gap - (heights[high] - heights[low]))
            heights[low], heights[high] = heights[low] - overlap / 2, heights[high] + overlap / 2
        heights = [min(max(height, box.y0 * point + gap / 2), box.y1 * point + gap) for height in heights]
    for (x, y, text, ink), (across, up), height in zip(ends, places, heights):
        shift = box.x1 * point - across + 10, height - up
        leader = dict(arrowstyle="-", color=ink, lw=0.6, shrinkA=1, shrinkB=4, relpos=(0, 0.5))
        ax.annotate(text, (x, y), xytext=shift, textcoords="offset points", color=ink, va="center", size=8.5,
                    arrowprops=leader if abs(shift[1]) > 3 or shift[0] > 23 else None, annotation_clip=False)
