# SPDX-License-Identifier: MIT
"""A gradient is the derivative of a loss, whoever multiplies which tile."""

import itertools
import math
import random
import struct
import unittest

from tests.chapters.promises import ORDERS, Promises


def numbers(content: bytes, code: str) -> list[float]:
    """The elements of a .npy file of bf16 ("H"), f32 ("f") or i32 ("i"), row after row."""
    start = 10 + struct.unpack("<H", content[8:10])[0]
    values = [each[0] for each in struct.iter_unpack("<" + code, content[start:])]
    return [struct.unpack("<f", struct.pack("<I", each << 16))[0] for each in values] if code == "H" else values


class WeightGradient(Promises):
    MULTIPROCESSORS = 3

    def test_it_is_the_slope_of_a_loss(self) -> None:
        """The loss is the sum over rows and columns of dD times A W, for any weights W. Central differences in double, at some elements."""
        k, n, step = 24, 16, 2.0**-10
        draw = random.Random("weights")
        tensors = self.checked("10a_weight_gradient", "--m", "5,0,70", "--n", str(n), "--k", str(k))
        of_d, a, d, offsets = (numbers(tensors[f"{name}.npy"], code)
                               for name, code in (("b", "H"), ("a", "H"), ("d", "f"), ("offsets", "i")))

        def loss(weights: list[float], rows: range) -> float:
            return math.fsum(of_d[row * n + col] * a[row * k + i] * weights[i * n + col]
                             for row in rows for i in range(k) for col in range(n))

        for group, bounds in enumerate(itertools.pairwise(offsets)):
            weights = [draw.gauss(0, 1) for _ in range(k * n)]
            for i, col in ((0, 0), (k - 1, n - 1), (draw.randrange(k), draw.randrange(n))):
                above, below = ([each + sign * step * (at == i * n + col) for at, each in enumerate(weights)] for sign in (1, -1))
                slope = (loss(above, range(*bounds)) - loss(below, range(*bounds))) / (2 * step)
                self.assertAlmostEqual(d[(group * k + i) * n + col], slope, delta=1e-4 * (1 + abs(slope)), msg=f"group {group}")

    def test_the_bits_are_the_same_in_each_order(self) -> None:
        """Three blocks, whose tiles are claimed: which block has which tile depends on the order."""
        problem = ("--m", "5,0,70,33", "--n", "392", "--k", "264")
        first = self.checked("10a_weight_gradient", *problem)
        for order in ORDERS[1:]:
            self.assert_same(first, self.launched("10a_weight_gradient", *problem, "--order", order), order)


if __name__ == "__main__":
    unittest.main()
