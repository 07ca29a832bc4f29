# SPDX-License-Identifier: MIT
"""What an exercise's commands must print: a file of statements, read, run and judged.

    # a comment
    $ build/bin/03_tensor_cores --device emu --bench
    exit 0
    says ok, 1 problem
    count shared_wavefronts = 62208
    total global_load_bytes < 548736
    same build/bin/04_persistent --print-schedule
    ptx elect.sync
    gpu a Hopper, for --bench --set prefill
    open which constants of the reference follow

`$` runs a program of the build tree. What follows must hold of that run: its exit code; a text among what it prints; a
counter of --counts-csv (= < >; of all its rows together), or of all launches of the run; the same output as of another
command; a text in the program's PTX. Nobody judges here what `gpu` and `open` name: what else the exercise asks and
wants that GPU, or an answer that no command tells.
"""

import csv
import operator
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

LIMIT_S = 300
COMPARE = {"=": operator.eq, "<": operator.lt, ">": operator.gt}


@dataclass
class Command:
    line: str
    wanted: list = field(default_factory=list)  # (kind, rest of the line)


@dataclass
class Statements:
    commands: list
    gpu: str = ""
    open: str = ""


def plain(text: str) -> str:
    """A text with single spaces, for comparison."""
    return " ".join(text.split())


def parse(path: Path) -> Statements:
    """The statements of a file; ValueError with the line that is none."""
    found = Statements([])
    for line in path.read_text(encoding="utf-8").splitlines():
        kind, _, rest = line.partition(" ")
        if not line or kind == "#":
            continue
        if kind == "$" and re.fullmatch(r"(\w+=\S+ )*build/bin/\S+( .*)?", rest):
            found.commands.append(Command(rest))
        elif kind == "gpu" and rest:
            found.gpu = rest
        elif kind == "open" and rest:
            found.open = rest
        elif found.commands and ((kind in ("says", "same", "ptx") and rest) or (kind == "exit" and rest.isdigit())
                                 or (kind in ("count", "total") and re.fullmatch(r"\w+ [=<>] \d+", rest))):
            found.commands[-1].wanted.append((kind, rest))
        else:
            raise ValueError(f"{path}: no statement: {line}")
    for command in found.commands:
        if [kind for kind, _ in command.wanted].count("exit") != 1:
            raise ValueError(f"{path}: wants one exit code of: {command.line}")
    if not found.commands and not found.gpu and not found.open:
        raise ValueError(f"{path}: states nothing")
    return found


def words_of(line: str) -> tuple[dict[str, str], str, list[str]]:
    """A command's variables, program and arguments."""
    words = shlex.split(line)
    first = next(i for i, word in enumerate(words) if word.startswith("build/bin/"))
    return dict(word.split("=", 1) for word in words[:first]), Path(words[first]).name, words[first + 1 :]


def run(line: str, programs: Callable, *more: str, report: bool = False) -> subprocess.CompletedProcess[str]:
    """Runs a command: `programs` gives a program's path for its name. None if it does not end in time."""
    variables, name, arguments = words_of(line)
    if report:
        variables["GG_EMU_REPORT"] = "1"
    try:
        return subprocess.run([programs(name), *arguments, *more], env={**os.environ, **variables},
                              capture_output=True, text=True, errors="replace", timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return None


def counters(path: Path) -> dict[str, int]:
    """The sum of each counter over all rows of a --counts-csv file; nothing where the program wrote none."""
    sums = {}
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                sums[row["counter"]] = sums.get(row["counter"], 0) + int(row["value"])
    return sums


def totals(report: str) -> dict[str, int]:
    """Each counter over all kernels of an emulator's report, which says so last if there are several."""
    last = report.rpartition("counts of ")[2]
    return {name: int(number) for name, number in re.findall(r"^  (\w+) +(\d+)$", last, re.M)}


def missed(sums: dict[str, int], rest: str) -> str:
    """What is wrong with a counter: a sentence, or nothing."""
    name, relation, number = rest.split()
    if name in sums and COMPARE[relation](sums[name], int(number)):
        return ""
    return f"{name} is {sums.get(name, 'not counted')}; wanted {relation} {number}"


def short(done: subprocess.CompletedProcess[str]) -> str:
    """What a run ended with, in one line."""
    lines = (done.stderr + done.stdout).strip().splitlines()
    shown = next((line for line in lines if re.search(r"fault |FAILED|error|refuse", line)), lines[-1] if lines else "nothing")
    return f"exit code {done.returncode}: {plain(shown)[:160]}"


def unmet(command: Command, programs: Callable) -> list[str]:
    """What does not hold of a command: a sentence for each statement, the first one alone where the exit code differs."""
    kinds = {kind for kind, _ in command.wanted}
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "counts.csv")
        done = run(command.line, programs, *(["--counts-csv", str(table)] if "count" in kinds else []), report="total" in kinds)
        sums = counters(table)
    if done is None:
        return [f"does not end in {LIMIT_S} s"]
    said, found = plain(done.stdout + " " + done.stderr), []
    for kind, rest in sorted(command.wanted, key=lambda each: each[0] != "exit"):
        if kind == "exit" and done.returncode != int(rest):
            return [f"{short(done)}; wanted exit code {rest}"]
        if kind == "says" and plain(rest) not in said:
            found.append(f"does not say: {rest}")
        if kind == "ptx" and rest.encode() not in programs(words_of(command.line)[1]).read_bytes():
            found.append(f"has no {rest} in its PTX")
        if kind == "same":
            other = run(rest, programs)
            if other is None or other.stdout != done.stdout:
                found.append(f"does not print what {rest} prints")
        if kind in ("count", "total"):
            found.append(missed(sums if kind == "count" else totals(done.stderr), rest))
    return [each for each in found if each]
