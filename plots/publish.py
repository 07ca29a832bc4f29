#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Takes a tour's measurements and counts into plots/data, then writes the READMEs' tables and plots/figures.

  cmake --build build --target publish        # the only thing that changes plots/ and the tables

A table stands between the marks <!-- table --> and <!-- /table -->, one of counts between <!-- counts --> and
<!-- /counts -->, what ncu_counts.py found in the emulator's README between <!-- ncu --> and <!-- /ncu -->, what
switching off each idea costs between <!-- ideas --> and <!-- /ideas -->, the libraries on the set peers between
<!-- peers --> and <!-- /peers -->, and as --sustained times them between <!-- sustained --> and <!-- /sustained -->;
the rest of a README is left as it is.
"""

import argparse
import csv
import io
import os
import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # a reader's clone stays clean

import plot  # noqa: E402
from results import (COLUMNS, COUNT_COLUMNS, NCU_COLUMNS, REFERENCE_COLUMNS, BadData, best_peer, provenance,  # noqa: E402
                     read_chapters, read_counts, read_csv, smoke_counts, told)

NONE = "–"
SAME = "chapter kernel set groups m_total m_max n k format warm peer".split()  # what names a measurement
ORDER = ["prefill", "decode", "skewed", "helion", "peers"]  # then the others by name
DRAWN = ["step", "skew"]  # sets with a figure of their own: too many rows for a table
# What a README's table shows of a chapter's counters; all of them are in plots/data/emulator.
COUNTERS = """instructions instructions_mma instructions_wgmma instructions_ldmatrix instructions_cp_async
    instructions_bulk instructions_mbarrier instructions_ldst instructions_warp global_load_bytes
    global_load_sectors global_store_bytes global_store_sectors shared_wavefronts shared_bank_conflicts
    barrier_waits multiply_adds useful_multiply_adds""".split()


def write(path, text):
    """Writes beside and renames, so that a full disk leaves the earlier file whole."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(text, encoding="utf-8", newline="\n")
    os.replace(beside, path)
    print(f"publish: {path}")


def collect(run, data):
    """Adds the measurements of a run to data/<gpu>/<chapter>.csv; of two of one thing the newer stays."""
    rows = [row for path in sorted(run.glob("*.csv")) for row in read_csv(path)]
    devices = {row["device"] for row in rows if row["us_median"]}  # the emulator is none: it never times
    found = {}
    for row in rows:
        if row["device"] in devices and (row["us_median"] or row["ok"] == "0"):
            gpu = re.sub(r"[^a-z0-9]+", "-", row["device"].lower().removeprefix("nvidia ")).strip("-")
            found.setdefault(data / gpu / f"{row['chapter']}.csv", []).append(row)
    for path, rows in found.items():
        rows = sorted((read_csv(path) if path.exists() else []) + rows, key=lambda row: row["date"])
        latest = {tuple(row[column] for column in SAME): at for at, row in enumerate(rows)}
        write_csv(path, COLUMNS, (rows[at] for at in sorted(latest.values())))


def collect_counts(run, folder):
    """Adds the counts of a run to folder/<chapter>.csv; of two of one set and order the run's stay."""
    counts = (read_counts(folder) if folder.exists() else {}) | read_counts(run)
    for chapter in sorted({key[0] for key in counts}):
        write_csv(folder / f"{chapter}.csv", COUNT_COLUMNS,
                  (dict(zip(COUNT_COLUMNS, (*key, counter, value))) for key, some in sorted(counts.items())
                   for counter, value in some.items() if key[0] == chapter))


def write_csv(path, columns, rows):
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write(path, text.getvalue())


def lines_changed(chapter, chapters):
    """Lines added and removed against the predecessor's kernel.cuh, whitespace ignored."""
    before = next((c.kernel for c in chapters if c.id == chapter.previous), Path(os.devnull))
    if not chapter.kernel.exists() or not before.exists():
        return NONE
    command = "git diff --no-index --no-ext-diff --diff-algorithm=myers --numstat -w".split()
    command += [before, chapter.kernel]
    numbers = subprocess.run(command, capture_output=True, text=True).stdout.split()
    return f"+{numbers[0]}" + (f" −{numbers[1]}" if chapter.previous else "") if numbers else "0"


def value(row, column):
    """A number as a reader wants it, `failed` where the check failed, a dash where nothing was measured."""
    if row and not row.ok:
        return "failed"
    if column == "% of roof":
        number = row and row.roof_tflops and 100 * row.tflops / row.roof_tflops
        return NONE if not number else f"{number:.0f} %" if number >= 10 else f"{number:.2g} %"
    number = row and getattr(row, column)
    return NONE if not number else f"{number:.0f}" if number >= 100 else f"{number:#.3g}"


def table(head, texts, rows):
    """A Markdown table; its first `texts` columns are text, the others numbers."""
    rule = ["---" if i < texts else "---:" for i in range(len(head))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, rule, *rows])


def ladder_table(data):
    (prefill, inputs), (decode, also) = data.of("prefill"), data.of("decode")
    fast = {row.chapter: row for row in prefill if not row.peer}
    small = {row.chapter: row for row in decode if not row.peer}
    lines = [[f"[{chapter.id}](chapters/{chapter.id}/README.md)", chapter.title, chapter.arch,
              value(fast.get(chapter.id), "tflops"), value(fast.get(chapter.id), "% of roof"),
              value(small.get(chapter.id), "us_median"), lines_changed(chapter, data.chapters)]
             for chapter in data.chapters]
    head = ["chapter", "idea", "architecture", "TFLOP/s on `prefill`", "% of roof", "µs on `decode`",
            "lines changed"]
    text = table(head, 3, lines)
    if not prefill + decode:
        return text + "\n\nNothing is measured yet."
    how = f"{inputs} inputs" if inputs == also else f"{inputs} inputs on `prefill`, {also} on `decode`"
    notes = ["bf16", how]
    roofs, best = [row.roof_tflops for row in prefill if row.roof_tflops], best_peer(prefill)
    notes += [f"measured roof {roofs[-1]:.3g} TFLOP/s on `prefill`"] if roofs else []
    version = f" ({best.version})" if best and best.version else ""
    notes += [f"fastest library there: {best.peer}{version}, {best.tflops:.3g} TFLOP/s"] if best else []
    return f"{text}\n\n{'; '.join(notes)}.\n{provenance(prefill + decode)}."


def chapter_table(data, chapter):
    """Rows of the chapter, of its fastest variant, its predecessor and the libraries timed beside it. They stand side
    by side only if they are of one kind and one run: a label says where the type of D or the run is another."""
    default_d = {each.id: each.d for each in data.chapters}

    def type_of_d(row):
        return next((word[2:] for word in row.kernel.split() if word.startswith("d=")),
                    row.format if row.peer else default_d.get(row.chapter) or row.format)

    def label(row, ours):
        who = named(row) if row.peer else " ".join([row.chapter, *(w for w in row.variant.split() if w[:2] != "d=")])
        d, run, our_run = type_of_d(row), (row.commit, row.date[:10]), (ours.commit, ours.date[:10])
        return who + (f", D {d}" if d != row.format else "") + \
            (f", of {row.date[:10]} at {row.commit[:10]}" if run != our_run else "")

    def place(problem):
        name, fmt, shape = problem
        return ORDER.index(name) if name in ORDER else len(ORDER), name, fmt != "bf16", fmt, str(shape)

    mine = [row for row in data.rows if row.chapter == chapter.id and row.set not in DRAWN]
    if "<!-- peers -->" in chapter.readme.read_text(encoding="utf-8"):  # that table has them
        mine = [row for row in mine if row.set != "peers"]
    lines, shown, there = [], [], []
    for name, fmt, shape in sorted({(row.set, row.format, row.shape) for row in mine}, key=place):
        groups, m_total, m_max, n, k = shape
        first = f"`{name}`{'' if fmt == 'bf16' else ' ' + fmt}: " \
                f"G={groups}, M={m_total} (≤ {m_max}), N={n}, K={k}"
        rows = [row for row in data.rows if (row.set, row.format, row.shape) == (name, fmt, shape)]
        found = {(row.chapter, row.peer, row.variant, row.warm): row for row in rows}
        ours = [row for row in rows if row.chapter == chapter.id]
        plain = next((row for row in ours if not row.variant and not row.peer), ours[0])
        others = sorted((row for row in ours if row.variant and not re.search("off=|d=", row.variant) and row.timed),
                        key=lambda row: row.us_median)
        peers = sorted({row.peer for row in ours if row.peer})
        # Rows of which D has the inputs' type stand beside those of which it has the chapter's.
        same = [(chapter.id, "", f"d={fmt}")] if default_d.get(chapter.id) not in ("", fmt) else []
        before = f"d={default_d.get(chapter.id) or fmt}"
        if not any((chapter.previous, "", before, warm) in found for warm in (False, True)):
            before = ""
        for who, peer, told in [(chapter.id, "", ""), *((chapter.id, "", row.variant) for row in others[:1]), *same,
                                (chapter.previous, "", before), *((chapter.id, peer, "") for peer in peers)]:
            cold, warm = (found.get((who, peer, told, warm)) for warm in (False, True))
            some = [row for row in (cold, warm) if row]
            if some:
                shown += some
                if who == chapter.previous:  # what the libraries beside it took, of what they take beside ours
                    beside = [[found.get((each, peer, "", False)) for each in (who, chapter.id)] for peer in peers]
                    there += [theirs.us_median / these.us_median for theirs, these in beside
                              if theirs and these and theirs.timed and these.timed]
                lines.append([first, label(some[0], plain), value(cold, "us_median"), value(warm, "us_median"),
                              value(cold, "tflops"), value(warm, "tflops"),
                              value(cold, "gbytes_per_s"), value(cold, "% of roof")])
                first = ""
    if not lines:
        return "Nothing is measured yet."
    head = ["set and shape", "kernel", "µs cold", "µs warm", "TFLOP/s cold", "TFLOP/s warm", "GB/s cold",
            "% of roof cold"]
    note = ""
    if any(row.chapter == chapter.previous for row in shown):
        note = f"{chapter.previous} was timed by its own program, at the clock of its own rounds: " + \
            (f"libraries beside it took {span_of(there)} of their time here.\n" if there
             else "no library was timed beside both.\n")
    return table(head, 2, lines) + f"\n\n{note}{provenance(sorted(shown, key=lambda row: row.date))}."


def span_of(ratios):
    low, high = (f"{100 * ratio:.0f}" for ratio in (min(ratios), max(ratios)))
    return f"{low} %" if low == high else f"{low} to {high} %"


def counts_table(data, chapter):
    """What the emulator counted on the chapter's smoke set, and in its predecessor if on the same set."""
    name, counted = smoke_counts(data.counts, chapter.id)
    if not counted:
        return "Nothing is counted yet."
    before = data.counts.get((chapter.previous, name, "0:fair"))
    who, found = [chapter.id], [counted]
    if before:
        who, found = [chapter.previous, *who], [before, *found]

    def used(counter):  # that there are no bank conflicts says something where there is shared memory
        return any(some.get(counter.replace("bank_conflicts", "wavefronts")) for some in found)

    lines = [[f"`{counter}`", *(f"{some.get(counter, 0):,}" for some in found)]
             for counter in filter(used, COUNTERS)]
    wasted = [1 - some["useful_multiply_adds"] / some["multiply_adds"] for some in found]
    lines.append(["wasted multiply-adds", *(f"{100 * part:.0f} %" for part in wasted)])
    return table(["counter", *who], 1, lines) + f"\n\nSet `{name}` on the emulator, order 0:fair. " \
        f"[All counters](../../plots/data/emulator/{chapter.id}.csv)."


def problems_of(rows):
    """The rows of each problem as peer, variant and warmth have them, in the order in which they were run."""
    found = {}
    for row in rows:
        found.setdefault((row.set, row.shape), {})[row.peer, row.variant, row.warm] = row
    return found


def title_of(problem):
    groups, m_total, m_max, n, k = problem[1]
    rows = f"M={m_max}" if groups * m_max == m_total else f"{m_total} rows (≤ {m_max})"
    return f"G={groups} {rows} N={n} K={k}"


def percent(number):
    return f"{100 * number:+.1f} %".replace("-", "−")


def ideas_table(data, chapter):
    """Warm times with everything, and with one idea switched off (--off); sustained, for each was run by itself."""
    rows = [row for row in data.sustained if row.chapter == chapter.id and not row.peer and row.warm and row.timed
            and row.format == "bf16" and row.set in ("peers", "prefill", "decode", "own")]
    ideas = list(dict.fromkeys(row.variant[4:] for row in rows if re.fullmatch(r"off=\w+", row.variant)))
    lines, shown, in_turns = [], [], True
    for problem, found in problems_of(rows).items():
        ours, without = found.get(("", "", True)), [found.get(("", f"off={idea}", True)) for idea in ideas]
        if ours and any(without):
            shown += [ours, *filter(None, without)]
            cells = [NONE] * len(ideas)
            for at, row in enumerate(without):
                if row:
                    beside = data.all_ideas.get(told(row), ours)
                    in_turns = in_turns and beside is not ours
                    cells[at] = f"{value(row, 'us_median')} ({percent(row.us_median / beside.us_median - 1)})"
            lines.append([title_of(problem), value(ours, "us_median"), *cells])
    if not lines:
        return "Nothing is measured yet."
    head = ["µs warm", "all ideas", *(f"without `{idea}`" for idea in ideas)]
    how = "in turns: less than 2 % may be chance" if in_turns else "but not in turns: at the power limit less than 3 % may be the card's heat"
    return table(head, 1, lines) + "\n\nIn brackets: how much longer it takes without the idea. " \
        f"All `--sustained`, {how}.\n{provenance(sorted(shown, key=lambda row: row.date))}."


def named(row):
    """A library's row as peer and version."""
    return f"{row.peer} ({row.version})".replace(" ()", "")


def peers_table(rows, chapter, references=()):
    """Ours and the fastest library on the set peers, warm. A library that was not run on a problem may have a
    figure of another day's: its time goes with the rate of cuBLAS on 8192^3, and is marked scaled."""
    mine = [row for row in rows if row.chapter == chapter.id and row.set == "peers"
            and row.format == "bf16" and row.timed and row.peer != "cublas_plain"]
    rates = [row.roof_tflops for row in mine if row.roof_kind == "matrix" and row.roof_tflops]
    lines, shown, entered = [], [], {}
    for problem, found in problems_of(mine).items():
        ours = found.get(("", "", True))
        if not ours:
            continue
        for (peer, _, when), row in found.items():
            if peer and when:
                entered.setdefault(named(row), []).append(problem)

        def best(warm):
            return min((row for (peer, _, when), row in found.items() if peer and when == warm),
                       key=lambda row: row.us_median, default=None)

        shape = [str(number) for number in problem[1]]
        absent = [(float(r["us_median"]) * float(r["cublas_8192_tflops"]) / rates[-1], r["peer"])
                  for r in references if rates and r["device"] == ours.device
                  and [r[column] for column in "groups m_total m_max n k".split()] == shape
                  and not any(row.peer == r["peer"] for row in found.values())]
        fastest, cold = best(True), found.get(("", "", False))
        shown += [ours] + ([fastest] if fastest else [])

        def ratio(us, row):
            return f"{us / row.us_median:.3f}" if us and row else NONE

        scaled = min(absent, default=None)
        lines.append([
            title_of(problem), value(ours, "us_median"), value(ours, "tflops"),
            value(fastest, "us_median"), named(fastest) if fastest else NONE,
            ratio(fastest and fastest.us_median, ours), ratio(cold and best(False) and best(False).us_median, cold),
            f"{ratio(scaled[0], ours)} scaled: {scaled[1]}" if scaled else "",
            " ".join(filter(None, [ours.clock_after_mhz and f"{ours.clock_after_mhz} MHz",
                                   ours.power_w and f"{ours.power_w:.0f} W"])) or NONE])
    if not lines:
        return "Nothing is measured yet."
    head = ["problem", "ours, µs", "TFLOP/s", "best library, µs", "by", "ratio", "ratio cold",
            "not run here", "clock, power"]
    scales = any(line[7] for line in lines)
    if not scales:
        for line in [head, *lines]:
            del line[7]
    text = table(head, 1, lines) + "\n\nRatio: the library's time over ours, warm; more than 1 is a row won."
    if entered:
        text += "\nLibraries timed: " + ", ".join(
            name + (f" on {len(problems)} of {len(lines)}" if len(problems) < len(lines) else "")
            for name, problems in sorted(entered.items())) + "."
    if scales:
        text += "\nScaled: a library's time of another day, times what cuBLAS made of 8192³ on that day, over " \
            f"{rates[-1]:.0f} TFLOP/s in this run."
    return f"{text}\n{provenance(sorted(shown, key=lambda row: row.date))}."


def ncu_table(rows):
    """Counts of a GPU (plots/ncu_counts.py) in parts of the emulator's: one row each, one column a chapter."""
    cells, same = {}, 0
    for row in rows:
        emulator, gpu = int(row["emulator"]), int(row["gpu"])
        same += emulator == gpu
        problem = f"`{row['set']}`: G={row['groups']}, M={row['m_total']} (≤ {row['m_max']}), " \
                  f"N={row['n']}, K={row['k']}"
        cells.setdefault((problem, row["counter"], row["way"]), {})[row["chapter"]] = \
            "same" if emulator == gpu else f"{100 * gpu / emulator:.4g} %" if emulator else f"{gpu:,} for 0"
    chapters = sorted({row["chapter"] for row in rows})
    lines, before = [], ""
    for (problem, counter, way), found in cells.items():
        lines.append([problem if problem != before else "", f"`{counter}`", way,
                      *(found.get(chapter, NONE) for chapter in chapters)])
        before = problem
    facts = [" and ".join(sorted({row[column] for row in rows})) for column in ("device", "cuda", "ncu")]
    where = "{} · CUDA {} · Nsight Compute {}".format(*facts)
    when = " · ".join(dict.fromkeys(f"{row['date'][:10]} · commit {row['commit'][:10]}" for row in rows))
    return table(["problem", "counter", "on the GPU", *chapters], 3, lines) + \
        f"\n\n{same} of {len(rows)} are the same. {where} · {when}."


def fill(readme, text, mark="table", optional=False):
    """Puts a table between the marks of a README; says so where there is no place for it."""
    old = readme.read_text(encoding="utf-8") if readme.exists() else ""
    marked = f"<!-- {mark} -->\n{text}\n<!-- /{mark} -->"
    new, count = re.subn(rf"(?s)<!-- {mark} -->.*?<!-- /{mark} -->", lambda _: marked, old, count=1)
    if count:
        write(readme, new)
    elif not optional:
        print(f"publish: {readme}: no <!-- {mark} --> and <!-- /{mark} -->, so no table")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="directory with the CSV files of a tour, taken in first")
    parser.add_argument("--gpu", default="", help="part of the device's name, where several are measured")
    parser.add_argument("--repo", type=Path, default=plot.HERE.parent, help=argparse.SUPPRESS)
    args = parser.parse_args()
    plots = args.repo / "plots"
    try:
        if args.run:
            collect(args.run, plots / "data")
            collect_counts(args.run, plots / "data" / "emulator")
        data = plot.Data([plots / "data"], args.gpu, read_chapters(args.repo))
        counted = [row for path in sorted((plots / "data").glob("*/ncu.csv"))
                   for row in read_csv(path, NCU_COLUMNS)]
        if counted:
            fill(args.repo / "common" / "emu" / "README.md", ncu_table(counted), "ncu")
        fill(args.repo / "README.md", ladder_table(data))
        references = [row for path in sorted((plots / "data").glob("*/reference.csv"))
                      for row in read_csv(path, REFERENCE_COLUMNS)]
        for chapter in data.chapters:
            fill(chapter.readme, chapter_table(data, chapter))
            fill(chapter.readme, ideas_table(data, chapter), "ideas", optional=True)
            fill(chapter.readme, peers_table(data.rows, chapter, references), "peers", optional=True)
            fill(chapter.readme, peers_table(data.sustained, chapter), "sustained", optional=True)
            fill(chapter.readme, counts_table(data, chapter), "counts", optional=True)
        return 0 if plot.draw(data, plots / "figures") else 1
    except BadData as error:
        print(f"publish: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"publish: cannot write: {error}", file=sys.stderr)
        return 4


if __name__ == "__main__":
    sys.exit(main())
