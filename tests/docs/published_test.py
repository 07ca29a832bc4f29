# SPDX-License-Identifier: MIT
"""What is published is what the committed data say: every table, every marked number; no other number in a sentence about
results (sections Measured, Counted and "What limits it now"; predictions are older than the results), nor in a table made by hand, is
new. Nothing in the tree changes.

The others stand in a chapter's checks/numbers.txt, a line for each reason and for each table with such numbers, in the order of the
README; for other Markdown, in unfilled_tables.txt. Every one of them must be there still. The reasons:

    size  of the problem, the tile or the chip: no run changes it
    sum   worked out in the sentence itself, or in the table, of sizes and of numbers that stand beside it
    once  measured, counted or printed once, at a commit or on a card that the text or the worklog names
    fact  of an instruction, a barrier, a format or the chip (tables)
"""

import math
import re
import statistics
import unittest
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

from plots.draw import front_page, plot, results, sentence_numbers, tables
from plots.draw.changes import History
from plots.measure import sets
from plots.measure.chapters import read_chapters
from plots.measure.files import DATA, Choices, Row

ROOT = Path(__file__).resolve().parents[2]
IN_TABLES = Path(__file__).with_name("unfilled_tables.txt")
WORDS = {9: "nine", 10: "ten", 12: "twelve", 30: "thirty"}
HINT = "edit the data, not what is made of them: cmake --build build --target publish"


def between(text, mark):
    found = re.search(rf"(?s)<!-- {mark} -->\n(.*?)\n<!-- /{mark} -->", text)
    return found and found[1]


def listed(readme, where):
    """The (reason, numbers) that a README's checks/numbers.txt lists of its sentences or of its tables."""
    path = readme.parent / "checks" / "numbers.txt"
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        if not line.startswith("#"):
            what, _, numbers = line.partition(": ")
            kind, reason = what.split()
            if kind not in ("sentence", "table"):
                raise ValueError(f"{path}: {line}: wants sentence or table, a reason, and numbers behind a colon")
            found += [(reason, numbers)] if kind == where else []
    return found


def not_in_tables(text, results=""):
    """The unmarked numbers of a README's sentences that are in none of its generated tables, nor in its results.md: line and
    number."""
    # A README speaks of one card.
    results = re.sub(r"(?s)\n## Measured on .*?(?=\n## |\Z)", "", results)
    filled = " ".join([results, *(table for _, table in re.findall(r"(?s)<!-- (\w+) -->(.*?)<!-- /\1 -->", text))])
    known = set(re.findall(r"\d[\d,]*(?:\.\d+)?", filled))
    return [(line, number) for line, number in sentence_numbers.unmarked(text) if number not in known]


def blank(found):
    return re.sub(r"[^\n]", " ", found[0])


def tables_by_hand(text):
    """The tables of a README that no tool writes, each as the texts of its cells, without marked numbers."""
    text = re.sub(r"(?s)<!-- (\w+) -->.*?<!-- /\1 -->|```.*?```", blank, sentence_numbers.MARKED.sub(blank, text))
    found, inside = [], False
    for line in text.splitlines():
        if line.startswith("|"):
            found += [] if inside else [[]]
            line = re.sub(r"`[^`]*`|\\\|", lambda each: each[0].replace("|", "/"), line)
            found[-1] += [cell.strip() for cell in line.split("|")[1:-1]]
        inside = line.startswith("|")
    return found


PLACE = r"(\d+)(?:st|nd|rd|th)(?=:)"  # of a problem in its set
# How a cell tells a problem's sizes, and when that is so of a problem of these rows, N and K.
SIZES = {r"(?<!\w)G=(\d+)": lambda m, n, k, x: len(m) == x, r"(\d+)(?= groups)": lambda m, n, k, x: len(m) == x,
         r"groups of (\d+) rows": lambda m, n, k, x: round(sum(m) / len(m)) == x,  # their mean
         r"(\d+)(?= to \d+ rows)": lambda m, n, k, x: min(m) == x, r"to (\d+) rows": lambda m, n, k, x: max(m) == x,
         r"(?<=[:,] )(\d+) rows": lambda m, n, k, x: sum(m) == x, r"(?<!\w)M=(\d+)": lambda m, n, k, x: x in (sum(m), max(m)),
         r"(?<![\w=])N=(?:K=)?(\d+)": lambda m, n, k, x: n == x, r"(?<!\w)K=(\d+)": lambda m, n, k, x: k == x}


def without_sizes(cell):
    """A cell without the sizes of the problem that it names, as P8 or `moe`, if they are that problem's; or None: they are not."""
    name = re.match(r"P(?P<place>\d+)\b|`?(?P<set>\w+)`?(?=:|, \d)", cell)
    known = name and sets.problems().get(name["set"] or "peers")
    if not known:
        return cell
    place = name["place"] or (re.findall(PLACE, cell) or [""])[0]
    if place:
        known = known[int(place) - 1:int(place)]
    asked = [(holds, int(number)) for pattern, holds in SIZES.items() for number in re.findall(pattern, cell)]
    if not any(all(holds(*problem, number) for holds, number in asked) for problem in known):
        return None
    return re.sub("|".join([PLACE, *SIZES]), "", cell)


def unlisted(cells):
    """The numbers of a table's cells, without those of code, links and names: of chapters, of problems and of their sizes."""
    for cell in cells:
        rest = without_sizes(cell)
        if rest is None:
            raise ValueError(f"{cell}: no problem of that name has these sizes")
        rest = re.sub(r"`[^`]*`|\]\([^)]*\)|(?<![\w,.])(?:P\d+|0\d\w*)", "", rest)
        yield from re.findall(r"(?<![\w.])\d(?:[\d,]*\d)?(?:\.\d+)?", rest)


def without_ages(text):
    """A table without the sentences on kernels that have changed since."""
    return re.sub(r"(?m)^The kernels? of .* changed since commit .*$\n?", "", text).strip()


class PublishedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.data = plot.Data([ROOT / DATA], "", read_chapters(ROOT))
        cls.said = sentence_numbers.MarkedNumbers(cls.data, sentence_numbers.counted(ROOT / DATA))
        cls.history = History(ROOT)
        cls.readmes = [ROOT / "README.md", ROOT / "chapters" / "LADDER.md", *(chapter.readme for chapter in cls.data.chapters)]

    def test_tables(self):
        history, found = self.history, 0
        for readme, mark, text in tables.all_tables(ROOT, self.data, history):
            there = between(readme.read_text(encoding="utf-8"), mark)
            if there is None:
                continue
            if history.lacking:  # without the history nobody can say which kernels have changed
                there, text = map(without_ages, (there, text))
            with self.subTest(readme=readme.relative_to(ROOT).as_posix(), table=mark):
                self.assertEqual(there, text, HINT)
            found += 1
        self.assertGreater(found, 2 * len(self.data.chapters))

    def test_pages(self):
        history = self.history
        for page, text in tables.pages(ROOT, self.data, history):
            there = page.read_text(encoding="utf-8")
            if history.lacking:
                there, text = map(without_ages, (there, text))
            with self.subTest(page=page.relative_to(ROOT).as_posix()):
                self.assertEqual(there, text, HINT)

    def test_marked_numbers(self):
        for readme in self.readmes:
            text = readme.read_text(encoding="utf-8")
            self.assertNotRegex(text, r"(?m)^ *<!-- n:", "a line that opens with a comment is no part of a paragraph")
            for mark, number in sentence_numbers.MARKED.findall(text):
                with self.subTest(readme=readme.relative_to(ROOT).as_posix(), mark=mark):
                    self.assertEqual(number, self.said.text(mark), HINT)

    def test_numbers_of_the_front_page(self):
        """Those that no mark can name: of libraries. And what its sentences say of its table."""
        text, ladder = (" ".join((ROOT / page).read_text(encoding="utf-8").split()) for page in ("README.md", "chapters/LADDER.md"))
        best = results.best_peer(self.data.of_set("prefill")[0])
        ours = next(row for row in self.data.of_set("prefill")[0] if (row.chapter, row.peer) == (best.chapter, ""))
        uneven = min(row.us_median for row in self.data.of_set("skewed")[0]
                     if row.chapter == best.chapter and row.peer.startswith("cublas") and results.run_of(row) == results.run_of(ours))
        fastest = next(row for row in self.data.of_set("skewed")[0] if (row.chapter, row.us_median) == (best.chapter, uneven))
        self.assertEqual(best.peer, "cublas_strided")
        grouped = next(row for row in self.data.of_set("skewed")[0] if (row.chapter, row.peer) == (best.chapter, "cublas_grouped"))
        self.assertEqual((fastest.peer, results.run_of(grouped)), ("cublas_loop", results.run_of(ours)))
        self.assertIn(f"cuBLAS {best.tflops:.0f}; on 32 groups of {min(sets.problems()['skewed'][0][0])} to {fastest.m_max} rows 07l makes",
                      text)
        self.assertIn(f", a loop of cuBLAS calls {fastest.tflops:.0f} and its grouped call {grouped.tflops:.0f}. On thirty", text)
        self.assertTrue(results.within_noise(ours, best))
        beside_01 = next(row for row in self.data.of_set("prefill")[0] if (row.chapter, row.peer) == ("01_naive", best.peer))
        self.assertIn(f"cuBLAS makes {best.tflops:.0f} beside 07l and {beside_01.tflops:.0f} beside 01", ladder)
        self.assertIn(f"cuBLAS makes {best.tflops:.0f} on `prefill` beside 07l, and {beside_01.tflops:.0f} beside 01", text)
        self.assertLess(max(best.clock_mhz, best.clock_after_mhz), min(beside_01.clock_mhz, beside_01.clock_after_mhz))
        times = {name: {row.chapter.split("_")[0]: row.us_median for row in self.data.of_set(name)[0] if row.timed and not row.peer}
                 for name in ("prefill", "skewed", "decode")}
        for before, after in pairwise(front_page.MILESTONES):
            self.assertTrue(any(some[after] < some[before] for some in times.values()), f"{after} is faster than {before} nowhere")
        for name, some in times.items():  # 03's lesson says so, too
            self.assertLess(some["03"], min(some[each] for each in "04 05a 05b 06a 06b".split() if each in some), name)
        self.assertEqual(times["decode"]["03"], min(times["decode"][each] for each in front_page.MILESTONES))
        third, last = (next(row for row in self.data.of_set("decode")[0] if (row.chapter, row.peer) == (chapter, ""))
                       for chapter in ("03_tensor_cores", "07l_peak_hopper"))
        self.assertTrue(results.within_noise(third, last), "the front page says that nothing is gained after 03")

    def test_libraries(self):
        front, text = (" ".join((ROOT / page).read_text(encoding="utf-8").split()) for page in ("README.md", "chapters/LADDER.md"))
        rows = [row for row in self.data.compared if row.chapter == "07l_peak_hopper" and row.timed and row.peer != "cublas_plain"]
        found = tables.problems_of(rows)
        sizes = Counter(name for name, _ in found)
        self.assertEqual(set(sizes), {"peers", "moe", "ragged", "drawn"})
        self.assertIn(f"[All {len(found)} problems]", text)
        drawn, apart, outcomes = [], [], {"": Counter(), "pdl": Counter()}
        for (name, shape), each in found.items():
            library, ours = tables.fastest(each, True), each["", Choices(), True]
            drawn += [(library.us_median / ours.us_median, shape, library.version.split()[0])] * (name == "drawn")
            for off, some in outcomes.items() if name == "drawn" else ():
                some[tables.outcome(library, each["", Choices(off=off), True])] += 1
            for way in {("", Choices(), True), ("", Choices(off="pdl"), True)} & set(each):
                ratio = library.us_median / each[way].us_median
                apart += [100 * abs(1 - ratio)] * (tables.outcome(library, each[way]) == "level")
        self.assertIn(f"(medians up to {max(apart):.0f} % apart)", text)
        mean = math.exp(statistics.fmean(math.log(ratio) for ratio, *_ in drawn))
        self.assertIn(f"On `drawn`, with an early start, 07l takes {100 - 100 / mean:.0f} % less time than the fastest library on the "
                      "geometric mean", text)
        self.assertEqual(len(drawn), 30)
        without, early = (f"t is faster on {some['won']}, level on {some['level']} and slower on {some['lost']}" for some in
                          (outcomes["pdl"], outcomes[""]))
        self.assertIn(f"the fastest of cuBLAS, CUTLASS, PyTorch and Triton. I{without}. With the early start that CUTLASS and Triton use, "
                      f"i{early}, at worst by {100 / min(drawn)[0] - 100:.0f} %", front)
        ratio, (groups, m_total, m_max, n, k), library = min(drawn)
        rows = f"{'' if groups * m_max == m_total else 'at most '}{m_max} rows"
        self.assertIn(f"on {groups} groups of {rows}, N={n} K={k}, {100 / ratio - 100:.0f} % more than {library}.", text)

    def test_gradients(self):
        text = " ".join((ROOT / "chapters/LADDER.md").read_text(encoding="utf-8").split())
        chapter = next(each for each in self.data.chapters if each.id == "10a_weight_gradient")
        ratios, outcomes = [], []
        for ours in self.data.rows_of(chapter):
            if (ours.chapter, ours.set, ours.peer, ours.warm, ours.choices) != (chapter.id, "wgrad", "", False, Choices(d="bf16")):
                continue
            wanted = chapter.id, "wgrad", ours.shape, False, Choices()
            library = min((row for row in self.data.rows_of(chapter)
                           if row.peer and (row.chapter, row.set, row.shape, row.warm, row.choices) == wanted),
                          key=lambda row: row.us_median)
            ratios.append(library.us_median / ours.us_median)
            outcomes.append(tables.outcome(library, ours))
        won, level, lost = (outcomes.count(each) for each in ("won", "level", "lost"))
        self.assertIn(f"{WORDS[len(ratios)]} problems with D of bf16: 10a is ahead on {won}, level on {level} and behind on {lost}, "
                      "beside the fastest of five libraries.", text)

    def test_no_other_number_is_new(self):
        for readme in self.readmes[2:]:
            name, allowed = readme.parent.name, listed(readme, "sentence")
            self.assertLessEqual({reason for reason, _ in allowed}, {"size", "sum", "once"}, name)
            left = [number for _, numbers in allowed for number in numbers.split()]
            results = readme.with_name("results.md").read_text(encoding="utf-8")
            for line, number in not_in_tables(readme.read_text(encoding="utf-8"), results):
                with self.subTest(readme=name, line=line):
                    self.assertIn(number, left, f"line {line}: mark it, as plots/draw/sentence_numbers.py says, or leave it out")
                    left.remove(number)
            self.assertEqual(left, [], f"{name}: no longer there, take it out of its checks/numbers.txt")


class TablesByHandTest(unittest.TestCase):
    """A number in a table that no tool writes is marked, one of its problem's sizes, or listed."""

    REASONS = {"fact", "sum", "once"}

    def test_every_number_is_listed(self):
        allowed, self.maxDiff = {}, None
        for line in IN_TABLES.read_text(encoding="utf-8").splitlines():
            if not line.startswith("#"):
                what, _, numbers = line.partition(": ")
                path, reasons = what.split()
                self.assertLessEqual(set(reasons.split(",")), self.REASONS, line)
                allowed.setdefault(path, []).append(numbers)
        for path in sorted(ROOT.glob("chapters/*/README.md")):
            for reason, numbers in listed(path, "table"):
                self.assertLessEqual(set(reason.split(",")), self.REASONS, path)
                allowed.setdefault(path.relative_to(ROOT).as_posix(), []).append(numbers)
        for path in [ROOT / "README.md", *sorted(ROOT.glob("chapters/*/README.md")), *sorted(ROOT.glob("plots/**/*.md"))]:
            name = path.relative_to(ROOT).as_posix()
            with self.subTest(name):
                lines = [" ".join(unlisted(cells)) for cells in tables_by_hand(path.read_text(encoding="utf-8"))]
                self.assertEqual([line for line in lines if line], allowed.pop(name, []),
                                 "mark what is new as plots/draw/sentence_numbers.py says, or list it: checks/numbers.txt, "
                                 "unfilled_tables.txt")
        self.assertEqual(allowed, {}, "no such README")

    def test_what_is_looked_for(self):
        text = "| a | b |\n| --- | --- |\n| P1: G=8, M=512 each, N=64 | 3.24 µs `7` |\n| `moe`, 3rd: 16384 rows | **1,200** \\| 4 |\n\n" \
               "<!-- table -->\n| 99 |\n<!-- /table -->\n" \
               "| <!-- n: 01.smoke.instructions -->7,059<!-- /n --> | 07l, `a || b` | -5 % of 0.25 |\n"
        self.assertEqual([list(unlisted(cells)) for cells in tables_by_hand(text)], [["3.24", "1,200", "4"], ["5", "0.25"]])
        for cell in ("P1: G=9", "P1: N=64, K=513", "P11: K=512", "`moe`, 4th: 16384 rows, N=7168, K=2048", "`decode`: 513 rows",
                     "ragged: 5 groups of 39 rows", "P9: 490 to 4097 rows", "P9: G=8 groups of 491 to 4096 rows", "P2: M=2047 each"):
            with self.assertRaises(ValueError, msg=cell):
                list(unlisted([cell]))


class MarksTest(unittest.TestCase):
    def test_marks_that_say_nothing(self):
        marks = sentence_numbers.MarkedNumbers(plot.Data([], "", []), {("one", "smoke"): {"instructions": 1200}})
        marks.ids = {"01": "one"}
        self.assertEqual(marks.text("01.smoke.instructions"), "1,200")
        self.assertEqual(marks.text("(01.smoke.instructions + 3) / 7 as .2f"), "171.86")
        for mark in ("01.smoke.other", "02.smoke.instructions", "__import__('os')", "01.smoke.instructions; 1"):
            with self.assertRaises(sentence_numbers.BadMark, msg=mark):
                marks.text(mark)

    def test_marks_of_times(self):
        def row(us, name, shape, **more):
            groups, m_total, m_max, n, k = shape
            return Row(chapter="01_one", set=name, groups=groups, m_total=m_total, m_max=m_max, n=n, k=k, us_median=us,
                       **dict(ok=True) | more)

        first, second, decode = (8, 4096, 512, 64, 512), (8, 16384, 2048, 64, 2048), (32, 512, 143, 4096, 7168)
        rows = [row(1.5, "peers", first), row(2.5, "peers", second), row(2.25, "peers", second, warm=True),
                row(99, "peers", second, peer="x"),
                row(98, "peers", second, variant="64x64"), row(97, "peers", second, ok=False), row(7.5, "decode", decode)]
        elsewhere = [row(3.5, "peers", second, device="NVIDIA H200"), row(4.5, "peers", second, device="NVIDIA H100 PCIe")]
        data = SimpleNamespace(chapters=[SimpleNamespace(id="01_one")], rows_of=lambda _: rows, everywhere=rows + elsewhere, counts={})
        marks = sentence_numbers.MarkedNumbers(data, {})
        for mark, text in (("01.peers1.cold.us_median", "2"), ("01.peers2.cold.us_median as .1f", "2.5"),
                           ("01.peers2.warm.us_median / 01.peers1.cold.us_median as .2f", "1.50"),
                           ("1000 * 01.decode.cold.us_median", "7,500"), ("2 * 01@H200.peers2.cold.us_median", "7")):
            self.assertEqual(marks.text(mark), text, mark)
        for mark in ("01.peers3.cold.us_median", "01.peers1.warm.us_median", "01@H200.peers1.cold.us_median"):
            with self.assertRaises(sentence_numbers.BadMark, msg=mark):
                marks.text(mark)

    def test_numbers_that_nothing_fills_are_found(self):
        text = "# 9,999\n## Measured\n3 % and 4,567 of 8 blocks, `5 %`, 2048 rows\n| 7 % |\n" \
               "<!-- n: 01.smoke.instructions -->1,200<!-- /n --> and 12.5 µs\n\n" \
               "**Predicted.** 77 % and\n66 %.\n\n## Exercises\n99 %\n"
        self.assertEqual(sentence_numbers.unmarked(text), [(3, "3"), (3, "4,567"), (3, "2048"), (5, "12.5")])
        self.assertEqual(not_in_tables(text + "<!-- table -->\n| 4,567 | 12.5 |\n<!-- /table -->\n"),
                         [(3, "3"), (3, "2048")])


if __name__ == "__main__":
    unittest.main()
