# SPDX-License-Identifier: MIT
"""What one rung promises beyond a right D, as chapters/<id>/checks/promises_test.py asks it: helpers of these tests.

They run with the environment variable GG_BUILD, the build tree. A promise of a chapter holds for those after it too, so that most tests
go through `products_after`. A chapter that was not built is left out."""

import csv
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from chapters.lineage import descendants, described

BUILD = Path(os.environ["GG_BUILD"])
ORDERS = "0:fair", "1:skew", "2:skew"


class Promises(unittest.TestCase):
    MULTIPROCESSORS = 132  # of the emulated GPU
    about: dict[str, dict]  # what each chapter says of itself, by id

    @classmethod
    def setUpClass(cls) -> None:
        cls.about = described(BUILD)

    def built_after(self, chapter: str) -> list[str]:
        """This chapter and those after it for the same architecture, of which each group has the same N and K."""
        return [each for each in descendants(chapter, self.about) if (BUILD / "bin" / each).is_file()
                and self.about[each]["arch"] == self.about[chapter]["arch"] and self.about[each]["limits"]["own_sizes"] == "never"]

    def products_after(self, chapter: str) -> list[str]:
        """Those of them whose D is the rounded product A B: they have no epilogue."""
        return [each for each in self.built_after(chapter) if not {"epilogue", "product"} & self.about[each].keys()]

    def before(self, chapter: str) -> list[str]:
        """The chapter before, in a list; nothing where it is not built."""
        previous = self.about[chapter]["previous"]
        return [previous] if (BUILD / "bin" / previous).is_file() else []

    def run_chapter(self, chapter: str, *options: str) -> None:
        command = [BUILD / "bin" / chapter, "--device", "emu", *options]
        done = subprocess.run(command, capture_output=True, text=True,
                              env=os.environ | {"GG_EMU_MULTIPROCESSORS": str(self.MULTIPROCESSORS)})
        self.assertEqual(done.returncode, 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")

    def checked(self, chapter: str, *options: str) -> dict[str, bytes]:
        """The tensors of a problem whose D was checked, by file name."""
        with tempfile.TemporaryDirectory() as folder:
            self.run_chapter(chapter, "--check", *options, "--out", folder)
            return {path.name: path.read_bytes() for path in Path(folder).iterdir()}

    def launched(self, chapter: str, *options: str) -> dict[str, bytes]:
        """Those of one launch, not checked: bits that are those of a checked problem are right."""
        with tempfile.TemporaryDirectory() as folder:
            self.run_chapter(chapter, "--bench", *options, "--out", folder)
            return {path.name: path.read_bytes() for path in Path(folder).iterdir()}

    def counted(self, chapter: str, *options: str) -> dict[str, int]:
        """The counters of one launch."""
        with tempfile.TemporaryDirectory() as folder:
            table = Path(folder, "counts.csv")
            self.run_chapter(chapter, "--bench", *options, "--counts-csv", str(table))
            with open(table, newline="", encoding="utf-8") as file:
                return {row["counter"]: int(row["value"]) for row in csv.DictReader(file)}

    def assert_same(self, first: dict[str, bytes], other: dict[str, bytes], chapter: str) -> None:
        """Two problems' tensors are the same bits."""
        self.assertEqual(first.keys(), other.keys(), chapter)
        for name in first:
            self.assertTrue(first[name] == other[name], f"{chapter}: {name} has other bits")
