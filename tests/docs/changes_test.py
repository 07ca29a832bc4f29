# SPDX-License-Identifier: MIT
"""Which kernels have changed since a commit, and how many lines a chapter changes."""

import contextlib
import io
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from plots.draw import changes, publish, same_ptx
from plots.draw.changes import History, changed_since_measured, lines_changed
from plots.measure.files import DATA, SAME_PTX
from tests.docs.plots_case import describe, main, row, save


class ChangesTest(unittest.TestCase):
    """Which kernels have changed since a commit, in a repository of the test's own."""

    KERNEL = '#include "common/kernel/ptx/a.cuh"\nint one() { return 1; }\nconstexpr int BM = 64;\n'
    A = '#include "common/kernel/b.h"\nnamespace gg {\n// loads\nint load(int x) { return x; }\n}  // namespace gg\n'
    B = "#pragma once\nint first(int x);\ntemplate <>\nint second<int>(const char* s) {\n  return 2;\n}\n"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.repo = Path(folder.name)
        self.files = {"chapters/01_naive/kernel.cuh": self.KERNEL, "chapters/01_naive/README.md": "old\n",
                      "chapters/01_naive/main.cu": '#include "common/harness/harness.cuh"\n#include "kernel.cuh"\n'
                                                   'int main() { run({.title = "loops", .k = 8}); }\n',
                      "chapters/02_tiled/main.cu": '#include "kernel.cuh"\n',
                      "chapters/02_tiled/kernel.cuh": "int x;\n",
                      "common/kernel/ptx/a.cuh": self.A, "common/kernel/b.h": self.B, "common/harness/harness.cuh": "int old;\n"}
        self.git("init", "--quiet")
        self.commit = self.committed()

    def git(self, *words):
        command = "git -c user.name=test -c user.email=test@localhost -c commit.gpgsign=false".split() + list(words)
        try:
            return subprocess.run(command, cwd=self.repo, check=True, capture_output=True, text=True).stdout.strip()
        except FileNotFoundError:
            self.skipTest("there is no git, which knows what kernels were")

    def write(self, **changed):
        for path, text in (self.files | changed).items():
            (self.repo / path).parent.mkdir(parents=True, exist_ok=True)
            (self.repo / path).write_text(text)

    def committed(self):
        self.write()
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "all")
        return self.git("rev-parse", "HEAD")

    def changed(self, chapter="01_naive", commit=None):
        return History(self.repo).changed(chapter, commit or self.commit)

    def test_what_is_the_same_in_ptx_has_changed_on_the_host_alone(self):
        path, device = "chapters/01_naive/kernel.cuh", "__device__ int two(int x) { return x; }\n"
        launch = "void launch(int n) { grid(n / 2, n); }\n"
        self.files[path] = self.KERNEL + device + launch
        self.commit = self.committed()
        found = self.repo / DATA / SAME_PTX
        found.parent.mkdir(parents=True)

        def changed_if_same(text, chapter="01_naive"):
            self.write(**{path: text})
            history = History(self.repo)
            pair = history.fingerprint("01_naive", self.commit), history.fingerprint("01_naive")
            found.write_text("chapter,then,now\n{},{},{}\n".format(chapter, *pair))
            return self.changed()

        renamed = self.files[path].replace("two(int x) { return x; }", "zwei(int y) { return y; }")
        self.assertEqual(changed_if_same(renamed, "02_tiled"), ("kernel.cuh",), "another chapter's")
        self.assertEqual(changed_if_same(renamed), ())
        self.write(**{path: renamed.replace("zwei", "deux")})
        self.assertEqual(self.changed(), ("kernel.cuh",), "sources that nobody compared")
        self.assertEqual(changed_if_same(renamed.replace("(int n) { grid(n / 2, n)", "(int k) { grid(k / 2, k)")), ())
        for host in (renamed.replace("n / 2", "n / 4"), renamed.replace("grid(n / 2, n)", "grid(n / 2, m)"), renamed.replace("64", "32")):
            self.assertEqual(changed_if_same(host), ("kernel.cuh",), "PTX says nothing of a launch and its constants")
        self.assertEqual(changed_since_measured([("01_naive", self.commit)], History(self.repo)), [
            f"The kernel of 01_naive has not changed since commit {self.commit[:10]}, but host code has: kernel.cuh."])
        self.assertEqual(changed_since_measured([("01_naive", self.commit)], History(self.repo), name_files=False), [])
        for host in (renamed.replace("64", "8 * (4 + 4)"), renamed + "constexpr int TWO = 2;\n", renamed + "int three() { return 3; }\n"):
            self.assertEqual(changed_if_same(host), (), "the same value, and what nothing uses that stayed the same")

    def test_a_fingerprint_is_of_what_the_chapter_uses(self):
        def of(header):
            return changes.fingerprint({path: changes.definitions(text) for path, text in (
                ("chapters/01_naive/kernel.cuh", "int one() { return two(); }"), ("common/kernel/a.cuh", header))})

        header = "int two() { return three; }\nconstexpr int three = 3;\n"
        for unused in ("int load(int x);\n", "struct Four { int two; };\n"):
            self.assertEqual(of(header), of(header + unused))
        for other in (header.replace("= 3", "= 4"), header + "int two(long);\n", header + "#define one two\n"):
            self.assertNotEqual(of(header), of(other))

    def test_constants_of_a_struct_are_compared_one_by_one(self):
        def of(text):
            return set().union(*changes.host_code({"a": changes.definitions(text)}).values())

        struct = "constexpr int BK = 64;\ntemplate <int BM> struct Config {{\n  static constexpr int A = {}, B = A * 2;\n" \
            "  static_assert(A > 1);\n{}  int rows;\n}};\n"
        self.assertEqual(of(struct.format("BK / 2", "")), of(struct.format("32", "")))
        self.assertEqual({"Config::A=BM*32"}, of(struct.format("BM * 32", "")) & {"Config::A=BM*32"})
        self.assertEqual(of(struct.format("32", "  static constexpr int C = B - 4;\n")) - of(struct.format("32", "")), {"Config::C=60"})

    def test_ptx_is_compared_whatever_names_are(self):
        def ptx(name, other, number, add="add.s32"):
            return f"// made\n.visible .entry {name}(.param .u64 {name}_param_0)\n{{\n\t.loc 1 {number} 2\n$L__BB{number}_1:\n" \
                f"\t{add} %r1, %r2, %r3; // {number}\n\tbra $L__BB{number}_1;\n}}\n.visible .entry {other}()\n{{\n\tret;\n}}\n"

        one, two = ptx("_Z3oneIiEvv", "_Z5otherv", 0), ptx("_Z4unosv", "_Z1av", 7)
        first, second = two.split(".visible", 2)[1:]
        self.assertEqual(same_ptx.kernels(one), same_ptx.kernels(two))
        self.assertEqual(same_ptx.kernels(one), same_ptx.kernels(f".visible{second}.visible{first}"), "another order")
        self.assertNotEqual(same_ptx.kernels(one), same_ptx.kernels(ptx("_Z3oneIiEvv", "_Z5otherv", 0, "sub.s32")))
        self.assertNotEqual(same_ptx.kernels(one), same_ptx.kernels(one + f".visible{second}"), "one kernel more")

    def test_configurations_of_one_tree_alone_are_not_compared(self):
        def ptx(**adds):
            return "".join(f".visible .entry _ZN7chapter1kINS_6Config{name}EEEvPT_({{}})\n{{\n\t{add} %r1, %r2, %r3;\n}}\n"
                           for name, add in adds.items()) + ".visible .entry _Z5otherv()\n{\n\tret;\n}\n"

        one = ptx(ILi1ELi64="add.s32", ILi2ELi64="sub.s32")
        for same in (one, ptx(ILi2ELi64="sub.s32"), ptx(ILi2ELi64="sub.s32", ILi1ELi32="or.b32")):
            self.assertTrue(same_ptx.same_kernels(one, same), same)
        for other in (ptx(ILi1ELi64="sub.s32", ILi2ELi64="sub.s32"), ptx(ILi1ELi32="add.s32"), one.replace("ret", "exit")):
            self.assertFalse(same_ptx.same_kernels(one, other), other)

    def test_assertions_change_no_kernel(self):
        self.write(**{"chapters/01_naive/kernel.cuh": self.KERNEL.replace(
            "int one() {", 'static_assert(BM % (8 * 2) == 0, "a tile (of :) rows");\nint one() {\n'
                           '  GG_REQUIRE(one > 0, "K=%d: (too small", f(1));\n')})
        self.assertFalse(self.changed())
        self.write(**{"chapters/01_naive/kernel.cuh": self.KERNEL.replace(
            "int one() {", "static_assert(BM == 64); int two(); int one() {")})
        self.assertTrue(self.changed())

    def test_code_of_a_kernel_and_its_headers(self):
        kernel, a, b = "chapters/01_naive/kernel.cuh", "common/kernel/ptx/a.cuh", "common/kernel/b.h"
        for path, old, new, files in [
                (kernel, "return 1", "return 2", ("kernel.cuh",)), (kernel, "64", "128", ("kernel.cuh",)),
                (kernel, "constexpr", "int two();\nconstexpr", ("kernel.cuh",)),
                (a, "return x", "return x + 1", (a,)), (b, "return 2", "return 3", (b,)), (b, "int x", "long x", (b,)),
                # Nothing of it was used.
                (a, "// loads", "int load(long);", ()), (b, "int first(int x);\n", "", ()),
                (a, "loads", "loads // twice", ()), (kernel, "int one() {", "/* a */ int one()\n{\n\n ", ()),
                (kernel, "#include", "#include <cmath>\n#include", ()),
                ("chapters/01_naive/main.cu", "loops", "a loop", ()),
                ("chapters/01_naive/main.cu", "8", "16", ()),
                ("chapters/01_naive/README.md", "old", "new", ()), ("common/harness/harness.cuh", "old", "another", ()),
                ("chapters/02_tiled/kernel.cuh", "x", "y", ())]:
            self.write(**{path: self.files[path].replace(old, new)})
            self.assertEqual(self.changed(), files, (path, new))
        self.write()
        self.assertEqual(self.changed(), ())

    def test_what_moved_is_the_same(self):
        (self.repo / "common/kernel/b.h").rename(self.repo / "common/kernel/c.h")
        (self.repo / "common/kernel/ptx/a.cuh").write_text(self.A.replace("b.h", "c.h"))
        self.assertEqual(self.changed(), ())

    def test_a_change_of_what_moved_too_is_named_once(self):
        """Kernels' headers lay in common/ itself, and in common/base, before common/ had its doors."""
        def old(text):
            return text.replace("common/kernel/", "common/")

        self.files = {old(path): old(text) for path, text in self.files.items()}
        shutil.rmtree(self.repo / "common")
        commit = self.committed()
        shutil.rmtree(self.repo / "common")
        self.files = {path.replace("common/", "common/kernel/"): text.replace('"common/', '"common/kernel/') for path,
                      text in self.files.items()}
        self.write()
        self.assertEqual(self.changed(commit=commit), ())
        self.write(**{"common/kernel/b.h": self.B.replace("return 2", "return 3")})
        self.assertEqual(self.changed(commit=commit), ("common/kernel/b.h",))

    def test_a_table_says_it(self):
        self.write(**{"common/kernel/b.h": self.B.replace("return 2", "return 3"),
                      "chapters/02_tiled/kernel.cuh": "int y;\n"})
        history = History(self.repo)
        measured = [("01_naive", self.commit), ("02_tiled", self.commit + "-dirty"), ("01_naive", "0" * 40), ("01_naive", "")]
        ten = self.commit[:10]
        self.assertEqual(changed_since_measured(measured, history),
                         [f"The kernel of 01_naive has changed since commit {ten}: common/kernel/b.h.",
                          f"The kernel of 02_tiled has changed since commit {ten}-dirty: kernel.cuh."])
        self.assertEqual(history.lacking, {"0" * 40})
        self.write(**{"chapters/01_naive/kernel.cuh": "int y;\n", "chapters/02_tiled/kernel.cuh": "int y;\n"})
        measured[1] = "02_tiled", self.commit
        self.assertEqual(changed_since_measured(measured, History(self.repo)),
                         [f"The kernels of 01_naive and 02_tiled have changed since commit {ten}: kernel.cuh."])

    def test_publish_writes_and_takes_back_the_sentence(self):
        self.files = {path: text for path, text in self.files.items() if "02_tiled" not in path}
        self.files |= {"chapters/01_naive/main.cu": "int main();\n", "chapters/LADDER.md": "<!-- table -->\n<!-- /table -->\n",
                       "chapters/01_naive/README.md": "<!-- table -->\n<!-- /table -->\n"}
        shutil.rmtree(self.repo / "chapters/02_tiled")
        describe(self.repo, "01_naive")
        commit = self.committed()
        save(self.repo / DATA / "h200" / "all.csv",
             [row("01_naive", "prefill", [8], 9, kernel="grouped_gemm", commit=commit),
              # No kernel of ours.
              row("01_naive", "prefill", [8], 9, peer="cublas_loop", commit=self.commit)])
        sentence = f"The kernel of 01_naive has changed since commit {commit[:10]}"
        for kernel, there in ((self.KERNEL.replace("64", "32"), True), (self.KERNEL, False)):
            (self.repo / "chapters/01_naive/kernel.cuh").write_text(kernel)
            with mock.patch.object(sys, "argv", ["publish", "--repo", str(self.repo)]), \
                    contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                publish.main()
            for readme, files in (("chapters/LADDER.md", ""), ("chapters/01_naive/README.md", ": kernel.cuh")):
                self.assertEqual(f"{sentence}{files}.\n<!-- /table -->" in (self.repo / readme).read_text(), there, readme)

    def test_lines_of_a_whole_folder(self):
        before, chapter = self.repo / "chapters/02_tiled", self.repo / "chapters/01_naive"
        self.assertEqual(lines_changed(before, chapter), (3, 1))
        self.assertEqual(lines_changed(None, chapter), (3, 0))
        (chapter / "parts.cuh").write_text("1\n2\n")
        (before / "old.cuh").write_text("1\n")
        (chapter / "main.cu").write_text("int other;\n")
        (chapter / "kernel.cuh").write_text("  int   x;\n")
        self.assertEqual(lines_changed(before, chapter), (2, 1))


if __name__ == "__main__":
    main()
