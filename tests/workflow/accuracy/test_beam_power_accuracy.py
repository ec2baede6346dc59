"""The bounds of detected beams: what can be, what is probable, and what each covers."""

from __future__ import annotations

import numpy as np
import pytest
from argand import PRECISIONS, beam_power
from argand.beam_power.problem import beam_power_problem

from workflow.accuracy.beam_power_accuracy import assess_beam_power, beam_power_reference
from workflow.accuracy.beam_power_bounds import beam_deviation, probable_deviation


@pytest.mark.parametrize(("precision", "backend"), [("fp32", "cpu"), ("tf32", "cuda")])
def test_many_antennas_probably_err_less_than_they_can(precision: str, backend: str) -> None:
    row = PRECISIONS[precision]
    worst = beam_deviation(row, 4096, backend)
    probable = probable_deviation(row, 4096, backend, 1e9, 1.0)
    assert 0 < probable < 0.7 * worst
    assert probable_deviation(row, 4, backend, 1e9, 50.0) == beam_deviation(row, 4, backend)


def test_a_power_between_both_bounds_is_suspect() -> None:
    rng = np.random.default_rng(3)
    w, x = (
        rng.standard_normal((*shape, 2)).astype(np.float32).view(np.complex64)[..., 0]
        for shape in ((3, 4000), (4000, 8))
    )
    problem = beam_power_problem(
        w.shape, x.shape, detect="power", integrate=4, precision=PRECISIONS["fp32"]
    )
    reference = beam_power_reference(problem, w, x)
    result = beam_power(w, x, integrate=4, precision="fp32")
    found = assess_beam_power(reference, result, PRECISIONS["fp32"], backend="cpu")
    assert found.verdict == "verified"
    assert found.bound is not None
    assert found.worst_bound is not None
    assert found.bound < found.worst_bound
    size = float(np.linalg.norm(reference.exact.power))
    for bound, verdict in ((found.bound, "suspect"), (2 * found.worst_bound, "wrong")):
        moved = result.astype(float)
        moved[1, 1] += 1.01 * size * bound
        accuracy = assess_beam_power(reference, moved, PRECISIONS["fp32"], backend="cpu")
        assert accuracy.verdict == verdict, accuracy.reason


def test_powers_that_are_lost_or_not_finite_are_wrong() -> None:
    w, x = np.ones((2, 3), np.complex64), np.ones((3, 8), np.complex64)
    x[1, 5] = np.nan
    problem = beam_power_problem(
        w.shape, x.shape, detect="power", integrate=4, precision=PRECISIONS["fp32"]
    )
    reference = beam_power_reference(problem, w, x)
    result = beam_power(w, x, integrate=4, precision="fp32")
    accuracy = assess_beam_power(reference, result, PRECISIONS["fp32"], backend="cpu")
    assert accuracy.verdict == "verified", accuracy.reason
    for place, value, said in (
        ((0, 1), 36.0, "1 powers are finite where those of fp64 are not"),
        ((1, 0), np.nan, "1 powers are not finite where those of fp64 are; 2 of fp64 are not"),
    ):
        other = result.copy()
        other[place] = value
        accuracy = assess_beam_power(reference, other, PRECISIONS["fp32"], backend="cpu")
        assert said in accuracy.reason


def test_samples_whose_squares_underflow_in_fp64_where_the_power_does_not() -> None:
    """The power is no number of fp32: 0 is right."""
    w, x = np.array([[32 + 3j]]), np.array([[1.0, 1.3e-163]])
    problem = beam_power_problem(
        w.shape, x.shape, detect="power", integrate=1, precision=PRECISIONS["fp32"]
    )
    reference = beam_power_reference(problem, w, x)
    assert reference.exact.moduli[..., 1].item() == 0 < reference.exact.power[..., 1].item()
    result = beam_power(w, x, precision="fp32")
    accuracy = assess_beam_power(reference, result, PRECISIONS["fp32"], backend="cpu")
    assert accuracy.verdict == "verified", accuracy.reason
    result[0, 1] = 1e-30
    wrong = assess_beam_power(reference, result, PRECISIONS["fp32"], backend="cpu")
    assert wrong.verdict == "wrong"
