# SPDX-License-Identifier: MIT
"""Builds a copy of a chapter that reads the clock before and behind its epilogue.

  python3 -B -m plots.measure.machine_code.clocked CHAPTER OUT [--build DIR]

The program OUT/CHAPTER does what the chapter does and prints one line more, the cycles that warps took from one reading
to the other. Between its two readings cycles.py predicts the same cycles from the same machine code: so the model is
tried where a GPU can be had, before it is believed where none can.
"""

import argparse
import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[3]
BEGIN, END = "const uint32_t begin_clock = clocked::now();\n", "clocked::keep(begin_clock);\n"
# chapter -> the lines of its multiply.cuh behind and before which the clock is read: the epilogue
# of a tile
PLACES = {
    "07a_warp_specialized": ("    // [/multiply]\n", "  }\n}\n\n}  // namespace chapter\n"),
    "07e_tma_store": ("      gg::ptx::wgmma_wait_group<0>(sums);  // all slices are multiplied\n      release(last);\n",
                      "    };\n    gg::with_width_for"),
    "07l_peak_hopper": ("      // [/multiply]\n", "    };\n    gg::with_width_for"),
}


class Failed(Exception):
    """A chapter that cannot be copied or built."""


def with_clock(text: str, begin: str, end: str) -> str:
    """The text of multiply.cuh with both readings; each place has to be there once."""
    for place in begin, end:
        if text.count(place) != 1:
            raise Failed(f"multiply.cuh has {text.count(place)} places {place!r}, one is wanted")
    text = text.replace(begin, begin + BEGIN).replace(end, END + end)
    return text.replace("namespace chapter {", '#include "clocked.cuh"\nnamespace chapter {', 1)


def with_report(text: str) -> str:
    """The program's text with a main of its own around the chapter's."""
    if "int main(int argc, char** argv) {" not in text:
        raise Failed("main.cu has no main")
    return text.replace("int main(", "static int run_chapter(", 1) + (
        "\nint main(int argc, char** argv) {\n  const int code = run_chapter(argc, argv);\n  clocked::print();\n"
        "  return code;\n}\n")


def commands(build: Path, chapter: str, source: Path, object_file: Path, program: Path) -> list[list[str]]:
    """The chapter's own compile and link commands, for other files."""
    original = str(REPO / "chapters" / chapter / "main.cu")
    entry = next(e for e in json.loads((build / "compile_commands.json").read_text()) if e["file"] == original)
    words = shlex.split(entry["command"])
    words[words.index("-c") + 1], words[words.index("-o") + 1] = str(source), str(object_file)
    link = shlex.split((build / "chapters/CMakeFiles" / f"{chapter}.dir/link.txt").read_text())
    link = [str(object_file) if word.endswith("main.cu.o") else word for word in link]
    link[link.index("-o") + 1] = str(program)
    return [[*words, f"-I{source.parent}"], link]


def build_copy(build: Path, chapter: str, out: Path) -> Path:
    """The program's path."""
    if chapter not in PLACES:
        raise Failed(f"{chapter}: there are places for the clock in {', '.join(PLACES)}")
    copy = out / f"{chapter}.source"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(REPO / "chapters" / chapter, copy)
    shutil.copy(Path(__file__).with_name("clocked.cuh"), copy)
    role, main = copy / "multiply.cuh", copy / "main.cu"
    role.write_text(with_clock(role.read_text(), *PLACES[chapter]))
    main.write_text(with_report(main.read_text()))
    program = out / chapter
    for command in commands(build, chapter, main, out / f"{chapter}.o", program):
        done = subprocess.run(command, cwd=build / "chapters", capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return program


def main() -> int:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("chapter")
    ask.add_argument("out", type=Path)
    ask.add_argument("--build", type=Path, default=REPO / "build")
    options = ask.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        print(build_copy(options.build.resolve(), options.chapter, options.out.resolve()))
    except Failed as failed:
        print(f"clocked.py: {failed}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
