# SPDX-License-Identifier: MIT
"""The rows that each of 66 workers multiplies where worker w takes tiles w, w + 66, w + 132 and so on: of a problem of
plots/measure/sets.py, with its groups cut as chapter 07f cuts them, and as chapter 07g does.

  python3 -B -m chapters.07g_even_tiles.checks.workers SET [PLACE]     PLACE: of the problem in its set, from 1 on
"""

import sys
from collections import Counter

from plots.measure.sets import problems

WORKERS = 66
# What a row costs more in a tile of this width than in one of 256, in %: the README has it measured.
MORE = {256: 0, 224: 0.4, 192: 0.3, 160: 1.7, 128: 6, 96: 27, 64: 76, 32: 224}


def widths(rows: int, alike: bool) -> list[int]:
    """The widths of the tiles in a column of a group with this number of rows; alike: as chapter 07g cuts it."""
    steps, tiles = -(-rows // 32), -(-rows // 256)  # rounded up
    if alike:
        return [32 * (steps // tiles + (tile < steps % tiles)) for tile in range(tiles)]
    return [32 * min(8, steps - 8 * tile) for tile in range(tiles)]


def main() -> None:
    groups, n, _ = problems()[sys.argv[1]][int((sys.argv[2:] or ["1"])[0]) - 1]
    columns = -(-n // 256)  # of tiles
    for chapter, alike in ("07f", False), ("07g", True):
        tiles = [width for rows in groups for width in columns * widths(rows, alike)]  # by index
        of_worker = [tiles[worker::WORKERS] for worker in range(WORKERS)]
        rows = [sum(each) for each in of_worker]
        even, odd = rows[::2], rows[1::2]
        print(f"{chapter}: {len(tiles)} tiles; rows of a worker: mean {sum(rows) / WORKERS:.0f}, "
              f"of even workers {sum(even) / len(even):.0f}, of odd ones {sum(odd) / len(odd):.0f}")
        for what, its_rows in ("busiest", max(rows)), ("least busy", min(rows)):
            worker = rows.index(its_rows)
            counts = sorted(Counter(of_worker[worker]).items(), reverse=True)
            text = " + ".join(f"{count} x {width}" for width, count in counts)
            print(f"  {what}: worker {worker}, {its_rows} rows = {text}")
        costs = [sum(width * (1 + MORE[width] / 100) for width in each) for each in of_worker]
        print(f"  busiest at the costs measured: worker {costs.index(max(costs))}, {max(costs):.0f} rows of width 256")


if __name__ == "__main__":
    main()
