# SPDX-License-Identifier: MIT
"""The tables of a layer's training step, chapter 10c, and the figure of finite differences."""

import math
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from plots.draw.canvas import DARK, NoData, canvas, label_ends
from plots.draw.markdown import NONE, digits, table
from plots.draw.results import Data
from plots.measure.files import DATA, LayerTime, read_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDER = Path("chapters", "10c_layer")
WHOLE = "forward and backward"
SEVERAL = ["forward", "backward", WHOLE, "step"]
# Dashed: the loss is of second degree in it, so a central difference has rounding errors alone.
LINES = {"dW1": ("#1b6ca8", "-"), "dtokens": ("#c1554d", "-"), "dbias": ("#5b8c3a", "-"), "dW2": (DARK, "--"),
         "dprob": ("#8a6bbf", "--")}
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def times(repo: Path) -> dict[str, dict[str, LayerTime]]:
    """The newest time of each launch: by layer, in the order of the file."""
    found = {}
    for row in sorted(read_table(repo / DATA, LayerTime), key=lambda row: row.date):
        found.setdefault(row.layer, {})[row.launch] = row
    return found


def signed(text: str, layers: dict[str, dict[str, LayerTime]]) -> str:
    rows = [row for launches in layers.values() for row in launches.values()]

    def several(values):
        return ", ".join(dict.fromkeys(value for value in values if value))

    clocks = sorted(float(row.clock_mhz) for row in rows if row.clock_mhz)
    clock = f" at {clocks[0]:.0f} to {clocks[-1]:.0f} MHz" if clocks else ""
    return (f"{text}\n\n{several(row.device for row in rows)}{clock}, {several(row.date for row in rows)}, commit "
            f"{several(row.commit for row in rows)}; {several(row.version for row in rows)}.")


def summary(layers: dict[str, dict[str, LayerTime]]) -> str:
    """A step without its update beside PyTorch's, for a README."""
    if not layers:
        return "Nothing is timed yet."

    def over(launches, name):
        row, ours = launches.get(name), launches[WHOLE]
        return f"{digits(row.us_median / 1000)} ms, {row.us_median / ours.us_median:.2f}×" if row else NONE

    def products(launches):
        some = [row for name, row in launches.items() if row.tflops and name not in SEVERAL and "PyTorch" not in name]
        return digits(sum(row.us_median for row in some) / 1000) + " ms"

    lines = [("forward and backward", lambda some: f"**{digits(some[WHOLE].us_median / 1000)} ms**, {some[WHOLE].launches:.0f} kernels"),
             ("rate", lambda some: f"{float(some[WHOLE].tflops):.0f} TFLOP/s"),
             ("its six products, each timed alone", products),
             ("the update", lambda some: digits((some["update W1"].us_median + some["update W2"].us_median) / 1000) + " ms"),
             ("PyTorch as it comes", lambda some: over(some, f"PyTorch eager: {WHOLE}")),
             ("PyTorch with `torch.compile`", lambda some: over(some, f"PyTorch compiled: {WHOLE}"))]
    head = ["", *(f"`{name}`" for name in layers)]
    return signed(table(head, 1, [[name, *(cell(some) for some in layers.values())] for name, cell in lines]), layers)


def results_page(repo: Path) -> str:
    """The chapter's results.md: every launch of every layer."""
    layers = times(repo)
    text = ["<!-- SPDX-License-Identifier: MIT -->", f"# Results of {FOLDER.name}", "",
            "Written by `cmake --build build --target publish` from `plots/measure/data`. The [README](README.md) says what "
            "they mean.", ""]
    for name, launches in layers.items():
        rows = [[launch, digits(row.us_median), f"{digits(row.us_p10)} to {digits(row.us_p90)}",
                 digits(float(row.tflops)) if row.tflops else NONE, digits(float(row.bytes) / 1e6) if row.bytes else NONE,
                 digits(float(row.bytes) / row.us_median / 1e3) if row.bytes else NONE, f"{row.launches:.0f}"]
                for launch, row in launches.items()]
        head = ["launch", "µs", "p10 to p90", "TFLOP/s", "MB", "GB/s", "kernels"]
        text += [f"## {name}", "", signed(table(head, 1, rows), {name: launches}), ""]
    return "\n".join(text if layers else [*text, "Nothing is timed yet.", ""])


def differences(plt: ModuleType, data: Data) -> tuple["Figure", str]:
    """How far finite differences are off the gradients."""
    rows = data.differences
    if not rows:
        raise NoData("no file has a layer's finite differences")
    fig, ax = canvas(plt, "Finite differences beside the gradients of a layer",
                     "how far a central difference of step h is off, as a part of the gradient's length; all in double",
                     width=8, right=110)
    ends = []
    for name, (ink, dash) in LINES.items():
        some = sorted((row.h, row.off) for row in rows if row.gradient == name and row.off > 0)
        ax.plot([h for h, _ in some], [off for _, off in some], color=ink, ls=dash, lw=1.6)
        ends.append((*some[-1], name, ink))
    ax.set(xlabel="h", ylim=(1e-15, 10))
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    # Versions of matplotlib write powers, and choose ticks between them, in ways of their own.
    for axis, base, powers in (ax.xaxis, 2.0, range(-30, 0, 4)), (ax.yaxis, 10.0, range(-15, 2, 3)):
        axis.set_ticks([base ** power for power in powers], [f"{base:.0f}{str(power).translate(RAISED)}" for power in powers])
    ax.minorticks_off()
    steps = [2.0 ** power for power in range(-14, -1)]
    first = max(row.off for row in rows if row.gradient == "dW1" and math.isclose(row.h, steps[0], rel_tol=1e-3))
    ax.plot(steps, [3 * first * (h / steps[0]) ** 2 for h in steps], color=DARK, ls=":", lw=1)
    ax.annotate("h²", (steps[4], 3 * first * (steps[4] / steps[0]) ** 2), xytext=(-6, 8), textcoords="offset points", color=DARK)
    fig.canvas.draw()
    label_ends(ax, ends)
    return fig, "chapter 10c's reference, --differences of build/bin/10c_layer; no GPU is in it"
