# SPDX-License-Identifier: MIT
"""Runs each chapter's smoke sets on the emulator in a thousand orders and compares what it writes, bit for bit.

  python3 -B -m tests.orders.orders BUILD_DIR [--seeds N] [--chapter ID] [--jobs N]

The orders are 1:fair to N:fair and 1:skew to N:skew; 0:fair says what the bits must be. Each run also checks its results.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

LIMIT_S = 120


def outputs(program: Path, name: str, order: str) -> dict[str, bytes] | str:
    """File names and bytes that the program writes in an order; or a sentence about why it does not."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "--device", "emu", "--check", "--set", name, "--order", order, "--out", folder]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            return f"did not end in {LIMIT_S} s"
        if done.returncode != 0:
            return f"exit {done.returncode}\n{done.stdout}{done.stderr}"
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def difference(expected: dict[str, bytes], program: Path, name: str, order: str) -> str:
    """How what the program writes in an order differs from what is expected; nothing if it does not."""
    got = outputs(program, name, order)
    if isinstance(got, str):
        return got
    if expected.keys() != got.keys():
        return f"wrote {', '.join(sorted(got))}"
    names = [name for name in sorted(got) if got[name] != expected[name]]
    return f"{', '.join(names)} has other bits" if names else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--chapter", default="", help="chapters whose name starts so")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    orders = [f"{seed}:{policy}" for seed in range(1, options.seeds + 1) for policy in ("fair", "skew")]
    programs = sorted(path for path in (options.build / "bin").iterdir()
                      if re.match(r"\d\d[a-z]?_", path.name) and path.name.startswith(options.chapter))
    if not programs:
        sys.exit(f"no chapter in {options.build / 'bin'} has a name that starts with '{options.chapter}'")
    bad = 0
    for program in programs:
        described = json.loads(subprocess.run([program, "--describe"], capture_output=True, check=True).stdout)
        for name in (each for each in described["sets"] if each.startswith("smoke")):
            expected = outputs(program, name, "0:fair")
            if isinstance(expected, str):
                print(f"{program.name}  {name}  0:fair: {expected}", flush=True)
                bad += 1
                continue
            with ThreadPoolExecutor(options.jobs) as pool:
                results = pool.map(partial(difference, expected, program, name), orders)
                wrong = [(order, what) for order, what in zip(orders, results) if what]
            for order, what in wrong[:10]:
                print(f"{program.name}  {name}  {order}: {what}", flush=True)
            bad += len(wrong)
            print(f"{program.name}  {name}  {len(orders) - len(wrong)} of {len(orders)} orders give the bits of 0:fair", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
