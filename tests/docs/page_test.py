# SPDX-License-Identifier: MIT
"""The page of a tour: complete without a network, as small as it should be, and its players count what the emulator printed."""

import difflib
import html.parser
import json
import os
import re
import subprocess
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from common.tour.page import gather, write
from tests.docs import browser

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GG_BUILD", ROOT / "build"))
# One that multiplies by mma, and two of which the player shows all blocks.
CHAPTERS = ["03_tensor_cores", "07i_last_round", "08d_two_cta"]
COMPLETE = CHAPTERS[1:]
MOST_BYTES = 5_000_000
VOID = {"meta", "link", "br", "input", "path", "use", "rect", "line", "circle", "polygon", "polyline", "ellipse"}


def make_page(folder):
    """The page of a tour of the chapters, in a folder: a build tree of links."""
    (folder / "bin").symlink_to(BUILD / "bin")
    (folder / "tour").mkdir()
    lines = [{"chapter": name, "idea": f"an idea of {name} & <more>", "check": "passed on the emulator", "instructions": "7.059"}
             for name in CHAPTERS]
    return write.write(folder, lines, "the emulator, as no GPU was found")


class Reader(html.parser.HTMLParser):
    """Elements that are closed in order, all ids, all addresses, and the text of scripts by id."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.addresses, self.headings, self.scripts = [], [], [], [], {}
        self.wrong = []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if "id" in attrs:
            self.ids.append(attrs["id"])
        self.addresses += [attrs[name] for name in ("href", "src", "xlink:href", "action", "srcset", "data") if attrs.get(name)]
        if re.fullmatch(r"h\d", tag):
            self.headings.append(int(tag[1]))
        if tag == "script":
            self.scripts[attrs.get("id", "")] = ""
            self.script = attrs.get("id", "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        if not self.open or self.open[-1] != tag:
            self.wrong.append(f"</{tag}> at line {self.getpos()[0]} ends {self.open[-1:]}")
        else:
            self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[self.script] += data


def printed_by_the_emulator(name):
    """Instructions and waits of each kernel, as a run of gg-emu prints them, without a trace."""
    done = subprocess.run([BUILD / "bin" / "gg-emu", "--multiprocessors", gather.MULTIPROCESSORS, "--order", gather.ORDER, "--report",
                           BUILD / "bin" / name, "--device", "emu", "--set", "smoke", "--bench"], capture_output=True, text=True)
    counts = re.findall(r"(?m)^counts of (.*)\n((?:  .*\n)*)", done.stderr)
    return {kernel: tuple(int((re.search(rf"  {counter} +(\d+)", body) or [0, 0])[1]) for counter in ("instructions", "barrier_waits"))
            for kernel, body in counts}


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        missing = [name for name in [*CHAPTERS, "gg-emu"] if not (BUILD / "bin" / name).is_file()]
        if missing:
            raise unittest.SkipTest(f"not built: {', '.join(missing)}")
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.page = make_page(Path(cls.folder.name))
        cls.text = cls.page.read_text(encoding="utf-8")

    def setUp(self):
        self.reader = Reader()
        self.reader.feed(self.text)
        self.reader.close()


class Written(PageTest):
    def test_elements_close_and_ids_are_unique(self):
        self.assertEqual(self.reader.wrong, [])
        self.assertEqual(self.reader.open, [])
        self.assertEqual(sorted(self.reader.ids), sorted(set(self.reader.ids)))

    def test_needs_nothing_else(self):
        self.assertGreater(len(self.reader.addresses), 10)
        for address in self.reader.addresses:
            self.assertRegex(address, r"^(#[\w-]|data:,$)", "an address outside the page")
            if address.startswith("#"):
                self.assertIn(address[1:], self.reader.ids)
        style = re.search(r"(?s)<style>(.*?)</style>", self.text)[1]
        self.assertNotRegex(style, r"@import|url\((?!#)")
        self.assertNotRegex(self.reader.scripts[""], r"\b(fetch|XMLHttpRequest|WebSocket|import)\s*\(")
        self.assertNotIn(str(ROOT), self.text)
        self.assertNotIn("{{", re.sub(r"(?s)<script.*?</script>", "", self.text))

    def test_is_small(self):
        self.assertLess(len(self.text.encode()), MOST_BYTES)

    def test_headings_go_down_by_one(self):
        self.assertEqual(self.reader.headings[0], 1)
        for above, below in zip(self.reader.headings, self.reader.headings[1:]):
            self.assertLessEqual(below, above + 1)

    def test_questions_and_texts_are_there(self):
        for name in CHAPTERS:
            readme = (ROOT / "chapters" / name / "README.md").read_text(encoding="utf-8")
            question = re.search(r"\*\*(.+?)\*\*", readme.partition("## Question")[2], re.S)[1]
            self.assertIn(gather.as_html(question), self.text)
            picture = re.search(r"(?ms)^```\n(.*?)\n```$", readme.partition("\n## Picture\n")[2])[1]
            self.assertIn(html.escape(picture, quote=False), self.text)
        self.assertNotIn("&lt;!--", self.text)
        self.assertIn("an idea of 03_tensor_cores &amp; &lt;more&gt;", self.text)

    def test_template_files_are_short(self):
        for path in [*write.TEMPLATE.iterdir(), *write.TEMPLATE.parent.glob("*.py")]:
            self.assertLessEqual(len(path.read_text(encoding="utf-8").splitlines()), 400, path.name)

    def test_last_step_counts_what_the_emulator_printed(self):
        for name in CHAPTERS:
            played = json.loads(self.reader.scripts["data-" + name])["player"]
            printed = printed_by_the_emulator(name)
            events = [event for block in played["blocks"] for warp in block["warps"] for event in warp["events"]]
            counted = sum(event[3] for event in events), sum(event[4] for event in events)
            self.assertEqual(tuple(played["printed"].values()), printed[played["kernel"]])
            self.assertEqual(played["complete"], name in COMPLETE)
            if name in COMPLETE:
                self.assertEqual(counted, printed[played["kernel"]])
                self.assertGreater(counted[1], 0)
            else:
                self.assertLess(counted[0], printed[played["kernel"]][0])
            # The others' two blocks are a cluster.
            self.assertEqual(played["apart"], name not in COMPLETE)
            for block in played["blocks"] if name in COMPLETE else []:
                self.assertIn("load", {warp["role"] for warp in block["warps"]})
                rows = [barrier["name"] for barrier in block["barriers"]]
                self.assertEqual(sorted(rows), sorted(set(rows)))
                self.assertIn("empty[0]", rows)
            self.assertEqual({event[0] for event in events}, set(range(len(gather.KINDS))), "a kind of event is missing")

    def test_diffs_make_this_chapter_of_its_predecessor(self):
        for name in CHAPTERS:
            data, about = json.loads(self.reader.scripts["data-" + name]), gather.described(BUILD / "bin" / name)
            before, after = (ROOT / "chapters" / each for each in (about["previous"], name))
            names = {path.name for folder in (before, after) for path in folder.iterdir() if path.suffix in (".cuh", ".cu")}
            same = {each for each in names if (before / each).is_file() and (after / each).is_file()
                    and (before / each).read_bytes() == (after / each).read_bytes()}
            self.assertEqual({file["name"] for file in data["diff"]}, names - same)
            for file in data["diff"]:
                old = (before / file["name"]).read_text().splitlines() if (before / file["name"]).is_file() else []
                new = (after / file["name"]).read_text().splitlines() if (after / file["name"]).is_file() else []
                self.assertEqual(self.applied(old, file["hunks"]), new, file["name"])

    @staticmethod
    def applied(old, hunks):
        result, at = [], 0
        for first, _, rows in hunks:
            result += old[at:first - 1]
            at = first - 1
            for row in rows:
                at += row[0] is not None
                result += [line for line in row[-1:] if line is not None]
        return result + old[at:]


class Incomplete(unittest.TestCase):
    """A chapter that lacks something has a page all the same, which says what is missing."""

    def test_program_that_answers_little(self):
        with tempfile.TemporaryDirectory() as folder:
            build = Path(folder)
            (build / "bin").mkdir()
            (build / "tour").mkdir()
            for name, said in (("x_none", ""), ("x_list", "[1]"), ("x_title", '{"title": "t", "sets": ["smoke"]}')):
                program = build / "bin" / name
                program.write_text(f"#!/bin/sh\necho '{said}'\n")
                program.chmod(0o755)
            line = {"idea": "-", "check": "not run"}
            path = write.write(build, [{"chapter": name, **line} for name in ("x_none", "x_list", "x_title")], "nothing")
            self.assertEqual(path.read_text(encoding="utf-8").count("gg-emu is not built"), 3)

    def test_lines_added_and_removed_without_a_browser(self):
        for before, chapter in (("01_naive", "02_tiled"), ("02_tiled", "01_naive"), ("08k_dependent_launch", "08l_storing_warps")):
            files = gather.diff_of(before, chapter)
            self.assertGreater(len(files), 1)
            said = re.findall(r'<code>(.*?)</code> <span class="plus">\+(\d+)</span> <span class="minus">−(\d+)</span>',
                              write.diff_list({"previous": before, "diff": files}, {}))
            for file, shown in zip(files, said, strict=True):
                self.assertEqual(shown, (file["name"], str(file["added"]), str(file["removed"])))
                old, new = (path.read_text().splitlines() if path.is_file() else []
                            for path in (ROOT / "chapters" / each / file["name"] for each in (before, chapter)))
                kept = len(old) - file["removed"]
                self.assertEqual(len(new) - file["added"], kept, file["name"])
                self.assertEqual(kept, sum(size for *_, size in difflib.SequenceMatcher(None, old, new, False).get_matching_blocks()))


class Lessons(unittest.TestCase):
    def test_parts_of_a_section(self):
        text = ("## Question\n\n**How\nfast?**\n\nA <!-- n: 01.us -->7<!-- /n -->, `a < b` of [a link](x.md):\n\n"
                "```\n  |a|\n\n  <b>\n```\n\n- one\n  line\n- **two**\n\n1. first\n2. then\n\n"
                "| x | y |\n| --- | ---: |\n| 1 | `2` |\n\n![drawn](a.svg)\n\n"
                "```cuda\nint x;\n```\n\n<!-- kernel.cuh idea -->\n\nlast\n\n## Picture\n\nnot here\n")
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(gather, "REPO", Path(folder)):
            path = Path(folder) / "chapters" / "01_new" / "README.md"
            path.parent.mkdir(parents=True)
            path.write_text(text)
            self.assertEqual([gather.part_as_html(part) for part in gather.section_of("01_new", "Question")], [
                '<p class="more"><strong>How fast?</strong></p>', '<p class="more">A 7, <code>a &lt; b</code> of a link:</p>',
                '<pre tabindex="0">  |a|\n\n  &lt;b&gt;</pre>', '<ul class="more"><li>one line</li><li><strong>two</strong></li></ul>',
                '<ol class="more"><li>first</li><li>then</li></ol>', '<div class="scroll"><table><tr><th>x</th><th>y</th></tr>'
                '<tr><td>1</td><td><code>2</code></td></tr></table></div>', "", '<pre tabindex="0">int x;</pre>', "",
                '<p class="more">last</p>'])
            self.assertEqual(gather.section_of("01_new", "Picture"), ["not here\n"])
            self.assertEqual(gather.section_of("01_new", "Measured") + gather.section_of("02_none", "Question"), [])


class Gathered(unittest.TestCase):
    """What gather makes of a made-up trace and report, and write of made-up figures."""

    REPORT = "counts of small\n  instructions   99\n  barrier_waits  1\ncounts of big<1>\n  instructions   500\n  barrier_waits  12\n" \
             "counts of all kernels\n  instructions   599\n"

    @staticmethod
    def trace(*blocks, kept="all"):
        """Of blocks as (launch, kernel, block, events by warp or mbarrier); an event is kind, begin, length and its arguments."""
        events = []
        for pid, (launch, kernel, block, rows) in enumerate(blocks):
            events.append(dict(name="process_name", ph="M", pid=pid, args=dict(name=f"launch {launch}: {kernel}, block {block}")))
            for tid, (row, some) in enumerate(rows.items()):
                events.append(dict(name="thread_name", ph="M", pid=pid, tid=tid, args=dict(name=row)))
                events += [dict(name=name, ph="X", pid=pid, tid=tid, ts=begin, dur=length, args=args) for name, begin, length, args in some]
        return dict(traceEvents=events, otherData=dict(kept=kept))

    def events(self, count, begin=0):
        first = "chapters/07x/load.cuh:32 copy(a, b); called at chapters/07x/kernel.cuh:9 run(); PTX line 7: ld.global.b32 %r1, [%rd1];"
        return [("load", begin + at, 1, dict(instructions=10, again=4, first=first)) for at in range(count)]

    def test_the_player_has_the_largest_kernel_and_its_fullest_blocks(self):
        barrier = "memory.full[0] (mbarrier 0x400)"
        waits = dict(instructions=2, waits=9, first="chapters/07x/wait.cuh:5 wait(); PTX line 8: mbarrier.try_wait", mbarrier=barrier,
                     phase=3)
        rows = {"warp 0": self.events(2, 50), "warp 1": [("wait", 60, 7, waits)], barrier: [("phase", 60, 5, dict(phase=3))]}
        trace = self.trace((1, "small", "0", {"warp 0": self.events(9)}), (2, "big<1>", "0", {"warp 0": self.events(1, 10)}),
                           (2, "big<1>", "1", rows), (2, "big<1>", "2", {"warp 0": self.events(3, 90)}))
        played = gather.player_of(trace, self.REPORT)
        self.assertEqual((played["kernel"], played["printed"]), ("big<1>", {"instructions": 500, "waits": 12}))
        self.assertEqual([block["name"] for block in played["blocks"]], ["block 1", "block 2"])
        self.assertEqual((played["complete"], played["apart"]), (False, False))
        self.assertEqual(played["places"], [["load.cuh:32", "copy(a, b);", "ld.global.b32 %r1, [%rd1];"],
                                            ["wait.cuh:5", "wait();", "mbarrier.try_wait"]])
        first, second = played["blocks"][0]["warps"]
        self.assertEqual((first["role"], first["events"]), ("load", [[1, 50, 1, 6, 0, 0, -1, -1], [1, 51, 1, 6, 0, 0, -1, -1]]))
        self.assertEqual((second["role"], second["events"]), ("wait", [[3, 60, 7, 2, 9, 1, 0, 3]]))
        self.assertEqual(played["blocks"][0]["barriers"], [{"name": "full[0]", "phases": [[3, 60, 65]]}])

    def test_what_is_left_out_is_not_complete(self):
        block = (1, "big<1>", "0", {"warp 0": self.events(1)})
        for kept, complete in (("all", True), ("3 events left out", False), ("cut short", False)):
            self.assertEqual(gather.player_of(self.trace(block, kept=kept), self.REPORT)["complete"], complete)
        both = gather.player_of(self.trace(block, (2, "big<1>", "0", {"warp 0": self.events(1)})), self.REPORT)
        self.assertEqual(([each["name"] for each in both["blocks"]], both["apart"]), (["launch 1, block 0", "launch 2, block 0"], True))
        with self.assertRaises(ValueError):
            gather.player_of(self.trace((1, "small", "0", {"warp 0": self.events(1)})), self.REPORT)

    def test_roles_and_names_of_barriers(self):
        def event(name, *files):
            return dict(name=name, args=dict(first=" called at ".join(f"chapters/07x/{file}.cuh:1 x" for file in files) + " PTX line 1: y"))

        self.assertEqual(gather.role_of([event("mma", "tile", "multiply", "kernel"), event("other", "load"), event("wait", "store")]),
                         "multiply")
        self.assertEqual(gather.role_of([event("wait", "schedule"), event("load", "schedule")]), "schedule")
        self.assertEqual(gather.role_of([event("wait", "schedule"), event("load", "load")]), "load")
        self.assertEqual(gather.role_of([event("load", "schedule"), event("other", "load")]), "")
        self.assertEqual(gather.short_barriers(["a.full[0] (mbarrier 0x1)", "b.full[0] (mbarrier 0x2)", "a.empty[1] (mbarrier 0x3)",
                                                "0x4"]), {
            "a.full[0] (mbarrier 0x1)": "a.full[0]", "b.full[0] (mbarrier 0x2)": "b.full[0]", "a.empty[1] (mbarrier 0x3)": "empty[1]",
            "0x4": "0x4"})

    def test_figures_of_the_first_folder_that_has_them(self):
        svg = '<?xml?><svg xmlns="x"><title>t</title><defs><path id="a"/></defs><use href="#a" style="fill: #24292f"/>' \
              '<g clip-path="url(#a)"/>{}</svg>'
        with tempfile.TemporaryDirectory() as folder:
            own, theirs = Path(folder, "own"), Path(folder, "theirs")
            for path, names in ((own, ("counts",)), (theirs, ("counts", "ladder", "timeline"))):
                path.mkdir()
                for name in names:
                    (path / f"{name}.svg").write_text(svg.format(path.name))
            drawn, dark = write.figures([own, theirs])
        said = "TFLOP/s of each timed chapter on the set prefill", "The ladder without a GPU: what the emulator counts on the set smoke"
        self.assertEqual(re.findall(r"<figcaption>(.*?)</figcaption>.*?aria-label=\"(.*?)\"", drawn), [(each, each) for each in said])
        self.assertEqual([*write.FIGURES.items()][2:], [
            ("roofline", "The same chapters under the roofs of the device"),
            ("peers", "Rate of each library over that of the last Hopper chapter, on the set peers"),
            ("skew", "What uneven groups cost"), ("occupancy", "What a tile of 64, 128 or 256 rows wastes")])
        self.assertEqual(re.findall(r">(own|theirs)</svg>", drawn), ["theirs", "own"])
        for text in ('id="counts-a"', 'href="#counts-a"', "url(#counts-a)", "fill: var(--f24292f,#24292f)"):
            self.assertIn(text, drawn)
        self.assertNotIn("<title>", drawn)
        self.assertIn(f"--f24292f:{write.dark_of('#24292f')};", dark)
        self.assertEqual([write.dark_of(each) for each in ("#000000", "#f3f4f6")], ["#ededed", "#24262a"])


class Tab(unittest.TestCase):
    """With `self.tab`, a browser."""

    @classmethod
    def setUpClass(cls):
        if not browser.find():
            raise unittest.SkipTest("no Chromium is installed")
        super().setUpClass()
        cls.tab = browser.Browser(browser.find())
        cls.addClassCleanup(cls.tab.close)

    def until(self, expression):
        end = time.monotonic() + browser.LIMIT_S
        while not self.tab.value(expression):
            self.assertLess(time.monotonic(), end, f"never true: {expression}")
            time.sleep(0.05)

    def show(self, name):
        self.tab.value(f"document.getElementById('{name}').querySelector('.player').scrollIntoView()")
        self.until(f"players.has('{name}')")

    def texts(self, name, selector):
        """The texts of a chapter's elements."""
        return self.tab.value(f"[...document.getElementById('{name}').querySelectorAll('{selector}')].map((each) => each.textContent)")


class ByHand(Tab):
    """A page of two made-up chapters, of which everything that it shows is known."""

    OLD = ["same", "old 1", "old 2", "kept"] + ["far"] * 9 + ["gone", "end"]
    NEW = ["same", "new 1", "kept"] + ["far"] * 9 + ["end", "more 1", "more 2", "more 3"]
    # Kind (of gather.KINDS), begin, length, instructions, waits, place, mbarrier, phase.
    EVENTS = [[[1, 0, 4, 40, 0, 0, -1, -1], [3, 6, 5, 1, 7, 1, 0, 0], [4, 20, 2, 300, 0, 0, -1, -1]],
              [[2, 3, 2, 1000, 0, 0, -1, -1], [0, 9, 1, 5, 0, 0, -1, -1], [3, 12, 1, 2, 9, 1, 0, 1]]]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        repo = Path(folder.name)
        for name, texts in (("01_old", {"a.cuh": cls.OLD, "gone.cuh": ["1", "2"], "same.cuh": ["x"]}),
                            ("02_new", {"a.cuh": cls.NEW, "made.cuh": ["1"], "same.cuh": ["x"], "README.md": ["z"]})):
            for file, lines in texts.items():
                (repo / "chapters" / name).mkdir(parents=True, exist_ok=True)
                (repo / "chapters" / name / file).write_text("\n".join(lines) + "\n")
        block = {"name": "block 0", "barriers": [{"name": "full[0]", "phases": [[0, 0, 10], [1, 10, 13]]}],
                 "warps": [{"name": f"warp {at}", "role": role, "events": events}
                           for at, (role, events) in enumerate(zip(("load", ""), cls.EVENTS))]}
        played = {"set": "smoke", "kernel": "kernel<1>", "blocks": [block], "apart": False, "complete": True,
                  "places": [["load.cuh:3", "copy();", "ld.global"], ["wait.cuh:4", "wait();", "mbarrier.try_wait"]],
                  "printed": {"instructions": 1348, "waits": 16}}
        with mock.patch.object(gather, "REPO", repo):
            cls.diff = gather.diff_of("01_old", "02_new")
        about = {"title": "t", "question": "q", "text": "", "picture": "", "why": ""}
        chapters = [about | {"id": "01_old", "previous": "", "diff": [], "player": None, "why": "nobody played"},
                    about | {"id": "02_new", "previous": "01_old", "diff": cls.diff, "player": played}]
        lines = [{"chapter": "01_old", "idea": "i & j", "check": "passed", "prefill TFLOP/s": "12.5", "% of roof": "3", "decode us": "77"},
                 {"chapter": "02_new", "idea": "k", "check": "FAILED", "instructions": "8", "global bytes": "9"},
                 {"chapter": "03_none", "idea": "l", "check": "not run", "instructions": "10", "global bytes": "-"}]
        cls.page = repo / "page.html"
        cls.page.write_text(write.page(chapters, lines, [], "a device"), encoding="utf-8")
        cls.tab.open(cls.page, 1200, False)

    def test_the_ladder_has_each_column_of_the_tour(self):
        tables = self.tab.value("[...document.querySelectorAll('main table:not(.counts)')].slice(0, 2).map((table) => [...table.rows].map("
                                "(row) => [...row.cells].map((cell) => cell.textContent + (cell.className === 'number' ? ' #' : ''))))")
        self.assertEqual(tables, [
            [["chapter", "idea", "check", "prefill TFLOP/s #", "% of roof #", "decode us #"],
             ["01_old", "i & j", "passed", "12.5 #", "3 #", "77 #"]],
            [["chapter", "idea", "check", "instructions #", "global bytes #"], ["02_new", "k", "FAILED", "8 #", "9 #"],
             ["03_none", "l", "not run", "10 #", "- #"]]])

    def test_where_it_ran_and_what_it_has(self):
        self.assertIn("2 chapters, each a complete kernel of one new idea, on a device.", self.tab.value("document.body.innerText"))
        links = self.tab.value("[...document.querySelectorAll('li a')].map((each) => [each.textContent, each.getAttribute('href')])")
        self.assertEqual([link for link in links if link[0][0] == "0"], [["01", "#01_old"], ["02", "#02_new"]])

    def test_a_diff_has_its_lines_numbers_and_counts(self):
        self.tab.value("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        self.until("[...document.querySelectorAll('details')].every((each) => each.querySelector('.diff'))")
        self.assertEqual(self.texts("02_new", "summary"), ["a.cuh +4 −3", "gone.cuh +0 −2", "made.cuh +1 −0"])
        rows = self.tab.value("[...document.querySelector('details .diff').children].map((row) => row.className === 'hunk' ? "
                              "row.textContent : [...row.children].map((cell) => [cell.className, cell.textContent]))")
        self.assertEqual([row for row in rows if isinstance(row, str)], ["line 1 there, line 1 here", "line 11 there, line 10 here"])
        both = [row for row in rows if not isinstance(row, str)]
        self.assertEqual([[kind for kind, _ in row] for row in both if row[0][1] in ("2", "14", "")], [
            ["at", "old", "at", "new"], ["at", "old", "at gap-at", "gap"], *[["at gap-at", "gap", "at", "new"]] * 3])
        for at, text in ((0, 1), (2, 3)):  # the numbers are those of the lines beside them
            for row, lines in ((row, (self.OLD, self.NEW)[at // 2]) for row in both):
                self.assertEqual(row[text][1], lines[int(row[at][1]) - 1] if row[at][1] else "")
        shown = [[(row[at][1], row[text][1]) for row in both if row[at][1]] for at, text in ((0, 1), (2, 3))]
        self.assertEqual([line for _, line in shown[0]], self.OLD[:6] + self.OLD[10:])
        self.assertEqual([line for _, line in shown[1]], self.NEW[:5] + self.NEW[9:])

    def test_the_counts_of_each_kind_up_to_a_step(self):
        self.show("02_new")
        events = sorted((event[1], event) for warp in self.EVENTS for event in warp)
        for step in (1, 4, 6):
            self.tab.value(f"players.get('02_new').go({step - 1})")
            there = {kind: [0, 0, 0] for kind in ("load", "mma", "wait", "epilogue", "other")}
            for _, event in events[:step]:
                cells = there[gather.KINDS[event[0]]]
                cells[:] = cells[0] + 1, cells[1] + event[3], cells[2] + event[4]
            words = ["Load", "Multiply", "Wait", "Store", "Other"]
            rows = self.tab.value("[...document.querySelectorAll('.counts tr')]"
                                  ".map((row) => [...row.cells].map((cell) => cell.textContent))")
            self.assertEqual(rows[0], ["Up to this step", "events", "instructions", "waits"])
            plain = [[row[0], *(int(re.sub(r"\D", "", cell)) for cell in row[1:])] for row in rows[1:]]
            self.assertEqual(plain, [[word, *cells] for word, cells in zip(words, there.values())]
                             + [["Together", *map(sum, zip(*there.values()))]])
        self.assertEqual(rows[-1], ["Together", "6", "1\u202f348", "16"])

    def test_what_is_said_of_a_step(self):
        self.show("02_new")
        for step, said in ((1, "Step 1 of 6, at issue 0. block 0, warp 0 (load) loads: 40 instructions.load.cuh:3 copy(); ld.global"),
                           (2, "Step 2 of 6, at issue 3. block 0, warp 1 multiplies: 1\u202f000 instructions."),
                           (3, "Step 3 of 6, at issue 6. block 0, warp 0 (load) waits at full[0] for the end of phase 0, while the others "
                               "issue 4 instructions."), (4, "Step 4 of 6, at issue 9. block 0, warp 1 does other work: 5 instructions."),
                           (6, "Step 6 of 6, at issue 20. block 0, warp 0 (load) stores: 300 instructions.")):
            self.tab.value(f"players.get('02_new').go({step - 1})")
            self.assertTrue(self.texts("02_new", ".now")[0].startswith(said), self.texts("02_new", ".now"))
        self.assertEqual(self.texts("02_new", ".verdict"),
                         ["The emulator printed 1\u202f348 instructions and 16 waits for the kernel: the same as here."])
        self.tab.value("players.get('02_new').data.printed.waits = 17; players.get('02_new').go(5)")
        self.assertTrue(self.texts("02_new", ".verdict")[0].endswith("17 waits for the kernel: not what is here."))
        self.tab.value("players.get('02_new').data.printed.waits = 16")
        self.assertEqual(self.tab.value("document.getElementById('01_old').textContent.includes('They are not shown: nobody played.')"),
                         True)
        self.assertEqual(self.tab.errors, [])


class InABrowser(Tab, PageTest):
    def each_look(self):
        for width in (400, 1600):
            for dark in (False, True):
                self.tab.open(self.page, width, dark)
                yield width, dark
                self.assertEqual(self.tab.errors, [], f"{width} pixels, dark: {dark}")

    def counts(self, name):
        return tuple(int(re.sub(r"\D", "", cell)) for cell in self.texts(name, ".counts tfoot td")[2:])

    def step(self, name):
        return int(re.sub(r"\D", "", re.match(r"Step (.*) of", self.texts(name, ".now")[0])[1]))

    def test_last_step_shows_what_the_emulator_printed(self):
        for _ in self.each_look():
            for name in COMPLETE:
                self.show(name)
                self.tab.value(f"document.getElementById('{name}').querySelector('.stage').focus()")
                self.tab.press("Home")
                self.assertEqual(self.step(name), 1)
                first = self.counts(name)
                self.tab.press("End")
                self.assertIn(self.counts(name), printed_by_the_emulator(name).values())
                self.assertLess(first[0], self.counts(name)[0])
                self.assertTrue(self.tab.value(f"document.getElementById('{name}').querySelector('.verdict').textContent")
                                .endswith("the same as here."))

    def test_keys_and_buttons_step_both_ways(self):
        for _ in self.each_look():
            name = CHAPTERS[1]
            self.show(name)
            stage = f"document.getElementById('{name}').querySelector('.stage')"
            self.tab.value(f"{stage}.focus()")
            self.tab.press("Home")
            for _ in range(3):
                self.tab.press("ArrowRight")
            self.tab.press("ArrowLeft")
            self.assertEqual(self.step(name), 3)
            for act, wanted in (("on", 4), ("back", 3), ("first", 1), ("back", 1)):
                self.tab.value(f"{stage}.parentElement.querySelector('[data-act={act}]').click()")
                self.assertEqual(self.step(name), wanted)
            whole = self.tab.value(f"players.get('{name}').span().length")
            self.tab.press("+")
            self.assertEqual(self.tab.value(f"players.get('{name}').span().length"), whole / 2)

    def test_nothing_is_wider_than_the_window(self):
        for width, _ in self.each_look():
            for name in CHAPTERS:
                self.show(name)
            self.tab.value("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
            self.until("[...document.querySelectorAll('details')].every((each) => each.querySelector('.diff'))")
            self.assertEqual(self.tab.value("document.documentElement.scrollWidth"), width)
            outside = self.tab.value("[...document.querySelectorAll("
                                     "'main :is(p, h2, h3, h4, button, .stage, .diff, .grid, .counts, input)')]"
                                     ".filter((each) => each.getBoundingClientRect().right > innerWidth).length")
            self.assertEqual(outside, 0)
            clipped = self.tab.value("[...document.querySelectorAll('.diff .row > *, .grid button, .grid span, .controls button')]"
                                     ".filter((each) => each.scrollWidth > each.clientWidth + 1).map((each) => each.textContent)")
            self.assertEqual(clipped, [])
            flat = self.tab.value("[...document.querySelectorAll('main :is(button, .stage, canvas)')]"
                                  ".filter((each) => each.getBoundingClientRect().height < 12).length")
            self.assertEqual(flat, 0, "something has no height")

    def test_text_can_be_read_in_both_modes(self):
        for _ in self.each_look():
            low = self.tab.value(CONTRAST)
            self.assertEqual(low, [])

    def test_addresses_of_both_layouts_by_keyboard(self):
        for _ in self.each_look():
            self.tab.value("document.querySelector('[data-grid=tile] [tabindex=\"0\"]').focus()")
            for key in ("ArrowUp", "ArrowUp", "ArrowLeft"):
                self.tab.press(key)
            # 128 + 16 (4 xor 1).
            self.assertIn("Row 1, unit 4 (k 32 to 39) lies at byte 0x0d0 (208)", self.said("swizzle"))
            self.tab.value("document.querySelector('[data-grid=memory]').querySelectorAll('button')[8 * 7].click()")
            self.assertIn("Row 7, unit 7 (k 56 to 63) lies at byte 0x380", self.said("swizzle"))
            self.tab.value("document.querySelector('[data-grid=scales] [tabindex=\"0\"]').focus()")
            self.tab.press("ArrowDown")
            self.tab.press("ArrowRight")
            # 16 * 6 + 4 * 1 + 3.
            self.assertIn("row 38 and block 3 lies at byte 0x067 (103)", self.said("scales"))
            self.tab.value("(() => { const row = document.getElementById('scale-row'); row.value = 165;"
                           "row.dispatchEvent(new Event('input')); })()")
            self.assertIn("of atom 2", self.said("scales"))  # eight blocks are two atoms along K
            self.assertIn("byte 0x457 (1111)", self.said("scales"))  # 2 * 512 + 16 * 5 + 4 * 1 + 3

    def said(self, name):
        return self.tab.value(f"document.querySelector('#{name} .answer').textContent")


# Texts whose colour stands out from what is behind them by less than 4.5 to 1, as WCAG
# 2 computes it.
CONTRAST = r"""(() => {
  const parts = (text) => text.match(/[\d.]+/g).map(Number);
  const light = (rgb) => rgb.slice(0, 3).map((c) => c / 255).map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (each) => {
    for (; each; each = each.parentElement) {
      const colour = parts(getComputedStyle(each).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const low = new Set();
  for (const each of document.querySelectorAll('body :is(p, h1, h2, h3, h4, a, li, td, th, code, kbd, button, span, figcaption, label)')) {
    if (!each.textContent.trim() || each.matches('.skip') || each.closest('svg')) continue;
    const [a, b] = [light(parts(getComputedStyle(each).color)), light(behind(each))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) low.add(each.tagName + ': ' + each.textContent.trim().slice(0, 30));
  }
  return [...low];
})()"""


if __name__ == "__main__":
    unittest.main(verbosity=2)
