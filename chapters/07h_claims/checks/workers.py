# SPDX-License-Identifier: MIT
"""The rows that each of 66 workers multiplies, of a problem of plots/measure/sets.py: where tiles are taken in turn, and where
they are claimed. Here a tile takes as long as it has rows, rounded up to steps of 32, and nothing else takes time.

  python3 -B -m chapters.07h_claims.checks.workers SET [PLACE]     PLACE: of the problem in its set, from 1 on
"""

import heapq
import sys

from plots.measure.sets import problems

WORKERS = 66


def widths(rows: int) -> list[int]:
    """The widths of the tiles in a column of a group with this number of rows."""
    steps, tiles = -(-rows // 32), -(-rows // 256)  # rounded up
    return [32 * (steps // tiles + (tile < steps % tiles)) for tile in range(tiles)]


def claimed(tiles: list[int]) -> list[int]:
    """The rows of each worker. Who begins a tile claims the next one; of two at once, the lower number is first."""
    ends = [0] * WORKERS
    begins = [(0, worker, worker) for worker in range(WORKERS)]  # when, the worker, the index of its tile
    claims = 0
    while begins:
        now, worker, index = heapq.heappop(begins)
        if index < len(tiles):
            ends[worker] = now + tiles[index]
            heapq.heappush(begins, (ends[worker], worker, WORKERS + claims))
            claims += 1
    return ends


def main() -> None:
    groups, n, _ = problems()[sys.argv[1]][int((sys.argv[2:] or ["1"])[0]) - 1]
    tiles = [width for rows in groups for width in -(-n // 256) * widths(rows)]  # by index
    print(f"{len(tiles)} tiles, {sum(tiles)} rows, {sum(tiles) / WORKERS:.0f} for a worker on average")
    for how, rows in ("in turn", [sum(tiles[worker::WORKERS]) for worker in range(WORKERS)]), ("claimed", claimed(tiles)):
        print(f"{how}: the least busy worker has {min(rows)} rows, the busiest {max(rows)}")


if __name__ == "__main__":
    main()
