# SPDX-License-Identifier: MIT
"""Blocks claim tiles: which block has which tile depends on the order, and D does not."""

import unittest

from tests.chapters.promises import Promises


class Claims(Promises):
    MULTIPROCESSORS = 3

    def test_the_bits_are_the_same_whoever_has_a_tile(self):
        """Three blocks for twelve tiles, long enough to be claimed."""
        problem = ("--tile", "64x128", "--m", "5,0,134,97", "--n", "136", "--k", "2056")
        in_turn = [self.checked(before, *problem) for before in self.before("07h_claims")]
        for chapter in self.products_after("07h_claims"):
            fair = self.checked(chapter, *problem)
            for order in ("1:skew", "2:skew"):
                self.assert_same(fair, self.launched(chapter, *problem, "--order", order), chapter)
            for tensors in in_turn:
                self.assert_same(tensors, fair, chapter)


if __name__ == "__main__":
    unittest.main()
