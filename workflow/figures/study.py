"""Figures of a study: error against throughput, growth of the error, limits, products.

Ours is a filled circle or a plain bar, a peer another marker or a hatched bar.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullFormatter, PercentFormatter

from benchmarks.peers import study_names
from workflow.data import Product
from workflow.figures.style import COLOURS, colour_of, colours_of, marker_key, new_axes, save
from workflow.records import Record
from workflow.tables.study import OURS, ordered, pareto

if TYPE_CHECKING:
    from workflow.accuracy.grading import GrowthRow

Picture = Callable[[Product, Axes], None]
"""Draws a product on axes: `Workload.picture` of its kind."""

_MARKERS = ("s", "^", "D", "v", "P", "X", "<", ">", "p", "h")
_HATCHES = ("///", "\\\\\\", "xxx", "---", "|||", "+++", "..", "oo")
_EXACT = 1e-17
"""Where an error of 0 stands on a log axis: below half a unit in the last place of fp64."""
_MANY = 2000
"""Elements of a picture above which it is drawn as pixels instead of shapes."""


def draw_pareto(path: Path, workload: str, records: Sequence[Record]) -> None:
    """Error against throughput of one workload, its Pareto front marked.

    Args:
        path: the SVG file, written atomically.
        workload: whose records are drawn.
        records: of this workload, and of any others.
    """
    save(path, lambda: pareto_figure(workload, records))


def draw_growth(path: Path, rows: Sequence[GrowthRow]) -> None:
    """Largest componentwise error against k, for each precision and part, with its slope."""
    save(path, lambda: growth_figure(rows))


def draw_limits(path: Path, records: Sequence[Record]) -> None:
    """The fraction of its device's limit that every verified result reached."""
    save(path, lambda: limits_figure(records))


def draw_product(path: Path, picture: Picture, product: Product) -> None:
    """A workload's answer as people of its field are used to seeing it."""
    save(path, lambda: product_figure(picture, product))


def pareto_figure(workload: str, records: Sequence[Record]) -> Figure:
    """What `draw_pareto` writes."""
    own = [record for record in records if record.workload == workload]
    shown = [r for r in own if r.verified and r.time_us_p50 and r.rel_frobenius is not None]
    figure, axes = new_axes(7.6, 4.4)
    markers = _by_peer(records, _MARKERS)
    unit, values = _throughput(shown)
    errors = _above_zero([record.rel_frobenius or 0.0 for record in shown])
    place = {id(r): (x, y) for r, x, y in zip(shown, values, errors, strict=True)}
    front = [place[id(record)] for record in pareto(shown)]
    axes.plot(*_steps(front), color="#999999", linewidth=1.5, zorder=1, gid="pareto-front")
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
    axes.set(xscale="log", yscale="log", title=workload)
    _mark_exact(axes, errors)
    axes.set_xlabel(_x_label(unit, len(own) - len(shown)))
    axes.set_ylabel("relative Frobenius error against fp64")
    axes.margins(0.12)
    axes.grid()
    _plain_ticks(axes, values)
    front_key = Line2D([], [], color="#999999", marker="o", markersize=12, fillstyle="none")
    _legends(
        figure, shown, {name: marker_key(marker) for name, marker in markers.items()},
        {"Pareto front": front_key},
    )  # fmt: skip
    return figure


def growth_figure(rows: Sequence[GrowthRow]) -> Figure:
    """What `draw_growth` writes."""
    figure, axes = new_axes(7.6, 4.4)
    styles = {"re": ("-", "o"), "im": ("--", "s")}
    for row in rows:
        line, marker = styles[row.part]
        # Thinner than those before, so that one which coincides with another shows through.
        width = 1.2 + 0.6 * (len(COLOURS) - 1 - list(COLOURS).index(row.precision))
        label = f"{row.precision} {row.part}: {row.slope:+.2f}, {row.grade}"
        axes.plot(
            row.k_values, _above_zero(row.errors), line, marker=marker, markersize=3 + width,
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
    """What `draw_limits` writes."""
    shown = [r for r in ordered(records) if r.verified and r.limit_fraction is not None]
    workloads = list(dict.fromkeys(record.workload for record in shown))
    figure, axes = new_axes(7.6, 1.6 + 0.17 * len(shown) + 0.25 * len(workloads))
    hatches = _by_peer(records, _HATCHES, ours="")
    position = 0.0
    ticks = []
    for workload in workloads:
        own = [record for record in shown if record.workload == workload]
        ticks.append(position + (len(own) - 1) / 2)
        for record in own:
            axes.barh(
                position, 100 * (record.limit_fraction or 0.0), 0.9,
                color=colour_of(record.precision), edgecolor="white", linewidth=0.0,
                hatch=hatches[record.implementation],
            )  # fmt: skip
            position += 1
        position += 1.5
    axes.axvline(100, color="#555555", linewidth=1, linestyle="--")
    axes.set_yticks(ticks, workloads)
    label = "fraction of the device's measured limit"
    axes.set_xlabel(_x_label(label, len(records) - len(shown)))
    axes.set_ylim(max(position - 1, 0), -1)
    axes.xaxis.set_major_formatter(PercentFormatter())
    axes.grid(axis="x")
    axes.tick_params(axis="y", length=0)
    _legends(
        figure, shown,
        {n: Patch(facecolor="#777777", edgecolor="white", hatch=h) for n, h in hatches.items()},
        {"limit": Line2D([], [], color="#555555", linewidth=1, linestyle="--")},
    )  # fmt: skip
    return figure


def product_figure(picture: Picture, product: Product) -> Figure:
    """What `draw_product` writes."""
    figure, axes = new_axes(7.6, 4.8)
    picture(product, axes)
    if not axes.get_title():
        axes.set_title(product.title)
    for drawn in figure.axes:
        _as_pixels(drawn)
    return figure


def _throughput(records: Sequence[Record]) -> tuple[str, list[float]]:
    """What x is: nominal TFLOP/s where all have them, else calls a second."""
    if records and all(record.tflops for record in records):
        rates = [record.tflops or 0.0 for record in records]
        if max(rates) >= 1:
            return "throughput (TFLOP/s)", rates
        return "throughput (GFLOP/s)", [1000 * rate for rate in rates]
    return "throughput (calls/s)", [1e6 / (record.time_us_p50 or 1.0) for record in records]


def _above_zero(errors: Sequence[float]) -> list[float]:
    """Errors for a log axis, with an exact 0 at `_EXACT`."""
    return [error if error > 0 else _EXACT for error in errors]


def _mark_exact(axes: Axes, errors: Sequence[float]) -> None:
    """Where exact results stand, if there are any."""
    if _EXACT in errors:
        axes.axhline(_EXACT, color="#999999", linewidth=1, linestyle=":", zorder=0)
        place = axes.get_yaxis_transform()
        axes.text(0.01, 1.3 * _EXACT, "exact", transform=place, fontsize=8, va="bottom")


def _steps(front: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """The staircase through a front: what is below and right of it nothing reached."""
    corners = list(front[:1])
    for (_, before), (x, y) in pairwise(front):
        corners += [(x, before), (x, y)]
    return _columns(corners)


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _by_peer(records: Sequence[Record], choices: Sequence[str], ours: str = "o") -> dict[str, str]:
    """A marker or hatch for each implementation: the same for a peer in every figure."""
    known = study_names()
    others = sorted({record.implementation for record in records} - {OURS, *known})
    peers = dict.fromkeys([*known, *others])
    return {OURS: ours} | {name: choices[i % len(choices)] for i, name in enumerate(peers)}


def _legends(
    figure: Figure, shown: Sequence[Record], keys: Mapping[str, Artist], more: Mapping[str, Artist]
) -> None:
    """One legend beside the axes: precisions by colour, implementations by shape."""
    found = {record.precision for record in shown}
    colours = {name: Patch(facecolor=colour) for name, colour in colours_of(found).items()}
    implementations = {record.implementation for record in shown}
    shapes = {name: key for name, key in keys.items() if name in implementations}
    entries: dict[str, Artist] = {**colours, **shapes, **more}
    figure.legend(list(entries.values()), list(entries), loc="outside right upper", frameon=False)


def _x_label(quantity: str, hidden: int) -> str:
    """The label of the x axis, and under it how many results are not drawn."""
    return f"{quantity}\n({hidden} not drawn: not verified or not timed)" if hidden else quantity


def _plain_ticks(axes: Axes, values: Sequence[float]) -> None:
    """Over less than three decades, label 1, 2 and 5 of each as plain numbers."""
    if values and max(values) < 1000 * min(values):
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())


def _as_pixels(axes: Axes) -> None:
    """Keep an SVG small: a mesh, or many points, become an image inside it."""
    for artist in axes.collections:
        scattered = isinstance(artist, PathCollection) and len(np.array(artist.get_offsets()))
        if isinstance(artist, QuadMesh) or scattered > _MANY:
            artist.set_rasterized(True)
    for line in axes.lines:
        if len(np.atleast_1d(line.get_xdata())) > 10 * _MANY:
            line.set_rasterized(True)
