"""Adaptive weights of an ill-conditioned covariance: errors that its inverse would allow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS

from workflow.accuracy import Accuracy
from workflow.accuracy.adaptive_accuracy import adaptive_reference, assess_adaptive

N, SMALLEST = 6, 1e-3
"""Antennas, and the least eigenvalue of a covariance whose others are 1."""
Array = np.ndarray[Any, Any]


@pytest.fixture
def case(rng: np.random.Generator) -> Any:
    """A reference, the directions of a covariance, and the weights that steer."""
    parts = rng.standard_normal((2, N, N + 1))
    drawn = parts[0] + 1j * parts[1]
    directions, c = np.linalg.qr(drawn[:, :N])[0], drawn[:, N]
    r = (directions * [*[1.0] * (N - 1), SMALLEST]) @ directions.conj().T
    return adaptive_reference(r[None, None], c[None, None], 0.0), directions, c


def assess(reference: Any, weights: Array) -> Accuracy:
    return assess_adaptive(reference, weights.astype("c8"), PRECISIONS["fp32"], 0.0)


def test_right_weights_verify(case: Any) -> None:
    found = assess(case[0], case[0].w)
    assert found.verified, found.reason


def test_a_gain_that_is_not_1_is_wrong(case: Any) -> None:
    found = assess(case[0], 1.001 * case[0].w)
    assert found.rel_frobenius == pytest.approx(1e-3, rel=1e-3)
    assert found.rel_frobenius < found.bound
    assert found.verdict == "wrong"
    assert "a beam's constraint is off" in found.reason


def test_a_residual_of_strong_directions_is_wrong(case: Any) -> None:
    """Off by what leaves the gain as it is, in two directions of the largest eigenvalue."""
    reference, directions, c = case
    gains = c @ directions[:, :2]
    off = directions[:, 0] * gains[1] - directions[:, 1] * gains[0]
    off *= 1e-3 * np.linalg.norm(reference.w) / np.linalg.norm(off)
    found = assess(reference, reference.w + off.conj())
    assert found.rel_frobenius == pytest.approx(1e-3, rel=1e-2)
    assert found.rel_frobenius < found.bound
    assert found.verdict == "wrong"
    assert found.reason.startswith("a residual is")
