#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs every chapter that was built, one after the other, and ends with the ladder table, the figures and a page.

The target `tour` calls it. A chapter without a GPU of its kind runs on the emulator, which counts where a GPU
is timed. --like b200 runs nothing: it shows which tables and figures the tour would fill on a GPU that is not here.
A chapter that passed is not run again while its program, options and device stay the same: its
results in build/tour are kept. While others still compile, --one NAME does this for one chapter, where no GPU is timed.
"""

import argparse
import contextlib
import csv
import ctypes
import fcntl
import hashlib
import io
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
NO_DEVICE = 77  # a chapter's exit code where the device asked for is not there
# The library call that fits the set.
PEERS = {"prefill": "cublas_strided", "decode": "cublas_grouped"}
LIMIT_S = 600  # for one command, so that a kernel that hangs does not hang the tour
TIMES = ["prefill TFLOP/s", "% of roof", "decode us"]
COUNTS = {"instructions": ["instructions"],  # of warps
          "global bytes": ["global_load_bytes", "global_store_bytes", "global_atomic_bytes"],
          "sectors": ["global_load_sectors", "global_store_sectors", "global_atomic_sectors"],
          "bank conflicts": ["shared_bank_conflicts"]}


def find_device() -> str:
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


def digest(*parts: Path | str) -> str:
    """One hash of texts and of files' contents."""
    total = hashlib.sha256()
    for part in parts:
        total.update(part.read_bytes() if isinstance(part, Path) else part.encode())
        total.update(b"\0")
    return total.hexdigest()


def show(path: Path | str) -> str:
    return os.path.relpath(path, REPO)


def run(*command: Path | str) -> int:
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
        child.stdout.close()


def result_of(code: int) -> str:
    if code == NO_DEVICE:
        return "not run"
    return {0: "passed", 1: "FAILED"}.get(code, f"ERROR {code}" if code > 0 else f"KILLED {-code}")


class Broken(Exception):
    """Something that the tour reads and cannot; the message is one sentence."""


def describe(program: Path) -> dict:
    """What a chapter says of itself."""
    if not program.is_file():
        raise Broken(f"{show(program)}: there is no such program: build it, or leave its name out")
    said = subprocess.run([program, "--describe"], stdout=subprocess.PIPE).stdout
    try:
        about = json.loads(said or '{"title": "-", "sets": []}')
        return {"title": str(about["title"]), "sets": list(about["sets"])}
    except (ValueError, KeyError, TypeError) as error:
        raise Broken(f"{show(program)} --describe: its answer is not a chapter's: {error}") from error


def rows_of(table: Path, *columns: str) -> list[dict[str, str]]:
    """The rows of a table that an earlier tour wrote."""
    try:
        with open(table, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        if any(row.get(column) is None for row in rows for column in columns):
            raise ValueError("a row lacks a field")
        return rows
    except (OSError, ValueError, csv.Error) as error:
        raise Broken(f"{show(table)}: cannot be read as a tour's: {error}; remove it and run again") from error


class State:
    """What earlier tours left, by name of program: its key, when it ran, how it ended, whether it is part of a tour that goes on."""

    def __init__(self, path: Path) -> None:
        self.path, self.entries = path, self.read(path)

    @staticmethod
    def read(path: Path) -> dict[str, dict]:
        try:
            entries = json.loads(path.read_text())
        except (OSError, ValueError):
            return {}
        if not isinstance(entries, dict) or not all(isinstance(e, dict) for e in entries.values()):
            return {}  # nobody's tour wrote this
        return entries

    def kept(self, name: str, key: str) -> dict | None:
        entry = self.entries.get(name, {})
        return entry if entry.get("key") == key and entry.get("result") == "passed" else None

    def put(self, name: str, key: str, result: str, ahead: bool = False) -> dict:
        entry = {"key": key, "result": result, "when": time.strftime("%Y-%m-%d %H:%M"), "ahead": ahead}
        # Other tours of this build tree write there too.
        with open(self.path.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.entries = self.read(self.path) | {name: entry}
            beside = self.path.with_suffix(".new")
            beside.write_text(json.dumps(self.entries, indent=1))
            beside.replace(self.path)
        return entry


class Tour:
    def __init__(self, args: argparse.Namespace) -> None:
        self.build, self.out, self.sets = args.build, args.build / "tour", args.sets.split(",")
        self.plot_python, self.ahead = args.plot_python, bool(args.one)
        self.emulator = args.build / "lib" / "emu" / "libcudart.so.13"
        self.out.mkdir(parents=True, exist_ok=True)
        self.state = State(self.out / "state.json")
        self.device = find_device()
        # The driver and matplotlib keep caches: these stay in the build tree too.
        os.environ["CUDA_CACHE_PATH"] = str(self.build / "cuda-cache")
        os.environ["MPLCONFIGDIR"] = str(self.build / "matplotlib")

    def roof(self) -> None:
        program = self.build / "bin" / "gg-roof"
        if self.device:
            key = digest(program, self.device)
            if not ((self.build / "roof.csv").exists() and self.state.kept("gg-roof", key)):
                code = run(program)
                self.state.put("gg-roof", key, result_of(code))
                if code:
                    print(f"tour: no roof, gg-roof ended with {code}: its columns stay empty")

    def chapter(self, name: str) -> dict[str, str]:
        """Checks and times one chapter on a GPU, or counts on the emulator; returns its line of the ladder."""
        program = self.build / "bin" / name
        about = describe(program)
        line = {"chapter": name, "idea": about["title"]}
        if self.device:
            timed = [["--bench", "--set", each, *(["--peer", PEERS[each]] if each in PEERS else [])]
                     for each in self.sets if each in about["sets"]]
            table = self.out / f"{name}.csv"
            result, remark = self.results(program, table, "gpu", [["--check"], *timed], "--csv")
            if result != "not run":
                return line | {"check": result + remark} | self.times(table, result)
        table = self.out / f"{name}.counts.csv"
        result, remark = self.results(program, table, "emu", [["--check"], ["--bench"]], "--counts-csv")
        where = " (no emulator here)" if result == "not run" else " on the emulator"
        return line | {"check": result + where + remark} | counts(table, result)

    def results(self, program: Path, table: Path, device: str, commands: list[list[str]], option: str) -> tuple[str, str]:
        """Runs a program's commands, which append to a table; returns how they ended and a remark, if any."""
        machine = self.emulator if device == "emu" and self.emulator.exists() else self.device
        key = digest(program, json.dumps(commands), machine)
        kept = self.state.kept(table.name, key) if table.exists() else None
        if kept and kept.get("ahead"):  # this tour ran it while others compiled
            self.state.put(table.name, key, kept["result"], self.ahead)
            return kept["result"], ""
        if kept:
            return kept["result"], f", kept from {kept.get('when', 'earlier')}"
        part = table.with_suffix(".csv.part")
        part.unlink(missing_ok=True)
        for options in commands:
            code = run(program, "--device", device, *options, option, part)
            if code:
                break
        result = result_of(code)
        if result != "passed":
            part.unlink(missing_ok=True)  # the table of the last run that passed stays whole
        elif part.exists():
            part.replace(table)
        if result != "not run":
            self.state.put(table.name, key, result, self.ahead)
        return result, ""

    def times(self, table: Path, result: str) -> dict[str, str]:
        """Three columns from the chapter's own rows with cold inputs."""
        cells = dict.fromkeys(TIMES, "-")
        if result != "passed" or not table.exists():
            return cells
        cold = [row for row in rows_of(table, "set", "warm", "peer", "tflops", "roof_tflops", "us_median")
                if row["warm"] == "0" and not row["peer"]]
        rows = {row["set"]: row for row in cold}
        prefill, decode = rows.get("prefill", {}), rows.get("decode", {})
        try:
            if prefill.get("tflops"):
                cells["prefill TFLOP/s"] = f"{float(prefill['tflops']):.1f}"
                if prefill["roof_tflops"]:
                    cells["% of roof"] = f"{100 * float(prefill['tflops']) / float(prefill['roof_tflops']):.0f}"
            if decode.get("us_median"):
                cells["decode us"] = f"{float(decode['us_median']):.1f}"
        except (ValueError, ZeroDivisionError, OverflowError) as error:
            raise Broken(f"{show(table)}: {error}; remove it and run again") from error
        return cells

    def figures(self) -> str:
        """Draws the figures if what they are made of has changed; returns what went wrong, if anything."""
        if not self.plot_python:
            return "not drawn: `cmake --workflow --preset tour` fetches what draws them"
        plots, data, out, about = REPO / "plots", REPO / "plots" / "measure" / "data", self.out / "figures", self.build / "chapters.json"
        if not about.is_file():
            about = REPO / "chapters" / "chapters.json"
        sources = [*plots.glob("*/*.*"), *data.rglob("*.csv"), *self.out.glob("*.csv")]
        key = digest(self.plot_python, *sorted(sources), about)
        if not (out.exists() and self.state.kept("figures", key)):
            code = run(self.plot_python, "-B", "-m", "plots.draw.plot", "--chapters", about, "--data", data, "--data", self.out,
                       "--out", out)
            self.state.put("figures", key, result_of(code))
            if code:
                return f"NOT DRAWN: plots/draw/plot.py ended with {code}"
        return ""


def counts(table: Path, result: str) -> dict[str, str]:
    """Columns from what the emulator counted on the smoke set, for 1000 useful FLOP."""
    cells = dict.fromkeys(COUNTS, "-")
    if result != "passed" or not table.exists():
        return cells
    rows = rows_of(table, "counter", "value")
    try:
        found = {row["counter"]: int(row["value"]) for row in rows}
        kiloflop = found["useful_multiply_adds"] / 500
        for column, counters in COUNTS.items():
            cells[column] = f"{sum(found[each] for each in counters) / kiloflop:.4g}"
    except (KeyError, ValueError, ZeroDivisionError, OverflowError) as error:
        raise Broken(f"{show(table)}: not a tour's counts: {error!r}; remove it and run again") from error
    return cells


def print_tables(lines: list[dict[str, str]]) -> None:
    """One table of the chapters that a GPU ran, one of those that the emulator ran; mostly it is one."""
    on_gpu = [line for line in lines if TIMES[0] in line]
    on_emulator = [line for line in lines if line not in on_gpu]
    for some in filter(None, [on_gpu, on_emulator]):
        print()
        print_table(some)
    if on_emulator:
        print("Counts: the smoke set on the emulator, for 1000 useful FLOP; instructions of warps, bytes and "
              "32-byte sectors\nof global memory, wavefronts of shared memory that bank conflicts cost.")


def print_table(lines: list[dict[str, str]]) -> None:
    columns = list(lines[0])
    widths = [max(len(column), *(len(line[column]) for line in lines)) for column in columns]
    for line in [dict(zip(columns, columns)), *lines]:
        words = [line[column].ljust(width) for column, width in zip(columns[:3], widths)]
        numbers = [line[column].rjust(width) for column, width in zip(columns[3:], widths[3:])]
        print("  ".join(words + numbers))


def one(tour: Tour, name: str) -> int:
    """Runs one chapter on the emulator and prints all of it at once, as other commands print too. With a GPU it waits for the tour,
    which times it while nothing else runs."""
    if tour.device:
        return 0
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        line = tour.chapter(name)
    counted = ", ".join(f"{line[column]} {column}" for column in COUNTS if line[column] != "-")
    about = f": {counted} for 1000 useful FLOP" if counted else ""
    print(f"{said.getvalue()}tour: {line['chapter']}  {line['idea']}  {line['check']}{about}", flush=True)
    return 0  # whether it passed is for the tour to say


def like(args: argparse.Namespace) -> int:
    """The tables and figures of a tour on another GPU, with dashes for its numbers."""
    out = args.build / "tour" / f"like-{args.like}"
    os.environ["MPLCONFIGDIR"] = str(args.build / "matplotlib")
    code = run(args.plot_python or sys.executable, "-B", "-m", "plots.draw.preview", args.like, "--out", out)
    ladder = out / "tables.md"
    if ladder.exists():
        print("\n" + ladder.read_text(encoding="utf-8").split("\n## ")[1].strip())
        print(f"\nThe chapters' tables: {show(ladder)}")
    return code


def main() -> int:
    from common.tour.page import write  # begins at the root, which is on the path by now

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chapters", nargs="*", help="names of programs in BUILD/bin")
    parser.add_argument("--like", metavar="GPU", choices=["a100", "h100", "h200", "b200"],
                        help="a100, h100, h200 or b200: run nothing, show the tables and figures of a tour on that GPU, "
                        "without numbers")
    parser.add_argument("--one", metavar="NAME", help="run this chapter alone, ahead of the tour")
    parser.add_argument("--build", type=Path, default=REPO / "build", help="the build tree")
    parser.add_argument("--sets", default="prefill,decode", help="what to time (default: %(default)s)")
    parser.add_argument("--plot-python", default="", help="a Python that has matplotlib, for the figures")
    args = parser.parse_args()
    args.build = args.build.resolve()
    if args.like:
        return like(args)
    if args.one:
        return one(Tour(args), args.one)
    if not args.chapters:
        parser.error("no chapters: names of programs in BUILD/bin, or --like GPU")

    tour = Tour(args)
    where = tour.device or "the emulator, as no GPU was found"
    print(f"tour: {len(args.chapters)} chapters on {where}", flush=True)
    tour.roof()
    lines = []
    for i, name in enumerate(sorted(args.chapters), 1):
        if sys.stdout.isatty():  # for who waits; what is piped has the chapters' lines alone
            print(f"\ntour: chapter {i} of {len(args.chapters)}, {name}", flush=True)
        lines.append(tour.chapter(name))
    trouble = tour.figures()

    print_tables(lines)
    print(f"\nmeasurements: {show(tour.out)}")
    figures = [show(path) for path in sorted((tour.out / "figures").glob("*.svg"))]
    print("figures:", trouble or "\n  ".join(["", *figures]) or "none")
    print("page:", show(write.write(args.build, lines, where)))
    checks = [line["check"] for line in lines]
    passed, waiting = (sum(check.startswith(word) for check in checks) for word in ("passed", "not run"))
    failed = len(lines) - passed - waiting
    print(f"tour: {passed} chapters passed, {failed} failed, {waiting} not run")
    return 1 if failed or not passed or trouble.startswith("NOT") else 0


if __name__ == "__main__":
    # The README names this file by its path, while imports begin at the repository's root.
    sys.path[0] = str(REPO)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except Broken as broken:
        print(f"tour: {broken}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        print(f"tour: cannot write or start: {error}", file=sys.stderr)
        sys.exit(4)
