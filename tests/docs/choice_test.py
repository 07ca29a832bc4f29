# SPDX-License-Identifier: MIT
"""gg-choice: what 07l's estimate loses on timed problems, and that its lesson says so."""

import math
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ["GG_PROGRAMS"]) / "gg-choice"
COMMITTED = ROOT / "plots/measure/data/choice.csv"
COLUMNS = COMMITTED.read_text(encoding="utf-8").splitlines()[0]


def text_of(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else ""


def ran(*words: object) -> subprocess.CompletedProcess:
    return subprocess.run([str(PROGRAM), *map(str, words)], capture_output=True, text=True)


class ChoiceTest(unittest.TestCase):
    def ran_on(self, *lines: str) -> subprocess.CompletedProcess:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "times.csv"
            file.write_text("\n".join(lines) + "\n", encoding="utf-8")
            return ran(file)

    def test_the_lesson_has_its_figures(self):
        done = ran(COMMITTED)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lesson = (ROOT / "chapters/07l_peak_hopper/README.md").read_text(encoding="utf-8")
        for kind, tried in ((kind, tried) for kind in ("fitted", "unseen", "of sets") for tried in (1, 2, 3)):
            timed, _, mean, worst, over = re.search(rf"(?m)^{kind} +(\d+) +(\d+) +{tried} +(\S+ %) +(\S+ %) +(\d+)$", done.stdout).groups()
            if (kind, tried) in (("fitted", 1), ("of sets", 1)) or kind == "unseen":
                self.assertIn(f"| {mean} | {worst} | {over} of {timed} |", lesson)

    def test_one_problem_of_each_kind(self):
        # By the estimate P1's tiles are 64x64, then two splits, then 128x64: the sixth of eight
        # times, the seventh, the fifth.
        times = [12.0, 11.0, 10.0, 9.0, 2.0, 2.5, 6.0, 5.0]
        p1 = "x,2026-01-01,132,3352,{},512 512 512 512 512 512 512 512,64,512," + ",".join(map(str, times))
        other = p1.replace(",2.0,", ",7.0,")
        done = self.ran_on(COLUMNS, p1.format("fitted"), other.format("peers"), other.replace(",2.5,", ",,").format("peers"),
                           p1.replace(",12.0,", ",1.25,").format("unseen"))
        self.assertEqual(done.stderr, "")
        for line in ("fitted 1 0 1 25.0 % 25.0 % 1", "fitted 1 0 2 25.0 % 25.0 % 1", "fitted 1 0 3 0.0 % 0.0 % 0",
                     "of sets 1 1 1 0.0 % 0.0 % 0", "unseen 1 0 1 100.0 % 100.0 % 1", "unseen 1 0 3 60.0 % 60.0 % 1"):
            self.assertRegex(done.stdout, "(?m)^" + line.replace(" ", " +") + "$")
        self.assertIn("the worst choice: G=8 M=4096 N=64 K=512: 2.5 us with 64x64 1x1, 1.25 with 256x128 1x1", done.stdout)

    def test_the_option_tile_names_each_size(self):
        """A size that --tile does not name could not be timed; one that is no configuration would run as another."""
        chapters = [folder for folder in sorted((ROOT / "chapters").iterdir()) if "for_each_config(F f)" in text_of(folder / "choose.cuh")]
        self.assertGreaterEqual({folder.name[:3] for folder in chapters}, {"07l", "07m", "07n", "07o", "07p", "07r"})
        for folder in chapters:
            # 07l: <consumers of 64 columns, rows, stages, blocks along N, along K>;
            # 07p: <rows, stages, blocks of 128>.
            made = set()
            for words in re.findall(r"f\(Config<([\d, ]+)>", text_of(folder / "choose.cuh")):
                numbers = [int(word) for word in words.split(", ")]
                if numbers[0] > 2:  # no number of consumers, so rows
                    made.add((numbers[0], 128 * (numbers[2] if len(numbers) > 2 else 1)))
                else:
                    made.add((numbers[1], 64 * numbers[0], *([math.prod(numbers[3:])] if numbers[3:] else [])))
            line = re.search(r"\.tiles =\s+\{(.*)\},", text_of(folder / "main.cu"))[1]
            named = [tuple(map(int, tile.split(", "))) for tile in re.findall(r"\{([\d, ]+)\}", line)]
            with self.subTest(chapter=folder.name):
                self.assertEqual((made, len(named)), (set(named), len(made)))

    def test_refusals(self):
        line = "x,2026-01-01,132,3352,fitted,64 64,64,512,1,1,1,1,1,1,1,1"
        for lines, sentence in (((COLUMNS + ",more", line), "other columns"),
                                ((COLUMNS, line + ",1"), "line 2: 17 fields, 16 are wanted"),
                                ((COLUMNS, line, line.replace("64 64", "64 many")), "line 3: 'many' is no number")):
            done = self.ran_on(*lines)
            self.assertEqual(done.returncode, 2)
            self.assertIn(sentence, done.stderr)
        self.assertEqual(ran().returncode, 2)
        self.assertIn("cannot be read", ran("no-such-file.csv").stderr)


if __name__ == "__main__":
    unittest.main()
