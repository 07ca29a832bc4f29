# SPDX-License-Identifier: MIT
"""Compares chapters 09a and 09c with NVIDIA's kernels for the same operators: every byte of the outputs, counts, and
predicted cycles. No GPU is needed; pip must reach PyPI the first time.

  cmake --build --preset cudnn                                        (all of it)
  python3 -B -m plots.measure.cudnn.compare [--build DIR] [--ptxas PROGRAM] [--only TEXT] [--write]

cudnn-frontend and the DSL that its kernels are written in are fetched into the build tree. compile.py makes PTX of 23
configurations. The chapter runs on the emulator and writes its operands; gg-ptx runs NVIDIA's kernels on the same ones;
then the outputs are compared. --only takes the configurations whose name has this in it, --write puts the numbers into
plots/measure/data/cudnn.csv, of which publish makes the tables of 09a and 09c. Ends with 1 if a byte differs.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from plots.measure.cudnn.configurations import Configuration, all_configurations
from plots.measure.files import COUNT_COLUMNS, CUDNN_COLUMNS, DATA, read_csv, write_csv
from plots.measure.machine_code import cycles
from plots.measure.machine_code.listing import BadListing, disassemble
from plots.measure.machine_code.model import Kernel
from plots.measure.machine_code.tools import NoTool, fetch, find, pip_environment

REPO = Path(__file__).resolve().parents[3]
PACKAGES = "nvidia-cutlass-dsl[cu13]==4.4.1", "nvidia-cudnn-frontend==1.23.0"
Problem = tuple[tuple[int, ...], int, int]  # rows of the groups, N, K
# Counts and cycles are those of the first.
PROBLEMS = (256, 256, 256, 256), 512, 2048
# An empty group, a part of a tile of columns, a part of a slice of K.
UNEVEN = (256, 0, 512), 320, 288
LIMIT_S = 600
# What their kernels do that the emulator reports, and hardware in its usual order forgives.
ALLOWED = "async-window,mbarrier,race,tcgen05-fence,uninit-register,uninit-shared"
OUTPUTS = "c", "d", "amax", "d_col", "sfd_row", "sfd_col"
FILL = b"\xff"  # of outputs before a launch, as the chapters' --out has it
COUNTED = "instructions", "global_load_bytes", "global_store_sectors", "shared_wavefronts"


class Failed(Exception):
    """Something that did not run; the message says which."""


def run(command: list, environment: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    command = [str(word) for word in command]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=LIMIT_S, env=environment, cwd=cwd)
    if done.returncode:
        raise Failed(f"{' '.join(command)[:400]} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stderr


def python_of(build: Path) -> Path:
    """The Python with NVIDIA's packages, in the build tree; made the first time."""
    folder = build / "cudnn" / "python"
    python = folder / "bin" / "python"
    if not (folder / "made").exists():
        run([sys.executable, "-m", "venv", "--clear", folder])
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run([*pip, PACKAGES[0]], pip_environment())
        # It wants torch and cuDNN, which its kernels do not.
        run([*pip, "--no-deps", PACKAGES[1]], pip_environment())
        (folder / "made").touch()
    return python


def ptx_of(build: Path, problem: Problem) -> Path:
    """The folder with PTX and launches of all configurations for a problem."""
    rows, n, k = problem
    folder = build / "cudnn" / f"{sum(rows)}x{n}x{k}x{len(rows)}"
    last = folder / f"{len(all_configurations()) - 1}.json"
    program = Path(__file__).with_name("compile.py")
    if not last.exists() or last.stat().st_mtime < program.stat().st_mtime:
        run([python_of(build), "-B", "-m", "plots.measure.cudnn.compile", folder, sum(rows), n, k, len(rows)], cwd=REPO)
    return folder


# ---- running both ----

def array_of(path: Path) -> tuple[bytes, bytes]:
    """The header of a .npy file, and its bytes."""
    raw = path.read_bytes()
    begin = 10 + int.from_bytes(raw[8:10], "little")
    return raw[:begin], raw[begin:]


def run_ours(build: Path, one: Configuration, problem: Problem, folder: Path) -> tuple[dict[str, int], dict[str, Kernel]]:
    """Runs the chapter, which writes operands and outputs; its counters, and its kernels with the weights of their code."""
    rows, n, k = problem
    table = folder / "counts.csv"
    options = ["--device", "emu", "--bench", "--m", ",".join(map(str, rows)), "--n", str(n), "--k", str(k), *one.options,
               "--out", str(folder), "--counts-csv", str(table)]
    kernels = cycles.kernels(build, [str(build / "bin" / one.chapter), *options], 4 if one.pair else 2, sharing=4)
    return {row["counter"]: int(row["value"]) for row in read_csv(table, COUNT_COLUMNS)}, kernels


def buffers(one: Configuration, made: dict, folder: Path, theirs: Path) -> list:
    """Words of gg-ptx that name each tensor of a configuration and the file it is in."""
    words = []
    for name, size in made["bytes"].items():
        if name == "workspace":
            words += ["--buf", f"{name}=zero:{max(size, 1)}"]
        # No scales: they leave their D_col alone.
        elif name in OUTPUTS and not (folder / f"{name}.npy").exists():
            words += ["--buf", f"{name}=zero:{size}"]
        elif name in OUTPUTS:
            header, held = array_of(folder / f"{name}.npy")
            # amax starts as -inf.
            start = b"\x00\x00\x80\xff" * (len(held) // 4) if name == "amax" else FILL * len(held)
            (theirs / f"{name}.npy").write_bytes(header + start)
            words += ["--buf", f"{name}=out:{theirs / name}.npy"]
        else:
            words += ["--buf", f"{name}=in:{folder / name}.npy"]
    if one.discrete:
        for name in "b", "sfb":
            files = sorted(folder.glob(f"{name}_*.npy"))
            for file in files:
                words += ["--buf", f"{file.stem}=in:{file}"]
            words += ["--buf", f"{name}_ptrs=ptrs:" + ",".join(file.stem for file in files)]
    return words


def run_theirs(build: Path, ptxas: str, one: Configuration, place: int, ptx: Path, folder: Path,
               theirs: Path) -> tuple[dict[str, int], dict[str, Kernel]]:
    """Runs NVIDIA's kernels on the same operands; the counters of all launches, and the kernels with their weights."""
    made, words = json.loads((ptx / f"{place}.json").read_text()), []
    words = buffers(one, made, folder, theirs)
    for i, launch in enumerate(made["launches"]):
        block = theirs / f"{i}.args"
        block.write_bytes(bytes.fromhex(launch["arguments"]))
        words += ["--launch", launch["entry"], "--args", block, "--smem", launch["smem"]]
        for option in "grid", "block", "cluster":
            words += [f"--{option}", ",".join(map(str, launch[option]))]
        for offset, name in launch["patches"]:
            words += ["--patch", f"{offset}={name}"]
    lines = theirs / "lines.csv"
    text = run([build / "bin" / "gg-ptx", ptx / f"{place}.ptx", *words, "--like", "b200", "--allow", ALLOWED, "--report",
                "--line-counts", lines])
    counters = dict.fromkeys(COUNTED, 0)
    for title, part in re.findall(r"(?ms)^counts of (.*?)$(.*?)(?=^counts|\Z)", text):
        for name, number in re.findall(r"(?m)^ *(\w+) +(\d+)$", "" if title == "all kernels" else part):
            counters[name] = counters.get(name, 0) + int(number)
    return counters, kernels_of(build, ptxas, ptx / f"{place}.ptx", lines)


def kernels_of(build: Path, ptxas: str, ptx: Path, lines: Path) -> dict[str, Kernel]:
    """The kernels of a PTX file by ptxas, with the weights of their code."""
    cubin = ptx.with_suffix(".cubin")
    if not cubin.exists() or cubin.stat().st_mtime < ptx.stat().st_mtime:
        run([ptxas, "-arch=sm_100a", "--generate-line-info", ptx, "-o", cubin])
    functions = disassemble(find("nvdisasm", build), str(cubin))
    counts = cycles.read_lines(lines)
    return {name: Kernel(functions[name], counted, 4) for name, counted in counts.items() if name in functions}


# ---- what is compared ----

def differing(folder: Path, theirs: Path) -> tuple[list[str], int]:
    """"d: 3 of 1024 bytes" of each output that is not the same in both."""
    found, values = [], 0
    for path in sorted(theirs.glob("*.npy")):
        (_, a), (_, b) = array_of(folder / path.name), array_of(path)
        wrong = sum(x != y for x, y in zip(a, b)) + abs(len(a) - len(b)) if a != b else 0
        values += len(a)
        if wrong:
            found.append(f"{path.stem}: {wrong} of {len(a)} bytes")
    return found, values


def machine_instructions(kernels: dict[str, Kernel]) -> int:
    return round(sum(weight * len(block.instructions) for kernel in kernels.values()
                     for weight, block in zip(kernel.weights, kernel.blocks)))


def compare(build: Path, ptxas: str, one: Configuration, place: int, problem: Problem,
            scratch: Path) -> tuple[list[str], int, list[dict]]:
    """What differs; the number of bytes compared; a row of numbers for each side."""
    folder, theirs = scratch / "ours", scratch / "theirs"
    folder.mkdir(), theirs.mkdir()
    sides, (rows, n, _) = {}, problem
    sides["ours"] = run_ours(build, one, problem, folder)
    sides["theirs"] = run_theirs(build, ptxas, one, place, ptx_of(build, problem), folder, theirs)
    found, size = differing(folder, theirs)
    warps = sum(-(-count // 128) for count in rows) * 4 * -(-n // 256)
    numbers = []
    for side, (counters, kernels) in sides.items():
        values = {name: counters[name] for name in COUNTED}
        values["machine_instructions"] = machine_instructions(kernels)
        values["epilogue_cycles"] = cycles.epilogue(kernels.values(), warps, 2 if side == "ours" else 1)
        numbers += [dict(zip(CUDNN_COLUMNS, (one.name, side, name, value))) for name, value in values.items()]
    return found, size, numbers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=REPO / "build", help="the build tree")
    parser.add_argument("--ptxas", default="ptxas", help="of CUDA 13 (the one on the path)")
    parser.add_argument("--only", default="", metavar="TEXT", help="configurations with this in their name")
    parser.add_argument("--write", action="store_true", help="plots/measure/data/cudnn.csv")
    args = parser.parse_args()
    if args.only and args.write:
        parser.error("--only leaves rows out, so it does not go with --write")
    build, rows, total, wrong = args.build.resolve(), [], 0, 0
    try:
        fetch(build)
        for place, one in enumerate(all_configurations()):
            if args.only not in one.name:
                continue
            said = []
            for problem in PROBLEMS, UNEVEN:
                with tempfile.TemporaryDirectory() as scratch:
                    found, size, numbers = compare(build, args.ptxas, one, place, problem, Path(scratch))
                rows += numbers if problem is PROBLEMS else []
                total, said = total + size, said + found
            ours, theirs = ({row["name"]: row["value"] for row in rows if row["configuration"] == one.name and
                             row["side"] == side} for side in ("ours", "theirs"))
            ratios = "  ".join(f"{name} {ours[name]:,} / {theirs[name]:,}" for name in ours)
            print(f"{one.name}: {'; '.join(said) if said else 'the same bytes'}\n  {ratios}", flush=True)
            wrong += bool(said)
        if args.write:
            write_csv(REPO / DATA / "cudnn.csv", CUDNN_COLUMNS, rows)
        print(f"{total:,} bytes compared, {wrong} configurations differ")
    except (Failed, cycles.Failed, NoTool, BadListing, OSError, subprocess.TimeoutExpired) as error:
        print(f"compare: {error}", file=sys.stderr)
        return 2
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
