# SPDX-License-Identifier: MIT
"""The rows of each group in the shape sets, as chapters.json has them."""

from functools import cache

from plots.measure.chapters import COMMITTED, REPO, contents
from plots.measure.files import Shape


@cache
def problems() -> dict[str, list[tuple[list[int], int, int]]]:
    """Each set's problems in its order: rows of the groups, N, K. A set whose groups have N and K of their own is not among them."""
    return {name: [(each["m"], each["n"][0], each["k"][0]) for each in some if len(each["n"]) == len(each["k"]) == 1]
            for name, some in contents(REPO / COMMITTED)["sets"].items()}


def rows_of(name: str, shape: Shape) -> list[int] | None:
    """The rows of a set's problem of this shape; None: the set has no such problem. Sizes of one's own are those of equal groups."""
    groups, m_total, m_max = shape[:3]
    if name == "own":
        return [m_max] * groups if groups * m_max == m_total else None
    return next((rows for rows, *sizes in problems().get(name, []) if (len(rows), sum(rows), max(rows), *sizes) == shape), None)
