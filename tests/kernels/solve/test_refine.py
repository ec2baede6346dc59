"""Steps of refinement, by factors that solve as well or as badly as is said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from argand import solve
from argand.runtime.complex_types import UNIT_ROUNDOFF
from argand.solve import scaling
from argand.solve.cpu import CpuLibrary
from argand.solve.refine import TARGET, Solution, accepted, error_of_any_norms, refined
from argand.solve.scaling import times_power

from tests.kernels.solve.systems import backward_error, bound, far_rows, normal

N = 40
U = UNIT_ROUNDOFF["complex128"]


class Given:
    """Solutions that stand in the place of factors, one after another."""

    precision, as_gesv = "given", False

    def __init__(self, *solutions: Any) -> None:
        self._left: Iterator[Any] = iter(solutions)

    def solve(self, b: Any) -> Any:
        return next(self._left)


def refine(a: Any, b: Any, *solutions: Any) -> Solution:
    norm = float(abs(a).sum(axis=1).max())
    factors: Any = Given(*solutions)
    return refined(a, b, factors, norm=norm, unit_roundoff=U, library=CpuLibrary())


@pytest.fixture
def system(rng: np.random.Generator) -> tuple[Any, Any]:
    return normal(rng, N, N), normal(rng, N, 2)


def test_a_step_that_makes_it_worse_is_not_taken(system: tuple[Any, Any]) -> None:
    """The first solution is accepted, though its error is twice what refinement aims at."""
    a, x = system
    b = a @ x
    norm, off = abs(a).sum(axis=1).max(), np.zeros(x.shape, complex)
    off[3] = 2 * TARGET * U * (norm * abs(x).max(axis=0) + abs(b).max(axis=0)) / abs(a[:, 3]).max()
    found = refine(a, b, x + off, np.full(x.shape, 1e-3))
    np.testing.assert_array_equal(found.x, x + off)
    assert (found.steps, found.backward_error > TARGET * U) == (1, True)


def test_a_small_solution_beside_a_large_one_is_refined(system: tuple[Any, Any]) -> None:
    a, x = system
    x *= [1e-20, 1.0]
    off = np.zeros(x.shape, complex)
    off[:, 0] = 1e-3 * x[:, 0]
    found = refine(a, a @ x, x + off, -off)
    assert found.steps == 1
    np.testing.assert_allclose(found.x, x, rtol=1e-13)


def test_residuals_of_complex64_are_found_by_blocks_of_rows(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = (normal(rng, N, n).astype(np.complex64) for n in (N, 3))
    expected = solve(a, b, precision="7xint8", block=8, details=True)
    monkeypatch.setattr(scaling, "_VALUES", 7 * N)
    found = solve(a, b, precision="7xint8", block=8, details=True)
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-6)
    assert found.steps == expected.steps


@pytest.mark.parametrize(("x", "exponent"), [(-1000, 1500), (1000, -1500), (-1074, 2097)])
def test_powers_beyond_the_range_of_one_number(x: int, exponent: int) -> None:
    found = times_power(np.array([complex(2.0**x, -(2.0**x))]), exponent)
    assert found.tolist() == [complex(2.0 ** (x + exponent), -(2.0 ** (x + exponent)))]
    with np.errstate(over="ignore"):
        assert np.isinf(times_power(np.array([1.0 + 0j]), 2097).real)


@pytest.mark.parametrize("details", [False, True])
@pytest.mark.parametrize("n", [3, 40])
@pytest.mark.parametrize(("first", "last"), [(-664, 664), (-30, 1010), (-950, 200)])
def test_columns_of_far_powers_of_two_leave_the_solution(
    n: int, first: int, last: int, details: bool
) -> None:
    """Pivots, factors and x of columns times powers of two are the same but for these powers.

    Such systems were called singular, or their backward error NaN.
    """
    rng = np.random.default_rng(n)
    a, b = normal(rng, n, n), normal(rng, n, 2)
    powers = np.linspace(first, last, n).astype(int)
    found: Any = solve(np.ldexp(1.0, powers) * a, b, details=details)
    if details:
        assert 0 <= found.backward_error <= accepted(n, U)
        found = found.x
    for power in (powers // 2, powers - powers // 2):
        found = found * np.ldexp(1.0, power)[:, None]
    np.testing.assert_array_equal(found, solve(a, b))


@pytest.mark.parametrize(
    ("span", "options"), [(664, {}), (1000, {}), (664, {"block": 8}), (110, {"precision": "fp32"})]
)
@pytest.mark.parametrize("n", [3, 40])
def test_rows_of_far_powers_of_two_are_solved(n: int, span: int, options: dict[str, Any]) -> None:
    """Each row holds with its own power of two left out.

    zgesv's x is NaN or loses the small rows: multipliers and products leave the type's range.
    """
    dtype = "complex64" if options.get("precision") == "fp32" else "complex128"
    a, powers, b = far_rows(np.random.default_rng(n), n, span, dtype)
    far = (np.ldexp(1.0, powers) * a).astype(dtype)
    for least in (span, span, 0):  # rows of A above it have a b of 0
        b[powers[:, 0] > least] = 0
        found = solve(far, b, details=True, **options)
        assert found.x.dtype == dtype
        sides = b * np.ldexp(np.longdouble(1), -powers)
        assert backward_error(a, found.x, sides) <= bound(n, dtype)
        np.testing.assert_array_equal(solve(far, b, **options), found.x)
    assert not solve(far, 0 * b, **options).any()
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        solve(far * (powers < span), b, **options)


def test_a_solution_beyond_the_type_is_refused() -> None:
    """By rows that are scaled each, and by one power."""
    for a, b in ((np.diag([1e-200, 1e200]), [1e200, 1]), (np.diag([1e-200, 1e-200]), [1e200, 1])):
        with pytest.raises(np.linalg.LinAlgError, match="x leaves the range of complex128"):
            solve(a + 0j, np.array(b) + 0j)


@pytest.mark.parametrize("n", [2, 40])
@pytest.mark.parametrize("options", [{}, {"details": True}, {"block": 8}, {"precision": "fp32"}])
def test_a_solution_beyond_complex64_is_refused(n: int, options: dict[str, Any]) -> None:
    """The factors and x of complex64 operands are complex128 on the CPU."""
    eye, b = np.eye(n, dtype="complex64"), np.ones(n, "complex64")
    one = eye.copy()
    one[0, 0], b[0] = 2.0**-100, 2.0**28
    for a in (one, np.float32(2.0**-100) * eye):
        with pytest.raises(np.linalg.LinAlgError, match="x leaves the range of complex64"):
            solve(a, b, **options)


def test_the_error_of_any_norms_is_that_of_the_system_near_1() -> None:
    rng = np.random.default_rng(1)
    a, b = normal(rng, 9, 9), normal(rng, 9, 3)
    b[:, 2] = 0
    x = np.linalg.solve(a, b) * (1 + 1e-9)

    def error(of_a: float, of_b: float, x: Any = x) -> float:
        return error_of_any_norms(of_a * a, of_b / of_a * x, of_b * b, CpuLibrary())

    near = error(1, 1)
    assert 1e-11 < near < 1e-8
    for of_a, of_b in ((2.0**1000, 2.0**900), (2.0**-900, 2.0**-900), (2.0**500, 2.0**-500)):
        assert error(of_a, of_b) == near
    assert error(2.0**700, 2.0**-300, 0 * x) == 1
    assert np.isnan(error(1, 1, np.full((9, 3), np.inf)))


@pytest.mark.parametrize("details", [False, True])
def test_a_solution_by_factors_that_overflow_is_refused(details: bool) -> None:
    """The second pivot is out of range: LAPACK's x is (1, 0), not (0, 7e-309); the norm of its
    error is below a unit roundoff of that of A."""
    a = np.array([[1, 1.5e308], [-1, 1.5e308]], complex)
    with pytest.raises(np.linalg.LinAlgError, match="backward error is nan"):
        solve(a, np.ones(2, complex), details=details)
