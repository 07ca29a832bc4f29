# SPDX-License-Identifier: MIT
"""What a chapter with a command line of its own refuses, before it does any work.
python3 -B -m tests.chapters.whole_test PROGRAM"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = ""


def run(*words, stdout=subprocess.PIPE):
    return subprocess.run([PROGRAM, *words], stdout=stdout, stderr=subprocess.PIPE, text=True)


class Whole(unittest.TestCase):
    def refuses(self, code, sentence, done):
        self.assertEqual((done.returncode, done.stderr), (code, f"{Path(PROGRAM).name}: {sentence}\n"))

    def test_a_table_with_another_header(self):
        with tempfile.TemporaryDirectory() as folder:
            table = Path(folder, "other.csv")
            table.write_text("a,b\n1,2\n")
            for option in ("--csv", "--differences"):
                done = run("--device", "emu", option, str(table))
                self.refuses(2, f"{table}: has another header than this program writes (it begins with 'a,b'); name a new file",
                             done)
                self.assertEqual((done.stdout, table.read_text()), ("", "a,b\n1,2\n"))

    def test_results_that_nobody_can_read(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.refuses(4, "the results could not be written to stdout", run("--describe", stdout=full))

    def test_a_wrong_value(self):
        self.refuses(2, "--order 1:odd: S, S:fair or S:skew are accepted", run("--order", "1:odd"))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop()
    unittest.main()
