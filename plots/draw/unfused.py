# SPDX-License-Identifier: MIT
"""The tables of an epilogue beside the unfused way: on Blackwell counted, chapter 08d's product and then a kernel for each
step (gg-unfused), and the two Hadamard transforms, made of plots/measure/data/said.csv, which recount.py writes; on
Hopper timed (gg-fused)."""

from draw.markdown import NONE, named, table, value
from draw.results import OTHER_CHOICES, OTHER_WAYS
from measure.recount import UNFUSED

# A chapter's run in said.csv, the format of both, and what the table's first cell says.
RUNS = {"08e_epilogue": ("mxfp8", "mxfp8", "`mxfp8`, D bf16"),
         "08f_row_scales": ("scaled", "mxfp8", "`mxfp8`, D E4M3 with scales of rows"),
         "09a_quantized": ("scaled", "mxfp8", "`mxfp8`, D and D_col E4M3"),
         "09b_glu": ("nvfp4", "nvfp4", "`nvfp4`"), "09c_glu_hadamard": ("nvfp4", "nvfp4", "`nvfp4`")}
COLUMNS = ["instructions", "global_load_bytes", "global_store_bytes"]
TRANSFORMS = {"09b_glu, without a transform": ("09b_glu", "plain"),
              "`--transform tensor`": ("09c_glu_hadamard", "tensor"),
              "`--transform butterfly`": ("09c_glu_hadamard", "butterfly")}


def unfused_table(chapter, said):
    """A chapter's table, from the counters of each run by chapter and name."""
    names, (run, fmt, first) = UNFUSED[chapter], RUNS[chapter]
    parts = [said["08d_two_cta", fmt], *(said["gg-unfused", name] for name in names)]
    # A launch that plans, one that multiplies, and one for each step.
    rows = [[f"08d_two_cta, then {', '.join(f'`{name}`' for name in names)}", str(2 + len(names)),
             *(f"{sum(part[c] for part in parts):,}" for c in COLUMNS)],
            [chapter, "2", *(f"{said[chapter, run][c]:,}" for c in COLUMNS)]]
    return table([first, "launches", *(f"`{c}`" for c in COLUMNS)], 1, rows)


def transforms_table(said):
    """One more tile of 256x256: two tiles less one."""
    rows = [[who, *(f"{said[chapter, run + '512'][c] - said[chapter, run + '256'][c]:,}"
                    for c in ("instructions", "instructions_floating"))] for who, (chapter, run) in TRANSFORMS.items()]
    return table(["instructions of warps, a tile", "all", "f32"], 1, rows)


def percent(part, whole):
    return f"{100 * (part.us_median / whole.us_median - 1):+.1f} %" if part and whole else NONE


def fused_rows(data, chapter):
    """By device, that of most measurements first, then by set and shape: the rows of a chapter's launch, "", of the other
    ways and of libraries, all cold."""
    found = {}
    for row in sorted(data.fused, key=lambda row: row.device != data.device):
        if row.chapter == chapter.id and not row.warm and row.timed:
            found.setdefault(row.device, {}).setdefault((row.set, row.shape), {})[row.peer] = row
    whole = {device: {key: ways for key, ways in rows.items() if all(peer in ways for peer in ("", *OTHER_WAYS))}
             for device, rows in found.items()}
    return {device: rows for device, rows in whole.items() if rows}


def fused_tables(data, chapter):
    """For each device a chapter's launch, its product with kernels behind it, the product alone and libraries, cold; and
    the rows that it shows. Without libraries it has no columns for them."""
    return [fused_table(found) for found in fused_rows(data, chapter).values()] or [("Nothing is measured yet.", [])]


def fused_table(found):
    """That of one device."""
    there = {peer for ways in found.values() for peer in ways} - {"", *OTHER_WAYS}
    beside, choices = sorted(there - {*OTHER_CHOICES}), [peer for peer in OTHER_CHOICES if peer in there]
    lines, shown = [], []
    for (name, (groups, m_total, m_max, n, k)), ways in found.items():
        fused, unfused, product = (ways[peer] for peer in ("", *OTHER_WAYS))
        libraries, others = ([ways.get(peer) for peer in some] for some in (beside, choices))
        fastest = min((row for row in libraries if row), key=lambda row: row.us_median, default=None)
        shown += [row for row in (fused, *others, unfused, product, *libraries) if row]
        lines.append([f"`{name}`: G={groups}, M={m_total} (≤ {m_max}), N={n}, K={k}",
                      *(value(row, "us_median") for row in (fused, *others, unfused, product, *libraries)),
                      percent(fused, unfused), percent(fused, product), *(percent(row, product) for row in others),
                      *([percent(fused, fastest)] if beside else [])])
    libraries = [f"{peer}, µs" for peer in beside]
    text = table(["set and shape", "fused, µs", *(f"{OTHER_CHOICES[peer]}, µs" for peer in choices), "unfused, µs",
                  "product alone, µs", *libraries, "fused over unfused", "fused over product",
                  *(f"{OTHER_CHOICES[peer]} over product" for peer in choices),
                  *(["fused over the fastest library"] if beside else [])], 1, lines) + "\n"
    if beside:
        versions = {named(row): row for row in shown if row.peer in beside}
        text += f"\nLibraries: {', '.join(sorted(versions))}."
    return text, shown
