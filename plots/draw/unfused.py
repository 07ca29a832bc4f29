# SPDX-License-Identifier: MIT
"""The tables of an epilogue beside the unfused way: on Blackwell counted, chapter 08d's product and then a kernel for each
step (gg-unfused), and the two Hadamard transforms, made of plots/measure/data/said.csv, which recount.py writes; on
Hopper timed (gg-fused)."""

import re

from plots.draw.markdown import NONE, cell, peer_and_version, table
from plots.draw.results import OTHER_CHOICES, OTHER_WAYS, Data
from plots.measure.chapters import Chapter
from plots.measure.counts_ini import Unfused
from plots.measure.files import Row, Shape
from plots.measure.sets import problems

COLUMNS = ["instructions", "global_load_bytes", "global_store_bytes"]


def unfused_table(chapter: Chapter, about: Unfused, counted: dict[tuple[str, str], dict[str, int]]) -> str:
    """A chapter's table, from the counters of each run by chapter and name."""
    parts = [counted[about.product], *(counted["gg-unfused", name] for name in about.kernels)]
    # A launch that plans, one that multiplies, and one for each step.
    rows = [[f"{about.product[0]}, then {', '.join(f'`{name}`' for name in about.kernels)}", str(2 + len(about.kernels)),
             *(f"{sum(part[c] for part in parts):,}" for c in COLUMNS)],
            [chapter.id, "2", *(f"{counted[chapter.id, about.run][c]:,}" for c in COLUMNS)]]
    return table([about.title, "launches", *(f"`{c}`" for c in COLUMNS)], 1, rows)


def transforms_table(chapter: Chapter, transforms: dict[str, str], counted: dict[tuple[str, str], dict[str, int]]) -> str:
    """One more tile of 256x256: two tiles less one."""
    rows = []
    for choice, run in transforms.items():
        before = choice == "before"
        who, title = (chapter.previous, f"{chapter.previous}, without a transform") if before else (chapter.id, f"`--transform {choice}`")
        rows.append([title, *(f"{counted[who, run + '512'][c] - counted[who, run + '256'][c]:,}"
                              for c in ("instructions", "instructions_floating"))])
    return table(["instructions of warps, a tile", "all", "f32"], 1, rows)


def percent(part: Row | None, whole: Row | None) -> str:
    return f"{100 * (part.us_median / whole.us_median - 1):+.1f} %" if part and whole else NONE


def fused_rows(data: Data, chapter: Chapter) -> dict[str, dict[tuple[str, Shape], dict[str, Row]]]:
    """By device, that of most measurements first, then by set and shape: the rows of a chapter's launch, "", of the other
    ways and of libraries, all cold."""
    found = {}
    for row in sorted(data.fused, key=lambda row: row.device != data.device):
        if row.chapter == chapter.id and not row.warm and row.timed:
            found.setdefault(row.device, {}).setdefault((row.set, row.shape), {})[row.peer] = row
    whole = {device: {key: ways for key, ways in rows.items() if all(peer in ways for peer in ("", *OTHER_WAYS))}
             for device, rows in found.items()}
    return {device: rows for device, rows in whole.items() if rows}


def on_problem(data: Data, chapter: Chapter, name: str) -> dict[str, Row]:
    """The same for one problem as checks/counts.ini names it, as moe3, on the device that measured the chapter; nothing
    where it was not timed so. Chapters that pad groups have more rows in it."""
    listed, place = re.fullmatch(r"([a-z_]+?)(\d*)", name).groups() if re.fullmatch(r"[a-z_]+\d*", name) else ("", "")
    some = problems().get(listed, [])
    if not 0 < int(place or 1) <= len(some):
        return {}
    m, n, k = some[int(place or 1) - 1]
    return next((ways for (found, shape), ways in fused_rows(data, chapter).get(data.measured_on.get(chapter.id, data.device), {}).items()
                 if found == listed and (shape[0], *shape[3:]) == (len(m), n, k)), {})


def fused_tables(data: Data, chapter: Chapter) -> list[tuple[str, list[Row]]]:
    """For each device a chapter's launch, its product with kernels behind it, the product alone and libraries, cold; and
    the rows that it shows. Without libraries it has no columns for them."""
    return [fused_table(found) for found in fused_rows(data, chapter).values()] or [("Nothing is measured yet.", [])]


def fused_table(found: dict[tuple[str, Shape], dict[str, Row]]) -> tuple[str, list[Row]]:
    """That of one device."""
    there = {peer for ways in found.values() for peer in ways} - {"", *OTHER_WAYS}
    # Other chapters, which do the same in another way.
    chapters = {peer for peer in there if re.fullmatch(r"\d\d[a-z]?", peer)}
    beside = sorted(there - {*OTHER_CHOICES} - chapters)
    choices = {peer: OTHER_CHOICES.get(peer, peer) for peer in (*OTHER_CHOICES, *sorted(chapters)) if peer in there}
    lines, shown = [], []
    for (name, (groups, m_total, m_max, n, k)), ways in found.items():
        fused, unfused, product = (ways[peer] for peer in ("", *OTHER_WAYS))
        libraries, others = ([ways.get(peer) for peer in some] for some in (beside, choices))
        fastest = min((row for row in libraries if row), key=lambda row: row.us_median, default=None)
        shown += [row for row in (fused, *others, unfused, product, *libraries) if row]
        lines.append([f"`{name}`: G={groups}, M={m_total} (≤ {m_max}), N={n}, K={k}",
                      *(cell(row, "us_median") for row in (fused, *others, unfused, product, *libraries)),
                      percent(fused, unfused), percent(fused, product), *(percent(row, product) for row in others),
                      *([percent(fused, fastest)] if beside else [])])
    libraries = [f"{peer}, µs" for peer in beside]
    text = table(["set and shape", "fused, µs", *(f"{name}, µs" for name in choices.values()), "unfused, µs",
                  "product alone, µs", *libraries, "fused over unfused", "fused over product",
                  *(f"{name} over product" for name in choices.values()),
                  *(["fused over the fastest library"] if beside else [])], 1, lines) + "\n"
    if beside:
        versions = {peer_and_version(row): row for row in shown if row.peer in beside}
        text += f"\nLibraries: {', '.join(sorted(versions))}."
    return text, shown
