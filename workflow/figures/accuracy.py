"""The figure of errors: the distance of each of our results from fp64, and its bounds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from workflow.figures.marks import EXACT, above_zero, legends
from workflow.figures.style import colour_of, new_axes, save
from workflow.implementation import OURS
from workflow.records import Record
from workflow.tables.ranking import ordered

_APART = 0.1
"""Distance of one precision from the next, where workloads are 1 apart."""


def draw_accuracy(path: Path, records: Sequence[Record]) -> None:
    """Write the figure as SVG, atomically."""
    save(path, lambda: accuracy_figure(records))


def accuracy_figure(records: Sequence[Record]) -> Figure:
    """Return the figure of errors and bounds of our results, a line a workload and precision.

    A dot is the error, the bar at the end of its line the bound; the worst case stands behind it as
    a pale one. A result that did not verify is a cross.
    """
    shown = [
        record for record in ordered(records)
        if record.is_ours and record.rel_frobenius is not None
    ]  # fmt: skip
    workloads = list(dict.fromkeys(record.workload for record in shown))
    figure, axes = new_axes(7.6, 1.4 + 0.72 * max(1, len(workloads)))
    exact = False
    for place, workload in enumerate(workloads):
        own = [record for record in shown if record.workload == workload]
        for index, record in enumerate(own):
            y = place + _APART * (index - (len(own) - 1) / 2)
            colour = colour_of(record.precision)
            (error,) = above_zero([record.rel_frobenius or 0.0])
            exact = exact or error == EXACT
            if record.worst_bound:
                axes.plot(record.worst_bound, y, "|", color=colour, markersize=7, alpha=0.35)
            if record.bound:
                axes.plot((error, record.bound), (y, y), "-", color=colour, linewidth=1, alpha=0.6)
                axes.plot(record.bound, y, "|", color=colour, markersize=8, markeredgewidth=2)
            axes.plot(error, y, "o" if record.verified else "X", color=colour, markersize=6)
    for between in range(1, len(workloads)):
        axes.axhline(between - 0.5, color="#dddddd", linewidth=1, zorder=0)
    axes.set_xscale("log")
    if exact:
        axes.axvline(EXACT, color="#999999", linewidth=1, linestyle=":", zorder=0)
        across = axes.get_xaxis_transform()
        axes.text(EXACT, 1.0, "exact", transform=across, fontsize=8, ha="center", va="bottom")
    axes.set_yticks(range(len(workloads)), workloads)
    axes.set_ylim(max(1, len(workloads)) - 0.5, -0.5)
    axes.set_xlabel("relative Frobenius error against fp64, and its bounds")
    axes.grid(axis="x")
    axes.tick_params(axis="y", length=0)
    legends(
        figure, shown,
        {OURS: Line2D([], [], marker="o", linestyle="none", color="#777777", label="error")},
        {
            "bound": _bar(1.0, 2), "worst case": _bar(0.35, 1),
            **({"not verified": Line2D([], [], marker="X", linestyle="none", color="#777777")}
               if any(not record.verified for record in shown) else {}),
        },
    )  # fmt: skip
    return figure


def _bar(alpha: float, width: float) -> Line2D:
    return Line2D(
        [], [], marker="|", linestyle="none", color="#777777", markersize=9, alpha=alpha,
        markeredgewidth=width,
    )  # fmt: skip
