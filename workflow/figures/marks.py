"""Parts of all figures of records: a marker for each peer, exact results, axes, the legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator

from benchmarks.peers import study_names
from workflow.figures.style import colours_of
from workflow.implementation import OURS
from workflow.records import Record

MARKERS = ("s", "^", "D", "v", "P", "X", "<", ">", "p", "h")
"""Markers of the peers; ours is a circle."""
EXACT = 1e-17
"""The place of an error of 0 on a log axis: below half a unit in the last place of fp64."""


def above_zero(errors: Sequence[float]) -> list[float]:
    """Return the errors for a log axis, with an exact 0 at `EXACT`."""
    return [error if error > 0 else EXACT for error in errors]


def mark_exact(axes: Axes, errors: Sequence[float]) -> None:
    """Mark where exact results stand on the y axis, if there are any."""
    if EXACT in errors:
        axes.axhline(EXACT, color="#999999", linewidth=1, linestyle=":", zorder=0)
        place = axes.get_yaxis_transform()
        axes.text(0.01, 1.3 * EXACT, "exact", transform=place, fontsize=8, va="bottom")


def markers_of(records: Sequence[Record]) -> dict[str, str]:
    """Return a marker for each implementation: the same for a peer in every figure."""
    known = study_names()
    others = sorted({record.implementation for record in records} - {OURS, *known})
    peers = dict.fromkeys([*known, *others])
    return {OURS: "o"} | {name: MARKERS[i % len(MARKERS)] for i, name in enumerate(peers)}


def legends(
    figure: Figure, shown: Sequence[Record], keys: Mapping[str, Artist], more: Mapping[str, Artist]
) -> None:
    """Draw one legend beside the axes: precisions by colour, implementations by shape."""
    found = {record.precision for record in shown}
    colours = {name: Patch(facecolor=colour) for name, colour in colours_of(found).items()}
    implementations = {record.implementation for record in shown}
    shapes = {name: key for name, key in keys.items() if name in implementations}
    entries: dict[str, Artist] = {**colours, **shapes, **more}
    figure.legend(list(entries.values()), list(entries), loc="outside right upper", frameon=False)


def label_of(quantity: str, hidden: int) -> str:
    """Return the label of the x axis, and under it how many results are not drawn."""
    return (
        f"{quantity}\n({hidden} not drawn: not verified, not timed, or a model)"
        if hidden
        else quantity
    )


def _few() -> MaxNLocator:
    """Return a function that finds up to five round numbers."""
    return MaxNLocator(5, steps=[1, 2, 5, 10])


def ratio_ticks(axes: Axes) -> None:
    """Label ratios as plain numbers: few on narrow axes, 1, 2 and 5 of a decade on wide ones."""
    axis, (low, high) = axes.xaxis, axes.get_xlim()
    axis.set_major_locator(_few() if high < 10 * low else LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter("{x:g}")


def plain_ticks(axis: Axis, values: Sequence[float]) -> None:
    """Label 1, 2 and 5 of each decade as plain numbers, where there are less than three.

    Values within a factor of 3 have a few round numbers.
    """
    if values and max(values) < 1000 * min(values):
        is_narrow = max(values) < 3 * min(values)
        axis.set_major_locator(_few() if is_narrow else LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
