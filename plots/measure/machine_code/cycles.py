# SPDX-License-Identifier: MIT
"""Predicts from machine code how many cycles the loops of a program's kernels take, one warp alone on its scheduler.

  python3 -B -m plots.measure.machine_code.cycles [--build DIR] [--fetch] [--multiprocessors N] PROGRAM OPTIONS...

PROGRAM runs on the emulator with these OPTIONS, which counts each line of its PTX; its machine code names the same
lines. A row is a loop that ran: how many times one iteration goes round it, its instructions, and its cycles by what
they go for: issue (one for each instruction), stall (a fixed wait that the compiler put in), scoreboard (a wait for a
result of unknown latency), pipe (the pipe is taken). What is fact and what is assumed stands in model.py. Where a
program reads the clock (clocked.py) a row gives the cycles from one reading to the other.
"""

import argparse
import collections
import csv
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from plots.measure.machine_code.listing import BadListing, disassemble
from plots.measure.machine_code.model import Kernel, Loop
from plots.measure.machine_code.tools import NoTool, cubins, fetch, find

REPO = Path(__file__).resolve().parents[3]
LIMIT_S = 600  # for the run on the emulator
SPENT = "issue", "stall", "scoreboard", "pipe"
# Instructions that a loop is known by.
TELLING = "LDTM", "STTM", "UTC", "UTMALDG", "UTMASTG", "HGMMA", "STSM", "STS", "STG", "LDSM", "MUFU"


# By kernel and line of PTX: how often warps executed it, and the sectors that it touched.
LineCounts = dict[str, dict[int, tuple[int, int]]]


class Failed(Exception):
    """A run that did not do what it should."""


def count_lines(build: Path, command: list[str], folder: str, multiprocessors: int) -> LineCounts:
    """kernel -> line of PTX -> times that warps executed it, and sectors that it touched."""
    table = Path(folder) / "lines.csv"
    words = [str(build / "bin/gg-emu"), "--line-counts", str(table)]
    if multiprocessors:
        words += ["--multiprocessors", str(multiprocessors)]
    done = subprocess.run(words + command, capture_output=True, text=True, errors="replace", timeout=LIMIT_S)
    if done.returncode:
        raise Failed(f"{' '.join(words + command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return read_lines(table)


def read_lines(table: Path) -> LineCounts:
    """What --line-counts wrote: kernel -> line of PTX -> times that warps executed it, and sectors that it touched."""
    counts = collections.defaultdict(dict)
    with open(table, newline="") as file:
        for row in csv.DictReader(file):
            counts[row["kernel"]][int(row["ptx_line"])] = int(row["warps"]), int(row["sectors"])
    return counts


def kernels(build: Path, command: list[str], multiprocessors: int = 0, sharing: int = 1) -> dict[str, Kernel]:
    """name -> Kernel, of all that ran."""
    with tempfile.TemporaryDirectory() as folder:
        counts = count_lines(build, command, folder, multiprocessors)
        functions = {}
        for cubin in cubins(find("cuobjdump", build), command[0], folder):
            if "sm_90a" in cubin.name or "sm_100a" in cubin.name:
                functions.update(disassemble(find("nvdisasm", build), str(cubin)))
    return {name: Kernel(functions[name], lines, sharing) for name, lines in counts.items() if name in functions}


def epilogue(kernels: Iterable[Kernel], warps: int, a_scheduler: int = 1) -> int:
    """Cycles in which the rows of a tile are stored. warps: that have 32 rows of a tile each, times the tiles. a_scheduler:
    warps on a scheduler that share rows, each with a part of their columns; then one computes while another waits, as
    long as both find issue slots and pipes. Loops of different warps count as if these did the same."""
    longest, least = 0, 0
    for kernel in kernels:
        for loop in kernel.top.values():
            kernel.cost(loop)
            if loop.weight and "LDTM" in telling_instructions(kernel, loop):
                longest = max(longest, loop.weight * loop.cost.cycles / warps / a_scheduler)
                least += loop.weight * loop.cost.least / warps
    return round(max(longest, least))


def source_lines(kernel: Kernel, loop: Loop) -> str:
    """"store.cuh:96-140": the file that most instructions of a loop come from, and its lines."""
    rows = [one.source for number in loop.body for one in kernel.blocks[number].instructions]
    chapter = [row for row in rows if "/chapters/" in row[0]] or rows
    file = collections.Counter(row[0] for row in chapter).most_common(1)[0][0]
    lines = [row[1] for row in chapter if row[0] == file]
    return f"{Path(file).name}:{min(lines)}-{max(lines)}"


def telling_instructions(kernel: Kernel, loop: Loop) -> str:
    """The instructions that tell what a loop is for."""
    names = {one.name for number in loop.body for one in kernel.blocks[number].instructions}
    return " ".join(sorted(name for name in names if name.startswith(TELLING)))


def rows_of(kernel: Kernel) -> Iterator[tuple]:
    """A row for each loop that ran and is more than a wait, the outer one before those inside."""
    for loop in kernel.top.values():
        kernel.cost(loop)
    for loop in kernel.loops():
        if loop.weight and loop.cost and telling_instructions(kernel, loop):
            yield (source_lines(kernel, loop), loop.weight, loop.trips, loop.cost.instructions, loop.cost.cycles,
                   *(loop.cost.why[key] for key in SPENT), telling_instructions(kernel, loop))


def print_kernel(name: str, kernel: Kernel, out: TextIO) -> None:
    print(name, file=out)
    clocked = kernel.between_clocks()
    if clocked:
        spent = "  ".join(f"{key} {clocked.why[key]}" for key in SPENT)
        print(f"  between two readings of the clock: {clocked.instructions} instructions, {clocked.cycles} cycles: {spent}",
              file=out)
    print(f"  {'loop at':<28}{'begun':>9}{'trips':>8}{'instr.':>9}{'cycles':>9}" + "".join(f"{key:>11}" for key in SPENT),
          file=out)
    for place, weight, trips, instructions, cycles, *rest in rows_of(kernel):
        numbers = "".join(f"{value:11.0f}" for value in rest[:-1])
        print(f"  {place:<28}{weight:9.0f}{trips:8.1f}{instructions:9.0f}{cycles:9.0f}{numbers}  {rest[-1]}", file=out)


def main() -> int:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--build", type=Path, default=REPO / "build")
    ask.add_argument("--fetch", action="store_true", help="cuobjdump and nvdisasm from PyPI into the build tree first")
    ask.add_argument("--multiprocessors", type=int, default=0, help="of the device that the emulator plays")
    ask.add_argument("--storing-warps", type=int, default=1, help="of a multiprocessor, that store at the same time")
    ask.add_argument("program")
    ask.add_argument("options", nargs=argparse.REMAINDER)
    options = ask.parse_args()
    build = options.build.resolve()
    try:
        if options.fetch:
            fetch(build)
        found = kernels(build, [options.program, *options.options], options.multiprocessors,
                        options.storing_warps)
        for name, kernel in found.items():
            print_kernel(name, kernel, sys.stdout)
    except (Failed, NoTool, BadListing) as failed:
        print(f"cycles.py: {failed}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
