"""A result of any kind is refused as soon as one element is off by more than is allowed."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS
from argand.device import cpu

from benchmarks.planted.cases import NAMES, cases_of, small_references
from tests.workflow.workloads.on_cpu import computed
from workflow.accuracy import Accuracy

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
    return max(
        float(match["over"])
        if "over" in match.groupdict()
        else float(match["found"]) / float(match["allowed"])
        for match in found
    )
