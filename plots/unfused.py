#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts an epilogue beside the unfused way: chapter 08d's product, then a kernel for each step (gg-unfused).

  python3 -B plots/unfused.py BUILD_DIR [CHAPTER ...]

Prints a table for the README of each chapter, of the set smoke on the emulator, in mxfp8 or nvfp4. That set has three
groups of 256 rows and N = 256, the sizes that gg-unfused has by default.
"""

import csv
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PRODUCT = "08d_two_cta"
SCALED = ["--d-dtype", "e4m3", "--norm-const", "0.01"]
STEPS = {"08e_epilogue": (["scale", "largest"], []),  # the steps that the chapter has, its options
         "08f_row_scales": (["scale", "largest", "quantise_rows"], SCALED),
         "09a_quantized": (["scale", "largest", "quantise_rows", "quantise_columns"], SCALED),
         "09b_glu": (["scale_sums", "glu", "largest_output"], []),
         "09c_glu_hadamard": (["scale_sums", "glu", "hadamard", "largest_output"], [])}
GATED = ["09b_glu", "09c_glu_hadamard"]  # which take four bits only
COLUMNS = ["instructions", "global_load_bytes", "global_store_bytes"]


def of_chapter(build, chapter, name, options):
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "counts.csv")
        subprocess.run([build / "bin" / chapter, "--device", "emu", "--bench", "--format", name, *options,
                        "--counts-csv", table], check=True, capture_output=True)
        with table.open(encoding="utf-8") as file:
            return {row["counter"]: int(row["value"]) for row in csv.DictReader(file) if row["set"] == "smoke"}


def of_steps(build):
    """The counts of each kernel of gg-unfused by its name."""
    done = subprocess.run([build / "bin" / "gg-emu", "--report", build / "bin" / "gg-unfused"], check=True,
                          capture_output=True, text=True)
    found = {}
    for part in re.split(r"^counts of ", done.stderr, flags=re.M)[1:]:
        name, *lines = part.splitlines()
        found[name] = {words[0]: int(words[1]) for words in map(str.split, lines) if len(words) == 2}
    return found


def main():
    if len(sys.argv) < 2 or not Path(sys.argv[1], "bin").is_dir():
        print("unfused.py: the first word is the build tree, a folder with bin/ in it", file=sys.stderr)
        return 2
    build, chapters = Path(sys.argv[1]), sys.argv[2:] or list(STEPS)
    for chapter in chapters:
        if chapter not in STEPS:
            print(f"unfused.py: {chapter} has no epilogue to count; these have: {', '.join(STEPS)}", file=sys.stderr)
            return 2
    try:
        print_tables(build, chapters)
    except (OSError, subprocess.CalledProcessError, KeyError) as error:
        print(f"unfused.py: {error}", file=sys.stderr)
        return 2
    return 0


def print_tables(build, chapters):
    steps = of_steps(build)
    for chapter in chapters:
        names, options = STEPS[chapter]
        name = "nvfp4" if chapter in GATED else "mxfp8"
        product, fused = of_chapter(build, PRODUCT, name, []), of_chapter(build, chapter, name, options)
        unfused = {c: product[c] + sum(steps[name].get(c, 0) for name in names) for c in COLUMNS}
        print(f"\n{chapter}:\n\n| `{name}` | launches | " + " | ".join(f"`{c}`" for c in COLUMNS) + " |")
        print("| --- |" + " ---: |" * (1 + len(COLUMNS)))
        # A launch that plans, one that multiplies, and one for each step.
        for who, launches, counts in ((f"{PRODUCT}, then {', '.join(f'`{n}`' for n in names)}", 2 + len(names), unfused),
                                      (chapter, 2, fused)):
            print(f"| {who} | {launches} | " + " | ".join(f"{counts[c]:,}" for c in COLUMNS) + " |")


if __name__ == "__main__":
    sys.exit(main())
