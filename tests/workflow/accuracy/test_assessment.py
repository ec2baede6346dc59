"""Verdicts of errors beside two bounds: also as soon as one element of a result is off."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS
from argand.device import cpu

from benchmarks.planted.cases import NAMES, cases_of, small_references
from tests.workflow.workloads.on_cpu import computed
from workflow.accuracy.assessment import (
    NOT_COMPARED,
    PROVABLE,
    Accuracy,
    Checks,
    misplaced,
    ratio,
    worst_of,
)

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


def test_parts_without_a_finite_value_do_not_decide() -> None:
    right, wrong = (
        Accuracy(**Checks().conclude(x, 1e-2, 1e-5, FP32), reference="full", reference_rows=2)
        for x in (1e-7, 1.0)
    )
    blank = replace(right, rel_frobenius=0.0, ratio=None, reference_rows=0)
    whole = worst_of({"a": blank, "b": blank})
    assert (whole.verdict, whole.verified, whole.reason) == ("unproven", False, NOT_COMPARED)
    assert worst_of({"a": whole, "b": right}).verified
    assert not worst_of({"a": whole, "b": right}).reason
    assert worst_of({"a": replace(wrong, reference_rows=0), "b": right}).verdict == "wrong"


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


Assess = Callable[[npt.NDArray[np.inexact]], Accuracy]
COUNTS = "statevector shots"
"""Counts are whole numbers: no error of theirs is small."""
LARGEST = 1.25
"""The error that is found is at most this times the allowed one: fp32 holds it in few steps."""
MESSAGES = (
    r"(?P<over>\S+) times (what is allowed|its bound|its threshold)",
    r"(?P<found>\S+) exceeds (?P<allowed>[\d.e+-]+)",
    r"off by (?P<found>\S+) where (?P<allowed>[\d.e+-]+) is allowed",
)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        *((name, number) for name in NAMES if name != COUNTS for number in (0, 1)),
        ("dft", 5),  # powers averaged over segments
    ],
)
def test_an_error_is_refused_from_what_is_allowed_on(name: str, number: int) -> None:
    result, assess = right(name, number)
    assert assess(result).verified
    sizes = np.where(result == 0, np.inf if number else 0, np.abs(result)).reshape(-1)
    place = int(sizes.argmin() if number else sizes.argmax())
    flat = result.reshape(-1)

    @cache  # the search for either begins alike
    def assessed(exponent: float) -> Accuracy:
        wrong = flat.copy()
        wrong[place] += np.asarray(2.0**exponent * np.abs(flat).max(), wrong.dtype)
        return assess(wrong.reshape(result.shape))

    for refused in (("wrong",), ("wrong", "suspect")):
        found = least_error(assessed, refused)
        if found is None:  # a few kinds are only ever suspect
            assert "suspect" not in refused
            continue
        if found.reason.endswith("times its deviation"):
            continue  # how many are allowed depends on the number of elements
        assert 1 <= over(found.reason) <= LARGEST, found.reason


@pytest.mark.parametrize("off", [0.1, -0.1])
def test_expectation_values_are_held_to_either_side(off: float) -> None:
    result, assess = right("statevector observables", 0)
    assert assess(result + off * np.abs(result).max()).verdict == "wrong"


def test_shots_are_in_order() -> None:
    result, assess = right(COUNTS, 0)
    assert assess(result).verified
    found = assess(result[::-1])
    assert found.verdict == "wrong"
    assert "shots are not in ascending order" in found.reason


def test_shots_are_of_the_state_that_their_numbers_draw() -> None:
    """Neither of a later one nor of an earlier one, nor of none."""
    result, assess = right(COUNTS, 0)
    middle = len(result) // 2
    assert result[0] < result[middle] < result[-1]
    for some in (slice(middle), slice(middle, None)):
        wrong = result.copy()
        wrong[some] = result[middle]
        assert "rel_frobenius" in assess(wrong).reason
    wrong = result.copy()
    wrong[-1] = 1 << 62
    assert "a shot is not a basis state" in assess(wrong).reason


def right(name: str, number: int) -> tuple[npt.NDArray[np.inexact], Assess]:
    """Return a right result at fp32 of a drawn workload, and how it is assessed."""
    *_, (_, workload, sampled) = cases_of(name, number + 1, 5)
    staged, result = computed(workload, "fp32")
    with small_references(sampled):
        reference = workload.reference(staged)

    def assess(data: npt.NDArray[np.inexact]) -> Accuracy:
        return workload.assess(staged, reference, data, PRECISIONS["fp32"], cpu().backend)

    return np.asarray(result), assess


def least_error(assessed: Callable[[float], Accuracy], refused: tuple[str, ...]) -> Accuracy | None:
    """Return what is said of the smallest power of two, as an error, that has such a verdict."""
    right, wrong = -100.0, 10.0
    if assessed(wrong).verdict not in refused:
        return None
    for _ in range(14):
        middle = (right + wrong) / 2
        if assessed(middle).verdict in refused:
            wrong = middle
        else:
            right = middle
    return assessed(wrong)


def over(reason: str) -> float:
    """Return the largest part of what is allowed that a reason names."""
    found = [match for message in MESSAGES for match in re.finditer(message, reason)]
    assert found, f"a reason must say by how much, as one of {MESSAGES}, got {reason!r}"
    return max(
        float(match["over"])
        if "over" in match.groupdict()
        else float(match["found"]) / float(match["allowed"])
        for match in found
    )
