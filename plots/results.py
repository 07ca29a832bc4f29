# SPDX-License-Identifier: MIT
"""What figures and tables are made of: rows that chapters append with --csv and --counts-csv, and main.cu."""

import csv
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

from changes import short

COLUMNS = (
    "chapter,kernel,device,arch,clock_mhz,cuda,commit,date,set,groups,m_total,m_max,n,k,format,warm,"
    "us_median,us_p10,us_p90,tflops,gbytes_per_s,roof_tflops,roof_kind,prep_us,peer,ok,clock_after_mhz,"
    "power_w,version"
).split(",")
COUNT_COLUMNS = "chapter,set,order,counter,value".split(",")
NCU_COLUMNS = ("chapter,set,groups,m_total,m_max,n,k,counter,emulator,gpu,way,counted,device,cuda,ncu,commit,"
               "date").split(",")  # of plots/ncu_counts.py
COST_COLUMNS = "chapter,format,tile,choice,per,counter,value".split(",")  # of plots/cost_counts.py
CUDNN_COLUMNS = "configuration,side,name,value".split(",")  # of plots/cudnn/compare.py
SAID_COLUMNS = "chapter,run,counter,value".split(",")  # of plots/recount.py
# plots/data/<gpu>/reference.csv: libraries as they were timed once elsewhere, and what cuBLAS made of 8192^3 there.
REFERENCE_COLUMNS = "device,groups,m_total,m_max,n,k,peer,us_median,cublas_8192_tflops,date".split(",")
# Type, elements that share a scale, type of the scale: common/base/block_scales.h.
BLOCK_FORMATS = {("e4m3", "32", "ue8m0"): "mxfp8", ("e5m2", "32", "ue8m0"): "mxfp8_e5m2",
                 ("e2m1", "32", "ue8m0"): "mxfp4", ("e2m1", "16", "ue4m3"): "nvfp4",
                 ("e2m1", "16", "ue8m0"): "fp4_ue8m0_16"}
ALL_IDEAS = "all_ideas"  # the peer's name of a chapter with all ideas, timed beside the chapter without some
RACES = ["peers", "moe"]  # sets with a table of their own, of ours and the fastest library
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
    if value is None or not 0 <= value <= MOST or value == 0 and not zero_too:
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
            if reader.fieldnames not in (COLUMNS, COUNT_COLUMNS, NCU_COLUMNS, COST_COLUMNS, SAID_COLUMNS, REFERENCE_COLUMNS,
                                         CUDNN_COLUMNS):
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
            row.sustained = "sustained" in row.kernel.split()  # each at its own clock: common/bench/timer.h
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


def smoke_counts(counts, chapter):
    """The small set that a chapter was counted on in order 0:fair, and its counters; or nothing."""
    found = ((name, counts.get((chapter, name, "0:fair"))) for name in ("smoke", "smoke_uniform"))
    return next(((name, some) for name, some in found if some), ("", None))


def newest(rows):
    """The newest row of each measurement, oldest first; a peer has one for each chapter it ran beside."""
    latest = {(r.chapter, r.kernel, r.peer, r.set, r.shape, r.format, r.warm): r for r in rows}
    return sorted(latest.values(), key=lambda row: row.date)


def newest_on_each(rows):
    """The newest rows of each device, device after device."""
    rows = list(rows)
    return [row for device in sorted({row.device for row in rows})
            for row in newest(row for row in rows if row.device == device)]


def as_ours(row):
    """Of a chapter with all ideas that ran beside itself without one: the chapter's own row, with the libraries of that
    run beside it."""
    words = [word for word in row.kernel.split()[1:] if not word.startswith("off=")]
    return SimpleNamespace(**vars(row) | dict(kernel=" ".join(["grouped_gemm", *words]), peer=""))


def told(row):
    """What tells the rows apart that one run made of one chapter: with --off there are two, of one key."""
    return row.chapter, row.set, row.shape, row.format, row.warm, *row.kernel.split()[1:]


def without_solos(rows):
    """A race's times of ours stay until the next race: one that was taken alone later is of another clock and heat."""
    raced = {told(as_ours(row)) for row in rows if row.peer == ALL_IDEAS and row.set in RACES and row.ok and row.timed}
    return [row for row in rows if row.peer or told(row) not in raced]


def variant(row, chapters):
    """What a kernel was told beyond its chapter's defaults, such as another tile; figures leave those out."""
    default = next((chapter.tile for chapter in chapters if chapter.id == row.chapter), "").split()
    words = row.kernel.split()[1:]
    if default and words[:len(default)] == default:
        words = words[len(default):]
    return "" if row.peer else " ".join(word for word in words if word != "sustained")


def cold_if_any(rows):
    """The rows with cold inputs, or the warm ones if no chapter has others; and which of the two they are."""
    warm = bool(rows) and not any(not row.warm and not row.peer for row in rows)
    return [row for row in rows if row.warm == warm], "warm" if warm else "cold"


def run_of(row):
    """Rows of one run have one commit and one day: between runs cards and clocks differ by 15 %."""
    return row.commit, row.date[:10]


def libraries(rows):
    """The libraries' rows of the run that timed the last chapter, or the last one that had any beside it."""
    for own in sorted((row for row in rows if not row.peer), key=lambda row: row.chapter, reverse=True):
        beside = [row for row in rows if row.peer and row.timed
                  and row.chapter == own.chapter and run_of(row) == run_of(own)]
        if beside:
            return beside
    return []


def best_peer(rows):
    """The fastest of these libraries, or None."""
    return max(libraries(rows), key=lambda row: row.tflops, default=None)


def level(one, other):
    """Whether two times differ by no more than noise: by less than 1 %, or their p10 to p90 overlap."""
    low, high = sorted([one.us_median, other.us_median])
    known = None not in (one.us_p10, one.us_p90, other.us_p10, other.us_p90)
    return high < 1.01 * low or known and one.us_p10 <= other.us_p90 and other.us_p10 <= one.us_p90


def provenance(rows):
    """GPU, clocks, CUDA version, dates and commits of some rows in one line."""
    def span(values):
        values = sorted({value for value in values if value})
        return " to ".join(str(value) for value in dict.fromkeys(values[:1] + values[-1:]))

    clocks = span(clock for row in rows for clock in (row.clock_mhz, row.clock_after_mhz))
    cuda = span(row.cuda for row in rows)
    commits = list(dict.fromkeys(short(row.commit) for row in reversed(rows) if row.commit))
    some = ", ".join(commits[:2]) + (f" and {len(commits) - 2} more" if len(commits) > 2 else "")
    facts = [", ".join(sorted({row.device for row in rows})), clocks and f"{clocks} MHz",
             cuda and f"CUDA {cuda}", span(row.date[:10] for row in rows), some and f"commit {some}"]
    return " · ".join(fact for fact in facts if fact)


def read_chapters(repo):
    """The chapters in order of reading, from the fields of gg::Chapter in main.cu: none has to be built."""
    chapters = []
    for main in sorted(Path(repo, "chapters").glob("*/main.cu")):
        text = main.read_text(encoding="utf-8")
        def field(name, pattern=r'"([^"]*)"'):
            found = re.search(rf"\.{name}\s*=\s*{pattern}", text)
            return found[1] if found else ""
        chapters.append(SimpleNamespace(
            id=main.parent.name, title=field("title"), arch=field("arch", r"gg::Arch::(\w+)"),
            previous=field("previous"), folder=main.parent, readme=main.parent / "README.md",
            # The first format is the default; its D has the inputs' type, or this one.
            d="f32" if re.search(r"gg::run<\s*gg::Operands<\w+,\s*\w+,\s*float>", text) else "",
            format=first_format(text), pads="true" == field("pads_groups", r"(\w+)"),
            sets=re.findall(r'"(\w+)"', field("sets", r"\{([^}]*)\}")),
            # The first is the default, unless the chapter chooses for each problem; as in column `kernel`.
            tile="" if field("chooses_tile", "(true)") else first_tile(field("tiles", r"(\{\s*\{[\d,{}\s]*\}\s*\})"))))
    return chapters


def first_format(text):
    """What a chapter computes unless it is told otherwise, as column `format` has it: the first that main.cu lists, of
    common/base/block_scales.h; bf16 unless that one has block scales."""
    text = text.replace("gg::", "")
    alias = re.search(r"template\s*<([^>]*)>\s*using\s+(\w+)\s*=\s*BlockScaled<([^>]*)>", text)
    if alias:  # as a function of its parameters
        names, words = [each.split()[-1] for each in alias[1].split(",")], alias[3]

        def expanded(found):
            values = dict(zip(names, (each.strip() for each in found[1].split(","))))
            return "BlockScaled<" + re.sub(r"\w+", lambda word: values.get(word[0], word[0]), words) + ">"

        text = re.sub(rf"\b{alias[2]}<([^>]*)>", expanded, text)
    scaled = re.search(r"\brun<\s*BlockScaled<\s*(\w+),\s*(\d+),\s*(\w+)", text)
    return BLOCK_FORMATS[scaled.groups()] if scaled else "bf16"


def first_tile(tiles):
    """128x64 of {{128, 64}, {64, 64}}; 256x256 2x1 of {{256, 256, 2}, {128, 256, 1}}: with the cluster where any tile
    names one of several blocks."""
    found = [(*map(int, re.findall(r"\d+", tile)), 1)[:3] for tile in re.findall(r"\{\s*(\d[\d,\s]*)\}", tiles)]
    if not found:
        return ""
    m, n, cluster = found[0]
    return f"{m}x{n}" + (f" {cluster}x1" if any(blocks > 1 for _, _, blocks in found) else "")


class Data:
    """The newest rows of one device (the one measured most, unless named), those of a reader's run, counts."""

    def __init__(self, directories, gpu, chapters):
        first, *others = [rows for rows in map(read_rows, directories) if rows] or [[]]
        devices = Counter(row.device for row in first if row.timed and gpu.lower() in row.device.lower())
        self.device = devices.most_common(1)[0][0] if devices else ""
        self.others = sorted(set(devices) - {self.device})
        self.all_ideas = {told(row): row for row in newest(first)
                          if row.device == self.device and row.peer == ALL_IDEAS and row.timed}
        first = without_solos(first)
        first, *others = ([as_ours(row) if row.peer == ALL_IDEAS else row for row in rows if row.ok or row.peer != ALL_IDEAS]
                          for rows in (first, *others))
        rows = newest(row for row in first if row.device == self.device)
        self.rows = [row for row in rows if not row.sustained]  # figures and most tables are made of these
        self.everywhere = [row for row in newest_on_each(first) if not row.sustained]
        self.sustained = [row for row in rows if row.sustained]
        self.extra = newest(row for rows in others for row in rows if not row.sustained)
        self.chapters, self.like = chapters, ""
        self.format = {chapter.id: chapter.format for chapter in chapters}
        # Where each chapter was measured: on the device that the figures show, or, of those that it was not, on another.
        self.home = dict.fromkeys((row.chapter for row in self.rows if not row.peer), self.device)
        elsewhere = Counter((row.chapter, row.device) for row in self.everywhere if row.timed and not row.peer)
        for (chapter, device), _ in elsewhere.most_common():
            self.home.setdefault(chapter, device)
        self.counts = {}
        for directory in directories:
            self.counts |= read_counts(directory)
        for row in rows + self.everywhere + self.extra:
            row.variant = variant(row, chapters)

    def on(self, device):
        """The rows of a device, whichever the figures show."""
        return [row for row in self.everywhere if row.device == device]

    def rows_of(self, chapter):
        """The rows of the device that measured a chapter."""
        return self.rows if self.home.get(chapter.id, self.device) == self.device else self.on(self.home[chapter.id])

    def of(self, name, chapter=None):
        """The rows of a set in each chapter's own format, or in one chapter's; cold unless there are only warm ones,
        and which of the two they are.

        Without cublas_plain, which computes another problem: one B for all groups.
        """
        some = self.rows_of(chapter) if chapter else self.rows
        rows = [row for row in some if row.set == name and not row.variant and row.peer != "cublas_plain"
                and row.format == (chapter.format if chapter and row.peer else self.format.get(row.chapter, "bf16"))]
        return cold_if_any(rows)

    def visiting(self, name, inputs):
        """The rows of a set that another device measured, of chapters that this one did not: Blackwell's beside
        Hopper's."""
        return [row for row in self.everywhere if row.set == name and row.device == self.home.get(row.chapter) != self.device
                and not row.peer and not row.variant and row.warm == (inputs == "warm")
                and row.format == self.format.get(row.chapter)]

    def added(self, name, inputs):
        known = {chapter.id for chapter in self.chapters}
        ours = [row for row in self.extra if row.timed and row.chapter in known]
        ours = [row for row in ours if not row.peer and not row.variant]
        return [row for row in ours if (row.set, row.format, row.warm) == (name, "bf16", inputs == "warm")]
