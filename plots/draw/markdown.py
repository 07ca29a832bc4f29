# SPDX-License-Identifier: MIT
"""Numbers and tables as Markdown has them."""

from plots.measure.files import Row

NONE = "–"


def digits(number: float, count: int = 3) -> str:
    """A number with so many digits, or with all that stand before the point."""
    return f"{number:.0f}" if number >= 10 ** (count - 1) else f"{number:#.{count}g}".rstrip(".")


def cell(row: Row | None, column: str) -> str:
    """A number as a reader wants it, `failed` where the check failed, a dash where nothing was measured."""
    if row and not row.ok:
        return "failed"
    if column == "% of roof":
        number = row and row.roof_tflops and 100 * row.tflops / row.roof_tflops
        return NONE if not number else f"{number:.0f} %" if number >= 10 else f"{number:.2g} %"
    number = row and getattr(row, column)
    return NONE if not number else digits(number)


def table(head: list[str], texts: int, rows: list[list[str]]) -> str:
    """A Markdown table; its first `texts` columns are text, the others numbers."""
    rule = ["---" if i < texts else "---:" for i in range(len(head))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, rule, *rows])


def peer_and_version(row: Row) -> str:
    """A library's row as peer and version."""
    return f"{row.peer} ({row.version})".replace(" ()", "")
