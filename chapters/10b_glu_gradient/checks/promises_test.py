# SPDX-License-Identifier: MIT
"""Three gradients are the derivatives of one loss, whoever makes which tile; and a group's tiles know nothing of the next group's rows."""

import itertools
import math
import struct
import tempfile
import unittest
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.chapters.promises import ORDERS, Promises

CHAPTER = "10b_glu_gradient"
TYPES = {"a": "H", "b": "H", "c": "H", "d": "H", "alpha": "f", "prob": "f", "dprob": "f", "dbias": "f", "offsets": "i"}


def start_of(content: bytes) -> int:
    """Where the elements of a .npy file begin."""
    return 10 + struct.unpack("<H", content[8:10])[0]


def numbers(content: bytes, code: str) -> list[float]:
    """The elements of a .npy file of bf16 ("H"), f32 ("f") or i32 ("i"), row after row."""
    values = [each[0] for each in struct.iter_unpack("<" + code, content[start_of(content):])]
    return [struct.unpack("<f", struct.pack("<I", each << 16))[0] for each in values] if code == "H" else values


def rows_of(content: bytes, bounds: tuple[int, int], rows: int) -> bytes:
    """These rows of a file that has so many."""
    elements = content[start_of(content):]
    row = len(elements) // rows
    return elements[bounds[0] * row : bounds[1] * row]


def with_rows_of_nan(content: bytes, bounds: tuple[int, int], rows: int, nan: bytes) -> bytes:
    start, size = start_of(content), len(rows_of(content, bounds, rows))
    first = start + len(rows_of(content, (0, bounds[0]), rows))
    return content[:first] + nan * (size // len(nan)) + content[first + size :]


def unit(act: str, gate: float, up: float) -> float:
    if act == "swiglu":
        return gate / (1 + math.exp(-gate)) * up
    gate, up = min(gate, 7), max(-7, min(up, 7))
    return gate / (1 + math.exp(-1.702 * gate)) * (up + 1)


class Loss:
    """A group's sum over rows and columns of y GLU(C) prob with y = alpha A B, from the files of one problem, in double."""

    def __init__(self, act: str, files: dict[str, list[float]], group: int, n: int, k: int) -> None:
        self.act, self.files, self.n = act, files, n
        self.rows = range(*files["offsets"][group : group + 2])
        a, b, alpha = files["a"], files["b"], files["alpha"][group]
        self.y = {(row, col): alpha * math.fsum(a[row * k + i] * b[(group * k + i) * n + col] for i in range(k))
                  for row in self.rows for col in range(n)}

    def at(self, row: int, c: Callable[[int, int], float], prob: float) -> float:
        """The row's part, of C and prob that may be moved."""
        def pair(col: int) -> tuple[float, float]:
            gate = col // 32 * 64 + col % 32
            return c(row, gate), c(row, gate + 32)
        return math.fsum(self.y[row, col] * unit(self.act, *pair(col)) * prob for col in range(self.n))

    def slope(self, rows: range, column: int | None, step: float) -> float:
        """The central difference of the loss for a step of these rows' C in one column, or, without a column, of their prob."""
        def moved(by: float) -> float:
            c, prob = self.files["c"], self.files["prob"]
            return math.fsum(self.at(row, lambda row, col: c[row * 2 * self.n + col] + (by if col == column else 0),
                                     prob[row] + (by if column is None else 0)) for row in rows)
        return (moved(step) - moved(-step)) / (2 * step)


class GluGradient(Promises):
    MULTIPROCESSORS = 5  # two pairs of blocks

    def assert_is_slope(self, got: float, slope: Callable[[float], float], first: float, rounding: float, what: str) -> int:
        """Central differences are off by h^2 times a third derivative, and by h^4 times a fifth: half the step, about a quarter of the
        error, until `rounding` of what was computed is reached. `first`: the first step. Returns how often it was a quarter."""
        quarters, step = 0, first
        error = abs(slope(step) - got)
        while error > 2 * rounding and step > 2.0**-12:
            step /= 2
            before, error = error, abs(slope(step) - got)
            if error > 6 * rounding:
                self.assertAlmostEqual(before / error, 4, delta=1, msg=f"{what}, step {step}")
                quarters += 1
        self.assertLessEqual(error, 2 * rounding, f"{what}: {got}")
        return quarters

    def test_they_are_slopes_of_one_loss(self) -> None:
        n, k = 64, 24
        for act, first in (("swiglu", 2.0**-1), ("geglu", 2.0**-2)):  # geglu's sigma is that of 1.702 gates
            tensors = self.checked(CHAPTER, "--act", act, "--m", "5,0,70", "--n", str(n), "--k", str(k))
            files = {name: numbers(tensors[f"{name}.npy"], code) for name, code in TYPES.items()}
            self.assertLess(max(map(abs, files["c"])), 6)  # no step crosses a clamp
            quarters = {"d": 0, "dbias": 0}
            for group, (begin, end) in enumerate(itertools.pairwise(files["offsets"])):
                loss = Loss(act, files, group, n, k)
                where = f"{act}, group {group}"
                for row in {begin, (begin + end) // 2, end - 1} & set(loss.rows):
                    one = range(row, row + 1)
                    for column in range(0, 2 * n, 7):  # gates and ups
                        got = files["d"][row * 2 * n + column]
                        quarters["d"] += self.assert_is_slope(got, partial(loss.slope, one, column), first, abs(got) * 2.0**-9 + 1e-7,
                                                              f"{where}, D of row {row} and column {column}")
                    self.assert_is_slope(files["dprob"][row], partial(loss.slope, one, None), first, 1e-6,
                                         f"{where}, dprob of row {row}")
                for column in (1, 33, 95, 127):
                    got = files["dbias"][group * 2 * n + column]
                    quarters["dbias"] += self.assert_is_slope(got, partial(loss.slope, loss.rows, column), first, 1e-6,
                                                              f"{where}, dbias of column {column}")
                if begin == end:
                    self.assertEqual(files["dbias"][group * 2 * n : (group + 1) * 2 * n], [0] * 2 * n, where)
            self.assertGreater(min(quarters.values()), 3, f"{act}: {quarters}")

    def test_the_bits_are_the_same_in_each_order(self) -> None:
        """Two pairs of blocks, which claim their tiles: which pair has which tile depends on the order."""
        problem = ("--m", "5,0,200,33,130", "--n", "288", "--k", "264")
        for act in ("swiglu", "geglu"):
            first = self.checked(CHAPTER, "--act", act, *problem)
            for order in ORDERS[1:]:
                self.assert_same(first, self.launched(CHAPTER, "--act", act, *problem, "--order", order), f"{act}, {order}")

    def test_a_group_of_64_rows_has_no_lower_half(self) -> None:
        """Two groups, and no row past the second one's: of 65 and 63 rows, one tile has a lower half."""
        n, k = 256, 64  # a pair's tile has so many columns
        halves, loads = {}, {}
        for rows in ("64,64", "65,63"):
            once, twice = (self.counted(CHAPTER, "--m", rows, "--n", str(n), "--k", str(each)) for each in (k, 2 * k))
            halves[rows] = (twice["multiply_adds"] - once["multiply_adds"]) / (64 * n * k)
            loads[rows] = once["global_load_bytes"]
        self.assertEqual(halves, {"64,64": 2, "65,63": 3})
        # The lower half of A has 63 rows of the second group. Boxes of C end with their group.
        self.assertEqual(loads["65,63"] - loads["64,64"], 63 * k * 2)

    def test_nan_of_other_groups_stays_there(self) -> None:
        """Tiles reach past their group's end into rows of the next one, of A. Those of C and prob must not be read."""
        poisoned = (1, 3)
        problem = ("--m", "40,5,70,33,3", "--n", "96", "--k", "72")
        for act in ("swiglu", "geglu"):
            clean = self.checked(CHAPTER, "--act", act, *problem)
            offsets = numbers(clean["offsets.npy"], "i")
            groups, rows = list(itertools.pairwise(offsets)), offsets[-1]
            with tempfile.TemporaryDirectory() as folder:
                for name in ("a.npy", "b.npy", "c.npy", "alpha.npy", "prob.npy", "offsets.npy"):
                    content = clean[name]
                    if name in ("a.npy", "c.npy", "prob.npy"):
                        nan = struct.pack("<f", math.nan)[2 if name != "prob.npy" else 0 :]
                        for group in poisoned:
                            content = with_rows_of_nan(content, groups[group], rows, nan)
                    Path(folder, name).write_bytes(content)
                got = self.checked(CHAPTER, "--act", act, "--in", folder)
            for group, bounds in enumerate(groups):
                for name in ("d", "dprob", "dbias"):
                    of, at = (len(groups), (group, group + 1)) if name == "dbias" else (rows, bounds)
                    here = rows_of(got[f"{name}.npy"], at, of)
                    if group in poisoned:
                        header = got[f"{name}.npy"][: start_of(got[f"{name}.npy"])]
                        self.assertTrue(all(map(math.isnan, numbers(header + here, TYPES[name]))), f"{act}, {name} of group {group}")
                    else:
                        self.assertTrue(here == rows_of(clean[f"{name}.npy"], at, of), f"{act}, {name} of group {group}")


if __name__ == "__main__":
    unittest.main()
