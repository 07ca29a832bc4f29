# SPDX-License-Identifier: MIT
"""The first tile is guessed before the schedule is read, and none is made twice."""

import unittest

from tests.chapters.promises import Promises


class Guess(Promises):
    MULTIPROCESSORS = 10

    def test_no_tile_is_made_twice(self):
        """Five pairs of blocks for five tiles: none is left over, and none is made twice, whole by whom it is the first and in pieces,
        though all groups but one have as many rows."""
        tile = "256x128"  # both chapters have it, or the numbers of products cannot be compared
        chapters = [chapter for chapter in self.built_after("07k_first_guess") if tile in self.about[chapter]["tiles"]]
        for before in self.before("07k_first_guess"):
            for chapter in chapters:
                rows = "128" if self.about[chapter]["limits"]["m_multiple"] > 1 else "250"
                problem = ("--tile", tile, "--m", f"256,256,{rows},256,256", "--n", "256", "--k", "512")
                with self.subTest(chapter):
                    self.assertEqual(self.counted(chapter, *problem)["instructions_wgmma"],
                                     self.counted(before, *problem)["instructions_wgmma"])


if __name__ == "__main__":
    unittest.main()
