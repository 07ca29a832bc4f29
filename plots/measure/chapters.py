# SPDX-License-Identifier: MIT
"""What main.cu says of each chapter: none has to be built."""

import re
from pathlib import Path
from types import SimpleNamespace

# Type, elements that share a scale, type of the scale: common/base/block_scales.h.
BLOCK_FORMATS = {("e4m3", "32", "ue8m0"): "mxfp8", ("e5m2", "32", "ue8m0"): "mxfp8_e5m2",
                 ("e2m1", "32", "ue8m0"): "mxfp4", ("e2m1", "16", "ue4m3"): "nvfp4",
                 ("e2m1", "16", "ue8m0"): "fp4_ue8m0_16"}


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
            gated="Operator::glu" in text,  # two columns of B make one of D
            operator=field("op", r"gg::Operator::(\w+)"),  # "": a product
            sets=re.findall(r'"(\w+)"', field("sets", r"\{([^}]*)\}")),
            # The first is the default, unless the chapter chooses for each problem; as
            # in column `kernel`.
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
