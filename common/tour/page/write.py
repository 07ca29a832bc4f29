# SPDX-License-Identifier: MIT
"""Writes the page of a tour: one file of HTML that needs nothing else. tour.py calls `write`."""

import colorsys
import html
import json
import re
from pathlib import Path

from . import gather

TEMPLATE = Path(__file__).resolve().parent / "template"
SCRIPTS = ["player.js", "diff.js", "layouts.js", "start.js"]
FIGURES = {  # names of figures, and what is said above each
    "ladder": "TFLOP/s of each timed chapter on the set prefill",
    "counts": "The ladder without a GPU: what the emulator counts on the set smoke",
    "roofline": "The same chapters under the roofs of the device",
    "peers": "Rate of each library over that of the last Hopper chapter, on the set peers",
    "skew": "What uneven groups cost",
    "occupancy": "What a tile of 64, 128 or 256 rows wastes"}
WORDS = [("load", "Load"), ("mma", "Multiply"), ("wait", "Wait"), ("epilogue", "Store"), ("other", "Other")]


def dark_of(colour: str) -> str:
    """The colour that stands on dark paper for #rrggbb on white: the same hue, its lightness turned round."""
    red, green, blue = (int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5))
    hue, light, strong = colorsys.rgb_to_hls(red, green, blue)
    if strong < 0.25 or light > 0.8:
        light, strong = 0.93 - 0.81 * light, strong / 2
    else:
        light, strong = min(0.68, max(0.56, 0.9 - 0.8 * light)), 0.65 * strong
    return "#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hls_to_rgb(hue, light, strong))


def inline_figure(name: str, text: str) -> str:
    """An SVG file as a part of the page: names of its own, and a variable in place of each colour."""
    text = text[text.index("<svg"):]
    text = re.sub(r"(?s)<metadata>.*?</metadata>|<title>.*?</title>", "", text)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", text)
    text = re.sub(r"(?s)<style[^>]*>.*?</style>", "", text)
    text = re.sub(r"\n\s*", " ", text)
    text = re.sub(r"#[0-9a-f]{6}\b(?=[;\"])", lambda found: f"var(--f{found[0][1:]},{found[0]})", text)
    return re.sub(r"<svg ", f'<svg role="img" aria-label="{html.escape(FIGURES[name])}" ', text, count=1)


def figures(folders: list[Path]) -> tuple[str, str]:
    """The figures of the first folder that has each, as HTML, and the rules that make them dark."""
    parts, colours = [], set()
    for name, said in FIGURES.items():
        path = next((folder / f"{name}.svg" for folder in folders if (folder / f"{name}.svg").is_file()), None)
        if path:
            drawn = inline_figure(name, path.read_text(encoding="utf-8"))
            colours |= set(re.findall(r"var\(--f([0-9a-f]{6})", drawn))
            parts.append(f'<figure><figcaption>{said}</figcaption><div class="figure" tabindex="0" role="group" '
                         f'aria-label="{html.escape(said)}">{drawn}</div></figure>')
    dark = "".join(f"--f{colour}:{dark_of('#' + colour)};" for colour in sorted(colours - {"ffffff"})) + "--fffffff:var(--card)"
    return "\n".join(parts), "@media (prefers-color-scheme: dark) { .figure { " + dark + " } }"


def ladder(lines: list[dict[str, str]]) -> str:
    """The tour's table: chapters on a GPU and on the emulator have other columns, so there are one or two tables."""
    tables = {}
    for line in lines:
        tables.setdefault(tuple(line), []).append(line)
    parts = []
    for columns, rows in tables.items():
        css = ["", "", "", *[' class="number"'] * (len(columns) - 3)]
        head = "".join(f"<th{kind}>{html.escape(column)}</th>" for column, kind in zip(columns, css))
        body = []
        for row in rows:
            cells = [html.escape(row[column]) for column in columns]
            cells[0] = f'<a href="#{cells[0]}">{cells[0]}</a>'
            body.append("<tr>" + "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(cells, css)) + "</tr>")
        parts.append('<div class="scroll" tabindex="0" role="group" aria-label="The ladder as a table"><table><thead><tr>'
                     f'{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div>')
        if "instructions" in columns:
            parts.append("<p>Counts are those of the set <code>smoke</code> on the emulator, for 1000 useful FLOP: instructions of "
                         "warps, bytes and 32-byte sectors of global memory, wavefronts of shared memory that bank conflicts cost.</p>")
    return "\n".join(parts)


def diff_list(about: dict, here: set[str]) -> str:
    """The files that a chapter changes, closed; the script fills them in. A predecessor that is `here` is a link."""
    if not about["previous"]:
        return "<p>This chapter is the first: it has no predecessor.</p>"
    files = []
    for index, file in enumerate(about["diff"]):
        files.append(f'<details data-file="{index}"><summary><code>{html.escape(file["name"])}</code> '
                     f'<span class="plus">+{file["added"]}</span> <span class="minus">−{file["removed"]}</span></summary></details>')
    before = html.escape(about["previous"])
    link = f'<a href="#{before}">{before}</a>' if before in here else before
    return f"<h4>What changes against {link}</h4>" + "".join(files)


def player_of(about: dict) -> str:
    """The player's controls and its place, or why there is none."""
    if not about["player"]:
        return f"<h4>Its warps</h4><p>They are not shown: {html.escape(about['why'])}.</p>"
    played = about["player"]
    legend = "".join(f'<li><i style="background:var(--{kind})"></i>{word}</li>' for kind, word in WORDS)
    rows = "".join(f'<tr data-kind="{kind}"><td>{word}</td>' + '<td class="number"></td>' * 3 + "</tr>" for kind, word in WORDS)
    acts = [("first", "First"), ("back", "◀ Back"), ("on", "Forward ▶"), ("last", "Last"), ("play", "Play"), ("wider", "−"),
            ("closer", "+")]
    said = {"wider": ' aria-label="Zoom out"', "closer": ' aria-label="Zoom in"'}
    buttons = "".join(f'<button type="button" data-act="{act}"{said.get(act, "")}>{word}</button>' for act, word in acts)
    names = ", ".join(block["name"] for block in played["blocks"])
    apart = " Each block counts its own instructions: what stands below one another did not happen at once." if played["apart"] else ""
    if any(block["barriers"] for block in played["blocks"]):
        legend += ('<li><i style="background:var(--even)"></i>even phase of an mbarrier</li>'
                   '<li><i style="background:var(--odd)"></i>odd phase</li>')
    return f"""<h4>Its warps</h4>
<div class="player" role="group" aria-label="Player of {about['id']}">
<p class="more">The set <code>{played['set']}</code>, {html.escape(names)} of <code>{html.escape(played['kernel'])}</code>.{apart}</p>
<ul class="legend">{legend}</ul>
<div class="stage" tabindex="0" role="img" aria-label="Lanes of warps in issue order; arrow keys step"><canvas></canvas></div>
<div class="controls">{buttons}<input type="range" min="0" value="0" aria-label="Step"></div>
<p class="now"></p>
<div class="scroll"><table class="counts"><thead><tr><th>Up to this step</th><th class="number">events</th>
<th class="number">instructions</th><th class="number">waits</th></tr></thead><tbody>{rows}</tbody>
<tfoot><tr><td>Together</td><td class="number"></td><td class="number"></td><td class="number"></td></tr></tfoot></table></div>
<p class="verdict"></p>
</div>"""


def article(about: dict, here: set[str]) -> str:
    """A chapter's part of the page; `here` are the names of all that it shows."""
    question = f'<p class="question">{about["question"]}</p>{about["text"]}' if about["question"] else ""
    picture = f'<h4>Its picture</h4>{about["picture"]}' if about["picture"] else ""
    return (f'<article class="card chapter" id="{about["id"]}" aria-labelledby="{about["id"]}-title">'
            f'<h3 id="{about["id"]}-title">{about["id"]}</h3><p class="idea">{html.escape(about["title"])}</p>'
            f"{question}{picture}{diff_list(about, here)}{player_of(about)}"
            f'<p class="more">The lesson: <code>chapters/{about["id"]}/README.md</code></p></article>')


def data_of(about: dict) -> str:
    """What the script reads of a chapter: JSON that cannot end its element."""
    text = json.dumps({"diff": about["diff"], "player": about["player"]}, separators=(",", ":"), ensure_ascii=False)
    return f'<script type="application/json" id="data-{about["id"]}">{text.replace("<", chr(92) + "u003c")}</script>'


def page(chapters: list[dict], lines: list[dict[str, str]], folders: list[Path], where: str) -> str:
    """The whole page, from what `gather` found, the tour's lines, folders of figures, and the device's name."""
    drawn, dark = figures(folders)
    known = {each["id"] for each in chapters}
    filled = {"css": (TEMPLATE / "page.css").read_text(encoding="utf-8") + dark,
              "js": "\n".join((TEMPLATE / name).read_text(encoding="utf-8") for name in SCRIPTS),
              "lead": f"{len(chapters)} chapters, each a complete kernel of one new idea, on {html.escape(where)}.",
              "contents": "".join(f'<li><a href="#{each["id"]}">{each["id"].split("_")[0]}</a></li>' for each in chapters),
              "ladder": ladder(lines), "figures": drawn, "chapters": "\n".join(article(each, known) for each in chapters),
              "command": f"build/bin/gg-emu --multiprocessors {gather.MULTIPROCESSORS} --order {gather.ORDER} --trace trace.json "
                         "build/bin/08d_two_cta --device emu --set smoke --bench",
              "foot": "Written by common/tour/tour.py. Traces are the emulator's: counts and orders, never times.",
              "data": "\n".join(map(data_of, chapters))}
    template = (TEMPLATE / "index.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: filled[found[1]], template)


def write(build: Path, lines: list[dict[str, str]], where: str) -> Path:
    """Writes build/tour/index.html for the chapters of a tour's lines and returns its path."""
    chapters = [gather.chapter(build, line["chapter"]) for line in lines]
    folders = [build / "tour" / "figures", gather.REPO / "plots" / "figures"]
    path, beside = build / "tour" / "index.html", build / "tour" / "index.html.part"
    beside.write_text(page(chapters, lines, folders, where), encoding="utf-8")
    beside.replace(path)
    return path
