"""The figure of errors: a dot for each of our results, the bounds that it is held to beside it."""

from __future__ import annotations

from test_figures import record

from workflow.figures.accuracy import accuracy_figure
from workflow.figures.marks import EXACT
from workflow.figures.style import COLOURS

RECORDS = [
    record("w", "argand", "fp64", 1.0, 0.0, bound=1e-15, worst_bound=1e-13),
    record("w", "argand", "fp32", 1.0, 1e-7, bound=5e-7, worst_bound=1e-5),
    record("w", "numpy", "fp32", 1.0, 2e-7, bound=5e-7),
    record("v", "argand", "fp16", 1.0, 0.5, bound=1e-3, verified=False, reason="wrong"),
]


def test_errors_and_bounds_are_where_they_are() -> None:
    axes = accuracy_figure(RECORDS).axes[0]
    found = [
        (line.get_marker(), line.get_color(), float(line.get_xdata()[0]))
        for line in axes.lines
        if line.get_marker() not in ("None", "")
    ]
    assert ("o", COLOURS["fp64"], EXACT) in found
    assert ("o", COLOURS["fp32"], 1e-7) in found
    assert ("|", COLOURS["fp32"], 5e-7) in found
    assert ("|", COLOURS["fp32"], 1e-5) in found
    assert ("X", COLOURS["fp16"], 0.5) in found
    assert len([1 for marker, _, _ in found if marker in "oX"]) == 3  # no peers
    joined = [list(line.get_xdata()) for line in axes.lines if line.get_linestyle() == "-"]
    assert [1e-7, 5e-7] in joined
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["w", "v"]


def test_without_results_it_is_empty() -> None:
    accuracy_figure([]).draw_without_rendering()
