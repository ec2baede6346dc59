"""Verdicts of errors beside two bounds: of what is possible, and of what is probable."""

from __future__ import annotations

import math

import numpy as np
import pytest
from argand import PRECISIONS

from workflow.accuracy.assessment import PROVABLE, Checks

FP32 = PRECISIONS["fp32"]


@pytest.mark.parametrize(
    ("error", "verdict"), [(1e-6, "verified"), (1e-4, "suspect"), (1e-2, "wrong")]
)
def test_an_error_between_the_bounds_is_possible_and_not_probable(
    error: float, verdict: str
) -> None:
    said = Checks().conclude(error, worst=1e-3, probable=1e-5, precision=FP32)
    assert said["verdict"] == verdict
    assert said["verified"] is (verdict == "verified")
    assert bool(said["reason"]) is (verdict != "verified")


def test_the_smaller_bound_counts_whichever_it_is() -> None:
    assert Checks().conclude(1e-6, 1e-4, 1e-2, FP32)["bound"] == 1e-4
    assert Checks().conclude(1e-3, 1e-4, 1e-2, FP32)["verdict"] == "wrong"
    unproven = Checks().conclude(0.0, 2 * PROVABLE, 3 * PROVABLE, FP32)
    assert unproven["verdict"] == "unproven"


def test_nan_is_above_every_bound() -> None:
    checks = Checks()
    checks.at_most("x", math.nan, math.inf)
    checks.at_most("y", 1.0, math.nan)
    assert [line.partition(" ")[0] for line in checks.wrong] == ["x", "y"]
    assert Checks().conclude(math.nan, 1e-3, 1e-5, FP32)["verdict"] == "wrong"


def test_an_overflow_says_so() -> None:
    checks = Checks()
    checks.placed(0, "rows", np.full(3, np.inf))
    assert not checks.wrong
    checks.placed(2, "rows", np.array([1.0, np.inf], np.complex64))
    checks.placed(1, "rows", np.ones(2))
    assert checks.wrong[0].endswith(
        "2 rows are finite where those of fp64 are not, or are not where those are; beyond "
        "3.4e+38, the largest complex64, is infinity: scale the data"
    )
    assert checks.wrong[1].endswith("or are not where those are")
