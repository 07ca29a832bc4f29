# SPDX-License-Identifier: MIT
"""The files of plots/measure/data and of a tour: their columns, and what reads them. Chapters append rows with
--csv and --counts-csv; each other file names the tool that writes it."""

import csv
import io
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TypeVar

DATA = Path("plots", "measure", "data")  # below the repository's root
Shape = tuple[int, int, int, int, int]  # groups, rows of all, rows of the largest, N, K


@dataclass(frozen=True)
class Choices:
    """What the column `kernel` says after the kernel's name, as kernel_name in common/harness/run/report.cpp writes it:
    how a launch differs from its chapter's defaults. str() gives the words back."""
    tile: str = ""                 # "256x128", with a cluster's shape behind it "256x128 2x1"
    off: str = ""                  # ideas of --off
    d: str = ""                    # the type of D
    others: tuple[str, ...] = ()   # such as "b=kn" and "butterfly"
    sustained: bool = False        # timed at a clock of its own: common/harness/bench/timer.h

    @classmethod
    def of(cls, kernel: str) -> "Choices":
        tile, off, d, others = [], "", "", []
        for word in kernel.split()[1:]:
            if re.fullmatch(r"\d+x\d+", word):
                tile.append(word)
            elif word.startswith("off="):
                off = word.removeprefix("off=")
            elif word.startswith("d="):
                d = word.removeprefix("d=")
            elif word != "sustained":
                others.append(word)
        return cls(" ".join(tile), off, d, tuple(others), "sustained" in kernel.split()[1:])

    def __bool__(self) -> bool:
        return self != Choices()

    def __str__(self) -> str:
        words = [self.tile, self.off and f"off={self.off}", self.d and f"d={self.d}", *self.others,
                 "sustained" if self.sustained else ""]
        return " ".join(word for word in words if word)


@dataclass
class Row:
    """One measurement, as a file has it: its fields but the last two are the columns. A number that was not taken is None."""
    chapter: str = ""
    kernel: str = ""         # its name, then its choices
    device: str = ""         # as the driver calls it
    arch: str = ""
    clock_mhz: float | None = None
    cuda: str = ""
    commit: str = ""
    date: str = ""
    set: str = ""
    groups: int = 0
    m_total: int = 0
    m_max: int = 0
    n: int = 0
    k: int = 0
    format: str = ""
    warm: bool = False       # the inputs were in the L2
    us_median: float | None = None
    us_p10: float | None = None
    us_p90: float | None = None
    tflops: float | None = None
    gbytes_per_s: float | None = None
    roof_tflops: float | None = None
    roof_kind: str = ""
    prep_us: float | None = None
    peer: str = ""           # what was timed in place of the chapter's launch, such as a library
    ok: bool = False         # the check passed
    clock_after_mhz: float | None = None
    power_w: float | None = None
    version: str = ""        # of the peer
    # results.py puts these in: those of its choices that are no defaults, and the chapter in whose
    # rounds it was timed, where that is another one.
    variant: Choices = Choices()
    host: str = ""

    @property
    def shape(self) -> Shape:
        return self.groups, self.m_total, self.m_max, self.n, self.k

    @property
    def choices(self) -> Choices:
        return Choices.of(self.kernel)

    @property
    def timed(self) -> bool:
        return self.ok and self.us_median is not None

    @property
    def intensity(self) -> float | None:
        """FLOP per byte of unavoidable traffic: A, B and D once each, no B of empty groups."""
        return 1000 * self.tflops / self.gbytes_per_s if self.timed and self.gbytes_per_s else None


@dataclass
class ErrorClass:
    """How many elements of D have an error between 2^log2_low and the next class's of the check's limit: of errors.py."""
    chapter: str
    format: str
    against: str
    m: str
    n: str
    k: str
    log2_low: float
    count: float


@dataclass
class StampedTile:
    """A tile of one launch, its times from the launch's first stamp: of timeline/timeline.py."""
    chapter: str
    device: str
    cuda: str
    commit: str
    date: str
    clock_mhz: str
    set: str
    sm: float
    begin_ns: float
    end_ns: float
    waited_ns: float


@dataclass
class LayerTime:
    """A launch of chapter 10c's step, or several in a row, or PyTorch's: of that program and of peers/torch_layer.py."""
    layer: str
    launch: str
    launches: float  # kernels and copies
    us_median: float
    us_p10: float
    us_p90: float
    tflops: str      # empty where nothing is multiplied
    bytes: str       # that have to be read or written; empty where nobody counts them
    clock_mhz: str
    device: str
    commit: str
    date: str
    version: str     # of PyTorch


@dataclass
class Difference:
    """How far a finite difference with step h is off a gradient of chapter 10c, as a part: of its --differences."""
    gradient: str
    h: float
    off: float


def columns_of(kind: type) -> list[str]:
    return [field.name for field in fields(kind)]


COLUMNS = columns_of(Row)[:-2]
COUNT_COLUMNS = "chapter,set,order,counter,value".split(",")
NCU_COLUMNS = ("chapter,set,groups,m_total,m_max,n,k,counter,emulator,gpu,way,counted,device,cuda,ncu,commit,"
               "date").split(",")  # of ncu_counts.py
COST_COLUMNS = "chapter,format,tile,choice,per,counter,value".split(",")  # of cost_counts.py
CUDNN_COLUMNS = "configuration,side,name,value".split(",")  # of cudnn/compare.py
RUN_COUNT_COLUMNS = "chapter,run,counter,value".split(",")  # of recount.py
SAME_PTX = "same_ptx.csv"
SAME_PTX_COLUMNS = "chapter,then,now".split(",")  # of plots/draw/same_ptx.py
ERROR_COLUMNS = columns_of(ErrorClass)
TIMELINE_COLUMNS = columns_of(StampedTile)
LAYER_COLUMNS = columns_of(LayerTime)
DIFFERENCE_COLUMNS = columns_of(Difference)
# Of choice.csv, which gg-choice reads.
CHOICE_COLUMNS = [*"device date multiprocessors gbytes_per_s set m n k".split(), "256x128 1x1", "256x128 2x1", "128x128 1x1",
                  "64x128 1x1", "128x64 1x1", "64x64 1x1", "64x64 2x1", "64x64 4x1"]
SIZES = "groups m_total m_max n k".split()
TIMES = "us_median us_p10 us_p90".split()
TEXT = [field.name for field in fields(Row) if field.type is str]


class BadData(Exception):
    """A file that cannot be read as measurements; the message is one sentence."""


MOST = 10**15  # of any number here: a count of bytes, a rate, a time


def whole(text: str) -> int | None:
    """The whole number that a field is, or nothing where it is none or too large."""
    value = int(text) if re.fullmatch(r"[0-9]{1,16}", text) else None
    return value if value is not None and value <= MOST else None


def number(column: str, text: str) -> float | None:
    """A field's number; nothing for an empty field. Where groups differ in N or K, the field is the largest."""
    if not text and column not in SIZES:
        return None
    value = whole(text)
    try:
        value = float(text) if value is None and column not in SIZES else value
    except ValueError:
        value = None
    zero_too = column not in (*TIMES, "groups", "n", "k")
    if value is None or not 0 <= value <= MOST or (value == 0 and not zero_too):
        kind = ("whole number" if column in SIZES else "number") + ("" if zero_too else " above 0")
        raise ValueError(f"{column} is {text[:20]!r}, a {kind} is wanted, of at most 1e15")
    return value


def measured(texts: dict[str, str]) -> Row:
    """A row of a file, its fields as what they are. Raises ValueError."""
    values = {column: text if column in TEXT else number(column, text) for column, text in texts.items()}
    row = Row(**values | {"ok": values["ok"] == 1, "warm": values["warm"] == 1})
    if row.us_median is not None and (row.tflops is None or row.gbytes_per_s is None):
        raise ValueError("us_median is there without tflops and gbytes_per_s")
    return row


def read_csv(path: Path | str, columns: list[str] = COLUMNS) -> list[dict[str, str]]:
    """The rows of one file as dictionaries of text; of the other kind than the columns say, it has none."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            if reader.fieldnames not in (COLUMNS, COUNT_COLUMNS, NCU_COLUMNS, COST_COLUMNS, RUN_COUNT_COLUMNS, TIMELINE_COLUMNS,
                                         ERROR_COLUMNS, CUDNN_COLUMNS, SAME_PTX_COLUMNS, LAYER_COLUMNS,
                                         DIFFERENCE_COLUMNS, CHOICE_COLUMNS):
                raise BadData(f"{path}: its header is not that of measurements; measure again or remove it")
            rows = list(reader)
    except (OSError, UnicodeError, csv.Error) as error:
        raise BadData(f"{path}: cannot be read: {error}") from error
    if any(None in row or None in row.values() for row in rows):
        raise BadData(f"{path}: a row does not have {len(reader.fieldnames)} fields")
    return rows if reader.fieldnames == columns else []


def folder_of(device: str) -> str:
    """The folder below DATA that has a GPU's measurements; of the name that the driver gives it."""
    return re.sub(r"[^a-z0-9]+", "-", device.lower().removeprefix("nvidia ")).strip("-")


def csv_text(columns: list[str], rows: Iterable[dict]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def write_whole(path: Path, text: str) -> None:
    """Writes beside and renames, so that a full disk leaves the earlier file whole."""
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(text, encoding="utf-8", newline="\n")
    os.replace(beside, path)


def write_csv(path: Path, columns: list[str], rows: Iterable[dict]) -> None:
    write_whole(path, csv_text(columns, rows))


def read_rows(directory: Path | str) -> list[Row]:
    """Every measurement under a directory, oldest first."""
    rows = []
    for path in sorted(Path(directory).rglob("*.csv")):
        for line, texts in enumerate(read_csv(path), 2):
            try:
                row = measured(texts)
            except ValueError as error:
                raise BadData(f"{path}: line {line}: {error}") from error
            if row.timed:
                rows.append(row)
            elif not row.ok:  # what failed its check was timed neither cold nor warm
                rows += [replace(row, warm=warm) for warm in (False, True)]
    return sorted(rows, key=lambda row: row.date)


def read_counts(place: Path | str) -> dict[tuple[str, str, str], dict[str, int]]:
    """What the emulator counted, of a file or of all files under a directory: by chapter, set and order a dictionary of
    counters."""
    counts, place = {}, Path(place)
    for path in [place] if place.is_file() else sorted(place.rglob("*.csv")):
        for row in read_csv(path, COUNT_COLUMNS):
            if whole(row["value"]) is None:
                raise BadData(f"{path}: {row['counter']} is {row['value']!r}, a count is a whole number")
            key = row["chapter"], row["set"], row["order"]
            counts.setdefault(key, {})[row["counter"]] = int(row["value"])
    return counts


def read_run_counts(path: Path) -> dict[tuple[str, str], dict[str, int]]:
    """The counts that single sentences and tables are made of: by chapter and run a dictionary of counters."""
    found = {}
    for row in read_csv(path, RUN_COUNT_COLUMNS) if path.exists() else []:
        found.setdefault((row["chapter"], row["run"]), {})[row["counter"]] = int(row["value"])
    return found


Kind = TypeVar("Kind", ErrorClass, StampedTile, LayerTime, Difference)


def read_table(place: Path, kind: type[Kind]) -> list[Kind]:
    """The rows of one kind under a directory."""
    rows = [row for path in sorted(Path(place).rglob("*.csv")) for row in read_csv(path, columns_of(kind))]
    for row in rows:
        for column in (field.name for field in fields(kind) if field.type is float):
            try:
                row[column] = float(row[column])
            except ValueError as error:
                raise BadData(f"{place}: {column} is {row[column][:20]!r}, a number is wanted") from error
    return [kind(**row) for row in rows]


def read_errors(place: Path) -> list[ErrorClass]:
    """How many elements of D are off by how much."""
    return read_table(place, ErrorClass)


def read_timeline(place: Path) -> list[StampedTile]:
    """The tiles of one launch."""
    return read_table(place, StampedTile)
