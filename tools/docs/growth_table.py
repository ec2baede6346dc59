"""The table of how errors of products grow with k, as measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import linear_regression

from benchmarks.harness.recorded import Row, is_verified, read_rows
from workflow.tables.readable import Column, markdown_table, number


def growth_table(data: Path) -> str:
    """Return errors by k of each implementation and precision, and slopes of their logarithms."""
    lines = growth(read_rows(data / "h200-gemm-growth.csv"))
    return markdown_table([Column(name, name) for name in lines[0]], lines)


def growth(rows: Sequence[Row]) -> list[dict[str, str]]:
    """Return a line for each k, then the slopes; of the results that verified."""
    errors: dict[str, dict[float, float]] = {}
    for row in rows:
        if is_verified(row):
            name = f"{row['implementation']} {row['precision']}"
            errors.setdefault(name, {})[row["k"]] = row["rel_frobenius"]
    every = sorted({k for of_one in errors.values() for k in of_one})
    lines = [
        {"k": f"{k:.0f}"}
        | {name: number(of_one[k]) if k in of_one else "" for name, of_one in errors.items()}
        for k in every
    ]
    slopes = {name: f"{_slope(of_one):+.3f}" for name, of_one in errors.items()}
    return [*lines, {"k": "slope"} | slopes]


def _slope(errors: dict[float, float]) -> float:
    """Return the slope of log(error) over log(k), by least squares."""
    ks, found = map(math.log, errors), map(math.log, errors.values())
    return linear_regression(list(ks), list(found)).slope
