# SPDX-License-Identifier: MIT
"""A chapter's check without options passes on the emulator, in some order, and executes every line of the chapter's kernels: a
reader who edits a line is told what the edit does. python3 -B -m tests.chapters.check_test PROGRAM ORDER"""

import collections
import csv
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from chapters.lineage import described, lineage, lines_of

# A line of the source, and where its function was expanded if it was.
LOCATION = re.compile(r"\s*\.loc\s+(\d+) (\d+) (\d+)(?:, function_name [^,]+, inlined_at (\d+) (\d+) (\d+))?")


def modules(program):
    """The PTX texts in a program, which are not compressed and end with a zero byte."""
    return [text.decode() for text in re.findall(rb"(?<=\0)\n*\.version \d[^\0]*", Path(program).read_bytes())]


def sources(text):
    """kernel -> line of PTX -> (file, line) of the source, and of the lines that call what is expanded there. A kernel goes on to
    where the next one begins."""
    files = dict(re.findall(r'(?m)^\s*\.file\s+(\d+) "([^"]*)"', text))
    found, callers, kernel, chain = {}, {}, None, []
    for number, line in enumerate(text.split("\n"), 1):
        entry, location = re.search(r"\.entry (\w+)\(", line), LOCATION.match(line)
        if entry:
            kernel, chain = found.setdefault(entry[1], {}), []
        elif location:
            place, caller = location.groups()[:3], location.groups()[3:]
            if caller[0]:
                callers[place] = caller
            chain = []
            while place and place not in chain:
                chain.append(place)
                place = callers.get(place)
        elif kernel is not None and chain and re.match(r"(@!?%p\d+ )?[a-z]\S*.*;$", line.strip()):
            kernel[number] = [(files[file], int(at)) for file, at, _ in chain]
    return found


def run(program, order):
    """What the check says, and kernel -> line of PTX -> times that warps executed it."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "lines.csv")
        done = subprocess.run([program, "--check", "--device", "emu", "--order", order], capture_output=True, text=True,
                              env=os.environ | {"GG_EMU_LINE_COUNTS": str(table)})
        counts = collections.defaultdict(dict)
        if table.exists():
            with open(table, newline="", encoding="utf-8") as file:
                for row in csv.DictReader(file):
                    counts[row["kernel"]][int(row["ptx_line"])] = int(row["warps"])
    return done, counts


def never_executed(program, counts):
    """(file, line) of the chapter's sources that no kernel executed, and an instruction that some kernel has for it."""
    folder, total, instructions = f"/chapters/{Path(program).name}/", collections.Counter(), {}
    for text in modules(program):
        ptx = text.split("\n")
        for kernel, lines in sources(text).items():
            for number, chain in lines.items():
                for where in chain:
                    # An instruction of line 0 is the compiler's own.
                    if folder in where[0] and where[1] > 0:
                        total[where] += counts[kernel].get(number, 0)
                        instructions[where] = f"{ptx[number - 1].strip()} of {kernel}"
    if not total:
        sys.exit(f"{program}: it holds no PTX with lines of {folder}")
    return sorted((*where, instructions[where]) for where, times in total.items() if times == 0)


def is_left_out(left_out, path, line):
    return any(Path(path).name == file and words in line for file, words, _ in left_out)


def main(program, order):
    done, counts = run(program, order)
    if done.returncode or done.stderr or f" checked on the emulator, order {order}" not in done.stdout:
        sys.exit(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    # Lines of the chapter, or of one before it, that a check leaves out: the file, some words of
    # the line, and the reason.
    left_out = [text.split(" | ") for each in lineage(Path(program).name, described(Path(program).parents[1]))
                for text in lines_of(each, "unexecuted.txt")]
    wrong = []
    for path, number, instruction in never_executed(program, counts):
        line = Path(path).read_text(encoding="utf-8").split("\n")[number - 1].strip()
        if not is_left_out(left_out, path, line):
            wrong.append(f"{path}:{number}: the check never executes this line: {line}\n  {instruction}\n")
    sys.exit("".join(wrong) or 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
