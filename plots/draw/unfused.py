# SPDX-License-Identifier: MIT
"""The tables of an epilogue beside the unfused way, chapter 08d's product and then a kernel for each step (gg-unfused),
and of the two Hadamard transforms: made of plots/measure/data/said.csv, which recount.py writes."""

from draw.markdown import table
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
