"""Bias compensation of gates, on a model of the truncation of tensor cores."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS
from argand.device import arch_for
from argand.gates.heuristics import mma_plans
from argand.gates.plan import GatePlan
from argand.gates.truncation import TruncationBias, compensated, k_tiles_of, truncation_bias

from tests.kernels.gates.gate_cases import random_unitary
from tests.kernels.tensor_core_sums import added

Array = npt.NDArray[Any]
ARCH = arch_for(90)


def plan_for(
    kind: str, width: int, *, targets_qubit0: bool = False, precision: str = "3xfp16"
) -> GatePlan:
    """The plan of a kind."""
    plans = mma_plans(PRECISIONS[precision], ARCH, width=width, targets_qubit0=targets_qubit0)
    return next(plan for plan in plans if plan.kind == kind)


def two_terms(x: Array) -> tuple[Array, Array]:
    """As fp16, scaled so that the largest lies below 2^15."""
    first = x.astype(np.float16).astype(np.float64)
    return first, (x - first).astype(np.float16).astype(np.float64)


def scaled(x: Array) -> tuple[Array, float]:
    """A real and an imaginary part by a power of two that brings the largest below 2^15."""
    largest = max(np.abs(x.real).max(), np.abs(x.imag).max())
    power = 2.0 ** (14 - np.floor(np.log2(largest)))
    return np.stack([x.real, x.imag]) * power, power


def multiplied(matrix: Array, state: Array, plan: GatePlan) -> Array:
    """The product of a warpgroup: small products first, k-tiles from the last one down."""
    given, up = scaled(matrix.astype(np.complex64).astype(np.complex128))
    amplitudes, across = scaled(state)
    u, x = [two_terms(part) for part in given], [two_terms(part) for part in amplitudes]
    k_tiles, parts = k_tiles_of(plan), []
    for part in (0, 1):
        sums = np.zeros((len(matrix), state.shape[1]))
        for own, other in ((0, 1), (1, 0), (0, 0)):
            for k_tile in reversed(range(int(k_tiles.max()) + 1)):
                at = np.flatnonzero(k_tiles == k_tile)
                sign = 1 if part else -1
                sums = added(sums, u[0][own][:, at], x[part][other][at])
                sums = added(sums, sign * u[1][own][:, at], x[1 - part][other][at])
        parts.append(sums)
    return np.asarray((parts[0] + 1j * parts[1]) / (up * across))


def random_columns(rng: np.random.Generator, order: int) -> Array:
    """Normal amplitudes of complex64, of norm 1."""
    normal = rng.standard_normal((2, order, 4096 // order))
    state = normal[0] + 1j * normal[1]
    return np.asarray((state / np.linalg.norm(state)).astype(np.complex64).astype(np.complex128))


def drift(found: Array) -> float:
    """The change of a norm that was 1."""
    return float(np.linalg.norm(found)) - 1


def loss(found: Array, expected: Array) -> float:
    """How far a state of norm 1 is off."""
    return float(np.linalg.norm(found - expected))


@pytest.mark.parametrize("targets_qubit0", [False, True])
@pytest.mark.parametrize("width", [6, 7])
def test_compensation_removes_the_bias(
    rng: np.random.Generator, width: int, targets_qubit0: bool
) -> None:
    order, plan = 2**width, plan_for("wgmma", width, targets_qubit0=targets_qubit0)
    matrix, state = random_unitary(rng, width), random_columns(rng, order)
    expected = matrix @ state
    biased, left = (multiplied(given, state, plan) for given in (matrix, compensated(matrix, plan)))
    assert drift(biased) < -1e-7
    assert abs(drift(left)) < abs(drift(biased)) / 10
    # What each sum loses at random stays: 2^-24 relative to it for each k-tile's two parts.
    assert loss(left, expected) < min(
        loss(biased, expected), 2.0**-24 * np.sqrt(2 * (order / 16 + 1))
    )


def test_a_row_of_one_entry_is_left_as_it_is(rng: np.random.Generator) -> None:
    plan, matrix = plan_for("mma", 5), np.eye(32, dtype=complex)
    matrix[:4, :4] = random_unitary(rng, 2)
    found = compensated(matrix, plan)
    np.testing.assert_array_equal(found[4:], matrix[4:])
    assert (np.abs(found[:4, :4]) > np.abs(matrix[:4, :4])).all()


def test_the_k_tiles_of_every_kernel() -> None:
    for kind, width, precision, depth in (
        ("mma", 4, "3xfp16", 16), ("mma", 6, "3xtf32", 8), ("wgmma", 7, "3xfp16", 16),
        ("wgmma", 7, "tf32", 8),
    ):  # fmt: skip
        for targets_qubit0 in (False, True):
            plan = plan_for(kind, width, targets_qubit0=targets_qubit0, precision=precision)
            assert (np.bincount(k_tiles_of(plan)) == depth).all()
    later = compensated(
        np.ones((128, 128), complex), plan_for("wgmma", 7), TruncationBias(1e-3, 1e-2)
    ).real
    np.testing.assert_allclose(later[0, [0, 2, 4, 14]], 1 + np.array([1, 11, 21, 71]) * 5e-4, 1e-6)


def test_one_term_is_not_compensated(rng: np.random.Generator) -> None:
    matrix = random_unitary(rng, 6)
    assert compensated(matrix, plan_for("wgmma", 6, precision="fp16")) is matrix
    assert truncation_bias(plan_for("mma", 6, precision="tf32")) == TruncationBias(0.0, 0.0)


def test_every_kernel_of_split_precisions_has_a_bias() -> None:
    for precision in ("3xfp16", "3xtf32"):
        for width in range(4, 8 if precision == "3xfp16" else 7):
            for plan in mma_plans(PRECISIONS[precision], ARCH, width=width, targets_qubit0=False):
                assert 0 < truncation_bias(plan).own < 2.0**-23
