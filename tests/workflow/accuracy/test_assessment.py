"""Verdicts of errors beside two bounds: of what is possible, and of what is probable."""

from __future__ import annotations

import math

import numpy as np
import pytest
from argand import PRECISIONS

from workflow.accuracy.assessment import PROVABLE, Accuracy, Checks, misplaced, ratio, worst_of

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


@pytest.mark.parametrize(
    ("error", "verdict"), [(1e-6, "verified"), (1e-4, "suspect"), (1.0, "wrong")]
)
def test_the_worst_part_decides(error: float, verdict: str) -> None:
    right, other = (
        Accuracy(reference="full", reference_rows=2, **Checks().conclude(x, 1e-3, 1e-5, FP32))
        for x in (1e-7, error)
    )
    for parts in ((right, other), (other, right)):
        whole = worst_of(dict(zip("ab", parts, strict=True)))
        assert (whole.verdict, whole.verified) == (verdict, verdict == "verified")
        assert (whole.rel_frobenius, whole.bound, whole.reference_rows) == (error, 1e-5, 4)
        assert whole.ratio == 1e-5 / error


def test_what_has_to_be_zero_may_only_be_zero() -> None:
    assert ratio(0.0, 0.0) == 0
    assert ratio(1e-300, 0.0) == ratio(math.nan, 0.0) == math.inf


def test_the_reference_errs_as_much_as_fp64_does() -> None:
    said = Checks().conclude(1e-16, 1e-13, 1e-15, PRECISIONS["fp64"])
    assert (said["verdict"], said["ratio"]) == ("verified", None)


def test_nan_is_above_every_bound() -> None:
    checks = Checks()
    checks.at_most("x", math.nan, math.inf)
    checks.at_most("y", 1.0, math.nan)
    assert [line.partition(" ")[0] for line in checks.wrong] == ["x", "y"]
    assert Checks().conclude(math.nan, 1e-3, 1e-5, FP32)["verdict"] == "wrong"


def test_an_overflow_says_so() -> None:
    """Infinities that the data hold are no reason to scale them."""
    checks, kind = Checks(), np.dtype(np.complex64)
    some, every, none = np.array([True, False]), np.ones(2, bool), np.zeros(2, bool)
    for known in (some, every, none):
        checks.placed(misplaced(known, known), "rows", kind)
    assert not checks.wrong
    for known, got in ((every, some), (some, none), (some, every)):
        checks.placed(misplaced(known, got), "rows", kind)
    beyond = "beyond 3.4e+38, the largest complex64"
    assert checks.wrong == [
        f"1 rows are not finite where those of fp64 are; {beyond}, is infinity: scale the data",
        "1 rows are not finite where those of fp64 are; 1 of fp64 are not: the data hold NaN or "
        f"infinities, or go {beyond}",
        "1 rows are finite where those of fp64 are not",
    ]
