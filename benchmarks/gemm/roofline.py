"""The roofline of the products: what was reached, under what the device allows.

    python -m benchmarks.gemm.roofline h200-gemm-*.csv h200-gemm-ceilings.json h200-roofline.svg

Reads what `benchmarks.gemm` wrote. Arithmetic intensity is 8 batch m n k over the bytes of operands
read once and results written once. The roofs are measured: the copy rate, and for each precision
the real matrix rate of its operand type divided by the products of its split.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from argand import PRECISIONS
from argand.runtime.measuring.ceilings import Ceilings
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from benchmarks.harness.recorded import read_rows, shape_words
from workflow.figures.marks import MARKERS
from workflow.figures.style import COLOURS, marker_key, new_axes, save

Row = Mapping[str, Any]

_OURS = "argand"
_HALF = "complex-half in"
_FOOT = 0.35
"""Room for the names of shapes under the lowest point, in decades over those of the points."""
_WHITE = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
_LABEL_GAP = 0.031
"""Between the baselines of two labels, as a fraction of the axis' height."""


def main(argv: Sequence[str] | None = None) -> int:
    """Draw the figure."""
    found = argparse.ArgumentParser(description=__doc__)
    found.formatter_class = argparse.RawDescriptionHelpFormatter
    found.add_argument("csv", type=Path, nargs="+")
    for name in ("ceilings", "svg"):
        found.add_argument(name, type=Path)
    arguments = found.parse_args(argv)
    rows = [row for path in arguments.csv for row in read_rows(path)]
    ceilings = Ceilings.from_json(arguments.ceilings.read_text(encoding="utf-8"))
    save(arguments.svg, lambda: roofline_figure(rows, ceilings))
    return 0


def drawn(rows: Sequence[Row]) -> list[Row]:
    """Return verified rows of complex64 or complex128 results: ours, and each best peer.

    Ours from a packed operand are left out: their points lie on those of the others.
    """
    shown = [
        row
        for row in rows
        if row["verified"] == "True" and row["tflops"] and row["output"] != "complex-half"
    ]
    peers: dict[tuple[str, str], Row] = {}
    for row in shown:
        key = (row["workload"], row["precision"])
        if row["implementation"] != _OURS and (
            key not in peers or row["tflops"] > peers[key]["tflops"]
        ):
            peers[key] = row
    ours = [r for r in shown if r["implementation"] == _OURS and r["input"] != "packed"]
    return [*ours, *peers.values()]


def intensity(row: Row) -> float:
    """Return the arithmetic intensity, in operations a byte."""
    return float(1e3 * row["tflops"] / row["gbytes_per_s"])


def roofline_figure(rows: Sequence[Row], ceilings: Ceilings) -> Figure:
    """Return the figure that `main` writes. Raises ValueError where no row is fit to be drawn."""
    shown = drawn(rows)
    if not shown:
        raise ValueError("no row of the CSV is verified and has a rate")
    figure, axes = new_axes(11.0, 7.4)
    peers = sorted({row["implementation"] for row in shown} - {_OURS})
    markers = {_OURS: "o"} | dict(zip(peers, MARKERS, strict=False))
    x = [intensity(row) for row in shown]
    axes.set(xscale="log", yscale="log", title=f"Complex products on {ceilings.device}")
    axes.set_xlim(min(x) / 2.2, max(x) * 4.5)
    precisions = [name for name in PRECISIONS if name in {row["precision"] for row in shown}]
    roofs = {name: _roof(name, ceilings) for name in precisions}
    rates = [row["tflops"] for row in shown]
    lowest, highest = min(rates), 1.7 * max(*roofs.values(), *rates)
    axes.set_ylim(lowest * (lowest / highest) ** _FOOT, highest)
    _draw_roofs(axes, roofs, ceilings)
    for row, at in zip(shown, x, strict=True):
        axes.plot(
            at, row["tflops"], markers[row["implementation"]], color=COLOURS[row["precision"]],
            markersize=7, markeredgewidth=1.2,
            fillstyle="none" if row["input"] == "complex-half" else "full", zorder=3,
        )  # fmt: skip
    _name_shapes(axes, shown)
    _name_points(axes, shown)
    axes.set_xlabel("arithmetic intensity (operations a byte)")
    axes.set_ylabel("TFLOP/s (8 batch m n k over the time)")
    colours = {name: Patch(facecolor=COLOURS[name]) for name in precisions}
    shapes: dict[str, Any] = {name: marker_key(marker) for name, marker in markers.items()}
    shapes[_HALF] = Line2D(
        [], [], marker="o", fillstyle="none", linestyle="none", color="#777777", markersize=8
    )
    entries = {**colours, **shapes}
    figure.legend(list(entries.values()), list(entries), loc="outside right upper", frameon=False)
    return figure


def _roof(precision: str, ceilings: Ceilings) -> float:
    """Return TFLOP/s of complex operations: a product is four real ones for each pair of terms."""
    row = PRECISIONS[precision]
    return ceilings.tflops[row.operand.name] / len(row.products)


def _draw_roofs(axes: Axes, roofs: Mapping[str, float], ceilings: Ceilings) -> None:
    """Draw the slope of the copy rate, and a flat roof for each precision with its name."""
    left, right = axes.get_xlim()
    bandwidth = 1e-3 * ceilings.copy_gbytes_per_s
    ridge = max(roofs.values()) / bandwidth
    axes.plot([left, ridge], [left * bandwidth, ridge * bandwidth], color="#555555", linewidth=1.5)
    heights = _apart(axes, list(roofs.values()))
    for (name, roof), height in zip(roofs.items(), heights, strict=True):
        start = max(roof / bandwidth, left)
        axes.plot([start, right], [roof, roof], color=COLOURS[name], linewidth=1, zorder=1)
        axes.annotate(
            f"{name} {roof:.0f}", (start, roof), (0.01, height), color=COLOURS[name], fontsize=9,
            textcoords="axes fraction", va="center", bbox=_WHITE,
            arrowprops={"arrowstyle": "-", "color": COLOURS[name], "linewidth": 0.5, "alpha": 0.6},
        )  # fmt: skip
    axes.annotate(
        f"copy {ceilings.copy_gbytes_per_s:.0f} GB/s", (ridge, ridge * bandwidth), (-4, 4),
        textcoords="offset points", ha="right", fontsize=9, color="#555555",
    )  # fmt: skip


def _name_shapes(axes: Axes, shown: Sequence[Row]) -> None:
    """Write each shape under the column of its points (those of 8-byte operands)."""
    found: dict[str, list[str]] = {}
    for row in shown:
        if row["input"] == "complex64":
            column = found.setdefault(f"{intensity(row):.3g}", [])
            name = shape_words(row)
            if name not in column:
                column.append(name)
    columns = sorted(found, key=float)
    left, right = np.log10(axes.get_xlim())
    targets = [(np.log10(float(at)) - left) / (right - left) for at in columns]
    for at, place in zip(columns, _spread(targets, 0.034), strict=True):
        axes.axvline(float(at), color="#dddddd", linewidth=0.8, zorder=0)
        axes.annotate(
            "\n".join(found[at]), (float(at), 0), (place, 0.012),
            xycoords=axes.get_xaxis_transform(), textcoords="axes fraction", rotation=90,
            ha="center", va="bottom", fontsize=8, color="#555555", linespacing=1.0,
        )  # fmt: skip


def _name_points(axes: Axes, shown: Sequence[Row]) -> None:
    """Write the names of the points of the largest product, beside them at the right."""
    largest = max(shown, key=lambda row: row["m"] * row["n"] * row["k"])["workload"]
    own = sorted((r for r in shown if r["workload"] == largest), key=lambda r: r["tflops"])
    for row, height in zip(own, _apart(axes, [r["tflops"] for r in own]), strict=True):
        half = ", half in" if row["input"] == "complex-half" else ""
        colour = COLOURS[row["precision"]]
        axes.annotate(
            f"{row['implementation']} {row['precision']}{half} {row['tflops']:.0f}",
            (intensity(row), row["tflops"]), (0.995, height), textcoords="axes fraction",
            ha="right", va="center", fontsize=8.5, color=colour, bbox=_WHITE,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.5, "alpha": 0.6},
        )  # fmt: skip


def _apart(axes: Axes, values: Sequence[float]) -> list[float]:
    """Return heights in fractions of the axes for labels, at least a line of text apart."""
    low, high = np.log10(axes.get_ylim())
    return _spread([(np.log10(value) - low) / (high - low) for value in values], _LABEL_GAP)


def _spread(targets: Sequence[float], gap: float) -> list[float]:
    """Return places as near to the targets as a gap between neighbours allows, in their order.

    Labels that would touch become a group with even gaps about the mean of what its members want.
    """
    order = sorted(range(len(targets)), key=lambda index: targets[index])
    groups: list[list[int]] = []
    for index in order:
        groups.append([index])
        while len(groups) > 1 and _first(groups[-1], targets, gap) - gap < _last(
            groups[-2], targets, gap
        ):
            groups[-2:] = [groups[-2] + groups[-1]]
    places = [0.0] * len(targets)
    for group in groups:
        for step, index in enumerate(group):
            places[index] = _first(group, targets, gap) + step * gap
    return places


def _first(group: Sequence[int], targets: Sequence[float], gap: float) -> float:
    return sum(targets[index] for index in group) / len(group) - gap * (len(group) - 1) / 2


def _last(group: Sequence[int], targets: Sequence[float], gap: float) -> float:
    return _first(group, targets, gap) + gap * (len(group) - 1)


if __name__ == "__main__":
    sys.exit(main())
