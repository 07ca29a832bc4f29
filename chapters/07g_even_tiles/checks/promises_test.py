# SPDX-License-Identifier: MIT
"""Each tile is made once, column after column (07g) or in bands of rows of tiles (from 07l on)."""

import unittest

from tests.chapters.promises import Promises


class EachTile(Promises):
    def test_each_tile_is_made(self):
        """22 rows of tiles and three columns: bands of 8, 8 and 6 rows where there are bands."""
        problem = ("--tile", "64x128", "--m", "1400,40", "--n", "264", "--k", "64")
        for before in self.before("07g_even_tiles"):
            by_column = self.checked(before, *problem)
            for chapter in self.products_after("07g_even_tiles"):
                self.assert_same(by_column, self.checked(chapter, *problem), chapter)


if __name__ == "__main__":
    unittest.main()
