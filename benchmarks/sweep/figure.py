"""The figure of recorded sweeps: the best library's time over ours, against the time of a call.

    python -m benchmarks.sweep.figure docs/data docs/pictures/sweeps.svg

A panel for each sweep; of gates, which have no library in the run, the time of a copy over ours.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from argand.beam_power.problem import EXACT
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.harness.figures import data_and_svg
from benchmarks.harness.recorded import plain_rows
from benchmarks.sweep.draws import TITLES
from benchmarks.sweep.quantiles import SLOWER
from benchmarks.sweep.recorded import sweep_files
from workflow.figures.marks import plain_ticks
from workflow.figures.style import colour_of, save

_MARKERS = {"H200": "o", "H100": "x"}


def main(argv: Sequence[str] | None = None) -> int:
    """Draw the figure."""
    arguments = data_and_svg(__doc__, argv)
    files = list(sweep_files(arguments.data))
    if not files:
        print(f"no sweep is recorded in {arguments.data}", file=sys.stderr)
        return 2
    save(arguments.svg, lambda: _drawn(files))
    return 0


def _drawn(files: Sequence[tuple[str, str, Path]]) -> Figure:
    shown = [sweep for sweep in TITLES if any(sweep == other for _, other, _ in files)]
    figure = Figure(figsize=(11.0, 3.4 * ((len(shown) + 1) // 2)), layout="constrained")
    grid = list(figure.subplots((len(shown) + 1) // 2, 2, squeeze=False).flat)
    for axes, sweep in zip(grid, shown, strict=False):
        for card, other, path in files:
            if other == sweep:
                _panel(axes, card, sweep, path)
        axes.axhline(1, color="#555555", linewidth=1)
        axes.axhline(SLOWER, color="#555555", linewidth=0.8, linestyle=":")
        axes.set(xscale="log", yscale="log", xlabel="time of a call (µs)", title=TITLES[sweep])
        axes.set_ylabel("copy over ours" if sweep == "gates" else "best library over ours")
        for axis in (axes.xaxis, axes.yaxis):
            plain_ticks(axis, axis.get_view_interval().tolist())
        axes.legend(frameon=False, fontsize=7, ncols=2)
    for axes in grid[len(shown) :]:
        axes.set_axis_off()
    return figure


def _colour(precision: str) -> str:
    """Return the colour of a precision; exact sums, which have no rounding, are grey."""
    return "#999999" if precision == EXACT.name else colour_of(precision)


def _panel(axes: Axes, card: str, sweep: str, path: Path) -> None:
    column = "of_copy" if sweep == "gates" else "ratio"
    ours = [
        row for row in plain_rows(path)
        if row["implementation"] == "argand" and row["verified"] == "True" and row[column]
    ]  # fmt: skip
    for precision in dict.fromkeys(row["precision"] for row in ours):
        rows = [row for row in ours if row["precision"] == precision]
        axes.plot(
            [float(row["time_us"]) for row in rows], [float(row[column]) for row in rows],
            _MARKERS[card], color=_colour(precision), label=f"{precision}, {card}",
            markersize=3, linestyle="none", alpha=0.8,
        )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
