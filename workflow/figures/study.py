"""Figures of a study: error against throughput, growth of the error, limits, products.

Ours is a filled circle, a peer another marker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from workflow.cpu_models import is_model
from workflow.data import Product
from workflow.figures import pictures
from workflow.figures.marks import (
    above_zero,
    label_of,
    legends,
    mark_exact,
    markers_of,
    plain_ticks,
)
from workflow.figures.style import COLOURS, colour_of, marker_key, new_axes, save
from workflow.implementation import OURS
from workflow.records import Record
from workflow.tables.ranking import ordered, pareto

if TYPE_CHECKING:
    from workflow.accuracy.grading import GrowthRow

Picture = Callable[[Product, Axes], None]
"""Draws a product on axes: `Workload.picture` of its kind."""

_MANY = 2000
"""Elements of a picture above which it is drawn as pixels instead of shapes."""


def draw_pareto(path: Path, workload: str, records: Sequence[Record]) -> None:
    """Draw error against throughput of one workload, its Pareto front marked.

    Args:
        path: the SVG file, written atomically.
        workload: the workload whose records are drawn.
        records: records of this workload, and of any others.
    """
    save(path, lambda: pareto_figure(workload, records))


def draw_growth(path: Path, rows: Sequence[GrowthRow]) -> None:
    """Draw the largest componentwise error against k, of each precision and part, with slopes."""
    save(path, lambda: growth_figure(rows))


def draw_limits(path: Path, records: Sequence[Record]) -> None:
    """Draw the fraction of its device's limit that every verified result reached."""
    save(path, lambda: limits_figure(records))


def draw_product(path: Path, picture: Picture, product: Product) -> None:
    """Draw a workload's answer as people of its field are used to seeing it."""
    save(path, lambda: product_figure(picture, product))


def pareto_figure(workload: str, records: Sequence[Record]) -> Figure:
    """Return the figure that `draw_pareto` writes."""
    own = [record for record in records if record.workload == workload]
    shown = [r for r in own if _counts(r) and r.time_us_p50 and r.rel_frobenius is not None]
    figure, axes = new_axes(7.6, 4.4)
    markers = markers_of(records)
    unit, values = _throughput(shown)
    errors = above_zero([record.rel_frobenius or 0.0 for record in shown])
    place = {id(r): (x, y) for r, x, y in zip(shown, values, errors, strict=True)}
    front = [place[id(record)] for record in pareto(shown)]
    axes.plot(*_stairs(front), color="#999999", linewidth=1.5, zorder=1, gid="pareto-front")
    for record in shown:
        axes.plot(
            *place[id(record)],
            markers[record.implementation],
            color=colour_of(record.precision),
            markersize=8.5,
            markeredgecolor="white",
            markeredgewidth=0.6,
            zorder=3,
        )
    axes.plot(*_columns(front), "o", fillstyle="none", color="#555555", markersize=14, zorder=2)
    axes.set_title(workload)
    if shown:  # without any, no ticks are to be had on logarithmic axes
        axes.set(xscale="log", yscale="log")
    mark_exact(axes, errors)
    axes.set_xlabel(label_of(unit, len(own) - len(shown)))
    axes.set_ylabel("relative Frobenius error against fp64")
    axes.margins(0.12)
    axes.grid()
    plain_ticks(axes.xaxis, values)
    front_key = Line2D([], [], color="#999999", marker="o", markersize=12, fillstyle="none")
    legends(
        figure, shown, {name: marker_key(marker) for name, marker in markers.items()},
        {"Pareto front": front_key},
    )  # fmt: skip
    return figure


def growth_figure(rows: Sequence[GrowthRow]) -> Figure:
    """Return the figure that `draw_growth` writes."""
    figure, axes = new_axes(7.6, 4.4)
    styles = {"re": ("-", "o"), "im": ("--", "s")}
    for row in rows:
        line, marker = styles[row.part]
        # Thinner than those before, so that one which coincides with another shows through.
        width = 1.2 + 0.6 * (len(COLOURS) - 1 - list(COLOURS).index(row.precision))
        label = f"{row.precision} {row.part}: {row.slope:+.2f}, {row.grade}"
        axes.plot(
            row.k_values, above_zero(row.errors), line, marker=marker, markersize=3 + width,
            linewidth=width, color=COLOURS[row.precision], label=label,
        )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.set(xlabel="k", title="Growth of the error with k")
    axes.set_ylabel("largest componentwise error")
    axes.grid()
    if rows:
        figure.legend(
            loc="outside right upper", title="precision, part: slope, grade",
            frameon=False, fontsize=9, title_fontsize=9, alignment="left",
        )  # fmt: skip
    return figure


def limits_figure(records: Sequence[Record]) -> Figure:
    """Return the figure that `draw_limits` writes: a line for each workload, a dot a result."""
    shown = [r for r in ordered(records) if _counts(r) and r.limit_fraction is not None]
    workloads = list(dict.fromkeys(record.workload for record in shown))
    figure, axes = new_axes(7.6, 1.4 + 0.4 * max(1, len(workloads)))
    markers = markers_of(records)
    for place, workload in enumerate(workloads):
        own = [record for record in shown if record.workload == workload]
        axes.axhline(place, color="#dddddd", linewidth=1, zorder=0)
        for record in own:
            ours = record.is_ours
            axes.plot(
                100 * (record.limit_fraction or 0.0), place + (-0.12 if ours else 0.12),
                markers[record.implementation], color=colour_of(record.precision), markersize=7,
                markerfacecolor=colour_of(record.precision) if ours else "white",
            )  # fmt: skip
    axes.axvline(100, color="#555555", linewidth=1, linestyle="--")
    axes.set_yticks(range(len(workloads)), workloads)
    label = "fraction of the device's measured limit"
    axes.set_xlabel(label_of(label, len(records) - len(shown)))
    axes.set_ylim(max(1, len(workloads)) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}%"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="x")
    axes.tick_params(axis="y", length=0)
    legends(
        figure, shown,
        {name: marker_key(marker, filled=name == OURS) for name, marker in markers.items()},
        {"limit": Line2D([], [], color="#555555", linewidth=1, linestyle="--")},
    )  # fmt: skip
    return figure


def product_figure(picture: Picture, product: Product) -> Figure:
    """Return the figure that `draw_product` writes."""
    figure, axes = new_axes(7.6, 4.8)
    picture(product, axes)
    if not axes.get_title():
        axes.set_title(pictures.title_of(product))
    for drawn in figure.axes:
        _as_pixels(drawn)
    return figure


def _counts(record: Record) -> bool:
    return record.verified and not is_model(record.precision, record.backend)


def _throughput(records: Sequence[Record]) -> tuple[str, list[float]]:
    """Return the quantity along x: nominal TFLOP/s where all have them, else calls a second."""
    if records and all(record.tflops for record in records):
        rates = [record.tflops or 0.0 for record in records]
        if max(rates) >= 1:
            return "throughput (TFLOP/s)", rates
        return "throughput (GFLOP/s)", [1000 * rate for rate in rates]
    return "throughput (calls/s)", [1e6 / (record.time_us_p50 or 1.0) for record in records]


def _stairs(front: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Return the staircase through a front: what is below and right of it nothing reached."""
    corners = list(front[:1])
    for (_, before), (x, y) in pairwise(front):
        corners += [(x, before), (x, y)]
    return _columns(corners)


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _as_pixels(axes: Axes) -> None:
    """Keep an SVG small: a mesh, or many points, become an image inside it."""
    for artist in axes.collections:
        scattered = isinstance(artist, PathCollection) and len(np.array(artist.get_offsets()))
        if isinstance(artist, QuadMesh) or scattered > _MANY:
            artist.set_rasterized(True)
    for line in axes.lines:
        if len(np.atleast_1d(line.get_xdata())) > 10 * _MANY:
            line.set_rasterized(True)
