"""What all figures share: colours, style, and how they are saved.

SVG without a date and with fixed identifiers, so that the same records give the same bytes. One
colour stands for one precision in every figure.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from argand import PRECISIONS
from argand.precision import EXACT_PRECISIONS
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from workflow.storage.failures import writing
from workflow.storage.run_folder import result_path

# Okabe and Ito's palette, told apart with every common colour blindness; yellow is left to the
# last because it is weak on white.
_PALETTE = (
    "#000000", "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442",
)  # fmt: skip
_EXACT_COLOURS = ("#004D40", "#00897B", "#4DB6AC")
"""Shades of one colour for exact integers, whose names tell them apart."""
COLOURS = dict(zip(PRECISIONS, _PALETTE, strict=False)) | {
    name: _EXACT_COLOURS[place % len(_EXACT_COLOURS)] for place, name in enumerate(EXACT_PRECISIONS)
}
"""The colour of every precision."""
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
    """What a legend shows for a marker of any colour."""
    return Line2D(
        [], [], marker=marker, linestyle="none", color="#777777", markersize=8,
        markerfacecolor="#777777" if filled else "white",
    )  # fmt: skip


def new_axes(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure of so many inches that keeps its labels apart, and its axes."""
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
