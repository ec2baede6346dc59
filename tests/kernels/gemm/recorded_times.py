"""Times of candidate plans that were recorded on an H200, beside which models of time are held."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from argand.gemm.question import OperandTraits
from argand.precision import Precision, any_precision

Case = tuple[str, str, str]
Times = dict[str, float]

EVENTS_US = {"mma.sync": 1.45, "wgmma": 3.2}
"""Microseconds that a call between two events takes longer than one in a row of calls, by its
kernels' family (docs/experiments/2026-11-28-launches-on-a-busy-stream.md). The files
``recorded_row_plans.csv`` and ``recorded_drawn_plans.csv`` have times in rows."""


def recorded(name: str, seed: str | None = None) -> dict[Case, Times]:
    """Least microseconds of each plan in a file here, by shape, ops and precision."""
    found: dict[Case, Times] = defaultdict(dict)
    with Path(__file__).with_name(name).open() as file:
        for row in csv.DictReader(file):
            if seed is not None and row["seed"] != seed:
                continue
            times, time = found[row["shape"], row["kind"], row["precision"]], float(row["time_us"])
            times[row["plan"]] = min(time, times.get(row["plan"], time))
    return found


def assert_regrets(
    regrets: Sequence[float], mean: float, tenth: float, most: float, untimed: Sequence[str] = ()
) -> None:
    """Hold times of what is chosen over the fastest: their mean, all but a tenth, and the worst.

    ``untimed`` are choices without a recorded time, such as those of a new tile.
    """
    said = f"record times of what is chosen and has none: {untimed}"
    assert np.mean(regrets) < mean, said
    assert np.quantile(regrets, 0.9) < tenth, said
    assert max(regrets) < most, said


def recorded_precision(name: str) -> Precision:
    """The row of a precision as it was timed: 3xtf32 rounded both terms by integers then."""
    return any_precision(name, "half_ulp_truncate" if name == "3xtf32" else None)


def sizes_of(shape: str) -> tuple[int, int, int, int]:
    """Batch, m, n and k of MxNxK or BATCHxMxNxK."""
    *batch, m, n, k = map(int, shape.split("x"))
    return (batch or [1])[0], m, n, k


def operand(k_major: bool, pitch: int, lines: int, batched: bool, op: str) -> OperandTraits:
    """The traits of a contiguous operand."""
    odd = pitch % 2 == 1
    return OperandTraits(
        not odd, k_major, conjugated=op == "C", odd_pitch=odd,
        odd_batches=batched and odd and lines % 2 == 1,
    )  # fmt: skip
