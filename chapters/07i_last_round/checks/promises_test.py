# SPDX-License-Identifier: MIT
"""The tiles of the last round are cut into pieces, and D is what it was."""

import unittest

from tests.chapters.promises import Promises


class LastRound(Promises):
    MULTIPROCESSORS = 8

    def test_pieces_give_the_bits_of_whole_tiles(self):
        """Four pairs of blocks for six tiles: the two of the last round are cut."""
        problem = ("--tile", "256x128", "--m", "512,768,0,250", "--n", "256", "--k", "512")
        wholes = [(self.checked(before, *problem), self.counted(before, *problem)) for before in self.before("07i_last_round")]
        for chapter in self.products_after("07i_last_round"):
            pieces = self.checked(chapter, *problem)
            self.assert_same(pieces, self.launched(chapter, *problem, "--order", "1:skew"), chapter)
            for tensors, counts in wholes:
                self.assert_same(pieces, tensors, chapter)
                self.assertGreater(self.counted(chapter, *problem)["instructions_wgmma"], counts["instructions_wgmma"], "no tile was cut")


if __name__ == "__main__":
    unittest.main()
