# SPDX-License-Identifier: MIT
"""Each chapter's inherited.txt: the files that it lists are the predecessor's to the byte, and it lists all that are; and inherit.py,
which copies them, on chapters made up here.

  python3 -B -m tests.docs.inherited_test REGISTRY     a file that CMake writes"""

import subprocess
import sys
import tempfile
import unittest
from itertools import pairwise
from pathlib import Path

from chapters import inherit
from chapters.lineage import is_whole

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = inherit.registry(Path(sys.argv.pop()) if sys.argv[1:] and sys.argv[-1][0] != "-" else ROOT / "build/registry.txt")


class Lists(unittest.TestCase):
    def test_what_is_the_same_is_listed_and_what_is_listed_is_the_same(self):
        self.assertTrue(REGISTRY, "no registry was given")
        for chapter, before in REGISTRY.items():
            folder = inherit.CHAPTERS / chapter
            same = [path.name for path in sorted(folder.glob("*.cuh"))
                    if before and (inherit.CHAPTERS / before / path.name).is_file()
                    and (inherit.CHAPTERS / before / path.name).read_bytes() == path.read_bytes()]
            with self.subTest(chapter):
                self.assertEqual(sorted(inherit.inherited(folder)), same, "cmake --build build --target inherit, or change the list")

    def test_every_folder_is_registered(self):
        folders = {path.parent.name for path in inherit.CHAPTERS.glob("*/main.cu") if not is_whole(path.parent)}
        self.assertEqual(folders - set(REGISTRY), set(), "has no line in chapters/CMakeLists.txt, or nobody has configured since")
        self.assertEqual(set(REGISTRY) - folders, set(), "is registered, but chapters/ has no such folder with a main.cu")

    def test_the_registry_is_in_order_of_names(self):
        for one, two in pairwise(REGISTRY):
            self.assertLess(one, two, "order of names is order of reading: move a line in chapters/CMakeLists.txt")


class Copies(unittest.TestCase):
    REGISTRY = {"01": "", "02": "01", "03": "02", "04": "02"}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.chapters, self.memory = Path(folder.name), Path(folder.name, "written.json")
        for chapter in self.REGISTRY:
            (self.chapters / chapter).mkdir()
            self.write(chapter, "store.cuh", "store\n")
            self.write(chapter, "own.cuh", f"{chapter}\n")
            if chapter != "01":
                self.write(chapter, "inherited.txt", "# a comment\nstore.cuh\n")
        for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qm", "all"]):
            subprocess.run(["git", "-C", self.chapters, *words], check=True)

    def write(self, chapter, name, text):
        (self.chapters / chapter / name).write_text(text, encoding="utf-8")

    def texts(self, name="store.cuh"):
        return [(self.chapters / chapter / name).read_text(encoding="utf-8") for chapter in self.REGISTRY]

    def inherit(self):
        return inherit.inherit(self.REGISTRY, self.memory, self.chapters)

    def test_one_edit_reaches_all_behind_it_as_often_as_it_is_made(self):
        self.assertEqual(self.inherit(), [])
        for text in ("first\n", "second\n"):
            self.write("01", "store.cuh", text)
            self.assertEqual(self.inherit(), ["02/store.cuh: as in 01", "03/store.cuh: as in 02", "04/store.cuh: as in 02"])
            self.assertEqual(self.texts(), 4 * [text])
        self.assertEqual(self.texts("own.cuh"), ["01\n", "02\n", "03\n", "04\n"])

    def test_a_version_of_its_own_that_keeps_what_an_edit_took_out_is_named(self):
        self.write("01", "own.cuh", "one line that stays\nanother line that goes\n")
        self.write("03", "own.cuh", "  another line that goes\nand one of its own\n")
        self.write("04", "own.cuh", "nothing of that here\n")
        subprocess.run(["git", "-C", self.chapters, "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qam", "more"],
                       check=True)
        self.assertEqual(inherit.left_behind(self.REGISTRY, self.chapters), [])
        self.write("01", "own.cuh", "one line that stays\na new line\n")
        self.assertEqual(inherit.left_behind(self.REGISTRY, self.chapters),
                         ["03/own.cuh is its own and still has what was taken out of 01's: another line that goes"])
        # 04 follows 02, and 02 follows 01.
        self.write("04", "own.cuh", "another line that goes\n")
        self.assertEqual(len(inherit.left_behind(self.REGISTRY, self.chapters)), 2)

    def test_an_edit_of_a_copy_is_refused_and_nothing_is_written(self):
        self.write("01", "store.cuh", "new\n")
        self.write("03", "store.cuh", "edited\n")
        with self.assertRaisesRegex(inherit.Refused, "^03/store.cuh was edited, but comes from 01: move the edit to chapters/01/store.cuh, "
                                                     "or take the name out of 03/inherited.txt$"):
            self.inherit()
        self.assertEqual(self.texts(), ["new\n", "store\n", "edited\n", "store\n"])
        self.write("03", "inherited.txt", "")  # from now on it is the chapter's own
        self.inherit()
        self.assertEqual(self.texts(), ["new\n", "new\n", "edited\n", "new\n"])

    def test_a_copy_that_is_missing_is_made(self):
        (self.chapters / "04/store.cuh").unlink()
        self.assertEqual(self.inherit(), ["04/store.cuh: as in 02"])

    def test_a_header_that_only_the_predecessor_has_is_named(self):
        self.write("03", "main.cu", '#include "store.cuh"\n#include "common/none.cuh"\n#include "more.cuh"\n')
        (self.chapters / "03/store.cuh").unlink()
        (self.chapters / "03/inherited.txt").unlink()
        self.assertEqual(inherit.unlisted(self.REGISTRY, self.chapters),
                         ["03 includes store.cuh and has no such file: name it in 03/inherited.txt, to have 02's"])
        self.write("03", "inherited.txt", "store.cuh\n")
        self.inherit()
        self.assertEqual(inherit.unlisted(self.REGISTRY, self.chapters), [])

    def test_lists_that_name_nothing_are_refused(self):
        for chapter, name, why in (("02", "none.cuh", "01 has no file none.cuh"),
                                   ("02", "../01/store.cuh", "01 has no file ../01/store.cuh"),
                                   ("01", "store.cuh", "has no AFTER")):
            self.write(chapter, "inherited.txt", name + "\n")
            with self.assertRaisesRegex(inherit.Refused, why):
                self.inherit()


if __name__ == "__main__":
    unittest.main()
