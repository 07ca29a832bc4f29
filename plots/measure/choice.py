# SPDX-License-Identifier: MIT
"""What a chapter's choice of tiles loses: problems in no set, timed with the chosen tile and with every other one.

  python3 -B -m plots.measure.choice [--chapter 07l_peak_hopper] [--problems 20] [--seed 1] [--csv FILE]

Draws problems as a mixture of experts has them: every other one with weights of a model's shape, the others with an N
and a K between 256 and 8192; rows that a router deals out by a softmax over normal logits, of deviation 0.6, or equally.
Runs `--tune` on each, whose contestants take turns in the same rounds, and prints how much longer the chosen tile took
than the fastest, then how that is distributed. --csv appends the times to a file as data/choice.csv, which
gg-choice reads. Wants a GPU; exit code 77: there is none.
"""

import argparse
import csv
import math
import random
import statistics
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

from plots.measure.files import CHOICE_COLUMNS, Choices

REPO = Path(__file__).resolve().parents[2]
# N, K.
SHAPES = [(4096, 7168), (7168, 2048), (1536, 2048), (2048, 768), (3072, 4096), (4096, 1536), (28672, 4096), (4096, 14336),
          (2880, 2880), (5760, 2880), (1024, 1024), (1408, 2048), (8192, 5120), (512, 4096), (2560, 1024)]
GROUPS = [4, 8, 16, 32, 64, 128]
ROWS = [4, 16, 32, 64, 128, 256, 512, 1024]  # of an average group
# Multiprocessors and 10^9 bytes a second of a device.
DEVICES = {"NVIDIA H100 80GB HBM3": (132, 3352), "NVIDIA H200": (132, 4917)}
MOST_BYTES, MOST_FLOP = 6e9, 3e12  # of B; of a problem


def draw(rng: random.Random) -> tuple[list[int], int, int]:
    """Rows of each group, N and K."""
    free = rng.random() < 0.5
    while True:
        if free:
            n, k = (8 * round(2 ** rng.uniform(8, 13) / 8) for _ in range(2))
            groups, rows = (round(2 ** rng.uniform(0, most)) for most in (6, 11))
            rows = max(4, rows)
        else:
            (n, k), groups, rows = rng.choice(SHAPES), rng.choice(GROUPS), rng.choice(ROWS)
        if 2 * groups * n * k > MOST_BYTES or 2 * groups * rows * n * k > MOST_FLOP:
            continue
        if rng.random() < 0.2:
            return [rows] * groups, n, k
        weights = [math.exp(rng.gauss(0, 0.6)) for _ in range(groups)]
        m = [0] * groups
        for group in rng.choices(range(groups), weights, k=groups * rows):
            m[group] += 1
        return m, n, k


def tuned(program: Path, m: list[int], n: int, k: int) -> tuple[str, dict[str, float]]:
    """The device, and microseconds by tile; "" is the chosen one."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "tune.csv"
        command = [program, "--tune", "--m", ",".join(map(str, m)), "--n", n, "--k", k, "--csv", table]
        done = subprocess.run([str(word) for word in command], stdout=subprocess.DEVNULL)
        if done.returncode:
            sys.exit(done.returncode)
        with open(table, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    return rows[0]["device"], {Choices.of(row["kernel"]).tile: float(row["us_median"]) for row in rows}


def line_of(device: str, m: list[int], n: int, k: int, times: dict[str, float]) -> str:
    """A problem's line of choice.csv; of a device that is not known, the exit with code 2."""
    if device not in DEVICES:
        print(f"choice: --csv: the rates of {device} are not known, only those of {' and '.join(DEVICES)}", file=sys.stderr)
        sys.exit(2)
    us = [f"{times[tile]:.5g}" for tile in CHOICE_COLUMNS[8:]]
    return ",".join(map(str, (device, date.today(), *DEVICES[device], "unseen", " ".join(map(str, m)), n, k, *us)))


def loss_of_choice(times: dict[str, float]) -> tuple[float, str]:
    """By how much the choice took longer than the fastest tile, which is the second result."""
    best = min((tile for tile in times if tile), key=times.get)
    return times[""] / times[best] - 1, best


def distribution(losses: list[float]) -> str:
    """A sentence about all of them."""
    ordered = sorted(losses)
    within = [sum(loss <= most for loss in ordered) for most in (0.01, 0.02, 0.05)]
    return f"{len(ordered)} problems: {within[0]} within 1 %, {within[1]} within 2 %, {within[2]} within 5 %; " \
        f"mean {100 * sum(ordered) / len(ordered):.1f} %, median {100 * statistics.median(ordered):.1f} %, " \
        f"worst {100 * ordered[-1]:.1f} %"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chapter", default="07l_peak_hopper")
    parser.add_argument("--problems", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--csv", type=Path, help="where each tile's time goes; 07l only")
    args = parser.parse_args()
    rng, losses = random.Random(args.seed), []
    for _ in range(args.problems):
        m, n, k = draw(rng)
        device, times = tuned(REPO / "build" / "bin" / args.chapter, m, n, k)
        loss, best = loss_of_choice(times)
        losses.append(loss)
        print(f"G={len(m)} M={sum(m)} (≤ {max(m)}) N={n} K={k}: {times['']:.1f} us as chosen, {times[best]:.1f} us with "
              f"{best}, {100 * loss:+.1f} %", flush=True)
        if args.csv:
            with open(args.csv, "a", encoding="utf-8") as file:
                if not file.tell():
                    print(",".join(CHOICE_COLUMNS), file=file)
                print(line_of(device, m, n, k, times), file=file)
    print(distribution(losses))
    return 0


if __name__ == "__main__":
    sys.exit(main())
