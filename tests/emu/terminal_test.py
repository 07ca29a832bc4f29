# SPDX-License-Identifier: MIT
"""Work that takes long tells on a terminal how far it is, in one line that is gone when the work ends. What is piped has
nothing of it. The programs run with a pseudo-terminal in place of stderr, and without patience: all work shows, however
quick the machine is. Where there is no pseudo-terminal, in a chroot say, those tests are skipped."""

import os
import pty
import subprocess
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ.get("GG_BUILD", Path(__file__).resolve().parents[2] / "build"))
GG_PTX, GG_EMU, CHAPTER = BUILD / "bin" / "gg-ptx", BUILD / "bin" / "gg-emu", BUILD / "bin" / "03_tensor_cores"
AT_ONCE = "0"

# The second kernel reads what nobody wrote.
COUNTS = """.version 8.0
.target sm_80
.address_size 64
"""
COUNTS += "".join(f""".visible .entry {name}()
{{
  .reg .b32 %r; .shared .b32 word;
  {rest}
  ret;
}}
""" for name, rest in (("counts", ""), ("fails", "ld.shared.b32 %r, [word];")))


def why_no_terminal():
    try:
        for end in pty.openpty():
            os.close(end)
    except OSError as error:
        return f"no pseudo-terminal here: {error}"
    return ""


wants_terminal = unittest.skipIf(why_no_terminal(), why_no_terminal())


def on_terminal(*words, **variables):
    """Exit code, stdout and what the terminal got of a command."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=theirs, env=os.environ | variables)
    os.close(theirs)
    got = b""
    while True:
        try:
            some = os.read(ours, 65536)
        except OSError:  # Linux says so when nobody has the other end any more
            break
        if not some:
            break
        got += some
    os.close(ours)
    out = child.stdout.read().decode()
    child.stdout.close()
    return child.wait(), out, got.decode()


def screen(got):
    """The lines that a terminal shows in the end."""
    lines, at = [""], 0
    for c in got:
        if c == "\r":
            at = 0
        elif c == "\n":
            lines.append("")
            at = 0
        else:
            lines[-1] = lines[-1][:at].ljust(at) + c + lines[-1][at + 1:]
            at += 1
    return [line.rstrip() for line in lines]


class Terminal(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.ptx = Path(folder.name, "counts.ptx")
        self.ptx.write_text(COUNTS)

    def gg_ptx(self, *kernels):
        launches = [word for name in kernels for word in ("--launch", name, "--grid", "8", "--block", "32")]
        return [GG_PTX, self.ptx, "--progress-after", AT_ONCE, *launches]

    @wants_terminal
    def test_a_launch_shows_its_blocks_and_leaves_nothing(self):
        code, out, got = on_terminal(*self.gg_ptx("counts", "counts"))
        self.assertEqual((code, out), (0, ""))
        self.assertRegex(got, r"\rlaunch 1 of 2, counts: \d of 8 blocks, ")
        self.assertEqual(screen(got), [""])
        self.assertTrue(got.endswith("\r"))

    @wants_terminal
    def test_patience(self):
        got = on_terminal(GG_PTX, self.ptx, "--progress-after", "600", "--entry", "counts", "--grid", "1", "--block", "32")[2]
        self.assertEqual(got, "")

    @wants_terminal
    def test_a_fault_stands_alone(self):
        words = self.gg_ptx("counts", "fails")
        piped = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        code, out, got = on_terminal(*words)
        self.assertEqual((code, piped.returncode, out), (3, 3, piped.stdout))
        self.assertIn("launch 2 of 2, fails: ", got)
        self.assertIn("fault uninit-shared", piped.stderr)
        self.assertEqual("\n".join(screen(got)), piped.stderr.replace("\r", ""))

    def test_what_is_piped_is_plain(self):
        done = subprocess.run([str(word) for word in self.gg_ptx("counts")], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    @wants_terminal
    def test_a_chapter_shows_its_trials(self):
        if not CHAPTER.exists():
            self.skipTest(f"{CHAPTER.name} is not in this build")
        words = [CHAPTER, "--device", "emu", "--check", "--m", "5,70", "--n", "64", "--k", "64"]
        piped = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                               env=os.environ | {"GG_EMU_PROGRESS_AFTER": AT_ONCE})
        self.assertEqual((piped.returncode, piped.stderr), (0, ""))
        for command in (words, [GG_EMU, "--progress-after", AT_ONCE, *words]):
            code, out, got = on_terminal(*command, GG_EMU_PROGRESS_AFTER=AT_ONCE)
            self.assertEqual((code, out), (0, piped.stdout), got)
            self.assertRegex(got, r"\rown, problem 1 of 1, trial \d of \d, ")
            self.assertEqual(screen(got), [""])

    def test_seconds_are_checked(self):
        for wrong in ("-1", "many", "1e9", "1234567"):
            done = subprocess.run([str(GG_EMU), "--progress-after", wrong, "x"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"--progress-after {wrong}: give seconds, 0 to 999999, as 5 or 0.5", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
