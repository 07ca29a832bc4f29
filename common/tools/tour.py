#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs every chapter that was built, one after the other, and ends with the ladder table and the figures.

The target `tour` calls it. A chapter that passed is not run again while its program, options and device stay
the same: its results in build/tour are kept.
"""

import argparse
import csv
import ctypes
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
NO_DEVICE = 77  # a chapter's exit code where no GPU of its kind is there
PEERS = {"prefill": "cublas_strided", "decode": "cublas_grouped"}  # the library call that fits the set
LIMIT_S = 600  # for one command, so that a kernel that hangs does not hang the tour


def find_device():
    """The first GPU and its driver, or nothing."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ""
    handle, version, name = ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(128)
    if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(handle), 0):
        return ""
    cuda.cuDeviceGetName(name, len(name), handle)
    cuda.cuDriverGetVersion(ctypes.byref(version))
    cuda_version = f"{version.value // 1000}.{version.value % 1000 // 10}"
    return f"{name.value.decode()}, driver for CUDA {cuda_version}"


def digest(*parts):
    """One hash of texts and of files' contents."""
    total = hashlib.sha256()
    for part in parts:
        total.update(part.read_bytes() if isinstance(part, Path) else part.encode())
        total.update(b"\0")
    return total.hexdigest()


def show(path):
    return os.path.relpath(path, REPO)


def run(*command):
    """Runs a command as a reader could type it, prints what it says as it says it, returns its exit code."""
    command = [str(word) for word in command]
    print("\n$", *(show(word) if os.path.isabs(word) else word for word in command), flush=True)
    child = subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             errors="replace")
    timer = threading.Timer(LIMIT_S, child.kill)
    timer.start()
    try:
        for line in child.stdout:
            print(" ", line.rstrip(), flush=True)
        return child.wait()
    finally:
        timer.cancel()
        child.kill()


def result_of(code):
    if code == NO_DEVICE:
        return "not run"
    return {0: "passed", 1: "FAILED"}.get(code, f"ERROR {code}" if code > 0 else f"KILLED {-code}")


class State:
    """What earlier tours left, by name of program: its key, when it ran, how it ended."""

    def __init__(self, path):
        self.path = path
        try:
            self.entries = json.loads(path.read_text())
        except (OSError, ValueError):
            self.entries = {}

    def kept(self, name, key):
        entry = self.entries.get(name, {})
        return entry if entry.get("key") == key and entry["result"] == "passed" else None

    def put(self, name, key, result):
        entry = {"key": key, "result": result, "when": time.strftime("%Y-%m-%d %H:%M")}
        self.entries[name] = entry
        beside = self.path.with_suffix(".new")
        beside.write_text(json.dumps(self.entries, indent=1))
        beside.replace(self.path)
        return entry


class Tour:
    def __init__(self, args):
        self.build, self.out, self.sets = args.build, args.build / "tour", args.sets.split(",")
        self.plot_python = args.plot_python
        self.out.mkdir(parents=True, exist_ok=True)
        self.state = State(self.out / "state.json")
        self.device = find_device()
        # The driver and matplotlib keep caches: these stay in the build tree too.
        os.environ["CUDA_CACHE_PATH"] = str(self.build / "cuda-cache")
        os.environ["MPLCONFIGDIR"] = str(self.build / "matplotlib")

    def roof(self):
        program = self.build / "bin" / "gg-roof"
        if self.device:
            key = digest(program, self.device)
            if not ((self.build / "roof.csv").exists() and self.state.kept("gg-roof", key)):
                code = run(program)
                self.state.put("gg-roof", key, result_of(code))
                if code:
                    print(f"tour: no roof, gg-roof ended with {code}: its columns stay empty")

    def chapter(self, name):
        """Checks and times one chapter; returns its line of the ladder."""
        program = self.build / "bin" / name
        described = subprocess.run([program, "--describe"], stdout=subprocess.PIPE)
        about = json.loads(described.stdout or '{"title": "-", "sets": []}')
        commands = [["--check"]]
        for set_name in self.sets:
            if set_name in about["sets"]:
                peer = PEERS.get(set_name)
                commands.append(["--bench", "--set", set_name, *(["--peer", peer] if peer else [])])

        key, table = digest(program, json.dumps(commands), self.device), self.out / f"{name}.csv"
        kept = self.state.kept(name, key) if table.exists() else None
        if kept:
            result, remark = kept["result"], f", kept from {kept['when']}"
        else:
            part = table.with_suffix(".csv.part")
            part.unlink(missing_ok=True)
            for options in commands:
                code = run(program, *options, "--csv", part)
                if code:
                    break
            if part.exists():
                part.replace(table)
            result, remark = result_of(code), ""
            self.state.put(name, key, result)
        if result == "not run":
            remark = " (its GPU is not here)" if self.device else " (no GPU here)"
        line = {"chapter": name, "idea": about["title"], "check": result + remark}
        return {**line, **self.times(table, result)}

    def times(self, table, result):
        """Three columns from the chapter's own rows with cold inputs."""
        cells = {"prefill TFLOP/s": "-", "% of roof": "-", "decode us": "-"}
        if result != "passed" or not table.exists():
            return cells
        with open(table, newline="") as file:
            cold = [row for row in csv.DictReader(file) if row["warm"] == "0" and not row["peer"]]
        rows = {row["set"]: row for row in cold}
        prefill, decode = rows.get("prefill", {}), rows.get("decode", {})
        if prefill.get("tflops"):
            cells["prefill TFLOP/s"] = f"{float(prefill['tflops']):.1f}"
            if prefill["roof_tflops"]:
                cells["% of roof"] = f"{100 * float(prefill['tflops']) / float(prefill['roof_tflops']):.0f}"
        if decode.get("us_median"):
            cells["decode us"] = f"{float(decode['us_median']):.1f}"
        return cells

    def figures(self):
        """Draws the figures if what they are made of has changed; returns what went wrong, if anything."""
        if not self.plot_python:
            return "not drawn: `cmake --workflow --preset tour` fetches what draws them"
        plots, out = REPO / "plots", self.out / "figures"
        sources = [*plots.glob("*.*"), *plots.glob("data/**/*.csv"), *self.out.glob("*.csv")]
        key = digest(self.plot_python, *sorted(sources), *sorted(REPO.glob("chapters/*/main.cu")))
        if not (out.exists() and self.state.kept("figures", key)):
            data = ["--data", plots / "data", "--data", self.out]
            code = run(self.plot_python, "-B", plots / "plot.py", *data, "--out", out)
            self.state.put("figures", key, result_of(code))
            if code:
                return f"NOT DRAWN: plots/plot.py ended with {code}"
        return ""


def print_table(lines):
    columns = list(lines[0])
    widths = [max(len(column), *(len(line[column]) for line in lines)) for column in columns]
    for line in [dict(zip(columns, columns)), *lines]:
        words = [line[column].ljust(width) for column, width in zip(columns[:3], widths)]
        numbers = [line[column].rjust(width) for column, width in zip(columns[3:], widths[3:])]
        print("  ".join(words + numbers))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chapters", nargs="+", help="names of programs in BUILD/bin")
    parser.add_argument("--build", type=Path, default=REPO / "build", help="the build tree")
    parser.add_argument("--sets", default="prefill,decode", help="what to time (default: %(default)s)")
    parser.add_argument("--plot-python", default="", help="a Python that has matplotlib, for the figures")
    args = parser.parse_args()
    args.build = args.build.resolve()

    tour = Tour(args)
    where = tour.device or "a machine where no GPU was found"
    print(f"tour: {len(args.chapters)} chapters on {where}", flush=True)
    tour.roof()
    lines = [tour.chapter(name) for name in sorted(args.chapters)]
    trouble = tour.figures()

    print()
    print_table(lines)
    print(f"\nmeasurements: {show(tour.out)}")
    figures = [show(path) for path in sorted((tour.out / "figures").glob("*.svg"))]
    print("figures:", trouble or "\n  ".join(["", *figures]) or "none")
    checks = [line["check"] for line in lines]
    passed, waiting = (sum(check.startswith(word) for check in checks) for word in ("passed", "not run"))
    failed = len(lines) - passed - waiting
    print(f"tour: {passed} chapters passed, {failed} failed, {waiting} not run")
    return 1 if failed or trouble.startswith("NOT") else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
