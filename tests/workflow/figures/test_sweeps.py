"""Curves of a sweep: what stands on which axis, what is a curve, what is left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from test_figures import record

from workflow.figures.marks import EXACT
from workflow.figures.sweeps import draw_sweep, sweep_figure
from workflow.preflight.loading import load_study

POINTS = {"w-m16": {"m": 16}, "w-m64": {"m": 64}, "w-m256": {"m": 256}}
RECORDS = [
    record(case, who, precision, time * factor, error, bound=3 * error, time_us_low=0.9 * time,
           time_us_high=1.1 * time * factor)
    for time, case in enumerate(POINTS, 1)
    for who, precision, factor, error in (
        ("argand", "fp64", 4.0, 0.0), ("argand", "fp16", 2.0, 1e-3), ("numpy", "fp32", 3.0, 1e-7),
    )
]  # fmt: skip


def curves(axes: Axes) -> dict[tuple[Any, ...], list[float]]:
    """The values of each curve through all cases, by colour and line style; dots are bounds."""
    return {
        (line.get_color(), line.get_linestyle()): [float(y) for y in line.get_ydata()]
        for line in axes.lines
        if list(line.get_xdata()) == [16.0, 64.0, 256.0]
    }


def test_a_curve_for_each_implementation_and_precision() -> None:
    figure = sweep_figure("w", RECORDS, POINTS)
    times, errors = figure.axes
    drawn = curves(times)
    assert sorted(drawn.values()) == [[2.0, 4.0, 6.0], [3.0, 6.0, 9.0], [4.0, 8.0, 12.0]]
    assert [style for (_, style), values in drawn.items() if values[0] == 3.0] == ["--"]
    found = curves(errors)
    assert [EXACT] * 3 in found.values()
    bounds = [values for (_, style), values in found.items() if style == ":"]
    assert [3e-3] * 3 in bounds
    assert [3e-7] * 3 not in bounds  # a peer's
    assert errors.get_xlabel() == "m"
    assert [tick.get_text() for tick in errors.get_xticklabels()] == ["16", "64", "256"]


def test_what_did_not_verify_is_no_point() -> None:
    rows = [*RECORDS, record("w-m16", "argand", "bf16", 1.0, 1.0, verified=False, reason="wrong")]
    assert len(sweep_figure("w", rows, POINTS).axes[0].lines) == len(
        sweep_figure("w", RECORDS, POINTS).axes[0].lines
    )


def test_models_have_errors_and_no_times() -> None:
    rows = [replace(one, backend="cpu") for one in RECORDS]
    times, errors = sweep_figure("w", rows, POINTS).axes
    assert sorted(curves(times).values()) == [[3.0, 6.0, 9.0], [4.0, 8.0, 12.0]]
    assert [1e-3] * 3 in curves(errors).values()


def test_names_of_a_sweep_stand_side_by_side() -> None:
    points = {"w-a": {"op_a": "N"}, "w-b": {"op_a": "C"}}
    rows = [record(case, "argand", "fp32", 2.0, 1e-7) for case in points]
    axes = sweep_figure("w", rows, points).axes[1]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["N", "C"]


def test_several_keys_have_panels_beside_each_other() -> None:
    points = {
        f"w-{kind}-{n}": {"kind": kind, "n": n} for kind in ("a", "b", "c", "d") for n in (1, 2)
    }
    rows = [record(case, "argand", "fp32", 2.0, 1e-7) for case in points]
    figure = sweep_figure("w", rows, points)
    assert [axes.get_title() for axes in figure.axes[:3]] == ["kind = a", "kind = b", "kind = c"]
    assert len(figure.axes) == 6
    assert "1 more combinations of kind not drawn" in figure.get_suptitle()


def test_nothing_computed_is_an_empty_figure_and_the_file_the_same_twice(tmp_path: Path) -> None:
    sweep_figure("w", [], POINTS).draw_without_rendering()
    first, second = tmp_path / "1.svg", tmp_path / "2.svg"
    for path in (first, second):
        draw_sweep(path, "w", RECORDS, POINTS)
    assert first.read_bytes() == second.read_bytes()


def test_a_study_knows_what_its_sweeps_are() -> None:
    study = load_study(
        {"workloads": {
            "w": {"kind": "gemm", "m": [8, 16], "n": 8, "k": 8, "alpha": [[1.0, 0.0], [0.0, 1.0]]},
            "one": {"kind": "gemm", "m": 8, "n": 8, "k": 8},
        }}
    )  # fmt: skip
    assert list(study.sweeps) == ["w"]
    assert list(study.sweeps["w"].values())[1] == {"m": 8, "alpha": [0.0, 1.0]}
    assert set(study.sweeps["w"]) == set(study.names) - {"one"}
    assert "sweeps" not in study.as_read()
