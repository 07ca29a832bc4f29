# SPDX-License-Identifier: MIT
"""Which of the measured and counted rows figures and tables show."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from plots.draw.canvas import colours_of
from plots.draw.changes import short_commit
from plots.measure.chapters import Chapter
from plots.measure.files import Choices, Difference, Row, read_counts, read_errors, read_rows, read_table, read_timeline

# The peer's name of a chapter with all ideas, timed beside the chapter without some.
ALL_IDEAS = "all_ideas"
OTHER_WAYS = ["unfused", "product"]  # peers of gg-fused: programs of ours, and no libraries
# Fused launches with another choice too, where a chapter has one.
OTHER_CHOICES = {"butterfly": "`--transform butterfly`"}
# Sets with a table of their own, of our kernel and the fastest library.
COMPARED_SETS = ["peers", "moe", "ragged", "drawn"]


def smoke_counts(counts: dict[tuple[str, str, str], dict[str, int]], chapter: str) -> tuple[str, dict[str, int] | None]:
    """The small set that a chapter was counted on in order 0:fair, and its counters; or nothing."""
    found = ((name, counts.get((chapter, name, "0:fair"))) for name in ("smoke", "smoke_uniform"))
    return next(((name, some) for name, some in found if some), ("", None))


def newest(rows: Iterable[Row]) -> list[Row]:
    """The newest row of each measurement, oldest first; a peer has one for each chapter it ran beside."""
    latest = {(r.chapter, r.kernel, r.peer, r.set, r.shape, r.format, r.warm): r for r in rows}
    return sorted(latest.values(), key=lambda row: row.date)


def newest_on_each(rows: Iterable[Row]) -> list[Row]:
    """The newest rows of each device, device after device."""
    rows = list(rows)
    return [row for device in sorted({row.device for row in rows})
            for row in newest(row for row in rows if row.device == device)]


def in_their_own_names(rows: list[Row], chapters: list[Chapter]) -> list[Row]:
    """A chapter that was a peer of another one has those rows as its own, and the libraries that ran in the same rounds
    beside it."""
    by_id = {chapter.id: chapter for chapter in chapters}

    def rounds(row):
        return row.device, row.chapter, run_of(row), row.set, row.shape, row.format, row.warm

    guests, found = {}, []
    for row in rows:
        guest = by_id.get(row.peer)
        if guest:
            words = ["grouped_gemm", guest.tile, f"d={row.format}" if guest.d not in ("", row.format) else ""]
            guests.setdefault(rounds(row), []).append(guest.id)
            row = replace(row, chapter=guest.id, kernel=" ".join(word for word in words if word), peer="", version="", host=row.chapter)
        found.append(row)
    return found + [replace(row, chapter=guest) for row in rows for guest in guests.get(rounds(row), [])
                    if row.peer and row.peer not in (ALL_IDEAS, *OTHER_WAYS, *by_id)]


def in_turns(one: Row, other: Row) -> bool:
    """Whether two chapters were timed in the same rounds, at one clock."""
    return bool(one.host or other.host) and (one.device, run_of(one), one.host or one.chapter) == \
        (other.device, run_of(other), other.host or other.chapter)


def as_chapter_row(row: Row) -> Row:
    """Of a chapter with all ideas that ran beside itself without one: the chapter's own row, with the libraries of that
    run beside it."""
    return replace(row, kernel=f"grouped_gemm {replace(row.choices, off='')}".rstrip(), peer="")


def beside_libraries(rows: list[Row]) -> list[Row]:
    """Of the compared sets, for each problem the rows of the last run that timed a library: a later one of the chapter alone,
    or of chapters beside it, has another clock and heat."""
    def problem(row):
        return row.device, row.chapter, row.set, row.shape, row.format

    last = {problem(row): run_of(row) for row in rows
            if row.set in COMPARED_SETS and row.peer and row.peer not in (ALL_IDEAS, *OTHER_WAYS)}
    return [row for row in rows if last.get(problem(row)) == run_of(row)]


def variant(row: Row, chapters: list[Chapter]) -> Choices:
    """What a kernel was told beyond its chapter's defaults, such as another tile; figures leave those out. Of a library the
    type of D, where it is not the chapter's, and what both were told, such as accumulate."""
    tile, d = next(((chapter.tile, chapter.d) for chapter in chapters if chapter.id == row.chapter), ("", ""))
    choices = replace(row.choices, sustained=False)
    if row.peer:
        of_d = choices.d or row.format
        return Choices(d="" if of_d == (d or row.format) else of_d, others=choices.others)
    return replace(choices, tile="") if choices.tile == tile else choices


def cold_if_any(rows: list[Row]) -> tuple[list[Row], str]:
    """The rows with cold inputs, or the warm ones if no chapter has others; and which of the two they are."""
    warm = bool(rows) and not any(not row.warm and not row.peer for row in rows)
    return [row for row in rows if row.warm == warm], "warm" if warm else "cold"


def run_of(row: Row) -> tuple[str, str]:
    """Rows of one run have one commit and one day: between runs cards and clocks differ by 15 %."""
    return row.commit, row.date[:10]


def libraries(rows: list[Row]) -> list[Row]:
    """The libraries' rows of the run that timed the last chapter, or the last one that had any beside it."""
    for own in sorted((row for row in rows if not row.peer), key=lambda row: row.chapter, reverse=True):
        beside = [row for row in rows if row.peer and row.timed
                  and row.chapter == own.chapter and run_of(row) == run_of(own)]
        if beside:
            return beside
    return []


def best_peer(rows: list[Row]) -> Row | None:
    """The fastest of these libraries, or None."""
    return max(libraries(rows), key=lambda row: row.tflops, default=None)


def within_noise(one: Row, other: Row) -> bool:
    """Whether two times differ by no more than noise: by less than 1 %, or their p10 to p90 overlap."""
    low, high = sorted([one.us_median, other.us_median])
    known = None not in (one.us_p10, one.us_p90, other.us_p10, other.us_p90)
    return high < 1.01 * low or (known and one.us_p10 <= other.us_p90 and other.us_p10 <= one.us_p90)


def card(device: str) -> str:
    """A device as cells and axes name it: NVIDIA H100 80GB HBM3 is an H100."""
    return device.removeprefix("NVIDIA ").split(" ")[0]


def provenance(rows: list[Row]) -> str:
    """GPU, clocks, CUDA version, dates and commits of some rows in one line."""
    def span(values):
        values = sorted({value for value in values if value})
        return " to ".join(str(value) for value in dict.fromkeys(values[:1] + values[-1:]))

    clocks = span(clock for row in rows for clock in (row.clock_mhz, row.clock_after_mhz))
    cuda = span(row.cuda for row in rows)
    commits = list(dict.fromkeys(short_commit(row.commit) for row in reversed(rows) if row.commit))
    some = ", ".join(commits[:2]) + (f" and {len(commits) - 2} more" if len(commits) > 2 else "")
    facts = [", ".join(sorted({row.device for row in rows})), clocks and f"{clocks} MHz",
             cuda and f"CUDA {cuda}", span(row.date[:10] for row in rows), some and f"commit {some}"]
    return " · ".join(fact for fact in facts if fact)


# The card of tables and figures where it has measured anything: most readers' Hopper.
SHOWN = "NVIDIA H100 80GB HBM3"


class Data:
    """The newest rows of one device (one that is named, SHOWN, or the one measured most), those of a reader's run, counts."""

    def __init__(self, directories: list[Path], gpu: str, chapters: list[Chapter]) -> None:
        first, *others = [in_their_own_names(rows, chapters) for rows in map(read_rows, directories) if rows] or [[]]
        devices = Counter(row.device for row in first if row.timed and gpu.lower() in row.device.lower())
        self.device = SHOWN if SHOWN in devices else max(devices, default="", key=devices.get)
        self.others = sorted(set(devices) - {self.device})
        beside = {(row.chapter, run_of(row)) for row in first if row.peer in OTHER_WAYS}
        # A later run may have timed such a chapter beside another one, without the unfused way.
        self.fused = newest_on_each(row for row in first if row.set != "step" and (
            row.peer in OTHER_WAYS or ((row.chapter, run_of(row)) in beside and not row.host)))
        # gg-fused alone times others beside such a chapter: a library's gated linear unit
        # is no product.
        timed_by_it = {row.chapter for row in first if row.peer in OTHER_WAYS}
        first = [row for row in first if not (row.peer and row.chapter in timed_by_it)]
        first, *others = ([as_chapter_row(row) if row.peer == ALL_IDEAS else row for row in rows if row.ok or row.peer != ALL_IDEAS]
                          for rows in (first, *others))
        rows = newest(row for row in first if row.device == self.device)
        # Figures and most tables are made of these.
        self.rows = [row for row in rows if not row.choices.sustained]
        self.everywhere = [row for row in newest_on_each(first) if not row.choices.sustained]
        # Tables and the figure of libraries are made of these, of the last card timed beside them.
        self.compared_everywhere = newest_on_each(row for row in beside_libraries(first) if not row.choices.sustained)
        last = max(self.compared_everywhere, key=lambda row: row.date, default=None)
        self.compared = [row for row in self.compared_everywhere if row.device == last.device]
        self.extra = newest(row for rows in others for row in rows if not row.choices.sustained)
        self.chapters, self.is_preview = chapters, False
        self.format = {chapter.id: chapter.format for chapter in chapters}
        self.colours = colours_of(chapters)
        # Where each chapter was measured: on the device that the figures show, or, of those that it
        # was not, on another.
        self.measured_on = dict.fromkeys((row.chapter for row in self.rows if not row.peer), self.device)
        elsewhere = Counter((row.chapter, row.device) for row in self.everywhere if row.timed and not row.peer)
        for (chapter, device), _ in elsewhere.most_common():
            self.measured_on.setdefault(chapter, device)
        self.counts, self.errors, self.timeline, self.differences = {}, [], [], []
        for directory in directories:
            self.counts |= read_counts(directory)
            self.errors = read_errors(directory) or self.errors
            self.differences = read_table(directory, Difference) or self.differences
            self.timeline = read_timeline(directory) or self.timeline
        for row in rows + self.everywhere + self.compared_everywhere + self.extra:
            row.variant = variant(row, chapters)

    def on(self, device: str) -> list[Row]:
        """The rows of a device, whichever the figures show."""
        return [row for row in self.everywhere if row.device == device]

    def rows_of(self, chapter: Chapter) -> list[Row]:
        """The rows of the device that measured a chapter."""
        return self.rows if self.measured_on.get(chapter.id, self.device) == self.device else self.on(self.measured_on[chapter.id])

    def of_set(self, name: str, chapter: Chapter | None = None) -> tuple[list[Row], str]:
        """The rows of a set in each chapter's own format, or in one chapter's; cold unless there are only warm ones,
        and which of the two they are. A chapter that was not timed on the set here is shown as another device timed it.

        Without cublas_plain, which computes another problem: one B for all groups.
        """
        some = self.rows_of(chapter) if chapter else self.rows
        if chapter and not any((row.set, row.chapter) == (name, chapter.id) for row in some):
            elsewhere = [row.device for row in self.everywhere if (row.set, row.chapter) == (name, chapter.id)]
            some = self.on(elsewhere[-1]) if elsewhere else some
        rows = [row for row in some if row.set == name and not row.variant and row.peer != "cublas_plain"
                and row.format == (chapter.format if chapter and row.peer else self.format.get(row.chapter, "bf16"))]
        return cold_if_any(rows)

    def from_other_devices(self, name: str, inputs: str) -> list[Row]:
        """The rows of a set that another device measured, of chapters that this one did not: Blackwell's beside
        Hopper's."""
        return [row for row in self.everywhere if row.set == name and row.device == self.measured_on.get(row.chapter) != self.device
                and not row.peer and not row.variant and row.warm == (inputs == "warm")
                and row.format == self.format.get(row.chapter)]

    def of_readers_run(self, name: str, inputs: str) -> list[Row]:
        """The rows of a set in bf16 that a reader's run added."""
        known = {chapter.id for chapter in self.chapters}
        ours = [row for row in self.extra if row.timed and row.chapter in known]
        ours = [row for row in ours if not row.peer and not row.variant]
        return [row for row in ours if (row.set, row.format, row.warm) == (name, "bf16", inputs == "warm")]
