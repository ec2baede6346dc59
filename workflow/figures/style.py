"""The style of all figures: colours, fonts, and how they are saved.

SVG without a date and with fixed identifiers, so that the same records give the same bytes. One
colour stands for one precision in every figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from argand import PRECISIONS
from argand.precision import EXACT_PRECISIONS
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from workflow.storage.failures import writing
from workflow.storage.run_folder import result_path

# Okabe and Ito's palette, distinct under every common colour blindness; yellow is left to the
# last because it is weak on white.
_PALETTE = (
    "#000000", "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442",
)  # fmt: skip
_FEW_MODULI, _MANY_MODULI = "#F0E442", "#4A4500"
COLOURS = dict(zip(PRECISIONS, _PALETTE, strict=False))
"""The colour of every precision that all operations have."""


def colours_of(names: Iterable[str]) -> dict[str, str]:
    """Return the colours of precisions, in the order of legends.

    Exact integers have shades of the palette's yellow, darker with the number of moduli.
    """
    found = set(names)
    counts = [row.moduli for row in EXACT_PRECISIONS.values()]
    most, least = max(counts), min(counts)
    first, last = (np.array(to_rgb(x)) for x in (_FEW_MODULI, _MANY_MODULI))
    colours = {name: colour for name, colour in COLOURS.items() if name in found}
    for name, row in EXACT_PRECISIONS.items():
        if name in found:
            share = (row.moduli - least) / (most - least)
            colours[name] = to_hex(first + share * (last - first))
    return colours


def colour_of(name: str) -> str:
    """Return the colour of a precision."""
    return colours_of([name])[name]


STYLE: Any = {
    "svg.hashsalt": "argand",
    "svg.fonttype": "path",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "hatch.linewidth": 0.7,
    "figure.dpi": 100,
}


def marker_key(marker: str, *, filled: bool = True) -> Line2D:
    """Return a legend's handle for a marker of any colour."""
    return Line2D(
        [], [], marker=marker, linestyle="none", color="#777777", markersize=8,
        markerfacecolor="#777777" if filled else "white",
    )  # fmt: skip


def new_axes(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure, sizes in inches, that keeps its labels apart, and its axes."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def save(path: Path, draw: Callable[[], Figure]) -> None:
    """Draw in the style of all figures and write the SVG atomically."""
    with mpl.rc_context(), result_path(path) as temporary:
        mpl.rcdefaults()  # whatever the user's matplotlibrc says
        mpl.rcParams.update(STYLE)
        figure = draw()
        with writing(temporary):
            figure.savefig(temporary, format="svg", metadata={"Date": None})
