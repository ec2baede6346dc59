"""Solutions of systems and adaptive weights: their bounds hold, and errors just beyond are seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, solve
from argand.precision import any_precision

from tests.kernels.solve.systems import SYSTEMS, normal, system
from workflow.accuracy import Accuracy, solution_accuracy
from workflow.accuracy.adaptive_accuracy import adaptive_reference, assess_adaptive
from workflow.accuracy.solution_accuracy import assess_solution, backward_bound, solution_reference

PRECISION_NAMES = ("fp64", "fp32", "3xtf32", "fp16", "7xint8", "12xint8", "15xint8")


def solved(a: Any, b: Any, precision: str) -> Any:
    row = any_precision(precision)
    given = (x.astype(row.output) for x in (a, b))
    return solve(*given, precision=precision, block=16)[None]


def assessed(a: Any, b: Any, x: Any, precision: str, expected: Any = None) -> Accuracy:
    reference = solution_reference(a[None], b[None], expected)
    return assess_solution(reference, x, any_precision(precision))


@pytest.mark.pairwise
@pytest.mark.parametrize("precision", PRECISION_NAMES)
@pytest.mark.parametrize("n", [1, 7, 60])
def test_right_solutions_verify(rng: np.random.Generator, n: int, precision: str) -> None:
    a, b = normal(rng, n, n) + 2 * n**0.5 * np.eye(n), normal(rng, n, 3)
    found = assessed(a, b, solved(a, b, precision), precision)
    assert found.verified, found.reason
    assert found.measures["backward_error"] is not None
    assert found.measures["backward_error"] <= backward_bound(n, any_precision(precision), a.dtype)
    assert 0 <= found.rel_frobenius <= found.bound  # 0: the same getrf
    assert found.error_limit == found.rel_frobenius
    assert max(found.componentwise_re, found.componentwise_im) < 1e-2


@pytest.mark.parametrize("kind", SYSTEMS)
def test_the_bound_encloses_the_error(rng: np.random.Generator, kind: str) -> None:
    """The exact solution is known: b is made of it, in more digits than fp64 has."""
    n = 40
    a, x = system(kind, n, rng).astype(complex), normal(rng, n, 2)
    b = np.asarray(a.astype(np.clongdouble) @ x.astype(np.clongdouble)).astype(complex)
    found = solved(a, b, "15xint8")
    accuracy = assessed(a, b, found, "15xint8", x[None])
    assert accuracy.verdict in ("verified", "unproven"), accuracy.reason
    # Rounding b to fp64 moves the solution as an error of u in b does.
    moved = np.abs(np.linalg.inv(a)) @ np.abs(b) * 2.0**-53
    allowed = accuracy.bound + np.linalg.norm(moved) / np.linalg.norm(x)
    assert accuracy.measures["expected_error"] <= allowed * (1 + 1e-12)


def test_an_error_beyond_the_bound_is_wrong(rng: np.random.Generator) -> None:
    n = 50
    a, b = normal(rng, n, n), normal(rng, n, 2)
    x = solved(a, b, "fp64")
    allowed = backward_bound(n, any_precision("fp64"), a.dtype)
    scale = np.abs(a).sum(axis=1).max() * np.abs(x[0, :, 1]).max() + np.abs(b[:, 1]).max()
    for factor, verdict in ((0.5, "verified"), (4.0, "wrong")):
        off = x.copy()
        off[0, 7, 1] += factor * allowed * scale / np.abs(a[:, 7]).max()
        accuracy = assessed(a, b, off, "fp64")
        assert accuracy.verdict == verdict, accuracy.reason
    assert "system 0, right-hand side 1: backward_error" in accuracy.reason


def test_a_solution_of_another_precision_is_wrong(rng: np.random.Generator) -> None:
    """fp32's errors are far beyond fp64's bound."""
    a, b = normal(rng, 30, 30), normal(rng, 30, 1)
    x = solved(a, b, "fp32").astype(complex)
    assert assessed(a, b, x, "fp32").verified
    assert assessed(a, b, x, "fp64").verdict == "wrong"


def test_exchanged_columns_and_nan_are_wrong(rng: np.random.Generator) -> None:
    a, b = normal(rng, 20, 20), normal(rng, 20, 2)
    x = solved(a, b, "fp64")
    assert assessed(a, b, x[..., ::-1], "fp64").verdict == "wrong"
    x[0, 3, 1] = np.nan
    said = "1 unknowns of system 0 are not finite where those of fp64 are"
    assert assessed(a, b, x, "fp64").reason.startswith(said)


@pytest.mark.parametrize(
    ("precision", "scale", "said"),
    [
        (
            "fp32", 1e-20, "8 unknowns of system 0 are not finite where those of fp64 are; beyond "
            "3.4e+38, the largest complex64, is infinity: scale the data",
        ),
        (
            "fp64", 1e-160,
            "system 0: the solution is not finite, and in fp64 neither: scale the data",
        ),
    ],
)  # fmt: skip
def test_solutions_beyond_the_range_are_named(
    rng: np.random.Generator, precision: str, scale: float, said: str
) -> None:
    a, b = scale * normal(rng, 4, 4), normal(rng, 4, 2) / scale
    kind = any_precision(precision).output
    with np.errstate(all="ignore"):  # `solve` itself refuses such an x
        x = np.linalg.solve(a.astype(kind), b.astype(kind))[None]
        found = assessed(a, b, x, precision)
    assert found.verdict == "wrong"
    assert found.reason.startswith(said)


def test_close_to_singular_is_unproven(rng: np.random.Generator) -> None:
    """A condition of 1e15 leaves no digit, however small the backward error is."""
    n = 30
    left, right = (np.linalg.qr(normal(rng, n, n))[0] for _ in range(2))
    a, b = left * np.geomspace(1, 1e-15, n) @ right, normal(rng, n, 1)
    accuracy = assessed(a, b, solved(a, b, "fp64"), "fp64")
    assert accuracy.verdict == "unproven"
    assert accuracy.measures["backward_error"] < 1e-14


def test_singular_is_wrong_whatever_the_solution() -> None:
    a, b = np.ones((3, 3), complex), np.ones((3, 1), complex)
    accuracy = assessed(a, b, np.full((1, 3, 1), 1 / 3, complex), "fp64")
    assert accuracy.verdict == "wrong"
    assert "the matrix is singular in fp64" in accuracy.reason


def test_zero_right_hand_sides_have_the_solution_zero(rng: np.random.Generator) -> None:
    a, b = normal(rng, 5, 5), np.zeros((5, 2), complex)
    accuracy = assessed(a, b, np.zeros((1, 5, 2), complex), "fp64")
    assert accuracy.verified, accuracy.reason
    assert accuracy.rel_frobenius == accuracy.measures["backward_error"] == 0
    wrong = np.zeros((1, 5, 2), complex)
    wrong[0, 1, 1] = 1e-300
    assert assessed(a, b, wrong, "fp64").verdict == "wrong"


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_scaled_systems(rng: np.random.Generator, scale: float) -> None:
    a, b = normal(rng, 25, 25) * scale, normal(rng, 25, 2)
    accuracy = assessed(a, b, solved(a, b, "fp64"), "fp64")
    assert accuracy.verified, accuracy.reason


def test_a_shared_matrix_and_shared_sides(rng: np.random.Generator) -> None:
    a, b = normal(rng, 2, 9, 9), normal(rng, 1, 9, 3)
    x = np.stack([np.linalg.solve(one, b[0]) for one in a])
    assert assess_solution(solution_reference(a, b), x, any_precision("fp64")).verified
    a, b = normal(rng, 1, 9, 9), normal(rng, 2, 9, 3)
    x = np.stack([np.linalg.solve(a[0], one) for one in b])
    assert assess_solution(solution_reference(a, b), x, any_precision("fp64")).verified
    swapped = assess_solution(solution_reference(a, b), x[::-1], any_precision("fp64"))
    assert swapped.verdict == "wrong"


def test_expected_error_is_relative() -> None:
    a, b = np.eye(4, dtype=complex), np.ones((4, 1), complex)
    accuracy = assessed(a, b, b[None], "fp64", 2 * b[None])
    assert accuracy.verified
    assert accuracy.measures["expected_error"] == 0.5


def test_the_bound_of_each_system_is_by_its_own_inverse(rng: np.random.Generator) -> None:
    a = np.array([np.eye(2), np.diag([1, 1e-9])], complex)
    b = a @ np.ones((2, 2, 1))
    reference = solution_reference(a, b)
    off = np.array([[[0], [0]], [[0], [1e-7]]])  # a residual of 1e-16
    found = assess_solution(reference, reference.x + off, any_precision("fp64"))
    assert found.verified, found.reason
    assert found.rel_frobenius == pytest.approx(5e-8, rel=1e-6)
    assert found.rel_frobenius <= found.bound


def test_the_error_of_an_inverse_is_enclosed_by_rows(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the inverse is off by as much as itself; the inverse by what rounding takes."""
    a = normal(rng, 9, 9)
    inverse = np.linalg.inv(a)
    whole = [solution_accuracy._inverse_error(x, a) for x in (inverse / 2, inverse)]
    assert whole[0] >= 1
    assert whole[1] < 1e-11
    monkeypatch.setattr(solution_accuracy, "_ROWS", 4)
    in_parts = [solution_accuracy._inverse_error(x, a) for x in (inverse / 2, inverse)]
    np.testing.assert_allclose(in_parts, whole, rtol=0.5)
    with np.errstate(all="ignore"):
        assert solution_accuracy._inverse_error(inverse * np.inf, a) == np.inf


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
