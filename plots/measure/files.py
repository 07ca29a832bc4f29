# SPDX-License-Identifier: MIT
"""The files of plots/measure/data and of a tour: their columns, and what reads them. Chapters append rows with
--csv and --counts-csv; each other file names the tool that writes it."""

import csv
import re
from pathlib import Path
from types import SimpleNamespace

DATA = Path("plots", "measure", "data")  # below the repository's root
COLUMNS = (
    "chapter,kernel,device,arch,clock_mhz,cuda,commit,date,set,groups,m_total,m_max,n,k,format,warm,"
    "us_median,us_p10,us_p90,tflops,gbytes_per_s,roof_tflops,roof_kind,prep_us,peer,ok,clock_after_mhz,"
    "power_w,version"
).split(",")
COUNT_COLUMNS = "chapter,set,order,counter,value".split(",")
NCU_COLUMNS = ("chapter,set,groups,m_total,m_max,n,k,counter,emulator,gpu,way,counted,device,cuda,ncu,commit,"
               "date").split(",")  # of ncu_counts.py
COST_COLUMNS = "chapter,format,tile,choice,per,counter,value".split(",")  # of cost_counts.py
CUDNN_COLUMNS = "configuration,side,name,value".split(",")  # of cudnn/compare.py
SAID_COLUMNS = "chapter,run,counter,value".split(",")  # of recount.py
# Of errors.py: how many elements of D have an error between 2^log2_low and the next class's of
# the check's limit.
ERROR_COLUMNS = "chapter,format,against,m,n,k,log2_low,count".split(",")
# Of timeline/timeline.py: a row for each tile of one launch, its times from the
# launch's first stamp.
TIMELINE_COLUMNS = "chapter,device,cuda,commit,date,clock_mhz,set,sm,begin_ns,end_ns,waited_ns".split(",")
# <gpu>/reference.csv: libraries as they were timed once elsewhere, and what cuBLAS made
# of 8192^3 there.
REFERENCE_COLUMNS = "device,groups,m_total,m_max,n,k,peer,us_median,cublas_8192_tflops,date".split(",")
SIZES = "groups m_total m_max n k".split()
TIMES = "us_median us_p10 us_p90".split()
TEXT = "chapter kernel device arch cuda commit date set format roof_kind peer version".split()


class BadData(Exception):
    """A file that cannot be read as measurements; the message is one sentence."""


MOST = 10**15  # of any number here: a count of bytes, a rate, a time


def whole(text):
    """The whole number that a field is, or nothing where it is none or too large."""
    value = int(text) if re.fullmatch(r"[0-9]{1,16}", text) else None
    return value if value is not None and value <= MOST else None


def number(column, text):
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


def measured(fields):
    """A row's fields as what they are."""
    row = SimpleNamespace(**{c: v if c in TEXT else number(c, v) for c, v in fields.items()})
    if row.us_median is not None and (row.tflops is None or row.gbytes_per_s is None):
        raise ValueError("us_median is there without tflops and gbytes_per_s")
    return row


def read_csv(path, columns=COLUMNS):
    """The rows of one file as dictionaries of text; of the other kind than the columns say, it has none."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            if reader.fieldnames not in (COLUMNS, COUNT_COLUMNS, NCU_COLUMNS, COST_COLUMNS, SAID_COLUMNS, TIMELINE_COLUMNS,
                                         ERROR_COLUMNS, REFERENCE_COLUMNS, CUDNN_COLUMNS):
                raise BadData(f"{path}: its header is not that of measurements; measure again or remove it")
            rows = list(reader)
    except (OSError, UnicodeError, csv.Error) as error:
        raise BadData(f"{path}: cannot be read: {error}") from error
    if any(None in row or None in row.values() for row in rows):
        raise BadData(f"{path}: a row does not have {len(reader.fieldnames)} fields")
    return rows if reader.fieldnames == columns else []


def read_rows(directory):
    """Every measurement under a directory, oldest first."""
    rows = []
    for path in sorted(Path(directory).rglob("*.csv")):
        for line, fields in enumerate(read_csv(path), 2):
            try:
                row = measured(fields)
            except ValueError as error:
                raise BadData(f"{path}: line {line}: {error}") from error
            row.shape = row.groups, row.m_total, row.m_max, row.n, row.k
            row.ok = row.ok == 1
            # Each at its own clock: common/harness/bench/timer.h.
            row.sustained = "sustained" in row.kernel.split()
            row.timed = row.ok and row.us_median is not None
            # FLOP per byte of unavoidable traffic: A, B and D once each, no B of empty groups.
            row.intensity = 1000 * row.tflops / row.gbytes_per_s if row.timed and row.gbytes_per_s else None
            if row.timed:
                rows.append(SimpleNamespace(**vars(row) | dict(warm=row.warm == 1)))
            elif not row.ok:  # what failed its check was timed neither cold nor warm
                rows += [SimpleNamespace(**vars(row) | dict(warm=warm)) for warm in (False, True)]
    return sorted(rows, key=lambda row: row.date)


def read_counts(place):
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


def read_said(path):
    """The counts that single sentences and tables are made of: by chapter and run a dictionary of counters."""
    found = {}
    for row in read_csv(path, SAID_COLUMNS) if path.exists() else []:
        found.setdefault((row["chapter"], row["run"]), {})[row["counter"]] = int(row["value"])
    return found


def read_table(place, columns, *numbers):
    """The rows of one kind under a directory, with these columns as numbers."""
    rows = [row for path in sorted(Path(place).rglob("*.csv")) for row in read_csv(path, columns)]
    for row in rows:
        for column in numbers:
            try:
                row[column] = float(row[column])
            except ValueError as error:
                raise BadData(f"{place}: {column} is {row[column][:20]!r}, a number is wanted") from error
    return [SimpleNamespace(**row) for row in rows]


def read_errors(place):
    """How many elements of D are off by how much: a row for each class of errors.py."""
    return read_table(place, ERROR_COLUMNS, "log2_low", "count")


def read_timeline(place):
    """The tiles of one launch, of timeline/timeline.py."""
    return read_table(place, TIMELINE_COLUMNS, "sm", "begin_ns", "end_ns", "waited_ns")
