# SPDX-License-Identifier: MIT
"""Sums are read while the next tile's products are made into the other accumulator."""

import unittest

from tests.chapters.promises import ORDERS, Promises


class Accumulators(Promises):
    MULTIPROCESSORS = 2

    def test_sums_are_read_beside_the_next_tiles_products(self):
        """A pair of blocks has two tiles, which each of its eight storing warps reads in eight loads. One accumulator: the second tile's
        products wait for all of them. Two: for the first two of each warp."""
        during = {"08j_two_accumulators": 48} | dict.fromkeys(self.before("08j_two_accumulators"), 0)
        for chapter, loads in during.items():
            for order in ORDERS:
                with self.subTest(chapter=chapter, order=order):
                    counts = self.counted(chapter, "--m", "256", "--n", "512", "--k", "256", "--order", order)
                    self.assertEqual(counts["tmem_loads"], 128)
                    self.assertEqual(counts["tmem_loads_during_products"], loads)


if __name__ == "__main__":
    unittest.main()
