# SPDX-License-Identifier: MIT
"""The committed measurements agree with themselves, and an edited digit is found: planted in copies of them."""

import contextlib
import csv
import io
import random
import shutil
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from plots.measure import columns, sets
from plots.measure.files import COLUMNS

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path("plots/measure/data/h200")
# D of f32; every set, libraries, sustained rows.
FILES = ["06b_wgmma_multi_k.csv", "07l_peak_hopper.csv"]


class ColumnsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.repo = Path(folder.name)
        (self.repo / FOLDER).mkdir(parents=True)
        (self.repo / "chapters").symlink_to(ROOT / "chapters")
        for name in FILES:
            shutil.copy(ROOT / FOLDER / name, self.repo / FOLDER / name)

    def rows(self, name):
        with open(self.repo / FOLDER / name, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def found_with(self, name, at, **changed):
        """The sentences about a file of which one row is changed, and the lines they name."""
        path = self.repo / FOLDER / name
        before, rows = path.read_bytes(), self.rows(name)
        rows[at].update(changed)
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        found = list(columns.faults(self.repo))
        path.write_bytes(before)
        return found

    def test_the_committed_data(self):
        self.assertEqual(list(columns.faults(ROOT)), [])

    def test_what_is_found_is_said_and_fails(self):
        for found, code, said in (([], 0, ""), ([("a.csv", 3, "k is 1")], 1, "a.csv:3: k is 1\n")):
            with mock.patch.object(columns, "faults", lambda repo, found=found: found), mock.patch.object(sys, "argv", ["columns"]), \
                    contextlib.redirect_stdout(io.StringIO()) as out:
                self.assertEqual((columns.main(), out.getvalue()), (code, said))

    def test_an_edited_digit_is_found(self):
        draw = random.Random(5)
        for column in ("us_median", "tflops", "gbytes_per_s", "roof_tflops", "m_total", "m_max", "n", "k", "groups"):
            for name in FILES:
                with self.subTest(column=column, file=name):
                    rows = self.rows(name)
                    at = draw.choice([i for i, row in enumerate(rows) if row[column]])
                    text = rows[at][column]
                    digit = draw.choice([i for i in range(min(5, len(text))) if text[i].isdigit()])
                    other = text[:digit] + str((int(text[digit]) + draw.randrange(1, 9)) % 10) + text[digit + 1:]
                    lines = {line for _, line, _ in self.found_with(name, at, **{column: other})}
                    self.assertEqual(lines, {at + 2}, f"{text} became {other}")

    def test_what_cannot_be(self):
        for changed, told in [
                (dict(warm="2"), "warm is 2, want 0 or 1"), (dict(ok="yes"), "ok is 'yes', want a whole number"),
                (dict(us_p10="9999"), "want them in order"), (dict(us_p90="0.5"), "want them in order"),
                (dict(commit="0123456789ab"), None), (dict(set="decode"), "set decode has no problem of groups=8"),
                (dict(chapter="07j_split_k"), "chapter is 07j_split_k, want 07l_peak_hopper"),
                (dict(device="NVIDIA H100"), "want that of h200"), (dict(date="2026-11"), "want a day"),
                (dict(tflops=""), "want all three"), (dict(roof_kind=""), "want both or none"),
                (dict(clock_mhz="1x"), "want a number or nothing"), (dict(kernel="grouped_gemm d=f32"), "GB/s")]:
            with self.subTest(changed):
                found = [sentence for _, _, sentence in self.found_with(FILES[1], 0, **changed)]
                if told:
                    self.assertTrue(any(told in sentence for sentence in found), found)
        self.assertTrue(columns.known_commit(self.repo, "0123456789ab") is None, "no git there, so nothing is said")

    def test_commits(self):
        known = columns.known_commit(ROOT, self.rows(FILES[0])[0]["commit"])
        if known is None:
            self.skipTest("no git history here: whether the commits of measurements are known is not tested")
        self.assertTrue(known)
        self.assertFalse(columns.known_commit(ROOT, "0123456789ab"))
        self.assertFalse(columns.known_commit(ROOT, self.rows(FILES[0])[0]["commit"] + "-dirty"))

    def test_shapes_of_sets(self):
        for name, count in dict(prefill=1, step=14, skew=7, peers=10, moe=9, helion=2, ragged=12).items():
            self.assertEqual(len(sets.problems()[name]), count, name)
        self.assertEqual(sum(rows > 0 for rows in sets.problems()["skewed"][0][0]), 26)
        # The test of shape sets in tests/harness/verify_test.cpp has these too.
        for shape in ((7, 251, 48, 2944, 512), (8, 1772, 383, 1792, 1152), (29, 11948, 412, 640, 512)):
            self.assertTrue(sets.rows_of("ragged", shape), shape)


if __name__ == "__main__":
    unittest.main()
