# SPDX-License-Identifier: MIT
"""Sums are made in one order of K from this chapter on, so neither tiles nor who has them change a bit of D."""

import unittest

from tests.chapters.promises import Promises


class SameBits(Promises):
    MULTIPROCESSORS = 4

    def test_every_product_gives_the_same_bits(self):
        for k in ("72", "648"):
            problem, first = ("--m", "270,0,70,33", "--n", "136", "--k", k), None
            for chapter in self.products_after("07a_warp_specialized"):
                # A chapter that chooses its tile would choose one here that splits K.
                tile = ("--tile", "256x128") if self.about[chapter]["chooses_tile"] else ()
                found = self.checked(chapter, *problem, *tile)
                first = first or found
                self.assert_same(first, found, chapter)


if __name__ == "__main__":
    unittest.main()
