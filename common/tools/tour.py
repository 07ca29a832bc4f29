#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs every chapter that was built, one after the other, and ends with the ladder table and the figures.

The target `tour` calls it. A chapter that passed is not run again while its program, options and device stay the same:
its results in build/tour are kept.
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
    return f"{name.value.decode()}, driver for CUDA {version.value // 1000}.{version.value % 1000 // 10}"


def digest(*parts):
    """One hash of texts and of files' contents."""
    total = hashlib.sha256()
    for part in parts:
        total.update(part.read_bytes() if isinstance(part, Path) else part.encode())
        total.update(b"\0")
    return total.hexdigest()


def show(path):
    return os.path.relpath(path, REPO)


def run(*command, env=None):
    """Runs a command as a reader could type it, prints what it says as it says it, and returns its exit code."""
    command = [str(word) for word in command]
    print("\n$", *(show(word) if os.path.isabs(word) else word for word in command), flush=True)
    child = subprocess.Popen(command, cwd=REPO, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
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
        # The driver's and matplotlib's caches stay in the build tree too.
        os.environ.update(CUDA_CACHE_PATH=str(self.build / "cuda-cache"), MPLCONFIGDIR=str(self.build / "matplotlib"))

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
        about = json.loads(subprocess.run([program, "--describe"], stdout=subprocess.PIPE, check=True).stdout)
        commands = [["--check"]]
        for set_name in self.sets:
            if set_name in about["sets"]:
                peer = PEERS.get(set_name)
                commands.append(["--bench", "--set", set_name, *(["--peer", peer] if peer else [])])

        key = digest(program, json.dumps(commands), self.device)
        entry, fresh = self.state.kept(name, key), False
        if not entry:
            fresh = True
            rows = self.out / f"{name}.csv.part"
            rows.unlink(missing_ok=True)
            for options in commands:
                code = run(program, *options, "--csv", rows)
                if code:
                    break
            if rows.exists():
                rows.replace(self.out / f"{name}.csv")
            entry = self.state.put(name, key, result_of(code))

        result = entry["result"]
        line = {"chapter": name, "idea": about["title"], "check": result, **self.times(name, result)}
        if result == "not run":
            line["check"] += " (its GPU is not here)" if self.device else " (no GPU here)"
        elif not fresh:
            line["check"] += f", kept from {entry['when']}"
        return line

    def times(self, name, result):
        """The chapter's own cold rows of its first format: TFLOP/s and share of the roof on prefill, time on decode."""
        dash = {"prefill TFLOP/s": "-", "% of roof": "-", "decode us": "-"}
        path = self.out / f"{name}.csv"
        if result != "passed" or not path.exists():
            return dash
        with open(path, newline="") as file:
            rows = {row["set"]: row for row in csv.DictReader(file) if row["warm"] == "0" and not row["peer"]}
        prefill, decode = rows.get("prefill", {}), rows.get("decode", {})
        if prefill.get("tflops"):
            dash["prefill TFLOP/s"] = f"{float(prefill['tflops']):.1f}"
            if prefill["roof_tflops"]:
                dash["% of roof"] = f"{100 * float(prefill['tflops']) / float(prefill['roof_tflops']):.0f}"
        if decode.get("us_median"):
            dash["decode us"] = f"{float(decode['us_median']):.1f}"
        return dash

    def figures(self):
        """Draws the figures anew if what they show has changed; returns how that ended."""
        if not self.plot_python:
            return "not drawn: `cmake --workflow --preset tour` fetches what draws them"
        out = self.out / "figures"
        plots = REPO / "plots"
        shown = [*plots.glob("*.*"), *plots.glob("data/**/*.csv"), *self.out.glob("*.csv"), *REPO.glob("chapters/*/main.cu")]
        key = digest(self.plot_python, *sorted(shown))
        if not self.state.kept("figures", key):
            code = run(self.plot_python, "-B", plots / "plot.py", "--data", plots / "data", "--data", self.out, "--out", out)
            self.state.put("figures", key, result_of(code))
            if code:
                return f"NOT DRAWN: plots/plot.py ended with {code}"
        return None


def print_table(lines):
    columns = list(lines[0])
    widths = [max(len(column), *(len(line[column]) for line in lines)) for column in columns]
    for line in [dict(zip(columns, columns)), *lines]:
        cells = [line[c].rjust(w) if i > 2 else line[c].ljust(w) for i, (c, w) in enumerate(zip(columns, widths))]
        print("  ".join(cells).rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chapters", nargs="+", help="names of programs in BUILD/bin")
    parser.add_argument("--build", type=Path, default=REPO / "build", help="the build tree")
    parser.add_argument("--sets", default="prefill,decode", help="what to time (default: %(default)s)")
    parser.add_argument("--plot-python", default="", help="a Python that has matplotlib; without it no figures")
    args = parser.parse_args()
    args.build = args.build.resolve()

    tour = Tour(args)
    print(f"tour: {len(args.chapters)} chapters on {tour.device or 'a machine where no GPU was found'}", flush=True)
    tour.roof()
    lines = [tour.chapter(name) for name in sorted(args.chapters)]
    trouble = tour.figures()

    print()
    print_table(lines)
    print(f"\nmeasurements: {show(tour.out)}")
    drawn = sorted((tour.out / "figures").glob("*.svg"))
    print("figures:", trouble or ("" if drawn else "none"))
    for path in [] if trouble else drawn:
        print(" ", show(path))
    bad = [line["chapter"] for line in lines if not line["check"].startswith(("passed", "not run"))]
    waiting = sum(line["check"].startswith("not run") for line in lines)
    print(f"tour: {len(lines) - len(bad) - waiting} chapters passed, {len(bad)} failed, {waiting} not run")
    return 1 if bad else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
