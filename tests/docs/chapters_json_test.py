# SPDX-License-Identifier: MIT
"""chapters/chapters.json is what the programs of a build say of themselves, and describe.py writes it.

  python3 -B -m tests.docs.chapters_json_test BUILD_DIR"""

import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from plots.measure import describe

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(sys.argv.pop()) if len(sys.argv) > 1 and not sys.argv[-1].startswith("-") else ROOT / "build"


class Committed(unittest.TestCase):
    def test_it_is_what_the_programs_say(self):
        there, built = (json.loads(path.read_text(encoding="utf-8")) for path in (ROOT / describe.COMMITTED, BUILD / "chapters.json"))
        self.maxDiff, hint = None, "cmake --build build --target publish"
        self.assertEqual([each["id"] for each in there["chapters"]], [each["id"] for each in built["chapters"]], hint)
        for old, new in zip(there["chapters"], built["chapters"]):
            self.assertEqual(old, new, hint)
        self.assertEqual(there["sets"], built["sets"], hint)


class Described(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = Path(folder.name)
        (self.build / "bin").mkdir()
        (self.build / "chapters").mkdir()
        self.committed = self.build / describe.COMMITTED
        self.program("gg-shapes", '{"smoke": [{"m": [1, 2], "n": [8], "k": [8], "shared_b": false}]}')

    def program(self, name, text, code=0):
        path = self.build / "bin" / name
        path.write_text(f"#!/bin/sh\nprintf '%s' '{text}'\nexit {code}\n", encoding="utf-8")
        path.chmod(0o755)

    def described(self, *ids):
        """Exit code, what was said of an error, and the file's contents."""
        out = self.build / "chapters.json"
        command = ["describe", "--build", str(self.build), "--out", str(out), *ids]
        with mock.patch.object(sys, "argv", command), mock.patch.object(describe, "REPO", self.build), \
                contextlib.redirect_stderr(io.StringIO()) as err:
            code = describe.main()
        return code, err.getvalue(), json.loads(out.read_text(encoding="utf-8")) if out.exists() else None

    def test_in_order_of_the_registry(self):
        self.program("02_b", '{"id": "02_b", "tiles": []}')
        self.program("01_a", '{"id": "01_a", "tiles": ["8x8"]}')
        code, err, found = self.described("01_a", "02_b")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(found, {"chapters": [{"id": "01_a", "tiles": ["8x8"]}, {"id": "02_b", "tiles": []}],
                                 "sets": {"smoke": [{"m": [1, 2], "n": [8], "k": [8], "shared_b": False}]}})

    def test_a_chapter_that_is_not_built_is_kept_and_one_that_is_gone_is_not(self):
        self.committed.write_text('{"chapters": [{"id": "01_a", "x": 1}, {"id": "02_b", "x": 1}, {"id": "09_gone"}], "sets": {}}')
        self.program("02_b", '{"id": "02_b", "x": 2}')
        _, _, found = self.described("01_a", "02_b", "03_new")
        self.assertEqual(found["chapters"], [{"id": "01_a", "x": 1}, {"id": "02_b", "x": 2}])

    def test_a_program_that_does_not_answer_is_named(self):
        for text, code in (("", 0), ("[]", 0), ('{"id": "01_a"}', 1)):
            self.program("01_a", text, code)
            status, err, found = self.described("01_a")
            self.assertEqual((status, found), (1, None))
            self.assertRegex(err, rf"^describe: .*/bin/01_a --describe ended with {code} and printed no JSON object")


if __name__ == "__main__":
    unittest.main()
