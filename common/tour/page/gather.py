# SPDX-License-Identifier: MIT
"""Gathers what the page of a tour shows of a chapter: its question, its diff, and a trace of its warps.

A trace is taken on a device of two multiprocessors, so that a persistent kernel is two blocks and the player
shows all that the emulator counted. Nothing here raises for a chapter that lacks a part: the part is left out.
"""

import difflib
import html
import json
import re
import subprocess
import tempfile
from pathlib import Path

REPO = Path(__file__).resolve().parents[3]
NOT_SHOWN = {"README.md", "results.md"}
CONTEXT = 3             # equal lines around a change
BLOCKS = 2              # of a launch, in a player
MULTIPROCESSORS = "2"   # of the device that a trace is taken on
# Asynchronous copies end as soon as they may, as on a device that is not busy.
ORDER = "1:fair"
LIMIT_S = 120           # for one trace
KINDS = ["other", "load", "mma", "wait", "epilogue"]


def described(program: Path) -> dict:
    """What a chapter's program says of itself, or nothing where its answer is no JSON object."""
    said = subprocess.run([program, "--describe"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    try:
        about = json.loads(said)
    except ValueError:
        return {}
    return about if isinstance(about, dict) else {}


def as_html(text: str) -> str:
    """A paragraph of Markdown as HTML: bold, code, links by their text; comments are left out."""
    text = html.escape(" ".join(re.sub(r"(?s)<!--.*?-->", "", text).split()), quote=False)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    text = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", text)
    return re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)


def part_as_html(part: str) -> str:
    """A paragraph, list, table or what stands between fences as an element of HTML; nothing for figures and comments."""
    if fence := re.fullmatch(r"(?s)```\w*\n(.*?)\n```", part):
        return f'<pre tabindex="0">{html.escape(fence[1], quote=False)}</pre>'
    if part.startswith("|"):
        rows = [re.split(r" \| ", line.strip("| ")) for line in part.splitlines() if not re.fullmatch(r"[|\-: ]+", line)]
        lines = ["".join(f"<{cell}>{as_html(text)}</{cell}>" for text in row) for row, cell in zip(rows, ["th", *["td"] * len(rows)])]
        return f'<div class="scroll"><table>{"".join(f"<tr>{line}</tr>" for line in lines)}</table></div>'
    if items := re.findall(r"(?ms)^(?:-|\d\.) (.*?)(?=^(?:-|\d\.) |\Z)", part) if re.match(r"-|\d\. ", part) else []:
        kind = "ul" if part[0] == "-" else "ol"
        return f'<{kind} class="more">{"".join(f"<li>{as_html(item)}</li>" for item in items)}</{kind}>'
    return "" if part[0] in "!<" else f'<p class="more">{as_html(part)}</p>'


def section_of(chapter: str, title: str) -> list[str]:
    """The parts of a section of a chapter's README, as Markdown; nothing without one."""
    path = REPO / "chapters" / chapter / "README.md"
    found = re.search(rf"(?ms)^## {title}\n(.*?)(?=^## |\Z)", path.read_text(encoding="utf-8")) if path.is_file() else None
    return re.findall(r"(?m)^```[\s\S]*?^```$|(?:^(?!```).+\n?)+", found[1]) if found else []


def rows_of(old: list[str], new: list[str]) -> list[list]:
    """Hunks of two lists of lines: [first line of old, of new, rows]; a row is [both] or [old, new], null for none."""
    hunks = []
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(CONTEXT):
        rows = []
        for what, a0, a1, b0, b1 in group:
            if what == "equal":
                rows += [[line] for line in old[a0:a1]]
                continue
            for i in range(max(a1 - a0, b1 - b0)):
                rows.append([old[a0 + i] if a0 + i < a1 else None, new[b0 + i] if b0 + i < b1 else None])
        hunks.append([group[0][1] + 1, group[0][3] + 1, rows])
    return hunks


def diff_of(before: str, chapter: str) -> list[dict]:
    """The files that two chapters do not share to the byte, each with its hunks and the lines added and removed."""
    folders = [REPO / "chapters" / name for name in (before, chapter)]
    if not before or not all(folder.is_dir() for folder in folders):
        return []
    names = {path.name for folder in folders for path in folder.iterdir() if path.suffix in (".cuh", ".cu")}
    files = []
    for name in sorted(names - NOT_SHOWN):
        old, new = ((folder / name).read_text(encoding="utf-8").splitlines() if (folder / name).is_file() else []
                    for folder in folders)
        hunks = rows_of(old, new)
        if hunks:
            changed = [row for _, _, rows in hunks for row in rows if len(row) == 2]
            files.append({"name": name, "added": sum(new is not None for _, new in changed),
                          "removed": sum(old is not None for old, _ in changed), "hunks": hunks})
    return files


def printed_counts(report: str) -> dict[str, dict[str, int]]:
    """What gg-emu --report printed, by title of a kernel: its counters by name."""
    kernels, now = {}, None
    for line in report.splitlines():
        found = re.fullmatch(r"counts of (.*)", line)
        counter = re.fullmatch(r"  (\w+) +(\d+)", line)
        if found:
            now = kernels.setdefault(found[1], {})
        elif counter and now is not None:
            now[counter[1]] = int(counter[2])
    return kernels


def place_in(first: str) -> list[str]:
    """Where an event begins, from the trace's words: `load.cuh:32` and the line of the source, and the PTX."""
    head, _, ptx = first.partition(" PTX line ")
    head = re.split(r" through | called at ", head)[0]
    place, _, code = head.partition(" ")
    return [re.sub(r"^chapters/\w+/", "", place), code, ptx.partition(": ")[2]]


def role_of(events: list[dict]) -> str:
    """The file that a warp's work is in, without its ending: its role. kernel.cuh calls it, so it is the outermost other one
    of the places that the trace names. Every warp reads the schedule, so a warp has that role if it also waits there."""
    files = {}
    for event in events:
        inside = re.findall(r"chapters/\w+/(\w+)\.cuh:\d", event["args"]["first"].partition(" PTX line ")[0])
        inside = [name for name in inside if name != "kernel"]
        if inside and event["name"] != "other":
            files.setdefault(inside[-1], []).append(event["name"])
    if "wait" not in files.get("schedule", []) or len(files) > 1:
        files.pop("schedule", None)
    return max(sorted(files), key=lambda name: len(files[name]), default="")


class Names:
    """Numbers for things, in the order in which they first appear."""

    def __init__(self) -> None:
        self.numbers, self.all = {}, []

    def __call__(self, thing: object) -> int:
        key = json.dumps(thing)
        if key not in self.numbers:
            self.numbers[key] = len(self.all)
            self.all.append(thing)
        return self.numbers[key]


def block_of(name: str, rows: dict[str, list[dict]], places: Names) -> dict:
    """One block for the player, from the trace's rows by name: warps with their events, mbarriers with phases."""
    barriers = Names()
    short = short_barriers([row for row, events in rows.items() if any(event["name"] == "phase" for event in events)])
    block = {"name": name, "warps": [], "barriers": []}
    for row in short:
        barriers(row)
        block["barriers"].append({"name": short[row], "phases": [
            [event["args"]["phase"], event["ts"], event["ts"] + event["dur"]] for event in rows[row]]})
    for row, events in rows.items():
        if row in short:
            continue
        listed = []
        for event in events:
            args = event["args"]
            listed.append([KINDS.index(event["name"]), event["ts"], event["dur"],
                           args["instructions"] - args.get("again", 0), args.get("waits", 0),
                           places(place_in(args["first"])),
                           barriers(args["mbarrier"]) if args.get("mbarrier") in short else -1, args.get("phase", -1)])
        block["warps"].append({"name": row, "role": role_of(events), "events": listed})
    return block


def short_barriers(names: list[str]) -> dict[str, str]:
    """By name of an mbarrier what a row is called: `full[0]` for `memory.full[0] (mbarrier 0x400)`, with the part in front
    where two would be called the same. One without a name keeps its address."""
    plain = {name: re.sub(r"^(\S+) \(mbarrier \w+\)$", r"\1", name) for name in names}
    short = {name: re.sub(r"^(?:\w+\.)+", "", text) for name, text in plain.items()}
    called = list(short.values())
    return {name: text if called.count(text) == 1 else plain[name] for name, text in short.items()}


def player_of(trace: dict, report: str) -> dict | None:
    """What the player shows: blocks of the kernel that executed most instructions, and what the emulator printed of it."""
    titles, rows, names = {}, {}, {}
    for event in trace["traceEvents"]:
        pid = event["pid"]
        if event["name"] == "process_name":
            titles[pid] = re.fullmatch(r"launch (\d+): (.*), block ([\d,]+)", event["args"]["name"]).groups()
        elif event["name"] == "thread_name":
            names[pid, event["tid"]] = event["args"]["name"]
        elif event["ph"] == "X":
            rows.setdefault(pid, {}).setdefault(names[pid, event["tid"]], []).append(event)
    kernels = printed_counts(report)
    kernels.pop("all kernels", None)
    kernel = max(kernels, key=lambda title: kernels[title]["instructions"])
    own = [pid for pid in rows if titles[pid][1] == kernel]
    if not own:
        raise ValueError(f"the trace has no events of {kernel}")
    launches = {titles[pid][0] for pid in own}
    most = sorted(own, key=lambda pid: (-sum(len(each) for each in rows[pid].values()), pid))[:BLOCKS]
    places = Names()
    blocks = [block_of(("" if len(launches) == 1 else f"launch {titles[pid][0]}, ") + f"block {titles[pid][2]}", rows[pid], places)
              for pid in sorted(most)]
    complete = len(most) == len(own) and "left out" not in trace["otherData"]["kept"]
    begins = [event[1] for block in blocks for warp in block["warps"] for event in warp["events"]]
    # Blocks of several clusters: each counts for itself.
    return {"kernel": kernel, "blocks": blocks, "apart": len(set(begins)) < len(begins),
            "places": places.all, "complete": complete and "cut short" not in trace["otherData"]["kept"],
            "printed": {"instructions": kernels[kernel]["instructions"], "waits": kernels[kernel].get("barrier_waits", 0)}}


def record(emulator: Path, program: Path, shape_set: str) -> tuple[dict | None, str]:
    """Runs a program's set on the emulator once; returns the trace and what was printed, or raises OSError or ValueError.
    The emulator names sources by their place in the folder where it runs: that is the repository."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "trace.json")
        done = subprocess.run([emulator, "--multiprocessors", MULTIPROCESSORS, "--order", ORDER, "--report", "--trace", file, program,
                               "--device", "emu", "--set", shape_set, "--bench"], capture_output=True, text=True, timeout=LIMIT_S, cwd=REPO)
        if done.returncode:
            raise ValueError(f"gg-emu ended with {done.returncode}")
        return json.loads(file.read_text(encoding="utf-8")), done.stderr


def player(emulator: Path, program: Path, sets: list[str]) -> tuple[dict | None, str]:
    """The player's data and an empty text, or nothing and why it is not there."""
    shape_set = next((each for each in ("smoke", "smoke_uniform") if each in sets), None)
    if not Path(emulator).is_file():
        return None, "gg-emu is not built"
    if not shape_set:
        return None, "the chapter has no set smoke"
    try:
        return {"set": shape_set, **player_of(*record(emulator, program, shape_set))}, ""
    except (OSError, ValueError, KeyError, AttributeError, subprocess.SubprocessError) as error:
        return None, f"no trace: {error}"


def chapter(build: Path, name: str) -> dict:
    """All that the page shows of one chapter."""
    about = described(build / "bin" / name)
    question = section_of(name, "Question")
    previous = str(about.get("previous", ""))
    build = build.resolve()
    played, why = player(build / "bin" / "gg-emu", build / "bin" / name, list(about.get("sets", [])))
    return {"id": name, "title": str(about.get("title", "")), "question": as_html(question[0].replace("**", "")) if question else "",
            "text": "".join(map(part_as_html, question[1:])), "picture": "".join(map(part_as_html, section_of(name, "Picture"))),
            "previous": previous,
            "diff": diff_of(previous, name), "player": played, "why": why}
