#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts again on the emulator what the READMEs say, in seconds: each chapter's smoke set, and runs for single sentences.

  python3 -B plots/measure/recount.py [--build DIR] [--compare]

Writes emulator.csv and said.csv of plots/measure/data; then `publish` fills tables and sentences. --compare
writes nothing and names each number that is another. A compiler chooses instructions; bytes, sectors, barriers and
products are the kernel's own. So instructions are compared only where nvcc is the one that nvcc.txt there names.
"""

import argparse
import csv
import io
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True  # a reader's clone stays clean
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # imports name their room

from measure.chapters import read_chapters  # noqa: E402
from measure.files import COUNT_COLUMNS, DATA, SAID_COLUMNS, read_csv  # noqa: E402

REPO = Path(__file__).resolve().parents[2]
SMOKE = ["--set", "smoke"]
SCALED = [*SMOKE, "--format", "mxfp8", "--d-dtype", "e4m3", "--norm-const", "0.01"]
EMPTY = "--m 0,0,0,0 --n 256 --k 128".split()
ONE_TILE, TWO_TILES = ("--m 256 --n 256 --k 128".split(), "--m 256 --n 512 --k 128".split())
ONE_TALL, TWO_TALL = ([*some, "--tile", "256x128"] for some in (ONE_TILE, TWO_TILES))
RUNS = {("07a_warp_specialized", "k640"): ["--m", "128", "--n", "128", "--k", "640"],
        ("07a_warp_specialized", "k704"): ["--m", "128", "--n", "128", "--k", "704"],
        ("07c_one_launch", "empty"): EMPTY, ("07d_tokens_on_n", "empty"): EMPTY,
        ("08d_two_cta", "mxfp8"): [*SMOKE, "--format", "mxfp8"], ("08d_two_cta", "nvfp4"): [*SMOKE, "--format", "nvfp4"],
        ("08e_epilogue", "mxfp8"): [*SMOKE, "--format", "mxfp8"], ("08f_row_scales", "scaled"): SCALED,
        ("09a_quantized", "scaled"): SCALED, ("09a_quantized", "mxfp8"): [*SMOKE, "--format", "mxfp8"],
        ("09b_glu", "nvfp4"): [*SMOKE, "--format", "nvfp4"],
        ("09c_glu_hadamard", "nvfp4"): [*SMOKE, "--format", "nvfp4"],
        ("09b_glu", "plain256"): ONE_TILE, ("09b_glu", "plain512"): TWO_TILES,
        ("07m_fused_glu", "plain256"): ONE_TALL, ("07m_fused_glu", "plain512"): TWO_TALL}
for transform in ("tensor", "butterfly"):
    RUNS["09c_glu_hadamard", f"{transform}256"] = [*ONE_TILE, "--transform", transform]
    RUNS["09c_glu_hadamard", f"{transform}512"] = [*TWO_TILES, "--transform", transform]
    RUNS["07n_glu_hadamard", f"{transform}256"] = [*ONE_TALL, "--transform", transform]
    RUNS["07n_glu_hadamard", f"{transform}512"] = [*TWO_TALL, "--transform", transform]
# The kernels of gg-unfused, by the chapter whose epilogue does what they do together.
UNFUSED = {"08e_epilogue": ["scale", "largest"], "08f_row_scales": ["scale", "largest", "quantise_rows"],
           "09a_quantized": ["scale", "largest", "quantise_rows", "quantise_columns"],
           "09b_glu": ["scale_sums", "glu", "largest_output"],
           "09c_glu_hadamard": ["scale_sums", "glu", "hadamard", "largest_output"]}
KEPT = ["instructions", "instructions_floating", "global_load_bytes", "global_store_bytes"]
LIMIT_S = 120


class Failed(Exception):
    """A program that did not count; the message says which."""


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace",
                          timeout=LIMIT_S)
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stderr


def count(build, chapter, options):
    """The rows that a chapter's program counts."""
    with tempfile.TemporaryDirectory() as folder:
        run([build / "bin" / chapter, "--device", "emu", "--bench", *options, "--counts-csv", Path(folder, "counts.csv")])
        return read_csv(Path(folder, "counts.csv"), COUNT_COLUMNS)


def steps(build):
    """The counts of each kernel of gg-unfused by its name."""
    text = run([build / "bin" / "gg-emu", "--report", build / "bin" / "gg-unfused"])
    found = {}
    for part in re.split(r"^counts of ", text, flags=re.M)[1:]:
        name, *lines = part.splitlines()
        found[name] = {words[0]: int(words[1]) for words in map(str.split, lines)
                       if len(words) == 2 and words[0] in KEPT}
    return found


def smoke_of(chapter):
    return next(name for name in ("smoke", "smoke_uniform") if name in chapter.sets)


def measure(build):
    """All counts: by file of the data its header and rows."""
    chapters = read_chapters(REPO)
    jobs = [(each.id, ["--set", smoke_of(each)]) for each in chapters] + [(who, RUNS[who, name]) for who, name in RUNS]
    with ThreadPoolExecutor(2) as pool:
        counted = list(pool.map(lambda job: count(build, *job), jobs))
    files = {"emulator.csv": (COUNT_COLUMNS, [row for rows in counted[:len(chapters)] for row in rows])}
    said = [(*key, row["counter"], row["value"]) for key, rows in zip(RUNS, counted[len(chapters):]) for row in rows
            if row["counter"] in KEPT]
    used = dict.fromkeys(name for names in UNFUSED.values() for name in names)
    kernels = steps(build)
    said += [("gg-unfused", name, counter, kernels[name].get(counter, 0)) for name in used for counter in KEPT]
    files["said.csv"] = SAID_COLUMNS, [dict(zip(SAID_COLUMNS, map(str, each))) for each in said]
    return files


def compiler(build):
    """The version of nvcc that built the programs, as CMake's cache has it."""
    for path in sorted(build.glob("CMakeFiles/*/CMakeCUDACompiler.cmake")):
        found = re.search(r'set\(CMAKE_CUDA_COMPILER_VERSION "([^"]+)"', path.read_text(encoding="utf-8"))
        if found:
            return found[1]
    raise Failed(f"{build}: no CUDA compiler was configured there")


def text_of(columns, rows):
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def differences(files, data, with_instructions):
    """A sentence for each count that is not what the committed file says."""
    for name, (columns, rows) in files.items():
        old = read_csv(data / name, columns) if (data / name).exists() else []
        before, now = ({tuple(row[c] for c in columns[:-1]): row["value"] for row in some} for some in (old, rows))
        for key in before.keys() | now.keys():
            if (with_instructions or not key[-1].startswith("instructions")) and before.get(key) != now.get(key):
                yield f"{name}: {' '.join(key)} is {now.get(key)}, not {before.get(key)}"


def main():
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
            (args.data / name).write_text(text_of(columns, rows), encoding="utf-8", newline="\n")
        note.write_text(nvcc + "\n", encoding="utf-8")
    except (Failed, OSError, subprocess.TimeoutExpired) as error:
        print(f"recount: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
