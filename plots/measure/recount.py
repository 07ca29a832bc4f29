# SPDX-License-Identifier: MIT
"""Counts again on the emulator what the READMEs say, in seconds: each chapter's smoke set, and runs for single sentences.

  python3 -B -m plots.measure.recount [--build DIR] [--compare]

The runs are those of each chapter's checks/counts.ini. Writes emulator.csv and said.csv of plots/measure/data; then
`publish` fills tables and sentences. --compare writes nothing and names each number that is another. A compiler chooses
instructions; bytes, sectors, barriers and products are the kernel's own. So instructions are compared only where nvcc is
the one that nvcc.txt there names.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from plots.measure.chapters import Chapter, read_chapters
from plots.measure.counts_ini import count_plan
from plots.measure.files import COUNT_COLUMNS, DATA, RUN_COUNT_COLUMNS, read_csv, write_csv

REPO = Path(__file__).resolve().parents[2]
KEPT = ["instructions", "instructions_floating", "global_load_bytes", "global_store_bytes"]
LIMIT_S = 120


class Failed(Exception):
    """A program that did not count; the message says which."""


def run(command: list[Path | str]) -> str:
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace",
                              timeout=LIMIT_S)
    except FileNotFoundError:
        raise Failed(f"there is no {command[0]}: all chapters have to be built "
                     "(cmake --preset check && cmake --build build)") from None
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stderr


def count(build: Path, chapter: str, options: list[str]) -> list[dict[str, str]]:
    """The rows that a chapter's program counts."""
    with tempfile.TemporaryDirectory() as folder:
        run([build / "bin" / chapter, "--device", "emu", "--bench", *options, "--counts-csv", Path(folder, "counts.csv")])
        return read_csv(Path(folder, "counts.csv"), COUNT_COLUMNS)


def steps(build: Path) -> dict[str, dict[str, int]]:
    """The counts of each kernel of gg-unfused by its name."""
    text = run([build / "bin" / "gg-emu", "--report", build / "bin" / "gg-unfused"])
    found = {}
    for part in re.split(r"^counts of ", text, flags=re.M)[1:]:
        name, *lines = part.splitlines()
        found[name] = {words[0]: int(words[1]) for words in map(str.split, lines)
                       if len(words) == 2 and words[0] in KEPT}
    return found


def smoke_of(chapter: Chapter) -> str:
    return next(name for name in ("smoke", "smoke_uniform") if name in chapter.sets)


def measure(build: Path) -> dict[str, tuple[list[str], list[dict]]]:
    """All counts: by file of the data its header and rows."""
    chapters = read_chapters(REPO, build / "chapters.json")
    about = {each.id: count_plan(each.folder) for each in chapters}
    runs = {(who, name): options for who, each in about.items() for name, options in each.runs.items()}
    jobs = [(each.id, ["--set", smoke_of(each)]) for each in chapters] + [(who, options) for (who, _), options in runs.items()]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda job: count(build, *job), jobs))
    files = {"emulator.csv": (COUNT_COLUMNS, [row for rows in found[:len(chapters)] for row in rows])}
    said = [(*key, row["counter"], row["value"]) for key, rows in zip(runs, found[len(chapters):]) for row in rows
            if row["counter"] in KEPT]
    used = dict.fromkeys(name for each in about.values() if each.unfused for name in each.unfused.kernels)
    kernels = steps(build)
    said += [("gg-unfused", name, counter, kernels[name].get(counter, 0)) for name in used for counter in KEPT]
    files["said.csv"] = RUN_COUNT_COLUMNS, [dict(zip(RUN_COUNT_COLUMNS, map(str, each))) for each in said]
    return files


def compiler(build: Path) -> str:
    """The version of nvcc that built the programs, as CMake's cache has it."""
    for path in sorted(build.glob("CMakeFiles/*/CMakeCUDACompiler.cmake")):
        found = re.search(r'set\(CMAKE_CUDA_COMPILER_VERSION "([^"]+)"', path.read_text(encoding="utf-8"))
        if found:
            return found[1]
    raise Failed(f"{build}: no CUDA compiler was configured there")


def differences(files: dict[str, tuple[list[str], list[dict]]], data: Path, with_instructions: bool) -> Iterator[str]:
    """A sentence for each count that is not what the committed file says."""
    for name, (columns, rows) in files.items():
        old = read_csv(data / name, columns) if (data / name).exists() else []
        before, now = ({tuple(row[c] for c in columns[:-1]): row["value"] for row in some} for some in (old, rows))
        for key in before.keys() | now.keys():
            if (with_instructions or not key[-1].startswith("instructions")) and before.get(key) != now.get(key):
                yield f"{name}: {' '.join(key)} is {now.get(key)}, not {before.get(key)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=REPO / "build", help="the build tree")
    parser.add_argument("--compare", action="store_true", help="with what is there, instead of writing it")
    parser.add_argument("--data", type=Path, default=REPO / DATA, help=argparse.SUPPRESS)
    args = parser.parse_args()
    try:
        build = args.build.resolve()
        files, nvcc, note = measure(build), compiler(build), args.data / "nvcc.txt"
        if args.compare:
            same = note.read_text(encoding="utf-8").strip() == nvcc
            if not same:
                print(f"recount: instructions are not compared: nvcc is {nvcc}, not that of {note.name}")
            found = sorted(differences(files, args.data, same))
            for each in found:
                print(f"recount: {each}")
            return 1 if found else 0
        for name, (columns, rows) in files.items():
            write_csv(args.data / name, columns, rows)
        note.write_text(nvcc + "\n", encoding="utf-8")
    except (Failed, OSError, subprocess.TimeoutExpired) as error:
        print(f"recount: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
