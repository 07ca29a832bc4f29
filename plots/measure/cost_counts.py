# SPDX-License-Identifier: MIT
"""Counts what a slice and a tile of the chapters for Blackwell take, on the emulator.

  python3 -B -m plots.measure.cost_counts [--build DIR] [--fetch | --compare [--sample]]

Each chapter runs on four problems, of one and of two columns of tiles and of 16 and of 32 slices; the differences of
their counts are those of a slice and of a tile. What the launch takes besides cancels. A slice is 128 bytes of each
row of A and B; a tile's instructions are those that its slices do not have: the epilogue and the search for the tile.
They are PTX of warps, of which ptxas makes machine code. How many cycles a storing warp takes for its part of a tile
comes from that: machine_code/ has the model, what it assumes, and how wrong it was on a Hopper.

Writes plots/measure/data/costs.csv, of which `publish` makes the tables of predicted costs. --fetch gets what reads machine code
from PyPI first. --compare writes nothing and ends with 1 if bytes or multiply-adds differ from those that are there;
instructions and cycles depend on the compiler.
--sample takes one variant of every third chapter, others when a kernel changes: `check` has time for that.
"""

import argparse
import subprocess
import sys
import tempfile
import zlib
from dataclasses import replace
from pathlib import Path

from plots.measure.chapters import read_chapters
from plots.measure.costs import read_costs, slice_k
from plots.measure.counts_ini import Costs, count_plan
from plots.measure.files import COST_COLUMNS, DATA, BadData, read_counts, write_csv
from plots.measure.machine_code import cycles

REPO = Path(__file__).resolve().parents[2]
LIMIT_S = 300  # for one run
COUNTERS = "multiply_adds global_load_bytes shared_load_bytes global_store_bytes instructions".split()
TILES = 16  # of the run that gives cycles: what a warp does beside them counts little
SLICES = 16, 32  # more than a ring of stages has: what fills it cancels


class Failed(Exception):
    """A run that did not do what it should."""


def command_of(program: Path, fmt: str, tile: str, choice: str, m: int, n: int, k: int) -> list[str]:
    """What runs one launch of one group."""
    words = [program, "--device", "emu", "--bench", "--tile", tile, "--m", m, "--n", n, "--k", k,
             *([] if fmt == "bf16" else ["--format", fmt]), *choice.split()]
    return [str(word) for word in words]


def costed(file: Path | None = None) -> dict[str, Costs]:
    """The chapters whose checks/counts.ini asks for predicted costs, in order of reading. `file`: a chapters.json."""
    found = {chapter.id: count_plan(chapter.folder).costs for chapter in read_chapters(REPO, file)}
    return {chapter: about for chapter, about in found.items() if about}


def epilogue_cycles(build: Path, program: Path, storing_warps: int, fmt: str, tile: str, choice: str) -> int:
    """Cycles from the first to the last load of a tile's sums, by the model of the machine code of the loop over tiles."""
    tile_m, tile_n = map(int, tile.split("x"))
    command = command_of(program, fmt, tile, choice, TILES * tile_m, tile_n, 4 * slice_k(fmt))
    kernels = cycles.kernels(build, command, multiprocessors=2, sharing=4).values()
    longest = cycles.epilogue(kernels, TILES * tile_m // 32, storing_warps // 4)
    if not longest:
        raise Failed(f"{' '.join(command)}: no loop of its machine code loads from tensor memory")
    return longest


def count(program: Path, fmt: str, tile: str, choice: str, n: int, k: int) -> dict[str, int]:
    """The counters of one launch: one group of 256 rows."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "counts.csv"
        command = [*command_of(program, fmt, tile, choice, 256, n, k), "--counts-csv", str(table)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", timeout=LIMIT_S)
        if done.returncode:
            raise Failed(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}")
        return next(iter(read_counts(folder).values()))


def slice_and_tile(program: Path, fmt: str, tile: str, choice: str = "") -> dict[str, dict[str, int]]:
    """What one slice and what one tile takes beyond its slices, of all blocks that share the tile."""
    tile_m, tile_n = map(int, tile.split("x"))
    few, many = SLICES
    rows_of_tiles, found = 256 // tile_m, {"slice": {}, "tile": {}}
    counts = {(columns, slices): count(program, fmt, tile, choice, columns * tile_n, slices * slice_k(fmt))
               for columns in (1, 2) for slices in SLICES}
    for name in COUNTERS:
        # All is (rest + tiles (tile + slices slice)), so that columns and slices each differ by
        # what one more takes.
        added = {slices: counts[2, slices].get(name, 0) - counts[1, slices].get(name, 0) for slices in SLICES}
        each = (added[many] - added[few]) / (many - few) / rows_of_tiles
        found["slice"][name] = round(each)
        found["tile"][name] = round(added[many] / rows_of_tiles - many * each)
    return found


def sampled(chapters: dict[str, Costs]) -> dict[str, Costs]:
    """One variant of every third chapter; other ones when a kernel changes."""
    text = b"".join(path.read_bytes() for chapter in chapters for path in sorted((REPO / "chapters" / chapter).glob("*.cuh")))
    turn = zlib.crc32(text)
    return {chapter: replace(about, tiles=[about.tiles[turn % len(about.tiles)]])
            for at, (chapter, about) in enumerate(chapters.items()) if (at + turn) % 3 == 0}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=REPO / "build", help="the build tree")
    parser.add_argument("--fetch", action="store_true", help="cuobjdump and nvdisasm from PyPI into the build tree first")
    parser.add_argument("--compare", action="store_true", help="with what is there, instead of writing it")
    parser.add_argument("--sample", action="store_true", help="one variant of every third chapter; only with --compare")
    parser.add_argument("--out", type=Path, default=REPO / DATA / "costs.csv", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.sample and not args.compare:
        parser.error("--sample: what is written has all variants, so it goes with --compare")
    rows, differ, build = [], 0, args.build.resolve()
    try:
        if args.fetch:
            cycles.fetch(build)
        before = read_costs(args.out)
        chapters = costed(build / "chapters.json")
        for chapter, about in (sampled(chapters) if args.sample else chapters).items():
            for each in about.tiles:
                key = chapter, *each
                program = build / "bin" / chapter
                found = slice_and_tile(program, *each)
                if not args.compare:
                    found["tile"]["epilogue_cycles"] = epilogue_cycles(build, program, about.storing_warps, *each)
                for per, counters in found.items():
                    rows += [dict(zip(COST_COLUMNS, (*key, per, name, value)))
                             for name, value in counters.items()]
                    for name, value in counters.items():
                        old = before.get(key, {}).get(per, {}).get(name)
                        if args.compare and name != "instructions" and old != value:
                            print(f"cost_counts: {' '.join(key).strip()}: {name} of a {per} is {value}, not {old}")
                            differ = 1
        if not args.compare:
            write_csv(args.out, COST_COLUMNS, rows)
            print(f"cost_counts: {args.out}")
    except (Failed, BadData, cycles.Failed, cycles.NoTool, cycles.BadListing, OSError,
            subprocess.TimeoutExpired) as error:
        print(f"cost_counts: {error}", file=sys.stderr)
        return 1
    return differ


if __name__ == "__main__":
    sys.exit(main())
