"""The figure of a comparison: ratio of the times with its interval, ratio of the errors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from workflow.compare.verdicts import Compared, Margins
from workflow.counted import counted
from workflow.figures.marks import ratio_ticks
from workflow.figures.style import colour_of, colours_of, save
from workflow.implementation import OURS

_MAX_ROWS = 60
"""Rows that are drawn, those that changed most: a page is no longer."""
_RING = "#D55E00"


def draw_comparison(path: Path, rows: Sequence[Compared], margins: Margins) -> None:
    """Draw the compared rows into an SVG file, written atomically."""
    save(path, lambda: comparison_figure(rows, margins))


def comparison_figure(rows: Sequence[Compared], margins: Margins) -> Figure:
    """Return the figure that `draw_comparison` writes."""
    compared = [row for row in rows if row.is_compared and (row.time or row.error_ratio)]
    largest = sorted(compared, key=_change, reverse=True)[:_MAX_ROWS]
    shown = [row for row in compared if row in largest]
    figure = Figure(figsize=(9.0, 1.8 + 0.2 * len(shown)), layout="constrained")
    times, errors = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    for place, row in enumerate(shown):
        _draw_row(times, errors, place, row)
    for axes, margin in ((times, margins.time), (errors, margins.error)):
        axes.set_xscale("log")
        axes.axvspan(1 / (1 + margin), 1 + margin, color="#eeeeee", zorder=0)
        axes.axvline(1, color="#555555", linewidth=1)
        axes.grid(axis="x")
        ratio_ticks(axes)
    times.set_yticks(range(len(shown)), [_label(row) for row in shown], fontsize=8)
    times.set_ylim(max(len(shown), 1) - 0.5, -0.5)
    hidden = len(rows) - len(shown)
    times.set_xlabel(
        f"time B / A\n({counted(hidden, 'row')} not drawn)" if hidden else "time B / A"
    )
    errors.set_xlabel("error B / A")
    found = {row.key[2] for row in shown}
    entries: dict[str, Artist] = {n: Patch(facecolor=c) for n, c in colours_of(found).items()}
    entries |= {"ours": _key("#777777"), "peer": _key("white"), "regression": _ring_key()}
    figure.legend(list(entries.values()), list(entries), loc="outside right upper", frameon=False)
    return figure


def _draw_row(times: Axes, errors: Axes, place: int, row: Compared) -> None:
    """Draw one row: a filled marker is ours, a ring round it a regression."""
    colour = colour_of(row.key[2])
    fill = colour if row.key[1] == OURS else "white"
    points = [(times, row.time and row.time.value), (errors, row.error_ratio)]
    if row.time and row.time.low and row.time.high:
        times.plot((row.time.low, row.time.high), (place, place), color=colour, linewidth=1.5)
    for axes, value in points:
        if value:
            axes.plot(value, place, "o", color=fill, markeredgecolor=colour, markersize=6)
    for (axes, value), word in zip(points, ("slower", "less accurate"), strict=True):
        if row.regression and value and word in row.verdict:
            axes.plot(value, place, "o", fillstyle="none", color=_RING, markersize=12)


def _key(fill: str) -> Line2D:
    return Line2D([], [], marker="o", linestyle="none", color=fill, markeredgecolor="#777777")


def _ring_key() -> Line2D:
    return Line2D(
        [], [], marker="o", linestyle="none", color=_RING, fillstyle="none", markersize=12
    )


def _label(row: Compared) -> str:
    return " ".join(part for part in row.key if part).replace("$", r"\$")


def _change(row: Compared) -> float:
    ratios = [row.time.value if row.time else 1.0, row.error_ratio or 1.0]
    return max(max(ratio, 1 / ratio) for ratio in ratios)
