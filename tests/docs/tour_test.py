# SPDX-License-Identifier: MIT
"""The tour with programs that answer as chapters do: what it keeps, and how it ends. No GPU is needed."""

import contextlib
import io
import re
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from common.tour import tour

# A chapter's program. It says what it is asked; the table is its last argument. On the emulator
# it appends two tables, the second behind what BENCH may end; on a GPU the rows of the set that
# it is asked for.
CHAPTER = r"""#!/bin/sh
# {made}
for table; do :; done
case "$*" in
  --describe) echo '{{"title": "an idea", "sets": {sets}}}'; exit 0;;
  *"{absent}"*) exit 77;;
  *--check*) echo checked; {check};;
  *gpu*prefill*) printf 'set,warm,peer,tflops,roof_tflops,us_median\n' > "$table"
    printf 'prefill,%s\n' 0,cublas_strided,700,800,9 1,,600,800,1300 0,,500.04,800,1234 >> "$table"; {bench};;
  *gpu*decode*) printf 'decode,%s\n' 0,,20,80,356.78 0,cublas_grouped,30,80,222 >> "$table"; {bench};;
  *--bench*) printf 'chapter,set,order,counter,value\n' >> "$table"
    printf 'x,smoke,0:fair,%s\n' useful_multiply_adds,1500 >> "$table"
    {bench}
    printf 'x,smoke,0:fair,%s\n' instructions,8 shared_bank_conflicts,12345 global_load_bytes,64 global_store_bytes,32 \
      global_atomic_bytes,6 global_load_sectors,4 global_store_sectors,2 global_atomic_sectors,1 >> "$table";;
esac
"""


class TourTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = Path(folder.name)
        (self.build / "bin").mkdir()

    def program(self, name, text):
        (self.build / "bin" / name).write_text(text)
        (self.build / "bin" / name).chmod(0o755)

    def chapter(self, name, result=0, check=":", absent="nowhere", sets='["smoke", "prefill", "decode"]'):
        """A program that passes, or of which --bench ends with a result, or --check by a command; on the device that is absent
        it ends with 77."""
        bench = f"exit {result}" if result else ":"
        self.program(name, CHAPTER.format(made=result, bench=bench, check=check, absent=absent, sets=sets))

    def run_tour(self, *names, terminal=False, device=""):
        """Exit code and output of the tour of these chapters on a machine with this GPU, or none."""
        out = io.StringIO()
        out.isatty = lambda: terminal
        with mock.patch.object(tour, "find_device", lambda: device), contextlib.redirect_stdout(out), \
                mock.patch.object(sys, "argv", ["tour.py", "--build", str(self.build), *names]), \
                mock.patch.dict("os.environ"):
            code = tour.main()
        return code, out.getvalue()

    @staticmethod
    def ladder(out):
        """The tables that a tour ends with: each a list of lines, each line its cells by column."""
        tables = []
        for part in out.partition("\nCounts: ")[0].partition("\nmeasurements: ")[0].split("\n\n"):
            head, *lines = ([cell.strip() for cell in re.split(r" {2,}", line.strip())] for line in part.splitlines() or [""])
            if head[0] == "chapter":
                tables.append([dict(zip(head, line)) for line in lines])
        return tables

    def test_the_device_and_its_driver_are_named(self):
        def called(version, fails=()):
            def put(where, value):
                where._obj.value = value
                return 0

            return SimpleNamespace(cuInit=lambda flags: "cuInit" in fails, cuDeviceGet=lambda handle, at: "cuDeviceGet" in fails,
                                   cuDeviceGetName=lambda name, size, handle: setattr(name, "value", b"A GPU"),
                                   cuDriverGetVersion=lambda where: put(where, version))

        for driver, said in ((called(13010), "A GPU, driver for CUDA 13.1"), (called(12080), "A GPU, driver for CUDA 12.8"),
                             (called(13100), "A GPU, driver for CUDA 13.10"),
                             (called(13000, ["cuInit"]), ""), (called(13000, ["cuDeviceGet"]), "")):
            with mock.patch.object(tour.ctypes, "CDLL", lambda name, driver=driver: driver):
                self.assertEqual(tour.find_device(), said)
        with mock.patch.object(tour.ctypes, "CDLL", side_effect=OSError):
            self.assertEqual(tour.find_device(), "")

    def test_like_another_gpu_runs_no_chapter(self):
        ran = []

        def run(*command):
            ran.append([str(word) for word in command])
            (self.build / "tour" / "like-b200").mkdir(parents=True)
            (self.build / "tour" / "like-b200" / "tables.md").write_text("# T\n\n## The ladder\n\n| – |\n\n## 01_one\n\nmore\n")
            return 0

        out = io.StringIO()
        with mock.patch.object(tour, "run", run), contextlib.redirect_stdout(out), mock.patch.dict("os.environ"), \
                mock.patch.object(sys, "argv", ["tour.py", "--build", str(self.build), "--like", "b200", "01_one"]):
            self.assertEqual(tour.main(), 0)
        self.assertEqual([words[2:5] for words in ran], [["-m", "plots.draw.preview", "b200"]])
        self.assertIn("The ladder\n\n| – |", out.getvalue())
        self.assertNotIn("more", out.getvalue())

    def test_what_passed_is_counted_and_kept(self):
        self.chapter("01_one")
        code, out = self.run_tour("01_one")
        self.assertEqual(code, 0, out)
        self.assertIn("tour: 1 chapters passed, 0 failed, 0 not run", out)
        self.assertRegex(out, r"(?m)^page: .*tour/index\.html$")
        self.assertTrue((self.build / "tour" / "index.html").is_file())
        self.assertIn("passed on the emulator, kept from", self.run_tour("01_one")[1])
        (self.build / "lib" / "emu").mkdir(parents=True)
        for text in ("an emulator", "another"):
            (self.build / "lib" / "emu" / "libcudart.so.13").write_text(text)
            self.assertNotIn("kept from", self.run_tour("01_one")[1])
        self.assertIn("kept from", self.run_tour("01_one")[1])

    def test_a_chapter_that_was_run_ahead_is_of_this_tour(self):
        self.chapter("01_one")
        self.chapter("02_two", check="exit 1")
        for name, ends in (("01_one", r"passed on the emulator: 2\.667 instructions, .* for 1000 useful FLOP\n"),
                           ("02_two", r"FAILED on the emulator\n")):
            code, out = self.run_tour("--one", name)
            self.assertEqual(code, 0, out)
            self.assertRegex(out, rf"(?s)01_one --device emu --check.*\ntour: {name}  an idea  {ends}"
                             if name == "01_one" else rf"\ntour: {name}  an idea  {ends}")
        code, out = self.run_tour("01_one", "02_two")
        self.assertEqual(code, 1)
        self.assertNotIn("01_one --device emu", out)  # it was not run again
        self.assertNotIn("kept from", out)
        self.assertIn("02_two --device emu", out)  # what failed is
        self.assertIn("kept from", self.run_tour("01_one")[1])

    def test_on_a_gpu_nothing_is_run_ahead(self):
        self.chapter("01_one")
        code, out = self.run_tour("--one", "01_one", device="a GPU")
        self.assertEqual((code, out), (0, ""))

    def test_a_terminal_is_told_which_chapter_of_how_many(self):
        self.chapter("01_one")
        self.chapter("02_two")
        out = self.run_tour("02_two", "01_one", terminal=True)[1]
        first, second = out.index("\ntour: chapter 1 of 2, 01_one\n"), out.index("\ntour: chapter 2 of 2, 02_two\n")
        self.assertLess(first, out.index("01_one --device emu --check"))
        self.assertLess(out.index("01_one --device emu --check"), second)
        self.assertLess(second, out.index("02_two --device emu --check"))
        self.assertNotIn("tour: chapter", self.run_tour("01_one", "02_two")[1])  # piped

    def test_a_failed_run_leaves_the_earlier_table_whole(self):
        self.chapter("01_one")
        self.run_tour("01_one")
        table = self.build / "tour" / "01_one.counts.csv"
        whole = table.read_text()
        self.chapter("01_one", 1)
        code, out = self.run_tour("01_one")
        self.assertEqual(code, 1)
        self.assertIn("tour: 0 chapters passed, 1 failed, 0 not run", out)
        self.assertEqual(table.read_text(), whole)
        self.assertEqual([path.name for path in table.parent.glob("*.part")], [])
        self.assertIn("01_one --device emu --check", self.run_tour("01_one")[1], "what failed is run again")

    def test_how_a_program_ends_is_told(self):
        """A check that fails is not followed by --bench, which would pass: its table would say that all is well."""
        for command, told, code in (("exit 1", "FAILED", 1), ("exit 2", "ERROR 2", 1), ("exit 3", "ERROR 3", 1),
                                    ("kill -KILL $$", "KILLED 9", 1), ("kill -SEGV $$", "KILLED 11", 1), (":", "passed", 0)):
            self.chapter("01_one", check=command)
            found, out = self.run_tour("01_one")
            with self.subTest(command):
                self.assertEqual(found, code, out)
                self.assertEqual("--bench" in out, told == "passed")
                self.assertEqual((self.build / "tour" / "01_one.counts.csv").exists(), told == "passed")
                (line,), = self.ladder(out)
                self.assertEqual((line["check"], line["instructions"]), (told + " on the emulator", "2.667" if told == "passed" else "-"))
                self.assertTrue(out.endswith(f"tour: {1 - code} chapters passed, {code} failed, 0 not run\n"), out)
        self.chapter("02_two", 3)  # checks, and cannot count
        code, out = self.run_tour("01_one", "02_two")
        self.assertEqual(([line["check"][:12] for line in self.ladder(out)[0]], code), (["passed on th", "ERROR 3 on t"], 1))
        self.assertFalse((self.build / "tour" / "02_two.counts.csv").exists())

    def test_what_hangs_is_stopped(self):
        self.chapter("01_one", check="exec sleep 60")
        with mock.patch.object(tour, "LIMIT_S", 0.2):
            code, out = self.run_tour("01_one")
        self.assertEqual((code, self.ladder(out)[0][0]["check"]), (1, "KILLED 9 on the emulator"))

    def test_every_column_of_the_counts(self):
        self.chapter("01_one")
        (line,), = self.ladder(self.run_tour("01_one")[1])
        self.assertEqual([*line.items()], [
            ("chapter", "01_one"), ("idea", "an idea"), ("check", "passed on the emulator"), ("instructions", "2.667"),
            # Over 3000 FLOP.
            ("global bytes", "34"), ("sectors", "2.333"), ("bank conflicts", "4115")])

    def test_on_a_gpu(self):
        """Cold rows of its own; a chapter for another GPU is counted."""
        self.program("gg-roof", "#!/bin/sh\nexit 2\n")
        self.chapter("01_one")
        self.chapter("02_two", absent="gpu")
        code, out = self.run_tour("02_two", "01_one", device="A GPU, driver for CUDA 13.0")
        self.assertEqual(code, 0, out)
        self.assertIn("tour: no roof, gg-roof ended with 2: its columns stay empty\n", out)
        asked = re.findall(r"(?m)^\$ .*bin/(01_one .*) \S+$", out)
        self.assertEqual(asked, [f"01_one --device gpu --{what} --csv" for what in (
            "check", "bench --set prefill --peer cublas_strided", "bench --set decode --peer cublas_grouped")])
        (timed,), (counted,) = self.ladder(out)
        self.assertEqual([*timed.items()], [("chapter", "01_one"), ("idea", "an idea"), ("check", "passed"), ("prefill TFLOP/s", "500.0"),
                                            ("% of roof", "63"), ("decode us", "356.8")])
        self.assertEqual((counted["chapter"], counted["check"]), ("02_two", "passed on the emulator"))
        self.assertTrue(out.endswith("tour: 2 chapters passed, 0 failed, 0 not run\n"), out)
        out = self.run_tour("02_two", "01_one", device="A GPU, driver for CUDA 13.0")[1]
        self.assertEqual([line["check"].split(", kept")[0] for line, in self.ladder(out)], ["passed", "passed on the emulator"])
        self.assertEqual(re.findall(r"(?m)^\$ .*bin/(01_one) .*$", out), [])
        out = self.run_tour("01_one", device="Another GPU, driver for CUDA 13.0")[1]
        self.assertNotIn("kept", out)
        self.chapter("03_none", sets='["smoke", "step"]')
        self.assertEqual(self.run_tour("03_none", device="A GPU, driver for CUDA 13.0")[1].count("03_none --device"), 1)
        self.chapter("01_one", 1)
        code, out = self.run_tour("01_one", device="A GPU, driver for CUDA 13.0")
        self.assertEqual((code, self.ladder(out)[0][0]["check"]), (1, "FAILED"))

    def test_figures_that_cannot_be_drawn_fail_the_tour(self):
        self.chapter("01_one")
        for code in (0, 3):
            self.program("python", f"#!/bin/sh\nexit {code}\n")
            (self.build / "tour" / "state.json").unlink(missing_ok=True)
            found, out = self.run_tour("--plot-python", str(self.build / "bin" / "python"), "01_one")
            self.assertEqual(found, 1 if code else 0, out)
            self.assertEqual("figures: NOT DRAWN: plots/draw/plot.py ended with 3\n" in out, code == 3)

    def test_a_tour_in_which_nothing_ran_fails(self):
        self.chapter("01_one", absent="emu")
        self.chapter("02_two", absent="emu")
        code, out = self.run_tour("01_one", "02_two")
        self.assertEqual(code, 1)
        self.assertIn("tour: 0 chapters passed, 0 failed, 2 not run", out)
        self.assertEqual(self.ladder(out)[0][1]["check"], "not run (no emulator here)")
        self.chapter("02_two")
        self.assertEqual(self.run_tour("01_one", "02_two")[0], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
