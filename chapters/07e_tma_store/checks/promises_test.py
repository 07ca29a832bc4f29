# SPDX-License-Identifier: MIT
"""A tile is stored while the next one is multiplied."""

import unittest

from tests.chapters.promises import ORDERS, Promises


class Overlap(Promises):
    MULTIPROCESSORS = 2

    def test_a_tile_is_stored_under_the_products_of_the_next(self):
        """Two blocks for six tiles of 256 columns, with four slices each. Of the eight warps that multiply two store, and each has four
        of a tile's 16 products behind its commit and before its wait, for the two tiles behind the first. A wait right behind each commit
        leaves none."""
        problem = ("--tile", "256x128", "--m", "128,128,128,128,128,128", "--n", "128", "--k", "256")
        during = {"07e_tma_store": 2 * 2 * 2 * 4} | dict.fromkeys(self.before("07e_tma_store"), 0)
        for chapter, products in during.items():
            for order in ORDERS:
                with self.subTest(chapter=chapter, order=order):
                    counts = self.counted(chapter, *problem, "--order", order)
                    self.assertEqual(counts["products"], 6 * 8 * 16)
                    self.assertEqual(counts["products_during_stores"], products)
                    self.assertGreater(counts["products_during_loads"], counts["products"] // 2)


if __name__ == "__main__":
    unittest.main()
