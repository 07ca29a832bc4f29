# SPDX-License-Identifier: MIT
"""Counts of the emulator beside those of Nsight Compute, on a machine with a GPU and with ncu in the PATH.

  python3 -B -m plots.measure.ncu_counts [--problem "--m 300,0,77,512 --n 512 --k 1024" ...] [CHAPTER ...]

One launch of each chapter's kernel, the first of `--bench`, is counted on both machines: data and offsets are
the same there. Nsight Compute counts in two ways, and both are shown. Its hardware counters see the chip,
arbitration included; its instrumented counts are made for each machine instruction (SASS) from the addresses
that lanes give. The emulator executes PTX, of which SASS is made: only those instructions compare that become
one another.

Prints the comparison and writes it to plots/measure/data/<gpu>/ncu.csv, which `publish` takes into
common/emu/COUNTS.md. Counts of programs built from changes that were not committed are not written there. It stands here
and not among the tests, as it measures and does not judge. Exit code 77: no GPU, no ncu, or one that may not count.
"""

import argparse
import csv
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from plots.measure.chapters import read_chapters
from plots.measure.files import DATA, NCU_COLUMNS, BadData, folder_of, read_counts, read_csv, write_csv

REPO = Path(__file__).resolve().parents[2]
NOT_HERE = 77
PROBLEMS = ["--set smoke", "--m 300,0,77,512 --n 512 --k 1024"]
LIMIT_S = 300  # for one command

# What stands for a counter of the emulator among the hardware's: the sum of these. The emulator
# counts copies (LDGSTS) as loads of global memory.
HARDWARE = {
    "instructions": ["smsp__inst_executed.sum"],
    "instructions_mma": ["sm__inst_executed_pipe_tensor_op_hmma.sum"],
    "instructions_ldmatrix": ["smsp__inst_executed_op_ldsm.sum"],
    "global_load_sectors": ["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
                            "l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_access.sum",
                            "l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum"],
    "global_store_sectors": ["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"],
    "shared_wavefronts": ["l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"],
    "shared_bank_conflicts": ["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
                              "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"],
}
# The same among the instrumented counts: which machine instructions, and which column of them.
SHARED = "LDS STS LDSM LDGSTS"
INSTRUMENTED = {
    "instructions": ("", "executed"),  # all
    "instructions_mma": ("HMMA", "executed"),
    "instructions_ldmatrix": ("LDSM", "executed"),
    "instructions_cp_async": ("LDGSTS LDGDEPBAR DEPBAR", "executed"),  # copy, commit, wait
    "instructions_barrier": ("BAR", "executed"),
    "instructions_warp": ("SHFL VOTE", "executed"),
    "global_load_sectors": ("LDG LDGSTS", "sectors"),
    "global_store_sectors": ("STG", "sectors"),
    "shared_wavefronts": (SHARED, "wavefronts"),
    "shared_bank_conflicts": (SHARED, "conflicts"),
    "multiply_adds": ("FFMA HMMA", "multiply_adds"),
}
# Columns of the source page, by title or by the metric's name.
COLUMNS = {
    "executed": ["instructions executed", "inst_executed"],
    "lanes": ["predicated-on thread instructions executed", "thread_inst_executed_true"],
    "sectors": ["l2 theoretical sectors global", "memory_l2_theoretical_sectors_global"],
    "wavefronts": ["l1 wavefronts shared", "memory_l1_wavefronts_shared"],
    "ideal": ["l1 wavefronts shared ideal", "memory_l1_wavefronts_shared_ideal"],
}


class NotHere(Exception):
    """What this machine lacks."""


class Failed(Exception):
    """A command that did not do what it should."""


def run(*command: Path | str) -> tuple[int, str]:
    """Exit code and all that a command says."""
    command = [str(word) for word in command]
    print("$", shlex.join(command), flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", timeout=LIMIT_S,
                          env=os.environ | {"LC_ALL": "C"})  # C: no points in numbers
    return done.returncode, done.stdout


def number(text: str) -> int | None:
    """A count as ncu writes it, 12,345 or 12345.000000; None where it has none."""
    try:
        return round(float(text.replace(",", "")))
    except ValueError:
        return None


def tables(text: str) -> list[list[str]]:
    """Rows of the CSV among what ncu says; its own remarks begin with ==."""
    return list(csv.reader(line for line in text.splitlines() if not line.startswith("==")))


def parse_raw(text: str) -> dict[str, int | None]:
    """Metrics of the one kernel on the raw page: a row of names, one of units, one of values."""
    rows = tables(text)
    names = next((row for row in rows if "Kernel Name" in row), None)
    values = [row for row in rows if names and len(row) == len(names) and row[names.index("ID")].isdigit()]
    if len(values) != 1:
        raise Failed(f"ncu's raw page holds {len(values)} kernels, not one")
    return {name: number(value) for name, value in zip(names, values[0])}


def opcode(sass: str) -> str:
    """HMMA.16816.F32.BF16 of "@!P0 HMMA.16816.F32.BF16 R4, R8, R10, R4"."""
    words = [word for word in sass.split() if not word.startswith("@")]
    return words[0].rstrip(";") if words else ""


def parse_source(text: str) -> list[tuple[str, dict[str, int]]]:
    """For each machine instruction of the source page its opcode and its counts, by the names in COLUMNS."""
    rows = tables(text)
    at = next((i for i, row in enumerate(rows) if "Source" in row), None)
    if at is None:
        return []
    titles = [title.lower() for title in rows[at]]
    # A title may stand there twice, for samples first.
    place = {name: max((i for i, title in enumerate(titles) if title in known), default=None)
             for name, known in COLUMNS.items()}
    found = []
    for row in rows[at + 1:]:
        if len(row) == len(titles):
            counts = {name: number(row[i]) or 0 for name, i in place.items() if i is not None}
            found.append((opcode(row[titles.index("source")]), counts))
    return found


def instrumented(lines: list[tuple[str, dict[str, int]]], wanted: str, what: str) -> int | None:
    """The sum over the instructions that a row of INSTRUMENTED names; None where a column is missing."""
    total = 0
    for name, counts in lines:
        if wanted and name.split(".")[0] not in wanted.split():
            continue
        try:
            if what == "conflicts":
                total += counts["wavefronts"] - counts["ideal"]
            elif what != "multiply_adds":
                total += counts[what]
            elif name.startswith("HMMA"):
                m, n, k = {"16816": (16, 8, 16), "1688": (16, 8, 8)}[name.split(".")[1]]
                total += m * n * k * counts["executed"]
            else:
                total += counts["lanes"]
        except KeyError:
            return None
    return total if lines else None


def profile(ncu: str, program: list[Path | str], folder: Path) -> tuple[dict[str, int | None], list[tuple[str, dict[str, int]]]]:
    """What ncu counts of the first grouped_gemm that the program launches: metrics, instrumented lines."""
    def attempt(metrics, *more):
        report = folder / "launch"
        code, said = run(ncu, "--force-overwrite", "--export", report, "--kernel-name", "regex:grouped_gemm",
                         "--launch-count", "1", "--clock-control", "none", *more,
                         "--metrics", ",".join(metrics), *program)
        if "ERR_NVGPUCTRPERM" in said or "Failed to initialize the profiler" in said:
            raise NotHere("\n".join(line for line in said.splitlines() if line.startswith("==ERROR")))
        report = report.with_suffix(".ncu-rep")
        if code or not report.exists():
            raise Failed(f"ncu ended with {code}:\n{said}")
        pages = [run(ncu, "--import", report, "--csv", "--page", page, *how)[1]
                 for page, how in (("raw", ["--print-units", "base"]), ("source", ["--print-source", "sass"]))]
        return parse_raw(pages[0]), parse_source(pages[1])

    metrics, section = [metric for each in HARDWARE.values() for metric in each], ["--section", "SourceCounters"]
    try:
        return attempt(metrics, *section)
    except Failed as error:
        print(f"{error}\nonce more, without the metrics that this ncu or this chip does not have")
    known = set(re.findall(r"^\w+__\w+", run(ncu, "--query-metrics")[1], re.M))
    metrics = [metric for metric in metrics if metric.removesuffix(".sum") in known] or metrics
    try:
        return attempt(metrics, *section)
    except Failed as error:
        print(f"{error}\nonce more, without instrumented counts")
    return attempt(metrics)


def compare(ncu: str, program: Path, problem: str, version: str) -> list[dict]:
    """The rows for one chapter and problem."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench = ["--bench", *shlex.split(problem)]
        counts_csv, times_csv = folder / "counts.csv", folder / "times.csv"
        # A launch that is wrong is not counted.
        for options in (["--device", "gpu", "--check", *shlex.split(problem)],
                        ["--device", "emu", *bench, "--counts-csv", counts_csv]):
            code, said = run(program, *options)
            if code == NOT_HERE:
                raise NotHere(said.strip())
            if code:
                raise Failed(f"it ended with {code}:\n{said}")
        emulator = next(iter(read_counts(folder).values()))
        found, lines = profile(ncu, [program, "--device", "gpu", *bench, "--csv", times_csv], folder)
        about = read_csv(times_csv)  # what ran where; its times are ncu's too
        shape = "groups m_total m_max n k".split()
        if len({tuple(row[each] for each in shape) for row in about}) != 1:
            raise Failed(f"{problem}: wants one problem")
    both = []
    for counter, metrics in HARDWARE.items():
        there = [metric for metric in metrics if found.get(metric) is not None]
        if there:
            both.append((counter, "hardware", " + ".join(there), sum(found[metric] for metric in there)))
    for counter, (wanted, what) in INSTRUMENTED.items():
        value = instrumented(lines, wanted, what)
        if value is not None:
            both.append((counter, "instrumented", f"{what} of {wanted or 'all SASS'}", value))
    same = {each: about[0][each] for each in ["chapter", "set", *shape, "device", "cuda", "commit", "date"]}
    return [same | dict(counter=counter, emulator=emulator.get(counter, 0), way=way, counted=how, gpu=value,
                        ncu=version) for counter, way, how, value in both]


def show(rows: list[dict]) -> None:
    """The comparison as text: both counts and GPU / emulator."""
    print("\nPTX on the emulator, SASS on the GPU: sectors, wavefronts and single instructions compare, the "
          "number\nof all instructions does not. Columns: emulator, GPU, GPU / emulator.\n")
    for row in rows:
        ratio = f"{row['gpu'] / row['emulator']:.4g}" if row["emulator"] else "1" if not row["gpu"] else "-"
        print(f"{row['chapter']:<22} {row['set']:<6} {row['counter']:<22} {row['way']:<13}"
              f" {row['emulator']:>12} {row['gpu']:>12} {ratio:>8}   {row['counted']}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="default: 02 to 05b")
    parser.add_argument("--problem", action="append",
                        help=f"options that name one problem (default: {' and '.join(PROBLEMS)})")
    parser.add_argument("--build", type=Path, default=REPO / "build", help="the build tree")
    parser.add_argument("--out", type=Path, help="the CSV file (default: plots/measure/data/<gpu>/ncu.csv)")
    parser.add_argument("--ncu", default="ncu", help="the program, if it is not in the PATH")
    args = parser.parse_args()
    rows = []
    try:
        if not shutil.which(args.ncu):
            raise NotHere(f"no {args.ncu} in the PATH")
        version = re.search(r"Version (\S+)", run(args.ncu, "--version")[1] + "Version ?")[1]
        # The first has a launch for each group, one of which says little.
        for name in args.chapters or [each.id for each in read_chapters(REPO) if each.arch == "sm_80" and each.previous]:
            for problem in args.problem or PROBLEMS:
                rows += compare(args.ncu, args.build.resolve() / "bin" / name, problem, version)
    except NotHere as reason:
        print(f"ncu_counts: {reason}", file=sys.stderr)
        return NOT_HERE
    except (Failed, BadData, OSError, subprocess.TimeoutExpired) as error:
        print(f"ncu_counts: {error}", file=sys.stderr)
        return 1
    show(rows)
    if rows[0]["commit"].endswith("-dirty") and not args.out:
        print("ncu_counts: not written: the programs were built from changes that were not committed; --out FILE "
              "writes elsewhere", file=sys.stderr)
        return 1
    out = args.out or REPO / DATA / folder_of(rows[0]["device"]) / "ncu.csv"
    out.parent.mkdir(parents=True, exist_ok=True)
    write_csv(out, NCU_COLUMNS, rows)
    print(f"\nwritten: {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
