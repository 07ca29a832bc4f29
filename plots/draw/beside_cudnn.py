# SPDX-License-Identifier: MIT
"""The table of a chapter beside NVIDIA's kernels, made of plots/measure/data/cudnn.csv, which cudnn/compare.py writes."""

from plots.draw.markdown import table
from plots.measure.costs import MULTIPLY_ADDS

TILES = 8  # of 256x256 in the problem that was counted
KS = 2048, 7168
# The part of an epilogue until the next tile's products may begin: ours let go as soon as 64
# columns of 256 are in registers, theirs behind the first 32.
FIRST = {"ours": 0, "theirs": 1 / 8}


def tile_cycles(side: str, operands: str, epilogue: int, k: int) -> float:
    """Of a multiprocessor, for its half of a 256x256 tile: products wait for the first part of the epilogue before."""
    products = 128 * 256 * k / MULTIPLY_ADDS[operands]
    return max(products + FIRST[side] * epilogue, epilogue)


def beside_cudnn_table(configurations: dict[str, str], rows: list[dict[str, str]]) -> str:
    """`configurations`: those to show, and what their operands are, fp8 or fp4."""
    found = {}
    for row in rows:
        found.setdefault((row["configuration"], row["side"]), {})[row["name"]] = int(row["value"])

    def both(name, counter, tiles=1):
        return " / ".join(f"{found[name, side][counter] / tiles:,.0f}" for side in ("ours", "theirs"))

    head = ["ours / theirs, a tile", "machine instructions", "sectors stored", "bytes loaded", "cycles of the epilogue",
            *(f"a tile at K = {k}" for k in KS)]
    lines = []
    for name, operands in configurations.items():
        times = [{side: tile_cycles(side, operands, found[name, side]["epilogue_cycles"], k)
                  for side in ("ours", "theirs")} for k in KS]
        lines.append([
            name, both(name, "machine_instructions", TILES), both(name, "global_store_sectors", TILES),
            both(name, "global_load_bytes", TILES), both(name, "epilogue_cycles"),
            *(f"{each['ours'] / each['theirs']:.2f}" for each in times)])
    return table(head, 1, lines)
