# SPDX-License-Identifier: MIT
"""Writes chapters.json: what each program says of its chapter by --describe, in the order of the registry, and the shape sets.

  python3 -B -m plots.measure.describe --build DIR --out FILE ID ...     ID: all chapters of the registry

The build does it, into build/chapters.json; `publish` copies that to chapters/chapters.json, so that tables and figures can be made
without a build. Of a chapter that is not built, what stands in chapters/chapters.json is kept.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from plots.measure.chapters import COMMITTED

REPO = Path(__file__).resolve().parents[2]


class Failed(Exception):
    """A program that did not answer; the message is one sentence."""


def answer(*command: Path | str) -> dict:
    """The JSON object that a program prints."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace")
    try:
        found = json.loads(done.stdout)
    except ValueError:
        found = None
    if done.returncode or not isinstance(found, dict):
        raise Failed(f"{' '.join(map(str, command))} ended with {done.returncode} and printed no JSON object: {done.stderr.strip()}")
    return found


def text_of(chapters: list[dict], sets: dict) -> str:
    """The file: a line for each key of a chapter and for each problem of a set, so that a change shows in a diff."""
    described = [",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in each.items()) for each in chapters]
    problems = [f"  {json.dumps(name)}: [\n" + ",\n".join(f"    {json.dumps(each)}" for each in some) + "\n  ]"
                for name, some in sets.items()]
    return '{"chapters": [\n' + ",\n".join("{\n" + each + "\n}" for each in described) + \
        '\n], "sets": {\n' + ",\n".join(problems) + "\n}}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, help="the build tree")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("ids", nargs="+", metavar="ID")
    options = parser.parse_args()
    committed = REPO / COMMITTED
    try:
        before = json.loads(committed.read_text(encoding="utf-8")) if committed.is_file() else {"chapters": []}
        known = {each["id"]: each for each in before["chapters"]}
        programs = {name: options.build / "bin" / name for name in options.ids}
        found = {name: answer(path, "--describe") for name, path in programs.items() if path.is_file()}
        both = known | found
        chapters = [both[name] for name in options.ids if name in both]
        options.out.write_text(text_of(chapters, answer(options.build / "bin" / "gg-shapes")), encoding="utf-8")
    except (Failed, OSError, ValueError) as error:
        print(f"describe: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
