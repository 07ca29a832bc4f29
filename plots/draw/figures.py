# SPDX-License-Identifier: MIT
"""A function for each figure: it takes matplotlib.pyplot and Data, and returns the figure and the rows or words that its
footer names. It raises NoData where there is nothing to draw."""

import math
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import groupby
from types import ModuleType
from typing import TYPE_CHECKING

from plots.draw import beside, layer, measured, results, unfused
from plots.draw.canvas import (
    DARK,
    GREY,
    NAMES,
    PALE,
    SHADE,
    NoData,
    canvas,
    chapters_to_name,
    curve,
    label_ends,
    label_rows,
    line_style,
    log2,
    three_digits,
)
from plots.draw.changes import short_commit
from plots.draw.results import Data
from plots.measure.chapters import Chapter
from plots.measure.files import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GAP = math.nan, math.nan  # between parts of a line that are drawn apart
DIAMOND = dict(ls="", marker="D", ms=6, mfc="white", mec=DARK, mew=1.2, zorder=5)
# Dense bf16 TFLOP/s and TB/s that the maker states, by the name the driver gives the device.
DATASHEET = {"NVIDIA H200": (989, 4.8), "NVIDIA H100 80GB HBM3": (989, 3.35),
             "NVIDIA A100-SXM4-80GB": (312, 2.04), "NVIDIA B200": (2250, 8.0)}
# How much faster the tensor cores of a B200 are than with bf16 (plots/measure/costs.py
# has the source).
TIMES_BF16 = {"bf16": 1, "mxfp8": 2, "mxfp8_e5m2": 2, "mxfp4": 4, "nvfp4": 4, "fp4_ue8m0_16": 4}


def all_figures(chapters: list[Chapter]) -> Iterator[tuple[str, Callable]]:
    """Name of each figure and the function that draws it."""
    yield "ladder", ladder
    for chapter in chapters:
        yield f"step_{chapter.id}", lambda plt, data, chapter=chapter: step(plt, data, chapter)
    yield "roofline", roofline
    yield "peers", beside.peers
    yield "gradients", beside.gradients
    yield "skew", skew
    yield "occupancy", occupancy
    yield "counts", counts
    yield "timeline", timeline
    yield "error", error
    yield "fused", fused
    yield "differences", layer.differences


def ladder(plt: ModuleType, data: Data) -> tuple["Figure", list[Row]]:
    rows, inputs = data.of_set("prefill")
    elsewhere = data.from_other_devices("prefill", inputs)
    extra = data.of_readers_run("prefill", inputs)
    own = {row.chapter: row for row in [*rows, *elsewhere] if not row.peer}
    known = {*own, *(row.chapter for row in extra)}
    names = [chapter.id for chapter in data.chapters if chapter.id in known]
    timed = [row.tflops for row in [*(own[name] for name in names if name in own), *extra] if row.timed]
    if not timed and not data.is_preview:
        raise NoData("no chapter was timed on set prefill in bf16")
    best = results.best_peer(rows)
    where = " on " + data.device.removeprefix("NVIDIA ") if elsewhere else ""
    roofs = [row.roof_tflops for row in rows if row.roof_tflops and row.format == "bf16"]
    lines = [(roofs[-1], f"measured roof {three_digits(roofs[-1])}{where}", "-")] if roofs else []
    lines += [(best.tflops, f"{best.peer} {three_digits(best.tflops)}{where}", "--")] if best else []
    if data.is_preview:
        lines.append((DATASHEET[data.device][0], f"data sheet {DATASHEET[data.device][0]}", ":"))

    known_chapters = [chapter for chapter in data.chapters if chapter.id in known]
    pairs = {} if data.is_preview else {chapter.id: measured.before_and_after(data, chapter) for chapter in known_chapters}
    gains = {name: (pair[0].replace("`", ""), pair[1].us_median / pair[2].us_median) for name, pair in pairs.items()
             if pair and pair[1].timed and pair[2].timed}
    on_own = {name: f"{times(ratio)} on {problem}" + ", other run" * measured.not_of_one_run(*pairs[name][1:])
              for name, (problem, ratio) in gains.items()}
    cells = [(*ladder_cells(chapter, own, elsewhere, names), on_own.get(chapter.id, "")) for chapter in known_chapters]
    heads = "TFLOP/s", "gain", "", "on its own problem" if gains else ""
    value, gain, about, own_gain = (5.6 * max(map(len, texts)) for texts in zip(heads, *cells))
    # Points from the axes to the value, the gain and the rest.
    columns = [value + 2, value + 10, value + gain + 14, value + gain + about + 22]
    # Gradients have no `prefill` that is like the others'.
    left_out = ranges([chapter for chapter in data.chapters if not chapter.product], known)
    note = textwrap.fill(f"not {'run there' if data.is_preview else 'timed yet'}: {left_out}", 100) if left_out else ""
    if others := ranges([chapter for chapter in data.chapters if chapter.product], set()):
        note += "\n" * bool(note) + f"not shown, as it is another product: {others}"
    fig, axes = canvas(plt, "What each chapter gains",
                     f"TFLOP/s on set prefill and the gain over the predecessor; {inputs} inputs, "
                     + ("bf16 unless named" if any(row.format != "bf16" for row in own.values()) else "bf16"),
                     bars=len(names), top=54 + 12 * len(lines), bottom=64 + 12 * len(note.splitlines()),
                     right=(columns[3] + own_gain if gains else columns[2] + about) + 4, **dict(width=13, panels=2) if gains else {})
    ax, last = axes if gains else (axes, axes)
    floor = 10 ** math.floor(math.log10(min(timed or [10]) / 1.5))
    ax.set(xscale="log", xlabel="TFLOP/s, log scale", xlim=(floor, 1.1 * max(timed + [x for x, _, _ in lines])))
    label_rows(ax, names)
    if gains:
        ratios = [ratio for _, ratio in gains.values()]
        last.set(xscale="log", xlabel="times as fast on its own problem, log scale", xlim=(min(0.5, *ratios) / 1.3, 1.3 * max(2, *ratios)))
        last.xaxis.set_major_formatter("{x:g}")
        last.xaxis.set_minor_formatter("")
        last.tick_params(axis="y", length=0)
        last.grid(axis="y", visible=False)
        last.axvline(1, color=DARK, lw=1.2, zorder=0.9)
    beside = dict(xycoords=("axes fraction", "data"), textcoords="offset points", va="center_baseline")
    for y, (name, texts) in enumerate(zip(names, cells)):
        if name in own and own[name].timed:
            ax.barh(y, own[name].tflops - floor, left=floor, height=0.74, color=data.colours[name])
        if name in gains:
            last.plot(gains[name][1], y, ls="", marker="o", ms=6, color=data.colours[name], zorder=3)
        for text, x, side, ink in zip(texts, columns, ("right", "left", "left", "left"), (DARK, DARK, GREY, DARK)):
            last.annotate(text, (1, y), xytext=(x, 0), ha=side, color=ink, **beside)
    for text, x, side in zip(heads, columns, ("right", "left", "left", "left")):
        if text:
            last.annotate(text, (1, -0.5), xytext=(x, 9), ha=side, color=GREY, **beside)
    for row in extra:
        ax.plot(row.tflops, names.index(row.chapter) + 0.2, **DIAMOND)
    # Each ends at its name, lower than the one right of it.
    for i, (x, text, dashes) in enumerate(sorted(lines)):
        ax.plot([x, x], [0, 1 + (14 + 12 * i) / (15 * len(names))], color=DARK, lw=1.2, ls=dashes, zorder=0.9,
                transform=ax.get_xaxis_transform(), clip_on=False)
        ax.annotate(text, (x, -0.5), xytext=(-4, 9 + 12 * i), textcoords="offset points", ha="right", va="center",
                    color=DARK)
    ax.annotate(note, (0, 0), (6 - NAMES, -40), xycoords="axes fraction", textcoords="offset points", va="top",
                color=GREY)
    return fig, rows + elsewhere + extra + [row for pair in pairs.values() if pair for row in pair[1:]]


def times(gain: float) -> str:
    """A ratio of two times, as a reader wants it."""
    return f"×{gain:.1f}" if gain >= 10 else f"×{gain:.2f}"


def ladder_cells(chapter: Chapter, own: dict[str, Row], elsewhere: list[Row], names: list[str]) -> tuple[str, str, str]:
    """What the ladder says beside a bar: the value, the gain over the predecessor, format and device if others."""
    row, before = own.get(chapter.id), own.get(chapter.previous)
    if not row:
        return "–", "", ""
    about = [row.format] * (row.format != "bf16") + [row.device.removeprefix("NVIDIA ")] * (row in elsewhere)
    words = []
    # On other devices there is none of the chapter.
    if before and row.timed and before.timed and row.device == before.device:
        gain = row.tflops / before.tflops
        words = [times(gain)] + ["slower"] * (gain < 0.995)
        if [chapter.previous] != names[:names.index(chapter.id)][-1:]:  # not the row above
            words[0] += " on " + chapter.previous.split("_")[0]
        words += ["other run"] * measured.not_of_one_run(before, row)
    value = three_digits(row.tflops) if row.timed else "?" if row.ok else "failed"
    return value, ", ".join(words), ", ".join(about)


def ranges(chapters: list[Chapter], known: set[str]) -> str:
    """The chapters that are not known as "07b to 07i, 08a to 09c": runs of one architecture, in order of reading."""
    runs = [[chapter.id.split("_")[0] for chapter in run]
            for (there, _), run in groupby(chapters, lambda chapter: (chapter.id in known, chapter.arch)) if not there]
    return ", ".join(" to ".join(dict.fromkeys([run[0], run[-1]])) for run in runs)


def step(plt: ModuleType, data: Data, chapter: Chapter) -> tuple["Figure", list[Row]]:
    rows, inputs = data.of_set("step", chapter)
    extra = [row for row in data.of_readers_run("step", inputs) if row.chapter == chapter.id]
    mine = [row for row in rows if not row.peer and row.chapter == chapter.id]
    before = [row for row in rows if not row.peer and row.chapter == chapter.previous]
    if not any(row.timed for row in mine + extra) and not (data.is_preview and mine):
        raise NoData(f"the chapter was not timed on set step in {chapter.format}")
    library = best_library(rows, chapter.id)
    curves = [(library, library and library[0].peer, dict(color=DARK, ls="--", lw=1.4)),
              (before, chapter.previous, dict(color=GREY, marker="o", ms=4)),
              (mine, chapter.id, dict(color=data.colours[chapter.id], marker="o"))]
    shown = library + before + mine + extra
    roof = sorted({row.m_max: row.roof_tflops for row in rows if row.roof_tflops}.items())
    sheet = [TIMES_BF16[chapter.format] * DATASHEET[data.device][0]] if data.is_preview else []
    top = 1.09 * max(sheet) if data.is_preview else 1.06 * max([y for _, y in roof] + [row.tflops for row in shown if row.timed])

    groups, _, _, n, k = shown[-1].shape
    fig, ax = canvas(plt, f"{chapter.id}: {chapter.title}",
                     f"{groups} equal groups, N = {n}, K = {k}; {inputs} inputs, {chapter.format}")
    ticks = log2(ax, sorted({row.m_max for row in shown}))
    ax.set(xlim=(ticks[0] / 1.2, ticks[-1] * 1.2), ylim=(0, top), xlabel="rows per group, log scale", ylabel="TFLOP/s")
    if max((row.tflops for row in mine + extra if row.timed), default=top) < top / 10:
        ax.set(yscale="log", ylim=(min(row.tflops for row in shown if row.timed) / 2, top), ylabel="TFLOP/s, log scale")
        ax.yaxis.set_major_formatter("{x:g}")
    if roof:
        ax.fill_between(*zip(*roof), top, color=SHADE, lw=0, zorder=0)
        ax.text(roof[0][0], top * 0.98, " above the measured roof", va="top", color=GREY)
    for rate in sheet:
        ax.axhline(rate, color=DARK, lw=1.2, ls=":", zorder=0.9)
        ax.text(ticks[0], rate, f" data sheet {rate}", va="bottom", color=GREY)
    ends = []
    for some, name, look in curves:
        some = curve(ax, some, lambda row: row.m_max, lambda row: row.tflops, look)
        ink, last = look["color"], [row for row in some if row.timed][-1:]
        ends += [(row.m_max, row.tflops, f"{name} {three_digits(row.tflops)}", ink) for row in last]
        for row in some:
            if not row.ok:
                ax.text(row.m_max, max(top * 0.06, ax.get_ylim()[0]), "failed", rotation=90, ha="center", va="bottom", color=ink)
    ax.plot([row.m_max for row in extra], [row.tflops for row in extra], **DIAMOND)
    label_ends(ax, ends)
    return fig, shown


def roofline(plt: ModuleType, data: Data) -> tuple["Figure", list[Row]]:
    found = {name: data.of_set(name) for name in ("decode", "skewed", "prefill")}
    dots = [row for rows, _ in found.values() for row in rows if row.intensity and not row.peer
            and row.format == "bf16"]  # another format has another roof
    extra = [row for name, (_, how) in found.items() for row in data.of_readers_run(name, how)]
    if not dots:
        raise NoData("no chapter was timed on set decode, skewed or prefill in bf16")
    inputs = " and ".join(sorted({how for rows, how in found.values() if rows}))
    # A row's roof is the smaller of rate and bandwidth * intensity. Each run measured both
    # anew: these are what most rows have.
    def usual(kind, value):
        return Counter(value(row) for row in dots if row.roof_tflops and row.roof_kind == kind).most_common(1)

    rates = usual("matrix", lambda row: row.roof_tflops)
    bandwidths = usual("bandwidth", lambda row: round(row.roof_tflops / row.intensity, 3))
    roofs = [("measured", "-", rates[0][0], bandwidths[0][0])] if rates and bandwidths else []
    roofs += [("data sheet", ":", *DATASHEET[data.device])] if data.device in DATASHEET else []
    left, right = min(row.intensity for row in dots) / 1.9, max(row.intensity for row in dots) * 1.2
    low = min(row.tflops for row in dots + extra) / 2.5
    high = 1.5 * max([row.tflops for row in dots + extra] + [rate for _, _, rate, _ in roofs])

    fig, ax = canvas(plt, "Every chapter under the roofs",
                     f"sets decode, skewed and prefill; {inputs} inputs, bf16")
    log2(ax, [2**e for e in range(math.ceil(math.log2(left)), math.floor(math.log2(right)) + 1)])
    ax.set(xlim=(left, right), ylim=(low, high), yscale="log", ylabel="TFLOP/s, log scale",
           xlabel="FLOP per byte of unavoidable traffic (A, B and D once each), log scale")
    ax.yaxis.set_major_formatter("{x:g}")
    ends = []
    for name, dashes, rate, bandwidth in roofs:
        xs = sorted({left, rate / bandwidth, right})
        ax.plot(xs, [min(rate, bandwidth * x) for x in xs], color=DARK, ls=dashes, lw=1.3)
        ends.append((right, rate, f"{name} {three_digits(rate)}, {bandwidth:.2g} TB/s", DARK))
    for name, x in {row.set: row.intensity for row in dots}.items():
        ax.axvline(x, color=GREY, lw=0.8, ls=(0, (1, 3)), zorder=0.5)
        ax.annotate(name, (x, low), xytext=(-5, 4), textcoords="offset points", ha="right", color=GREY)
    best = {chapter: max(row.tflops for row in dots if row.chapter == chapter and row.timed)
            for chapter in {row.chapter for row in dots if row.timed} & {each.id for each in data.chapters}}
    to_name = chapters_to_name(best, data.colours)
    for chapter in data.chapters:
        some = [row for row in dots if row.chapter == chapter.id]
        some = curve(ax, some, lambda row: row.intensity, lambda row: row.tflops, line_style(chapter.id, to_name, data.colours))
        ends += [(row.intensity, row.tflops, chapter.id, data.colours[chapter.id]) for row in some[-1:] if chapter.id in to_name]
    fastest = results.best_peer(found["prefill"][0])  # the one that the ladder has
    if fastest and fastest.intensity:
        ax.plot(fastest.intensity, fastest.tflops, ls="", marker="x", ms=7, mew=1.6, color=DARK, zorder=4)
        ends.append((fastest.intensity, fastest.tflops, fastest.peer, DARK))
        dots.append(fastest)
    ax.plot([row.intensity for row in extra], [row.tflops for row in extra], **DIAMOND)
    label_ends(ax, ends)
    return fig, dots + extra


def skew(plt: ModuleType, data: Data) -> tuple["Figure", list[Row]]:
    rows, inputs = data.of_set("skew")
    equal = {row.chapter: row.us_median for row in rows
             if row.timed and not row.peer and row.m_max * row.groups == row.m_total}
    rows = [row for row in rows if not row.peer and row.chapter in equal]
    if not rows:
        raise NoData("no chapter was timed on the equal groups of set skew")

    def ratio(row):
        return row.m_max * row.groups / row.m_total

    def slowdown(row):
        return row.us_median / equal[row.chapter]

    groups, m_total, _, n, k = rows[0].shape
    fig, ax = canvas(plt, "What uneven groups cost",
                     f"{m_total} rows in {groups} groups, N = {n}, K = {k}; {inputs} inputs, "
                     + ("each in its own format" if any(row.format != "bf16" for row in rows) else "bf16"))
    ticks = log2(ax, sorted({round(ratio(row), 1) for row in rows}))
    top = 1.1 * max(slowdown(row) for row in rows if row.timed)
    ax.set(xlim=(ticks[0] / 1.06, ticks[-1] * 1.06), ylim=(0, top),
           xlabel="rows of the largest group / mean rows, log scale", ylabel="time / time of equal groups")
    ax.axhline(1, color=DARK, lw=1)
    ends = []
    worst = {chapter: max(slowdown(row) for row in rows if row.chapter == chapter and row.timed) for chapter in equal}
    to_name = {*chapters_to_name({chapter: -cost for chapter, cost in worst.items()}, data.colours), max(worst, key=worst.get)}
    for chapter in data.chapters:
        some = curve(ax, [row for row in rows if row.chapter == chapter.id], ratio, slowdown, line_style(chapter.id, to_name, data.colours))
        ends += [(ratio(row), slowdown(row), chapter.id, data.colours[chapter.id]) for row in some
                 if row.timed and chapter.id in to_name][-1:]
    label_ends(ax, ends)
    return fig, rows


def occupancy(plt: ModuleType, data: Data | None) -> tuple["Figure", str]:
    fig, ax = canvas(plt, "What a tile of BM rows wastes",
                     "useful rows of a group of M rows: M / (BM · ⌈M / BM⌉)", right=14)
    log2(ax, [2**e for e in range(11)])
    ax.set(xlim=(1, 1024), ylim=(0, 108), xlabel="rows per group, log scale",
           ylabel="useful rows, % of computed rows")
    sizes = range(1, 1025)
    for bm, shade in ((64, "#69b5a9"), (128, "#0b7a69"), (256, "#07463d")):
        ax.plot(sizes, [100 * m / (math.ceil(m / bm) * bm) for m in sizes], color=shade, lw=1.4)
        ax.text(bm, 102, f"BM {bm}", ha="center", va="bottom", color=shade, weight="bold")
    return fig, "drawn from the formula, nothing measured"


def counts(plt: ModuleType, data: Data) -> tuple["Figure", str]:
    found = [results.smoke_counts(data.counts, chapter.id)[1] for chapter in data.chapters]
    if not any(found):
        raise NoData("no chapter was counted on set smoke in order 0:fair")

    def bytes_moved(c):
        return 32 * sum(c[f"global_{way}_sectors"] for way in ("load", "store", "atomic"))

    panels = [("global memory: bytes of\nthe 32-byte sectors\nthat warps touch", bytes_moved),
              ("shared memory: wavefronts\n(of them, what bank\nconflicts cost)", lambda c: c["shared_wavefronts"]),
              ("instructions of warps", lambda c: c["instructions"])]
    names = [chapter.id for chapter in data.chapters]
    fig, axes = canvas(plt, "What each chapter asks of the machine",
                       "counts for 1000 useful FLOP of its smoke set; log scales", bars=len(names), top=88, bottom=40,
                       right=14, panels=len(panels))
    for ax, (title, count) in zip(axes, panels):
        ax.annotate(title, (0, 1), (0, 5), xycoords="axes fraction", textcoords="offset points", va="bottom", color=GREY)
        values = [c and count(c) / kiloflop(c) for c in found]
        some = [value for value in values if value] or [1]
        # The room is right of the bars, for their numbers.
        floor, room = min(some) / 2, (2 * max(some) / min(some)) ** 0.6
        ax.set(xscale="log", xlim=(floor, max(some) * room))
        label_rows(ax, names)
        ax.minorticks_off()
        ax.grid(visible=False)
        for y, (c, value) in enumerate(zip(found, values)):
            ax.barh(y, max((value or 0) - floor, 0), left=floor, height=0.74, color=data.colours[names[y]])
            text = "not counted" if c is None else three_digits(value)
            if c and count is panels[1][1]:
                text += f" ({three_digits(c['shared_bank_conflicts'] / kiloflop(c))})"
            ax.annotate(text, (max(value or 0, floor), y), xytext=(3, 0), textcoords="offset points",
                        va="center_baseline", color=GREY if c is None else DARK)
    return fig, "counted by the emulator in order 0:fair, the same on every machine; no GPU has a part in it"


def timeline(plt: ModuleType, data: Data) -> tuple["Figure", str]:
    tiles = data.timeline
    if not tiles:
        raise NoData("no launch was stamped; plots/measure/timeline/timeline.py stamps one on a Hopper GPU")
    lanes = sorted({tile.sm for tile in tiles})
    end = max(tile.end_ns for tile in tiles) / 1000
    waited = sum(tile.waited_ns for tile in tiles) / sum(tile.end_ns - tile.begin_ns for tile in tiles)
    fig, ax = canvas(plt, f"One launch of {tiles[0].chapter} on set {tiles[0].set}",
                     f"a bar is a tile, its dark part the time in which its products wait for slices: {100 * waited:.1f} % "
                     "of all", right=14, width=11)
    # Bars in two shades, in which tiles of one multiprocessor take turns, and their waits.
    before, bars = {}, ([], [], [])
    for tile in tiles:
        y, before[tile.sm] = lanes.index(tile.sm), before.get(tile.sm, -1) + 1
        bars[before[tile.sm] % 2].append((y, tile.begin_ns, tile.end_ns))
        bars[2].append((y, tile.begin_ns, tile.begin_ns + tile.waited_ns))
    lw = ax.get_window_extent().height * 72 / fig.dpi / len(lanes)
    for some, shade, alpha in zip(bars, (data.colours[tiles[0].chapter], data.colours[tiles[0].chapter], DARK), (0.9, 0.6, 1)):
        ends = [point for y, begin, end_ns in some for point in ((begin / 1000, y), (end_ns / 1000, y), GAP)]
        # One line, as a mark for each is long.
        ax.plot(*zip(*ends), color=shade, alpha=alpha, lw=lw, solid_capstyle="butt")
    ax.set(xlim=(0, end * 1.005), ylim=(len(lanes) - 0.5, -0.5), xlabel="microseconds from the first tile's begin",
           ylabel="multiprocessors")
    ax.set_yticks(range(0, len(lanes), 16))
    ax.grid(axis="y", visible=False)
    row = tiles[0]
    return fig, (f"{row.device} · {row.clock_mhz} MHz · CUDA {row.cuda} · {row.date[:10]} · commit {short_commit(row.commit)} · "
                 "stamps of the global timer, of each block's first consumer")


def error(plt: ModuleType, data: Data) -> tuple["Figure", str]:
    if not data.errors:
        raise NoData("no errors were counted; plots/measure/errors.py counts them on the emulator")
    found = {}
    for row in data.errors:
        found.setdefault((row.chapter, row.format), {}).setdefault(row.against, {})[row.log2_low] = row.count
    one = data.errors[0]
    fig, axes = canvas(plt, "What a product is off by in bf16, MXFP8 and NVFP4",
                       f"M = {one.m}, N = {one.n}, K = {one.k}, normal numbers; error of D over the limit of the check, log "
                       "scale", width=11, right=14, top=84, bottom=84, panels=len(found))
    kinds = {"quantised": (DARK, "against the product of the quantised numbers, which the check judges"),
             "drawn": (PALE, "against the product of the numbers before they were quantised")}
    for ax, ((chapter, form), counts) in zip(axes, found.items()):
        for against, (shade, label) in kinds.items():
            lows = sorted(low for low in counts[against] if -9 <= low < 13)  # the axis
            ax.bar([2**low for low in lows], [counts[against][low] for low in lows], align="edge",
                   width=[2**low * (2**0.25 - 1) for low in lows], color=shade, alpha=0.85, label=label)
        log2(ax, ticks := [2**e for e in range(-8, 13, 4)])
        ax.set_xticks(ticks, [f"{tick:g}" if tick >= 1 else f"1/{1 / tick:g}" for tick in ticks])
        ax.set(xlim=(2**-9, 2**13), xlabel="error / limit")
        ax.axvline(1, color=DARK, lw=0.8, ls=":")
        ax.annotate(f"{form}, {chapter}\nmedian of the pale ones: {three_digits(2**median(counts['drawn']))} limits",
                    (0, 1), (0, 5), xycoords="axes fraction", textcoords="offset points", va="bottom",
                    color=data.colours[chapter])
    axes[0].set_ylabel("elements of D")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="lower right", frameon=False)
    return fig, "computed on the emulator and checked; no GPU has a part in it"


def median(counts: dict[float, float]) -> float:
    """The class, by the logarithm of where it begins, up to which half of all are."""
    half, total = 0, sum(counts.values())
    for low in sorted(counts):
        half += counts[low]
        if 2 * half >= total:
            return low
    return 0


def kiloflop(counters: dict[str, int]) -> float:
    return counters["useful_multiply_adds"] / 500


def best_library(rows: list[Row], chapter_id: str) -> list[Row]:
    """One library's rows, of this chapter's run if it has any: whose cover most, then the fastest."""
    peers = [row for row in rows if row.peer and row.timed]
    by_name = {}
    for row in [row for row in peers if row.chapter == chapter_id] or peers:
        by_name.setdefault(row.peer, {})[row.shape] = row

    def rank(some):
        return len(some), math.prod(row.tflops for row in some.values())

    return list(max(by_name.values(), key=rank, default={}).values())


def fused(plt: ModuleType, data: Data) -> tuple["Figure", list[Row]]:
    """What an epilogue takes beside the product alone: in its registers, and as kernels behind it."""
    found = {chapter.id: next(iter(rows.values())) for chapter in data.chapters
             if (rows := unfused.fused_rows(data, chapter))}
    if not found:
        raise NoData("gg-fused has timed no chapter")
    problems = list(dict.fromkeys(key for rows in found.values() for key in rows))
    names = [f"{name}: {shape[1]} rows, N={shape[3]}, K={shape[4]}" for name, shape in problems]
    fig, axes = canvas(plt, "What an epilogue costs behind a product",
                       "time in % of the product's alone, cold: hollow as kernels of their own, full in the same launch, "
                       "with the quicker transform where it has two",
                       bars=len(names), width=max(11, 1.8 * len(found) + 2.6), right=20, top=66, panels=len(found), left=190)
    shown = []
    for ax, (chapter, rows) in zip(axes if len(found) > 1 else [axes], found.items()):
        label_rows(ax, names, 190)
        device = next(iter(rows.values()))["product"].device
        ax.set(xlabel=f"{chapter.split('_')[0]} on {results.card(device)}, %")
        ax.axvline(100, color=DARK, lw=1.2)
        for y, key in enumerate(problems):
            if key not in rows:
                continue
            ways = rows[key]
            launch = min((way for way in ("", *results.OTHER_CHOICES) if way in ways), key=lambda way: ways[way].us_median)
            ours, kernels = (100 * ways[way].us_median / ways["product"].us_median for way in (launch, "unfused"))
            ax.plot([ours, kernels], [y, y], color=PALE, lw=2, zorder=1)
            ax.plot(kernels, y, ls="", marker="o", ms=7, mfc="white", mec=data.colours[chapter], mew=1.4)
            ax.plot(ours, y, ls="", marker="o", ms=7, color=data.colours[chapter])
            shown += [ways[way] for way in (launch, "unfused", "product")]
    return fig, shown
