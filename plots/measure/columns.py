# SPDX-License-Identifier: MIT
"""Computes again what follows from other columns in the committed measurements, and names each cell that is another.

  python3 -B -m plots.measure.columns [--repo DIR]        # exit code 1: a cell is not what the others make it

Every number was written with six digits, so each stands for an interval; the intervals of a row must have a time in
common. An edit that rounding hides, in the last digit, is not found. In formats with scales, and where an operator finds
the largest magnitudes or quantises, the bytes that a problem moves go by the epilogue: there they are only compared among
the rows of one kernel and one problem.
"""

import argparse
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from plots.measure import sets
from plots.measure.chapters import Chapter, read_chapters
from plots.measure.files import COLUMNS, DATA, Choices, Shape, folder_of, read_csv

REPO = Path(__file__).resolve().parents[2]
SHAPE = "groups m_total m_max n k".split()
WHOLE = ["groups", "m_total", "m_max", "n", "k", "warm", "ok"]
NUMBERS = "us_median us_p10 us_p90 tflops gbytes_per_s roof_tflops prep_us power_w".split()
CLOCKS = ["clock_mhz", "clock_after_mhz"]


def interval(text: str) -> tuple[float, float]:
    """What a number of six digits may have been before it was rounded."""
    value = float(text)
    half = 0.5 * 10.0 ** (math.floor(math.log10(abs(value))) - 5) if value else 0.0
    return value - half * 1.0001, value + half * 1.0001


def quotient(number: float, text: str) -> tuple[float, float]:
    """The interval of a number divided by what a cell holds."""
    low, high = interval(text)
    return number / high, number / low


def intersection(*intervals: tuple[float, float]) -> tuple[float, float] | None:
    """What all have in common; None where that is nothing."""
    low, high = max(each[0] for each in intervals), min(each[1] for each in intervals)
    return (low, high) if low <= high else None


def shape_of(row: dict[str, str]) -> Shape:
    return tuple(int(row[column]) for column in SHAPE)


def ill_formed(row: dict[str, str]) -> list[str]:
    """Cells that are no number of their kind: a sentence each."""
    wrong = [f"{column} is {row[column]!r}, want a whole number" for column in WHOLE if not row[column].isdigit()]
    for column in NUMBERS + CLOCKS:
        pattern = r"[1-9]\d*" if column in CLOCKS else r"\d+(\.\d+)?(e[+-]?\d+)?"
        if row[column] and not re.fullmatch(pattern, row[column]):
            wrong.append(f"{column} is {row[column]!r}, want a number or nothing")
    wrong += [f"{column} is {row[column]}, want 0 or 1" for column in ("warm", "ok") if row[column] not in ("0", "1")]
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", row["date"]):
        wrong.append(f"date is {row['date']!r}, want a day as 2026-11-24")
    return wrong


def ill_placed(row: dict[str, str], path: Path) -> list[str]:
    """A row stands in the file of its chapter and its device."""
    folder = folder_of(row["device"])
    wrong = [f"chapter is {row['chapter']}, want {path.stem}"] if row["chapter"] != path.stem else []
    return wrong + ([f"device is {row['device']}, want that of {path.parent.name}"] if folder != path.parent.name else [])


def out_of_order(row: dict[str, str]) -> list[str]:
    us = [row[column] for column in ("us_p10", "us_median", "us_p90")]
    return [f"us_p10, us_median and us_p90 are {', '.join(us)}, want them in order"] \
        if all(us) and not float(us[0]) <= float(us[1]) <= float(us[2]) else []


def bits_of_d(row: dict[str, str], defaults: dict[str, Chapter]) -> int:
    """Of D, for each column of B: the row's own word, or what the chapter has by default; a gated chapter has half."""
    chapter = defaults.get(row["chapter"])
    own = chapter.d if chapter and row["peer"] in ("", "all_ideas") else ""
    word = Choices.of(row["kernel"]).d or own or row["format"]
    return {"f32": 32, "bf16": 16, "f16": 16}[word] // (2 if chapter and chapter.gated else 1)


def flop_and_bytes(row: dict[str, str], defaults: dict[str, Chapter]) -> tuple[float, float] | None:
    """The work of a problem of dense bf16, and the bytes of A, B, D and factors once each; None where its set is not
    known."""
    rows = sets.rows_of(row["set"], shape_of(row))
    if rows is None:
        return None
    n, k = int(row["n"]), int(row["k"])
    # All groups of that set share one B.
    weights = 1 if row["set"] == "helion" else sum(m > 0 for m in rows)
    chapter = defaults.get(row["chapter"])
    if chapter and chapter.product == "weight_gradient":
        # D is [G,K,N], also of empty groups; what is added to is read and written, where rows are.
        times_d = 2 * sum(m > 0 for m in rows) if "accumulate" in Choices.of(row["kernel"]).others else len(rows)
        return 2.0 * sum(rows) * n * k, sum(rows) * 2.0 * (k + n) + times_d * n * k * bits_of_d(row, defaults) / 8
    # A prob of each row, an alpha of each group.
    factors = 4 * (sum(rows) + len(rows)) if chapter and chapter.gated else 0
    return 2.0 * sum(rows) * n * k, \
        sum(rows) * (2 * k + n * bits_of_d(row, defaults) / 8) + 2.0 * weights * n * k + factors


def rates(row: dict[str, str], work: tuple[float, float]) -> list[str]:
    """tflops and gbytes_per_s are the work over the time."""
    if not row["us_median"]:
        return []
    if not row["tflops"] or not row["gbytes_per_s"]:
        return ["us_median without tflops and gbytes_per_s, want all three"]
    flop, moved = work
    us = [interval(row["us_median"]), quotient(flop * 1e-6, row["tflops"]), quotient(moved * 1e-3, row["gbytes_per_s"])]
    if intersection(*us):
        return []
    median = float(row["us_median"])
    return [f"us_median {row['us_median']}, tflops {row['tflops']} and gbytes_per_s {row['gbytes_per_s']} do not go "
            f"together, want {flop / median * 1e-6:.6g} TFLOP/s and {moved / median * 1e-3:.6g} GB/s"]


class Roofs:
    """What gg-roof measured before each run: all rows of a run stand under one of its pairs of ceilings."""

    def __init__(self) -> None:
        self.matrix, self.copy = {}, {}  # by run: each rate that its rows tell of, with the rows

    def add(self, row: dict[str, str], work: tuple[float, float], where: tuple[str, int]) -> None:
        run = row["device"], row["commit"], row["date"], row["format"]
        if row["roof_kind"] == "matrix":
            self.matrix.setdefault(run, {}).setdefault(row["roof_tflops"], []).append(where)
        else:
            flop, moved = work
            rate = tuple(1000 * each * moved / flop for each in interval(row["roof_tflops"]))
            known = self.copy.setdefault(run, [])
            for at, (other, places) in enumerate(known):
                if intersection(rate, other):
                    known[at] = intersection(rate, other), [*places, where]
                    return
            known.append((rate, [where]))

    def alone(self) -> Iterator[tuple[tuple[str, int], str]]:
        """Rows whose roof no other row of their run has, and there are others."""
        for found in self.matrix.values():
            for rate, places in found.items():
                if len(places) < 2 < sum(map(len, found.values())):
                    yield places[0], f"roof_tflops {rate}, other rows of its run have {', '.join(sorted(set(found) - {rate}))}"
        for found in self.copy.values():
            for (low, _), places in found:
                if len(places) < 2 < sum(len(other) for _, other in found):
                    yield places[0], f"roof_tflops is that of a copy at {low:.1f} GB/s, other rows of its run have another"


def kind_of_roof(row: dict[str, str]) -> list[str]:
    """A roof has a kind, and a kind a roof."""
    if bool(row["roof_tflops"]) != bool(row["roof_kind"]):
        return [f"roof_tflops {row['roof_tflops']!r} with roof_kind {row['roof_kind']!r}, want both or none"]
    if row["roof_kind"] not in ("", "matrix", "bandwidth"):
        return [f"roof_kind is {row['roof_kind']}, want matrix or bandwidth"]
    return []


@cache
def known_commit(repo: Path, commit: str) -> bool | None:
    """Whether git has a commit, None where there is no git or it holds no history."""
    def git(*words):
        try:
            return subprocess.run(["git", "-C", repo, *words], capture_output=True, text=True)
        except OSError:
            return None

    shallow = git("rev-parse", "--is-shallow-repository")
    if shallow is None or shallow.stdout.strip() != "false":
        return None
    return git("cat-file", "-e", commit + "^{commit}").returncode == 0


def faults(repo: Path) -> Iterator[tuple[str, int, str]]:
    """Every cell that does not follow from the others, as file, line and sentence."""
    defaults = {each.id: each for each in read_chapters(repo) if each.operator in ("", "glu")}
    roofs, alike = Roofs(), {}
    for path in sorted((repo / DATA).glob("*/*.csv")):
        for line, row in enumerate(read_csv(path, COLUMNS), 2):
            where = path.relative_to(repo).as_posix(), line
            wrong = ill_formed(row)
            if wrong:
                yield from ((*where, each) for each in wrong)
                continue
            wrong = ill_placed(row, path) + out_of_order(row) + kind_of_roof(row)
            if known_commit(repo, row["commit"]) is False:
                wrong.append(f"commit {row['commit']} is not known to git")
            wrong += of_work(row, where, defaults, roofs, alike)
            yield from ((*where, each) for each in wrong)
    for where, sentence in roofs.alone():
        yield (*where, sentence)


def of_work(row: dict[str, str], where: tuple[str, int], defaults: dict[str, Chapter], roofs: Roofs,
            alike: dict[tuple, list[tuple[float, float]]]) -> list[str]:
    """What follows from the work of a problem."""
    if row["format"] != "bf16" or row["chapter"] not in defaults:
        return same_work(row, alike)
    work = flop_and_bytes(row, defaults)
    if work is None:
        return [f"set {row['set']} has no problem of {', '.join(f'{c}={row[c]}' for c in SHAPE)}"]
    if row["roof_tflops"]:
        roofs.add(row, work, where)
    return rates(row, work)


def same_work(row: dict[str, str], alike: dict[tuple, list[tuple[float, float]]]) -> list[str]:
    """Of a format with scales: the rows of one kernel and one problem have the same work and bytes."""
    if not row["us_median"]:
        return []
    us, key = interval(row["us_median"]), (*(row[c] for c in "chapter kernel format peer set".split()), *shape_of(row))
    now = [tuple(a * b for a, b in zip(us, interval(row[column]))) for column in ("tflops", "gbytes_per_s")]
    before = alike.setdefault(key, now)
    common = [intersection(one, other) for one, other in zip(before, now)]
    if None in common:
        return ["us_median, tflops and gbytes_per_s tell of other work than the rows before of the same problem"]
    alike[key] = common
    return []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repo", type=Path, default=REPO, help=argparse.SUPPRESS)
    found = list(faults(parser.parse_args().repo))
    for path, line, sentence in found:
        print(f"{path}:{line}: {sentence}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
