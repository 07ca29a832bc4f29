# SPDX-License-Identifier: MIT
"""What chapters.json says of the chapters and of the shape sets: nothing has to be built. describe.py writes it."""

import json
from dataclasses import dataclass
from pathlib import Path

from plots.measure.files import BadData

REPO = Path(__file__).resolve().parents[2]
COMMITTED = Path("chapters", "chapters.json")  # below the repository's root

# Type, elements that share a scale, type of the scale: common/kernel/block_scales.h.
BLOCK_FORMATS = {("e4m3", 32, "ue8m0"): "mxfp8", ("e5m2", 32, "ue8m0"): "mxfp8_e5m2", ("e2m1", 32, "ue8m0"): "mxfp4",
                 ("e2m1", 16, "ue4m3"): "nvfp4", ("e2m1", 16, "ue8m0"): "fp4_ue8m0_16"}


@dataclass(frozen=True)
class Chapter:
    """A chapter as tables and figures want it."""
    id: str
    title: str
    part: str       # of the course
    arch: str       # sm_90a
    previous: str   # the chapter that it changes an idea of; "" of the first
    folder: Path
    format: str     # of A and B unless an option says otherwise, as column `format` has it
    d: str          # f32 where D has that type by default and the inputs have another; else ""
    # The default as column `kernel` has it, 256x256 2x1; "" where the chapter chooses
    tile: str
    pads: bool      # sets' groups are rounded up to rows of whole tiles
    operator: str   # of its epilogue; "" of a product
    product: str    # "weight_gradient", or "" of A B
    sets: tuple[str, ...]

    @property
    def readme(self) -> Path:
        return self.folder / "README.md"

    @property
    def gated(self) -> bool:
        """Do two columns of B make one of D?"""
        return self.operator in ("glu", "glu_hadamard")


def chapter_of(about: dict, folder: Path) -> Chapter:
    """A chapter of what its program says by --describe."""
    first, limits = about["formats"][0], about["limits"]
    scaled = "element" in first
    tiles = [] if about["chooses_tile"] else about["tile_clusters"]
    tile, _, cluster = tiles[0].partition(" with ") if tiles else ("", "", "")
    in_clusters = any(not each.endswith("1x1") for each in tiles)
    return Chapter(
        id=about["id"], title=about["title"], part=about["part"], arch=f"sm_{about['arch']}", previous=about["previous"], folder=folder,
        format=BLOCK_FORMATS[first["element"], first["block"], first["scale"]] if scaled else first["in"],
        d="f32" if first["d"] == "f32" != first["in"] and not scaled else "",
        tile=f"{tile} {cluster}" if in_clusters else tile, pads=limits["m_multiple"] > 1 and not limits["equal_groups"],
        operator=about.get("epilogue", {}).get("operator", ""), product=about.get("product", ""), sets=tuple(about["sets"]))


def contents(path: Path) -> dict:
    """A chapters.json. Raises BadData."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadData(f"{path}: cannot be read: {error}") from error


def read_chapters(repo: Path, file: Path | None = None) -> list[Chapter]:
    """The chapters in order of reading. `file`: another chapters.json than the committed one."""
    described = contents(file or Path(repo, COMMITTED))["chapters"]
    return [chapter_of(about, Path(repo, "chapters", about["id"])) for about in described]
