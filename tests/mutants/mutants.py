# SPDX-License-Identifier: MIT
"""Removes or alters each synchronisation instruction of each chapter's kernels, one at a time, and asks whether anybody notices.

  python3 -B -m tests.mutants.mutants BUILD_DIR [--sample N] [--each N] [--chapter ID] [--only TEXT] [--list]

A mutant is the PTX of one kernel with one instruction changed, run by the chapter's own binary under the emulator: `--check` of its
smoke set, then of problems for what that leaves out (a K that goes several times round a ring of stages, very many groups, each choice
of an epilogue, and what the chapter and those before it list in checks/mutants.txt), then all of them in orders that let warps run far
ahead or stand still; on a device with one multiprocessor, or two for a pair, so that persistent blocks have several tiles. It is found if
the check fails, or if the emulator reports a fault of a kind that such a mutant can cause: a module that does not parse any more or an
instruction that is not supported finds nothing. A mutant that survives all of that must stand in checks/survivors.txt of its chapter, or of
one before it, if the line is still the same: as harmless, because the program is right without the instruction too, or as blind, because it
is wrong and the emulator cannot tell. A chapter's own entry that no surviving mutant matches is an error too.

A line of checks/mutants.txt is a problem as options, behind a number of multiprocessors if it wants another than its tile has, and behind
`seldom` if what it reaches comes so seldom that twenty more orders are tried; or `multiprocessors N --tile MxN`, room for one worker of
such tiles; or `orders A-B`, seeds of orders to try besides. Rows and N are rounded up to what a later chapter takes, and what has a tile or
an option that it lacks is left out.

--each 3 tries three of one kind of each source line: of the chapters with a kernel for each tile and width, all of them
take hours. --sample 48 tries about 48 of those, of three chapters, others whenever chapters or common change. What stands
in a survivors.txt is not among the 48: a sample takes no line out there, and whoever survives takes longest.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from chapters.lineage import CHAPTERS, described, lineage, lines_of

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# A check hangs after so many seconds of all cores together, which no other program takes away, or
# of a clock if it waits.
LIMIT_CPU_S, LIMIT_S = 240, 1800
FAULT, CHECK_FAILED = 3, 1
FOUND, SURVIVES, WRONG = "found", "survives", "wrong"


def modules(program: Path) -> Iterator[str]:
    """The PTX texts in a program, as nvcc stores them: plain, ended by a zero byte."""
    binary = program.read_bytes()
    for match in re.finditer(rb"\.version \d", binary):
        yield binary[match.start() : binary.index(b"\0", match.start())].decode()


def kernel_text(ptx: str, name: str) -> tuple[int, int] | None:
    """Where the body of an entry begins and ends."""
    start = re.search(r"\.entry\s+" + re.escape(name) + r"\b", ptx)
    if not start:
        return None
    begin = ptx.index("{", ptx.index(")", start.end()))
    depth = 0
    for match in re.compile(r"[{}]").finditer(ptx, begin):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return begin, match.end()
    return None


def without_others(ptx: str, names: Iterable[str]) -> str:
    """The module with these kernels alone: every run reads all that is there."""
    kept, at = [], 0
    for match in re.finditer(r"(?:\.visible\s+)?\.entry\s+([\w$]+)", ptx):
        if match.group(1) not in names:
            kept.append(ptx[at : match.start()])
            at = kernel_text(ptx, match.group(1))[1]
    return "".join(kept) + ptx[at:]


def more(match: re.Match) -> str:
    return match.group(1) + str(int(match.group(2)) + 1) + match.group(3)


def flipped(match: re.Match) -> str:
    """The phase that a wait asks for, turned round: of a register in a new one."""
    head, phase, tail = match.groups()
    if phase.isdigit():
        return head + str(1 - int(phase)) + tail
    return "{ .reg .b32 %mutant; xor.b32 %mutant, " + phase + ", 1; " + head + "%mutant" + tail + " }"


def foreseen(match: re.Match) -> str:
    """The comparison of gg::ptx::has_come, of 0 in place of what was loaded: nothing waits for the load any more."""
    return "{ .reg .b32 %mutant; mov.u32 %mutant, 0; " + match.group(1) + "%mutant" + match.group(2) + " }"


# Faults that a missing order can show as, and those of who waits for what.
ORDER = {"race", "uninit-shared", "uninit-global", "uninit-tmem", "tcgen05-fence", "async-window", "proxy",
         "tensor-map", "exit", "use-after-free"}
MEETING = {"deadlock", "diverged", "barrier", "barrier-count", "mbarrier", "mbarrier-state"}
REMOVE = ""
# What to look for, what to make of it, and the faults that this can cause: name -> (pattern of a
# whole statement, replacement, kinds of faults).
KINDS = {
    "remove barrier": (r"(?:bar|barrier)(?:\.cta|\.cluster)?\.(?:sync|arrive|wait|red)[^;]*;", REMOVE, ORDER | MEETING),
    "other barrier": (r"((?:bar|barrier)(?:\.cta)?\.sync(?:\.aligned)?\s+)(\d+)(\s*,[^;]*;)", more, ORDER | MEETING),
    "remove warp barrier": (r"bar\.warp\.sync[^;]*;", REMOVE, ORDER | {"diverged", "deadlock"}),
    "remove commit": (r"cp\.async\.commit_group;|wgmma\.commit_group[^;]*;|cp\.async\.bulk\.commit_group;|tcgen05\.commit[^;]*;",
                      REMOVE, ORDER | {"deadlock"}),
    "remove wait": (r"cp\.async\.wait_(?:group\s+\d+|all);|wgmma\.wait_group[^;]*;|cp\.async\.bulk\.wait_group[^;]*;"
                    r"|tcgen05\.wait::[^;]*;|griddepcontrol\.wait;", REMOVE, ORDER),
    "wait for one less": (r"((?:cp\.async\.|wgmma\.|cp\.async\.bulk\.)wait_group[.a-z]*\s+)(\d+)(;)", more, ORDER),
    "remove dealloc": (r"tcgen05\.dealloc[^;]*;", REMOVE, {"tcgen05"}),
    "remove fence": (r"(?:fence|membar|wgmma\.fence|tcgen05\.fence)[.:\w]*[^;]*;", REMOVE, ORDER),
    "one more arrival wanted": (r"(mbarrier\.init[^;]*,\s*)(\d+)(;)", more, {"deadlock"}),
    "remove arrive": (r"mbarrier\.arrive(?!\.expect_tx)[^;]*;", REMOVE, {"deadlock"}),
    "remove expect_tx": (r"mbarrier\.(?:arrive\.)?expect_tx[^;]*;", REMOVE, ORDER | {"deadlock", "mbarrier-state"}),
    "16 bytes more": (r"(mbarrier\.(?:arrive\.)?expect_tx[^;]*,\s*)(\d+)(;)",
                      lambda m: m.group(1) + str(int(m.group(2)) + 16) + m.group(3), {"deadlock"}),
    "look at no load": (r"(setp\.(?:eq|ne)\.s32\s+%\w+,\s*)%\w+(,\s*-2147483648;)", foreseen, {"race"}),
    "other phase": (r"(mbarrier\.(?:try|test)_wait\.parity[^;]*\],\s*)([%\w]+)([^;]*;)", flipped, ORDER | MEETING),
}


def plain_name(entry: str) -> str:
    """The name of a kernel: grouped_gemm of _ZN7chapter12grouped_gemmI..."""
    name, rest = entry, re.sub(r"^_ZN?", "", entry)
    while match := re.match(r"\d+", rest):
        end = match.end() + int(match.group())
        name, rest = rest[match.end() : end], rest[end:]
    return name


def source_line(ptx: str, at: int) -> str:
    """The line of the chapter that the instruction at this place of the text comes from, through all that is inlined: of the
    kernel, or of the role that it calls, where roles have files of their own."""
    files = {int(number): Path(path) for number, path in re.findall(r'\.file\s+(\d+) "([^"]+)"', ptx)}
    locations = list(re.finditer(r"\.loc\s+(\d+) (\d+) \d+(?:, function_name [^,]+, inlined_at (\d+) (\d+))?", ptx[:at]))
    file, line, caller_file, caller_line = (int(number or 0) for number in locations.pop().groups())
    while caller_file:  # what calls it stands before it
        is_role = files[file].parent == files[caller_file].parent and (files[file].parent / "load.cuh").exists()
        if is_role and files[caller_file].name == "kernel.cuh" != files[file].name:
            break
        file, line = caller_file, caller_line
        while locations:
            match = [int(number or 0) for number in locations.pop().groups()]
            if match[:2] == [file, line]:
                caller_file, caller_line = match[2:]
                break
        else:
            break
    # Of this tree: a compiler cache may have kept the object of another one.
    inside = re.search(r".*/((?:chapters|common)/.*)", files[file].as_posix()).group(1)
    return (ROOT / inside).read_text(encoding="utf-8").splitlines()[line - 1].strip()


def mutants(ptx: str, name: str) -> Iterator[tuple[str, int, str, str, str]]:
    """(kind, PTX line, text of the instruction, source line, whole module with the mutant in it) for every instruction of
    the kernel."""
    begin, end = kernel_text(ptx, name)
    for kind, (pattern, make, _) in KINDS.items():
        for match in re.compile(r"(?<![\w.])(?:" + pattern + ")").finditer(ptx, begin, end):
            new = make if isinstance(make, str) else make(re.match(pattern, match.group()))
            line = ptx.count("\n", 0, match.start()) + 1
            text = " ".join(match.group().split())
            # A guard before it goes with it, so that it does not guard what follows.
            start = match.start()
            guard = re.search(r"@!?%\w+\s+$", ptx[max(0, start - 40) : start])
            if guard and new == REMOVE:
                start -= len(guard.group())
            yield kind, line, text, source_line(ptx, match.start()), ptx[:start] + new + ptx[match.end() :]


class Chapter:
    """A chapter's program, what it says of itself, and what its checks/ and those of the chapters before it say of mutants."""

    def __init__(self, program: Path, about: dict[str, dict]) -> None:
        self.program, self.about, self.line = program, about[program.name], lineage(program.name, about)
        self.folder = CHAPTERS / program.name
        cluster = self.about["tile_clusters"][:1]
        # Room for one worker, a block or a pair of them, by the tile that a problem names; "":
        # where it names none.
        self.multiprocessors = {"": "2" if cluster and cluster[0].endswith("2x1") else "1"}
        self.late_orders, self.problems, self.seldom = range(0), [], []
        for chapter in self.line:
            for text in lines_of(chapter, "mutants.txt"):
                self.read(text, f"{chapter}/checks/mutants.txt: {text}", chapter == program.name)

    def read(self, text: str, where: str, is_own: bool) -> None:
        """A line of a mutants.txt: `orders A-B`, `multiprocessors N [--tile MxN]` or `[seldom] [N] options`. A chapter takes
        its own problems; of those of chapters before it, it may lack the tile."""
        first, *words = text.split()
        if first == "orders" and (found := re.fullmatch(r"(\d+)-(\d+)", " ".join(words))):
            self.late_orders = range(int(found[1]), int(found[2]) + 1)
        elif first == "multiprocessors" and re.fullmatch(r"\d+( --tile \d+x\d+)?", " ".join(words)):
            self.multiprocessors[words[2] if words[1:] else ""] = words[0]
        elif first == "seldom" or first.startswith("--") or first.isdigit():
            problem = words if first == "seldom" else [first, *words]
            if is_own and not taken_by(self.about, problem):
                sys.exit(f"{where}\n  names a tile, a format or an option that the chapter lacks")
            self.problems.append(problem)
            if first == "seldom":
                self.seldom.append(problem)
        else:
            sys.exit(f"{where}\n  wants orders A-B, multiprocessors N [--tile MxN], or [seldom] [N] and options")

    def survivors(self) -> tuple[dict[tuple[str, ...], str], set[tuple[str, ...]]]:
        """(kernel, kind, source line) -> harmless or blind, of the lines that stand in this chapter or in common, and those of
        them that the chapter's own list names. `found` takes back what a chapter before says."""
        known, own = {}, set()
        for chapter in self.line:
            for text in lines_of(chapter, "survivors.txt"):
                parts = [part.strip() for part in text.split(" | ")]
                if len(parts) != 5 or parts[3] not in ("harmless", "blind", "found") or parts[1] not in KINDS:
                    sys.exit(f"{chapter}/checks/survivors.txt: {text}\n"
                             "  wants kernel | kind | source line | harmless, blind or found | why")
                known[tuple(parts[:3])] = parts[3]
                if chapter == self.line[-1]:
                    own.add(tuple(parts[:3]))
        lines = self.source_lines()
        return {key: what for key, what in known.items() if what != "found" and key[2] in lines}, own

    def source_lines(self) -> set[str]:
        """The lines of the chapter, and of what all chapters include."""
        headers = [*self.folder.glob("*.cuh"), *(ROOT / "common/kernel").rglob("*.cuh")]
        return {line.strip() for path in headers for line in path.read_text(encoding="utf-8").splitlines()}


def taken_by(about: dict, words: list[str]) -> list[list[str]]:
    """A problem with the next N and rows that the chapter takes, in a list; none if it has no such tile, format or option."""
    def value(option):
        return words[words.index(option) + 1] if option in words else None

    types = [each for each in about["formats"] if value("--format") in (None, each["in"]) and value("--d-dtype") in (None, each["d"])]
    lacks_weights = "--weights" in words and "weights" not in about["options"]
    if value("--tile") not in (None, *about["tiles"]) or not types or lacks_weights:
        return []
    if "," in (value("--n") or "") and about["limits"]["own_sizes"] == "never":
        return []
    # The largest worker with this tile that so few multiprocessors hold.
    if words[0].isdigit() and about["clusters"] and value("--tile") and not value("--cluster"):
        clusters = [pair.split(" with ")[1] for pair in about["tile_clusters"] if pair.startswith(value("--tile") + " ")]
        words = [*words, "--cluster", max(each for each in clusters if int(each.partition("x")[0]) <= int(words[0]))]
    rows = about["limits"]["m_multiple"]
    if "--m" in words:
        at = words.index("--m") + 1
        padded = ",".join(str(-(-int(m) // rows) * rows) for m in words[at].split(","))
        words = [*words[:at], padded, *words[at + 1 :]]
    multiple = next(iter(about["formats"][0]["n_multiple"].values()))
    if "--n" in words and "," not in words[words.index("--n") + 1]:
        at = words.index("--n") + 1
        words = [*words[:at], str(-(-int(words[at]) // multiple) * multiple), *words[at + 1 :]]
    return [words]


def attempts(chapter: Chapter) -> tuple[list[list[str]], list[list[str]]]:
    """What a mutant is to survive, as arguments, the quickest first; and what else unless it is known as harmless. Arguments may
    begin with a number of multiprocessors."""
    about = chapter.about
    equal, padded = about["limits"]["equal_groups"], about["limits"]["m_multiple"]
    problems = [["--set", "smoke_uniform" if equal else "smoke"]]
    if padded < 256:
        problems.append(["--groups", "3", "--m", "128" if equal else "70", "--n", "128" if equal else "136", "--k", "448"])
    # More groups than a block of `plan` has threads, or all that the chapter takes.
    entries = (entry for text in modules(chapter.program) for entry in re.findall(r"\.entry\s+([\w$]+)", text))
    if any(plain_name(entry) == "plan" for entry in entries):
        count = min(1100, about["limits"]["groups"])
        few_full = ["--m", ",".join("256" if g % 500 == 499 else "0" for g in range(count)), "--n", "8", "--k", "32"]
        each_one = ["--groups", "1100", "--m", "1", "--n", "8", "--k", "8"]
        problems.append(few_full if padded == 256 else each_one)
    rows = ["--m", "256,0,512", "--n", "144", "--k", "1312"]  # of epilogues: each way that differs
    scales = ["--d-dtype", "e4m3", "--norm-const", "0.01"]
    if "format" in about["options"]:
        scales = ["--format", "mxfp8", *scales]
    apart = ["--weights", "discrete"] if "weights" in about["options"] else []
    if "norm-const" in about["options"]:
        problems.append([*scales, "--bias", *apart, *rows])
        problems.append(["4", *scales, "--bias", *apart, "--m", "256", "--n", "144", "--k", "32"])
    if apart:
        problems.append([*apart, *rows])
    if "schedule" in about["options"]:
        tiles = [[], ["--tile", "128x256", "--cluster", "2x1"]] if "128x256" in about["tiles"] else [[]]
        problems += [["--schedule", "dynamic", *apart, *tile, *rows] for tile in tiles]
    if "discrete-col-sfd" in about["options"]:
        kn = ["--b-layout", "kn"] if "b-layout" in about["options"] else []
        problems.append([*scales, "--discrete-col-sfd", *kn, *rows])
    if "transform" in about["options"]:
        problems.append(["--transform", "butterfly", *rows])
    problems += chapter.problems
    problems, seldom = ([taken for words in some for taken in taken_by(about, words)] for some in (problems, chapter.seldom))
    # Code of its own for each width runs once or twice in a problem, and a lane that is late at one
    # place is rare: whether somebody is late there, a few more orders tell. What comes once in a
    # check, as a wrong guess, one of twenty shows.
    few, rest = ["0:fair", "2:skew"], [f"{seed}:skew" for seed in chapter.late_orders]
    few, rest = ([[*words, "--order", order] for order in orders for words in problems] for orders in (few, rest))
    return few, rest + [[*words, "--order", f"{seed}:skew"] for seed in range(11, 31) for words in seldom]


def run(chapter: Chapter, settings: list[str], arguments: list[str]) -> subprocess.CompletedProcess[str] | None:
    """A check by the emulator, or None if it hangs; `settings` are options of gg-emu."""
    program = chapter.program
    if arguments[0].isdigit():  # the attempt says
        multiprocessors, *arguments = arguments
    else:
        tile = arguments[arguments.index("--tile") + 1] if "--tile" in arguments else ""
        default = chapter.multiprocessors[""] if not tile else "1"
        multiprocessors = "2" if "2x1" in arguments else chapter.multiprocessors.get(tile, default)
    command = ["/bin/sh", "-c", f'ulimit -t {LIMIT_CPU_S}; exec "$@"', "sh", program.parent / "gg-emu", "--multiprocessors",
               multiprocessors, *settings, program, "--device", "emu", "--check", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return None
    return None if -done.returncode in (signal.SIGXCPU, signal.SIGKILL) else done


def kernels_launched(chapter: Chapter, arguments: list[str]) -> set[str]:
    """The kernels that an attempt launches, by the names they have in PTX: the same in every order."""
    with tempfile.NamedTemporaryFile("r", suffix=".txt") as names:
        clean = run(chapter, ["--launches", names.name], arguments)
        if clean is None or clean.returncode != 0:
            sys.exit(f"{chapter.program.name}: the kernel as it is does not pass:\n{clean and clean.stdout + clean.stderr}")
        return {line for line in names.read().split("\n") if line}


def attempts_of_kernels(chapter: Chapter, pool: ThreadPoolExecutor) -> dict[str, tuple[list[list[str]], list[list[str]]]]:
    """The kernels that the attempts launch, each with the attempts that do, of both sorts. Problems are run in the
    first order alone: they launch the same kernels in every order."""
    both = attempts(chapter)
    problems = [words for words in both[0] if words[-1] == both[0][0][-1]]
    launched = dict(zip(map(problem_of, problems), pool.map(lambda words: kernels_launched(chapter, words), problems)))
    found = {}
    for sort, arguments in enumerate(both):
        for each in arguments:
            for name in sorted(launched[problem_of(each)]):
                found.setdefault(name, ([], []))[sort].append(each)
    return found


def problem_of(words: list[str]) -> tuple[str, ...]:
    """An attempt without its order."""
    return tuple(words[:-2])


def verdict(kind: str, result: subprocess.CompletedProcess[str] | None) -> tuple[str, str]:
    """What a run of a mutant of this kind says: (found, survives or wrong, how). Wrong: it did not go as it could."""
    if result is None:
        return WRONG, "hangs"
    if result.returncode == FAULT:
        match = re.search(r"^fault ([\w-]+)", result.stderr, re.M)
        fault = match.group(1) if match else "without a report"
        return (FOUND if fault in KINDS[kind][2] else WRONG), f"fault {fault}"
    if result.returncode == CHECK_FAILED:
        return FOUND, "check fails"
    return (SURVIVES, "survives") if result.returncode == 0 else (WRONG, f"exit {result.returncode}")


def tried(chapter: Chapter, arguments_to_try: list[list[str]], mutant: tuple) -> tuple[str, str]:
    kind, _, _, _, ptx = mutant
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        for arguments in arguments_to_try:
            outcome = verdict(kind, run(chapter, ["--ptx", file.name], arguments))
            if outcome[0] != SURVIVES:
                return outcome
    return SURVIVES, "survives"


def sampled(everything: list, count: int) -> list:
    """Every n-th, so that about `count` are left; which ones changes with what is committed of chapters and common."""
    step = max(1, len(everything) // count)
    found = subprocess.run(["git", "-C", HERE, "rev-parse", "HEAD:chapters", "HEAD:common"], capture_output=True, text=True)
    rotation = sum(int(tree[:8], 16) for tree in found.stdout.split()) if found.returncode == 0 else 0
    return everything[rotation % step :: step]


def of_each_line(work: list[tuple], most: int) -> list[tuple]:
    """At most so many mutants of one kind of a source line, spread over its copies: a line stands in the PTX once for each
    tile and width that has code of its own."""
    by_line = {}
    for job in work:
        by_line.setdefault(job[3], []).append(job)
    return [job for jobs in by_line.values() for job in jobs[:: -(-len(jobs) // most)]]


def work_of(chapter: Chapter, pool: ThreadPoolExecutor, known: dict) -> Iterator[tuple]:
    """(chapter, attempts, mutant, entry) of every kernel that the chapter's attempts launch."""
    found = attempts_of_kernels(chapter, pool)
    texts = [without_others(text, found) for text in modules(chapter.program)]
    for name, (few, rest) in sorted(found.items()):
        ptx = next((text for text in texts if kernel_text(text, name)), None)
        for mutant in mutants(ptx, name):
            entry = chapter.program.name, plain_name(name), mutant[0], mutant[3]
            yield chapter, few if entry in known else few + rest, mutant, entry


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--sample", type=int, default=0, help="about so many, of chapters that do not choose their tile; 0: all")
    parser.add_argument("--each", type=int, default=0, help="at most so many of one kind of a source line; 0: all")
    parser.add_argument("--chapter", default="", help="chapters whose name starts so")
    parser.add_argument("--only", default="", help="mutants of which the kind or the instruction holds this text")
    parser.add_argument("--list", action="store_true", help="name the mutants and run none")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1)))
    options = parser.parse_args()
    about = described(options.build)
    programs = [program for program in (options.build / "bin" / name for name in about) if program.is_file()]
    # To find out what a chapter's problems launch takes minutes where it chooses among tiles.
    if options.sample:
        quick = [program for program in programs if not about[program.name]["chooses_tile"]]
        programs, options.each = sampled(quick, 3), options.each or 3
    every = [Chapter(program, about) for program in programs]
    chapters = [chapter for chapter in every if chapter.program.name.startswith(options.chapter)]
    known, own, results, bad = {}, set(), Counter(), 0
    for chapter in chapters:
        found, names = chapter.survivors()
        known |= {(chapter.program.name, *key): what for key, what in found.items()}
        own |= {(chapter.program.name, *key) for key in names}
    with ThreadPoolExecutor(options.jobs) as pool:
        work = [job for chapter in chapters for job in work_of(chapter, pool, known)]
        stale = own - {job[3] for job in work}
        work = [job for job in work if options.only in job[2][0] or options.only in job[2][2]]
        if options.each:
            work = of_each_line(work, options.each)
        if options.sample:
            work = sampled([job for job in work if job[3] not in known], options.sample)
        outcomes = pool.map(lambda job: ("", "listed") if options.list else tried(*job[:3]), work)
        survived, was_found = set(), set()
        for (chapter, _, (kind, line, text, _, _), entry), (outcome, how) in zip(work, outcomes):
            if outcome == SURVIVES and entry in known:
                outcome = how = known[entry]
                survived.add(entry)
            elif outcome == FOUND and entry in known:
                was_found.add(entry)
            bad += outcome in (SURVIVES, WRONG)
            results[how] += 1
            print(f"{chapter.program.name}  {kind:22} PTX line {line:6}  {text[:60]:60} {how}"
                  + (f", which it cannot cause: {' | '.join(entry)}" if outcome == WRONG else "")
                  + (f": {' | '.join(entry)}" if outcome == SURVIVES else ""), flush=True)
    total, excused = sum(results.values()), results["harmless"]
    print(", ".join(f"{count} {what}" for what, count in sorted(results.items())))
    if total > excused and not options.list:
        print(f"mutants: {total - excused - results['blind'] - bad} of {total - excused} found, "
              f"{100 * (total - excused - results['blind'] - bad) / (total - excused):.1f} %; "
              f"{results['blind']} where the emulator is blind; {excused} harmless, with reasons")
    if not options.sample and not options.each:  # of which another, of the same line, may survive
        stale |= own & was_found - survived
    for entry in sorted(stale):
        print(f"{entry[0]}/checks/survivors.txt:", " | ".join(entry[1:]), "is found, or is not there; take the line out")
    return 1 if (bad or stale) and not options.list else 0


if __name__ == "__main__":
    sys.exit(main())
