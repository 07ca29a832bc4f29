# SPDX-License-Identifier: MIT
"""What is read of CSV files and of chapters.json; broken_input_test.py has the files that are refused."""

import re

from plots.draw.results import newest
from plots.measure.chapters import read_chapters
from plots.measure.files import read_rows
from tests.docs.plots_case import ROOT, PlotsCase, describe, main, row, save


class DataTest(PlotsCase):
    def test_a_chapter_that_chooses_its_tile_has_no_default(self):
        describe(self.repo, "02_tiled", "01_naive", tile_clusters=["128x64 with 1x1"], chooses_tile=True)
        self.assertEqual([c.tile for c in read_chapters(self.repo)], ["128x64", "", "128x64"])

    def test_what_a_chapter_computes_unless_told_otherwise(self):
        for fmt, clusters, found in (("bf16", ["128x64 with 1x1", "64x64 with 1x1"], ("bf16", "", "128x64")),
                                     ("f32", ["256x256 with 2x1", "128x256 with 1x1"], ("bf16", "f32", "256x256 2x1")),
                                     ("nvfp4", ["128x256 with 1x1", "256x256 with 2x1"], ("nvfp4", "", "128x256 1x1")),
                                     ("mxfp4", [], ("mxfp4", "", ""))):
            describe(self.repo, "02_tiled", "01_naive", fmt, tile_clusters=clusters)
            chapter = read_chapters(self.repo)[1]
            self.assertEqual((chapter.format, chapter.d, chapter.tile), found)

    def test_counts_are_no_measurements(self):
        self.data.mkdir(parents=True)
        (self.data / "counts.csv").write_text("chapter,set,order,counter,value\n01_naive,smoke,0,bytes,3\n")
        self.assertEqual(read_rows(self.data), [])

    def test_every_chapter_of_the_tree_says_what_the_ladder_needs(self):
        chapters = read_chapters(ROOT)
        for before, chapter in zip([None, *chapters], chapters):
            self.assertTrue(chapter.title and re.fullmatch(r"sm_\d+a?", chapter.arch), chapter)
            known = [c.id for c in chapters if c.id < chapter.id]
            self.assertIn(chapter.previous, known if before else [""], chapter)

    def test_newest_keeps_one_row_for_each_measurement(self):
        save(self.data / "a.csv", [row("01_naive", "prefill", [8], 3, date="2026-03-01"),
                                   row("01_naive", "prefill", [8], 2)])
        self.assertEqual([r.tflops for r in newest(read_rows(self.data))], [3])


if __name__ == "__main__":
    main()
