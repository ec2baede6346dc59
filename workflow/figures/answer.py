"""The first figure of a study: how fast each answer is against the best peer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from workflow.figures.marks import ratio_ticks
from workflow.figures.style import colour_of, colours_of, new_axes, save
from workflow.tables.answer import Answer


def draw_answer(path: Path, answers: Sequence[Answer]) -> None:
    """Write the figure as SVG, atomically."""
    save(path, lambda: answer_figure(answers))


def answer_figure(answers: Sequence[Answer]) -> Figure:
    """Return the figure of speedups over the best peer with intervals, a line a workload."""
    shown = [(answer, answer.speedup) for answer in answers if answer.speedup is not None]
    figure, axes = new_axes(7.6, 1.2 + 0.32 * max(1, len(shown)))
    for place, (answer, speedup) in enumerate(shown):
        colour = colour_of(answer.precision)
        if answer.speedup_low is not None and answer.speedup_high is not None:
            ends = (answer.speedup_low, answer.speedup_high)
            axes.plot(ends, (place, place), "-", color=colour, linewidth=3, alpha=0.45)
        filled = "white" if answer.is_uneven else colour
        axes.plot(speedup, place, "o", color=colour, markerfacecolor=filled, markersize=8)
    axes.axvline(1, color="#777777", linewidth=1, zorder=0)
    axes.set_xscale("log")
    axes.set_yticks(range(len(shown)), [answer.workload for answer, _ in shown])
    axes.set_ylim(max(1, len(shown)) - 0.5, -0.5)
    axes.set_xlabel("times as fast as the best peer of the same class")
    ratio_ticks(axes)
    axes.grid(axis="x")
    used = dict.fromkeys(answer.precision for answer, _ in shown)
    keys = [
        Line2D([], [], marker="o", linestyle="none", color=colour, label=name)
        for name, colour in colours_of(used).items()
    ]
    if keys:
        axes.legend(handles=keys, loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    return figure
