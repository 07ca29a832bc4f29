# SPDX-License-Identifier: MIT
"""The tables of the READMEs, made of measurements and counts; publish.py puts each between its marks."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from plots.draw import layer, unfused
from plots.draw.beside_cudnn import beside_cudnn_table
from plots.draw.changes import History, changed_since_measured, lines_changed, short_commit
from plots.draw.front_page import cell_and_card, milestones_table, problems_table, times_as_fast
from plots.draw.markdown import NONE, cell, peer_and_version, table
from plots.draw.measured import before_and_after, chapter_table, p_number
from plots.draw.results import ALL_IDEAS, COMPARED_SETS, Data, best_peer, card, libraries, provenance, run_of, smoke_counts, within_noise
from plots.measure import costs, counts_ini
from plots.measure.chapters import Chapter
from plots.measure.costs import TileCounts
from plots.measure.files import CUDNN_COLUMNS, DATA, NCU_COLUMNS, Choices, Row, Shape, read_csv, read_run_counts

COUNTERS_SHOWN = 6  # of a table in a README; results.md has all
LEVEL = "p10 to p90 of the two times overlap, or they differ by less than 1 %"
# What a README's table shows of a chapter's counters; all of them
# are in plots/measure/data/emulator.csv.
COUNTERS = """instructions instructions_mma instructions_wgmma instructions_tcgen05 instructions_ldmatrix
    instructions_cp_async instructions_bulk instructions_mbarrier instructions_ldst instructions_warp global_load_bytes
    global_load_sectors global_store_bytes global_store_sectors shared_wavefronts shared_bank_conflicts
    barrier_waits products products_during_loads products_during_stores tmem_loads tmem_loads_during_products
    multiply_adds useful_multiply_adds""".split()


def with_provenance(history: History, text: str, shown: list[Row], name_files: bool = True) -> str:
    """A table and where its rows come from: cards, commits, dates, and whose kernel has changed since, in which files."""
    shown = sorted(shown, key=lambda row: row.date)
    if not shown:
        return text
    measured = ((row.chapter, row.commit) for row in shown if row.peer in ("", ALL_IDEAS))
    return "\n".join([text, provenance(shown) + ".", *changed_since_measured(measured, history, name_files)])


def all_tables(repo: Path, data: Data, history: History) -> Iterator[tuple[Path, str, str]]:
    """Each table as README, mark and text: the rows of it, where they come from, whose kernel has changed since."""
    def signed(text, shown):
        return with_provenance(history, text, shown)

    def committed(name, columns):
        return [row for path in sorted((repo / DATA).glob(f"*/{name}.csv"))
                for row in read_csv(path, columns)]

    yield repo / "README.md", "milestones", milestones_table(data)
    page = repo / "chapters" / "LADDER.md"
    yield page, "tally", tally_table(data, history)
    yield page, "table", with_provenance(history, *ladder_table(data), name_files=False)
    yield page, "tree", tree(data.chapters)
    yield page, "problems", problems_table(data)
    counted = committed("ncu", NCU_COLUMNS)
    predicted = costs.read_costs(repo / DATA / "costs.csv")
    cudnn = repo / DATA / "cudnn.csv"
    counted_runs = read_run_counts(repo / DATA / "said.csv")
    if counted:
        sentences = changed_since_measured(((row["chapter"], row["commit"]) for row in counted), history)
        yield repo / "common" / "emu" / "COUNTS.md", "ncu", "\n".join([ncu_table(counted), *sentences])
    yield repo / layer.FOLDER / "README.md", "layers", layer.summary(layer.times(repo))
    for chapter in data.chapters:
        yield chapter.readme, "table", signed(*chapter_table(data, chapter))
        yield chapter.readme, "fused", "\n\n".join(signed(*each) for each in unfused.fused_tables(data, chapter))
        yield chapter.readme, "counts", counts_table(data, chapter)
        yield chapter.readme, "costs", costs_table(data, chapter, predicted)
        about = counts_ini.count_plan(chapter.folder)
        if about.unfused and counted_runs:
            yield chapter.readme, "unfused", unfused.unfused_table(chapter, about.unfused, counted_runs)
        if about.cudnn and cudnn.exists():
            yield chapter.readme, "cudnn", beside_cudnn_table(about.cudnn, read_csv(cudnn, CUDNN_COLUMNS))
        if about.transforms and counted_runs:
            yield chapter.readme, "transforms", unfused.transforms_table(chapter, about.transforms, counted_runs)


def tree(chapters: list[Chapter]) -> str:
    """The chapters as a tree, in a fence: a line for each way from a branch to the next one or to an end, with the last one's idea."""
    short_id = {chapter.id: chapter.id.split("_")[0] for chapter in chapters}
    behind, lines = {}, []
    for chapter in chapters:
        behind.setdefault(chapter.previous, []).append(chapter)
    for before, first in ((each, chapter) for each in ["", *short_id] for chapter in behind.get(each, [])
                          if not each or len(behind[each]) > 1):
        way = [before] * bool(before) + [first.id]
        while len(behind.get(way[-1], [])) == 1:
            way.append(behind[way[-1]][0].id)
        lines.append((" -> ".join(map(short_id.get, way)), next(each.title for each in chapters if each.id == way[-1])))
    wide = max((len(way) for way, _ in lines), default=0)
    return "```\n" + "\n".join(f"{way:{wide}}  {title}" for way, title in lines) + "\n```"


def pages(repo: Path, data: Data, history: History) -> Iterator[tuple[Path, str]]:
    """The results.md of each chapter, as path and text."""
    predicted = costs.read_costs(repo / DATA / "costs.csv")
    elsewhere = [Data([repo / DATA], device, data.chapters) for device in data.others]
    for chapter in data.chapters:
        if chapter.readme.exists():
            yield chapter.readme.with_name("results.md"), results_page(data, chapter, predicted, history, elsewhere)
    if (repo / layer.FOLDER).is_dir():
        yield repo / layer.FOLDER / "results.md", layer.results_page(repo)


def lines_of(chapter: Chapter, chapters: list[Chapter]) -> str:
    before = next((each.folder for each in chapters if each.id == chapter.previous), None)
    if chapter.previous and not before:
        return NONE
    added, removed = lines_changed(before, chapter.folder)
    return f"+{added}" + (f" −{removed}" if before else "") if added or removed else "0"


def own_problem(data: Data, chapter: Chapter) -> str:
    """What the chapter gains on the problem that it is about: the µs of before and after, both cold, and how many times as
    fast that is. A dash for one that was not timed, and for the first chapter."""
    found = before_and_after(data, chapter)
    if not found:
        return NONE
    name, before, after = found
    where = f" ({card(after.device)})" if after.device != data.device else ""
    ratio = f", {times_as_fast(before, after)}" if before.timed and after.timed else ""
    return f"{name}: {cell(before, 'us_median')} → {cell(after, 'us_median')} µs{ratio}{where}"


def tally_table(data: Data, history: History) -> str:
    """On how many problems the last chapter that was timed beside libraries was faster than the fastest of them, level or slower:
    first the drawn ones, which no choice of tiles was fitted to, then those that were timed without dependent launch too, as it is
    without and with, then the others."""
    beside = [row for row in data.compared if row.format == "bf16" and row.timed and row.peer != "cublas_plain"]
    last = max((row.chapter for row in beside if row.peer), default="")
    tally = {}  # by place, how launches start, and sets
    shown = []
    for (name, _), found in problems_of([row for row in beside if row.chapter == last]).items():
        library = fastest(found, True)
        ours, no_pdl = found.get(("", Choices(), True)), found.get(("", Choices(off="pdl"), True))
        if not ours or not library:
            continue
        shown.append(ours)
        both = no_pdl is not None and run_of(no_pdl) == run_of(ours)
        for early, row in ((False, no_pdl), (True, ours)) if both else ((True, ours),):
            counted, names = tally.setdefault((name != "drawn", not both, early), (Counter(), set()))
            counted[outcome(library, row)] += 1
            names.add(name)
    lines = [[", ".join(f"`{name}`" for name in sorted(names)), "with" if early else "without", str(counted.total()),
              *(str(counted[each]) for each in ("won", "level", "lost"))]
             for (*_, early), (counted, names) in sorted(tally.items(), key=lambda each: each[0])]
    if not lines:
        return "Nothing is measured yet."
    text = table(["sets", "early start", "problems", f"{last.split('_')[0]} faster", "level", "slower"], 2, lines) + "\n"
    return with_provenance(history, text, shown, name_files=False)


def ladder_table(data: Data) -> tuple[str, list[Row]]:
    """A table for each part of the course, its links as seen from chapters/; numbers only where a chapter of the part was timed."""
    (prefill, inputs), (decode, also) = data.of_set("prefill"), data.of_set("decode")
    elsewhere = data.from_other_devices("prefill", inputs), data.from_other_devices("decode", also)
    fast, small = ({row.chapter: row for row in some if not row.peer}
                   for some in (prefill + elsewhere[0], decode + elsewhere[1]))
    parts, on_own = [], {row.chapter for row in data.everywhere if row.timed and not row.peer}
    for part in dict.fromkeys(chapter.part for chapter in data.chapters):
        some = [chapter for chapter in data.chapters if chapter.part == part]
        timed = any(chapter.id in fast | small for chapter in some)
        head = ["chapter", "idea", *["its own problem", "TFLOP/s on `prefill`", "µs on `decode`"] * timed, "lines changed"]
        lines = [[f"[{chapter.id}]({chapter.id}/README.md)", chapter.title,
                  *[own_problem(data, chapter), cell_and_card(data, fast.get(chapter.id), "tflops"),
                    cell_and_card(data, small.get(chapter.id), "us_median")] * timed,
                  lines_of(chapter, data.chapters)] for chapter in some]
        archs = ", ".join(dict.fromkeys(chapter.arch for chapter in some))
        own = any(chapter.id in on_own for chapter in some)
        untimed = "" if timed or some[0].arch == "sm_80" else \
            "; timed on problems of its own" if own else "; checked on the emulator, not timed"
        parts.append(f"**{part[:1].upper()}{part[1:]}** ({archs}{untimed})\n\n" + table(head, 3 if timed else 2, lines))
    text = "\n\n".join(parts)
    if not fast and not small:
        return text + "\n\nNothing is measured yet.", []
    timed_parts = {chapter.part for chapter in data.chapters if chapter.id in fast | small}
    untimed = [chapter.id for chapter in data.chapters
               if chapter.arch != "sm_80" and chapter.part in timed_parts and chapter.id not in fast | small]
    how = f"{inputs} inputs" if inputs == also else f"{inputs} inputs on `prefill`, {also} on `decode`"
    roofs = Counter(row.roof_tflops for row in prefill if row.roof_tflops and row.format == "bf16").most_common(1)
    roof, best = f"; measured roof {roofs[0][0]:.3g} TFLOP/s on `prefill`" if roofs else "", best_peer(prefill)
    wide = [f"{chapter.id}: {chapter.d}" for chapter in data.chapters if chapter.d and chapter.id in fast]
    narrow = [f"{chapter.id}: {chapter.format}" for chapter in data.chapters
              if chapter.format != "bf16" and chapter.id in fast | small]
    text += f"\n\nbf16{', but ' + ', '.join(narrow) if narrow else ''}{', D of ' + ', '.join(wide) if wide else ''}; " \
        f"{how}{roof}.\n{in_whose_rounds(prefill + decode, data.chapters)}"
    device_of = {row.chapter: row.device for some in elsewhere for row in some}
    for device in sorted(set(device_of.values())):
        there = {chapter for chapter, where in device_of.items() if where == device}
        text += f"\nTimed on {device}, the others on {data.device}: {short_ids(there, data.chapters)}." \
            f"{last_before(data, there, device, inputs, also)}"
    for words, which in (("Timed on problems of its own alone", [each for each in untimed if each in on_own]),
                         ("Checked on the emulator, not timed", [each for each in untimed if each not in on_own])):
        if which:
            text += f"\n{words}: {short_ids(which, data.chapters)}."
    if best:
        text += f"\nLibraries timed on `prefill` beside {best.chapter}, in its run: " \
            f"{', '.join(sorted(map(peer_and_version, libraries(prefill))))}.\n" \
            f"The fastest of these: {best.peer}, {best.tflops:.3g} TFLOP/s."
    return text, prefill + decode + elsewhere[0] + elsewhere[1]


def short_ids(names: Iterable[str], chapters: list[Chapter]) -> str:
    """Chapters in the course's order, without their titles, and three or more neighbours by the first and the last."""
    wanted, runs = set(names), []
    for there, some in itertools.groupby(chapters, lambda chapter: chapter.id in wanted):
        ids = [chapter.id.split("_")[0] for chapter in some]
        runs += [] if not there else ids if len(ids) < 3 else [f"{ids[0]} to {ids[-1]}"]
    return ", ".join(runs)


def last_before(data: Data, names: set[str], device: str, inputs: str, also: str) -> str:
    """What another device took for the last chapter ahead of those that it alone timed: they compare with that, and not
    with the chapter's own line."""
    columns = {"prefill": (inputs, "tflops", "TFLOP/s"), "decode": (also, "us_median", "µs")}
    rows = {(row.chapter, row.set): row for row in data.on(device) if row.timed and not row.peer and not row.variant
            and row.format == data.format.get(row.chapter) and row.set in columns and row.warm == (columns[row.set][0] == "warm")}
    ahead = itertools.takewhile(lambda chapter: chapter not in names, (chapter.id for chapter in data.chapters))
    last = next((each for each in reversed(list(ahead)) if (each, "prefill") in rows), None)
    found = [f"{cell(rows[last, name], column)} {unit} on `{name}`" for name, (_, column, unit) in columns.items() if (last, name) in rows]
    return f" There {last.split('_')[0]} has {', '.join(found)}." if found else ""


def in_whose_rounds(rows: list[Row], chapters: list[Chapter]) -> str:
    """Which chapters of the ladder were timed in the same rounds."""
    guests, own = {}, {row.chapter for row in rows if not row.peer and row.timed}
    for row in rows:
        if row.host:
            guests.setdefault(row.host, {row.host}).add(row.chapter)
    alone = own.difference(*guests.values())
    if not guests:
        return "Each chapter is timed by its own program, at the clock that its rounds have."
    runs = "; ".join(short_ids(together, chapters) for _, together in sorted(guests.items()))
    others = f" Each other one by its own program, at the clock that its rounds have: {short_ids(alone, chapters)}." if alone else ""
    return f"Timed in turns, in the same rounds: {runs}.{others}"


def counted_lines(data: Data, chapter: Chapter) -> tuple[str, list[str], list[tuple[str, float, list[str]]]]:
    """What the emulator counted on the chapter's smoke set, and in its predecessor if on the same set: the set, the head,
    and a line for each counter with how much it has changed."""
    name, counted = smoke_counts(data.counts, chapter.id)
    if not counted:
        return name, [], []
    before = data.counts.get((chapter.previous, name, "0:fair"))
    who, found = [chapter.id], [counted]
    if before:
        who, found = [chapter.previous, *who], [before, *found]

    # That there are no bank conflicts says something where there is shared memory.
    def used(counter):
        return any(some.get(counter.replace("bank_conflicts", "wavefronts")) for some in found)

    def line(label, values, texts):
        low, high = sorted((values[0], values[-1]))
        return label, 0 if low == high else 1 - low / high, [label, *texts]

    lines = []
    for counter in filter(used, COUNTERS):
        values = [some.get(counter, 0) for some in found]
        lines.append(line(f"`{counter}`", values, [f"{one:,}" for one in values]))
    wasted = [1 - some["useful_multiply_adds"] / some["multiply_adds"] for some in found]
    lines.append(line("wasted multiply-adds", wasted, [f"{100 * part:.0f} %" for part in wasted]))
    return name, ["counter", *who], lines


def counts_table(data: Data, chapter: Chapter) -> str:
    """The lines of a README: those that checks/counts.ini names, then those that have changed most."""
    name, head, lines = counted_lines(data, chapter)
    if not lines:
        return "Nothing is counted yet."
    names = counts_ini.count_plan(chapter.folder).counters
    lines_by_name = {each[0].strip("`"): each for each in lines}
    named = [lines_by_name[each] for each in names if each in lines_by_name]
    changed = sorted((each for each in lines if each[1]), key=lambda each: -each[1])
    first = lines if len(head) == 2 else lines[:1]  # all, where there is no predecessor
    kept = list(dict.fromkeys(label for label, *_ in [lines[0], *named, *changed, *first]))[:COUNTERS_SHOWN]
    return table(head, 1, [cells for label, _, cells in lines if label in kept]) + \
        f"\n\nSet `{name}` on the emulator, order 0:fair. [All counters](results.md#counted)."


def results_page(data: Data, chapter: Chapter, predicted: TileCounts, history: History, elsewhere: Iterable[Data] = ()) -> str:
    """A chapter's results.md: the tables of which its README shows a part, and what other devices took."""
    name, head, lines = counted_lines(data, chapter)
    text = ["<!-- SPDX-License-Identifier: MIT -->", f"# Results of {chapter.id}", "",
            "Written by `cmake --build build --target publish` from `plots/measure/data`. The [README](README.md) says what "
            "they mean.",
            "", "## Counted", ""]
    text += [f"Set `{name}` on the emulator, order 0:fair; [as CSV](../../plots/measure/data/emulator.csv).", "",
             table(head, 1, [cells for *_, cells in lines])] if lines else ["Nothing is counted yet."]
    measured, rows = chapter_table(data, chapter, everything=True)
    if rows:
        text += ["", "## Measured", "", with_provenance(history, measured, rows)]
    for other in elsewhere:
        measured, rows = chapter_table(other, chapter, everything=True)
        if rows and rows[-1].device != data.measured_on.get(chapter.id):
            text += ["", f"## Measured on {other.device}", "", with_provenance(history, measured, rows)]
    # First those of the card that the front page counts.
    newest = {row.device for row in data.compared}
    cards = sorted({row.device for row in data.compared_everywhere}, key=lambda device: (device not in newest, device))
    for device, name in itertools.product(cards, COMPARED_SETS):
        measured, rows = comparison_table([row for row in data.compared_everywhere if row.device == device], chapter, name)
        if any(row.peer for row in rows):
            text += ["", f"## Measured on {device}, beside libraries on `{name}`", "", with_provenance(history, measured, rows)]
    found = costs_tables(data, chapter, predicted)
    return "\n".join(text + (["", "## Predicted", "", *found] if found else [])) + "\n"


def costs_table(data: Data, chapter: Chapter, predicted: TileCounts) -> str:
    """What slices and tiles should cost on a B200, for a README."""
    found = costs_tables(data, chapter, predicted)
    if not found:
        return "Nothing is counted yet."
    slices, _, tiles, *_ = found
    return "\n".join([slices, "", tiles, "", "Predicted for one multiprocessor of a B200, not measured: "
                      "[what the columns are](results.md#predicted). Machine code was between 60 % too small and 21 % too "
                      "large on one H200."])


def costs_tables(data: Data, chapter: Chapter, predicted: TileCounts) -> list[str]:
    """What slices and tiles should cost on a B200, and what one measured there, if one did: the first table, a line
    between, the second, and what their columns are; nothing where nothing was counted."""
    slices, tiles, rates, depths = [], [], {}, {}
    about = counts_ini.count_plan(chapter.folder).costs or counts_ini.Costs([])
    for (who, fmt, tile, choice), counted in predicted.items():
        if who != chapter.id:
            continue
        least, most = (costs.cost(fmt, tile, counted, choice, writes, overlaps=about.two_accumulators)
                       for writes in (False, True))
        measured = [row for row in data.on(costs.DEVICE) if row.chapter == chapter.id and row.set == "prefill"
                    and row.format == fmt and not row.peer and not row.warm and not choice
                    and tile in row.choices.tile.split() and row.choices == Choices(row.choices.tile)]
        name, kind = ", ".join([f"`{fmt}`", tile, *([f"`{choice}`"] if choice else [])]), costs.ELEMENTS[fmt][0]
        rates[kind], depths[fmt] = costs.MULTIPLY_ADDS[kind], least.slices
        # No other choice changes a slice.
        sharing = [f"`{choice}`"] if choice.startswith("--cluster") else []
        one = [", ".join([f"`{fmt}`", tile, *sharing]), *(f"{number:,.0f}" for number in (
            least.tma_bytes, least.tensor, least.shared, most.shared, least.memory, least.l2)), least.bound]
        slices += [one] if one not in slices else []
        tiles.append([name, *(f"{number:,.0f}" for number in (least.slices * least.tma_bytes, least.main, least.d_bytes,
                                                              least.store, least.instructions, least.code,
                                                              least.transform)),
                      f"{least.slack:,.0f}" if least.hidden else f"not hidden, {least.exposed:.0%}".replace("%", " %"),
                      f"{least.us:.0f}", f"{most.us:.0f}",
                      cell(measured[-1], "us_median") if measured else NONE])
    if not slices:
        return []
    first = ["cycles of a slice", "bytes by TMA", "tensor core", "shared memory, read", "and written", "memory",
             "L2, bytes a cycle", "bound by"]
    second = ["cycles of a tile, µs of `prefill`", "bytes by TMA", "main loop", "bytes stored", "to memory",
              "instructions beside slices", "machine code", "transform", "slack", "µs, predicted",
              "if TMA's writes count", "µs, measured"]
    at = second.index("transform")
    none_transforms = all(row[at] == "0" for row in tiles)
    second, *tiles = [row[:at] + row[at + none_transforms:] for row in (second, *tiles)]
    deep = ", ".join(f"{count}" + (f" in `{fmt}`" if len(set(depths.values())) > 1 else "")
                     for fmt, count in depths.items() if len(set(depths.values())) > 1 or fmt == next(iter(depths)))
    many = " and ".join(f"{rate:,} multiply-adds of {kind}" for kind, rate in rates.items())
    return [
        table(first, 1, slices), "", table(second, 1, tiles), "",
        "Predicted for one multiprocessor of a B200 from [counts](../../plots/measure/data/costs.csv) of the emulator, "
        "instructions in PTX, and [published rates](../../plots/measure/costs.py)",
        f"a cycle: {many}, {costs.SHARED_BYTES_PER_CYCLE} bytes of shared memory, {costs.MEMORY_BYTES_PER_CYCLE:.1f} bytes "
        f"of memory; {costs.CYCLES_PER_S / 1e9:.2f} GHz.",
        f"Cycles, where the head does not say otherwise. Slices of a main loop: {deep}. `read`: the tensor core reads A "
        "and B of a slice once; `and written`: TMA's writes added. `memory`: if no byte of a slice came from the L2; "
        "`bound by` leaves it out. `machine code`: a storing warp's cycles for its part of a tile, "
        "[by a model](../../plots/measure/machine_code/README.md) that was between 60 % too small and 21 % too large on "
        "one H200. An epilogue takes the longest of its "
        "columns, `slack` is what the main loop has beyond it. With one accumulator nothing hides it: then its share of "
        "a tile's time. " + ("" if none_transforms else "`transform`: its products on tensor cores, at "
                           f"{costs.MULTIPLY_ADDS['bf16']:,} of bf16 a cycle. ") + "µs: rounds of 148 tiles, of 74 where a "
        "tile is that of two multiprocessors, times a tile's cycles. Only the last column is measured."]


def problems_of(rows: list[Row]) -> dict[tuple[str, Shape], dict[tuple[str, Choices, bool], Row]]:
    """The rows of each problem as peer, variant and warmth have them, in the order in which they were run."""
    found = {}
    for row in rows:
        found.setdefault((row.set, row.shape), {})[row.peer, row.variant, row.warm] = row
    return found


def title_of(problem: tuple[str, Shape]) -> str:
    groups, m_total, m_max, n, k = problem[1]
    number = p_number(*problem)
    rows = f"M={m_max}" if groups * m_max == m_total else f"{m_total} rows (≤ {m_max})"
    return f"{number}: ".removeprefix(": ") + f"G={groups} {rows} N={n} K={k}"


def fastest(found: dict[tuple[str, Choices, bool], Row], warm: bool) -> Row | None:
    """The fastest library of one problem."""
    return min((row for (peer, _, when), row in found.items() if peer and when == warm),
               key=lambda row: row.us_median, default=None)


def ratio(theirs: Row | None, ours: Row | None) -> str:
    """A library's time over ours, and whether that is more than noise."""
    if not theirs or not ours:
        return NONE
    return f"{theirs.us_median / ours.us_median:.3f}" + (", level" if within_noise(theirs, ours) else "")


def outcome(theirs: Row, ours: Row) -> str:
    return "level" if within_noise(theirs, ours) else "won" if theirs.us_median > ours.us_median else "lost"


def comparison_table(rows: list[Row], chapter: Chapter, name: str) -> tuple[str, list[Row]]:
    """Ours and the fastest library on a set, warm."""
    mine = [row for row in rows if row.chapter == chapter.id and row.set == name
            and row.format == "bf16" and row.timed and row.peer != "cublas_plain"]
    lines, shown, entered, outcomes = [], [], Counter(), Counter()
    for problem, found in problems_of(mine).items():
        ours = found.get(("", Choices(), True))
        if not ours:
            continue
        entered.update(peer_and_version(row) for (peer, _, warm), row in found.items() if peer and warm)
        library, no_pdl = fastest(found, True), found.get(("", Choices(off="pdl"), True))
        no_pdl = no_pdl if no_pdl and run_of(no_pdl) == run_of(ours) else None
        shown += filter(None, [ours, library, no_pdl])
        outcomes.update([outcome(library, ours)] if library else [])
        lines.append([
            title_of(problem), cell(ours, "us_median"), cell(ours, "tflops"),
            cell(library, "us_median"), peer_and_version(library) if library else NONE, ratio(library, ours),
            ratio(library, no_pdl), ratio(fastest(found, False), found.get(("", Choices(), False))),
            " ".join(filter(None, [ours.clock_after_mhz and f"{ours.clock_after_mhz} MHz",
                                   ours.power_w and f"{ours.power_w:.0f} W"])) or NONE])
    if not lines:
        return "Nothing is measured yet.", []
    head = ["problem", "ours, µs", "TFLOP/s", "best library, µs", "by", "ratio", "without PDL", "ratio cold",
            "clock, power"]
    both = any(line[6] != NONE for line in lines)
    cut = [line if both else line[:6] + line[7:] for line in [head, *lines]]
    text = table(cut[0], 1, cut[1:]) + "\n\nRatio: the library's time over ours, warm; more than 1 is a row won. " \
        f"Level: {LEVEL}.\n" + ", ".join(f"{outcomes[each]} {each}" for each in ("won", "level", "lost")) + "."
    if both:
        text += " Without PDL: the ratio where ours is launched as most libraries are, by `--off pdl`."
    if entered:
        text += "\nLibraries timed: " + ", ".join(
            name + (f" on {count} of {len(lines)}" if count < len(lines) else "")
            for name, count in sorted(entered.items())) + "."
    return text, shown


def ncu_table(rows: list[dict[str, str]]) -> str:
    """Counts of a GPU (ncu_counts.py) in parts of the emulator's: one row each, one column a chapter."""
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
    when = " · ".join(dict.fromkeys(f"{row['date'][:10]} · commit {short_commit(row['commit'])}" for row in rows))
    dirty = " `-dirty`: of a program with changes that were not committed." if "-dirty" in when else ""
    return table(["problem", "counter", "on the GPU", *chapters], 3, lines) + \
        f"\n\n{same} of {len(rows)} are the same. {where} · {when}.{dirty}"
