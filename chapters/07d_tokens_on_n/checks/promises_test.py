# SPDX-License-Identifier: MIT
"""Tokens are on the side of WGMMA that has a width of its own for each tile: products come in steps of 32 rows."""

import unittest

from tests.chapters.promises import Promises


class Widths(Promises):
    def test_tiles_of_each_width_multiply_what_they_must(self):
        problem = ("--tile", "256x128", "--m", "129,150,170,195,220,230,250,20,40,64,65,96", "--n", "256", "--k", "64")
        rows = 160 + 160 + 192 + 224 + 224 + 256 + 256 + 32 + 64 + 64 + 96 + 96
        for chapter in self.products_after("07d_tokens_on_n"):
            with self.subTest(chapter):
                self.assertEqual(self.counted(chapter, *problem)["multiply_adds"], rows * 256 * 64)


if __name__ == "__main__":
    unittest.main()
