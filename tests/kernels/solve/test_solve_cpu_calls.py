"""Systems of NumPy arrays whose form came before: checked once, also those that need more steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from argand import solve
from argand.runtime.complex_types import UNIT_ROUNDOFF
from argand.solve import api, cpu_calls, cpu_zgesv, refine


@pytest.fixture(autouse=True)
def new_calls() -> Iterator[None]:
    api._CPU_CALLS.clear()
    yield
    api._CPU_CALLS.clear()  # calls kept with other values


def normal(rng: np.random.Generator, dtype: str, *shape: int) -> Any:
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("columns", [(), (1,), (3,)])
@pytest.mark.parametrize("n", [1, 2, 9, 40])
def test_repeated_systems_are_solved(
    n: int, columns: tuple[int, ...], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(n)
    for repeated in range(4):
        a, b = normal(rng, dtype, n, n), normal(rng, dtype, n, *columns)
        wide = np.zeros((2 * n, 3 * n), dtype)
        wide[::2, ::3] = a
        for matrix in (a, np.asfortranarray(a), wide[::2, ::3]):
            before = matrix.copy(), b.copy()
            found = solve(matrix, b, details=True)
            assert found.x.shape == b.shape
            assert found.x.dtype == dtype
            assert found.backward_error <= 4 * np.sqrt(n) * UNIT_ROUNDOFF[dtype]
            left = abs(a).sum(1).max() * abs(found.x).max() + abs(b).max()
            assert abs(a @ found.x.astype(complex) - b).max() <= 9 * n * UNIT_ROUNDOFF[dtype] * left
            np.testing.assert_array_equal(solve(matrix, b), found.x)
            np.testing.assert_array_equal(matrix, before[0])
            np.testing.assert_array_equal(b, before[1])
        if not repeated:
            monkeypatch.setattr(api, "solve_problem", None)  # a call that is checked fails


def test_what_needs_more_than_lapack_gets_it_at_every_call() -> None:
    rng = np.random.default_rng(1)
    a, b = normal(rng, "complex128", 6, 6), normal(rng, "complex128", 6, 2)
    first = solve(a, b)
    for _ in range(2):
        np.testing.assert_allclose(solve(1e-150 * a, 1e100 * b), 1e250 * first, rtol=1e-9)
        np.testing.assert_array_equal(solve(a, 0 * b), 0 * b)
        with pytest.raises(np.linalg.LinAlgError, match="singular: after elimination column 5 is"):
            solve(np.vstack([a[:5], 0 * a[:1]]), b)
        for bad, name in (((a + np.nan, b), "a"), ((a, b + np.inf), "b")):
            with pytest.raises(ValueError, match=f"{name} must be finite"):
                solve(*bad)
        with pytest.raises(ValueError, match="b must have shape"):
            solve(a, b[:5])


def test_a_system_that_is_to_be_refined_is(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    a, b = normal(rng, "complex64", 60, 60), normal(rng, "complex64", 60)
    refined, function = [], refine.refined

    def counted(*arguments: Any, **options: Any) -> Any:
        refined.append(arguments)
        return function(*arguments, **options)

    monkeypatch.setattr(refine, "refined", counted)
    monkeypatch.setattr(refine, "TARGET", 1e-12)  # no factors reach it alone
    for count in (1, 2):
        with pytest.raises(np.linalg.LinAlgError, match="steps of refinement, above"):
            solve(a, b)
        assert len(refined) == count


def test_a_complex64_system_whose_error_is_not_asked_for_is_refined_as_others_are() -> None:
    """Wilkinson's matrix, whose last column doubles at every pivot; and columns that are 0."""
    rng = np.random.default_rng(4)
    n = 60
    a = (np.eye(n) - np.tril(np.ones((n, n)), -1)).astype(np.complex64)
    a[:, -1] = 1
    b = normal(rng, "complex64", n, 2)
    found = solve(a, b, details=True)
    assert found.steps > 0
    for _ in range(2):
        np.testing.assert_array_equal(solve(a, b), found.x)
        np.testing.assert_array_equal(solve(a, 0 * b), 0 * b)
        half = solve(a, b * np.float32([0, 1]))
        np.testing.assert_array_equal(half, found.x * np.float32([0, 1]))
        with pytest.raises(np.linalg.LinAlgError, match="singular"):
            solve(0 * a, b)
        for bad, name in (((a + np.nan, b), "a"), ((a, b + np.inf), "b")):
            with pytest.raises(ValueError, match=f"{name} must be finite"):
                solve(*bad)


@pytest.mark.parametrize("columns", [(), (3,), (20,)])
@pytest.mark.parametrize("n", [24, 60])
def test_a_system_whose_error_is_not_asked_for_is_refined_as_others_are(
    n: int, columns: tuple[int, ...]
) -> None:
    """Wilkinson's matrix in complex128."""
    rng = np.random.default_rng(n)
    a = np.eye(n) - np.tril(np.ones((n, n)), -1) + 0j
    a[:, -1] = 1
    b = normal(rng, "complex128", n, *columns)
    found = solve(a, b, details=True)
    assert found.steps > 0
    for matrix in (a, np.asfortranarray(a)):
        np.testing.assert_array_equal(solve(matrix, b), solve(matrix, b, details=True).x)
        np.testing.assert_array_equal(solve(matrix, 0 * b), 0 * b)
        np.testing.assert_array_equal(
            solve(1e200 * matrix, b, details=True).x, solve(1e200 * matrix, b)
        )
        with pytest.raises(np.linalg.LinAlgError, match="singular"):
            solve(0 * matrix + 1, b)


FORMS = [
    (dtype, n, columns)
    for dtype in ("complex64", "complex128")
    for n, columns in ((2, 40), (9, 1), (9, 3), (9, 9), (40, 20), (150, 1), (150, 4), (150, 9))
]
"""Sizes of each of the ways to bound an error."""


@pytest.mark.parametrize(("dtype", "n", "columns"), FORMS)
def test_steps_that_details_need_are_left_out(
    dtype: str, n: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By rows and by columns, of right-hand sides of several sizes; with the same bits."""
    rng = np.random.default_rng(n)
    a, b = normal(rng, dtype, n, n), normal(rng, dtype, n, columns)
    b[:, ::2] *= b.real.dtype.type(2e-3)
    expected = solve(a, b, details=True)
    monkeypatch.setattr(cpu_calls, "_measured", lambda _: None)
    api._CPU_CALLS.clear()
    for matrix in (a, np.asfortranarray(a)):
        np.testing.assert_array_equal(solve(matrix, b), expected.x)
        with pytest.raises(TypeError):
            solve(matrix, b, details=True)


@pytest.mark.parametrize(("dtype", "n", "columns"), FORMS)
def test_one_right_hand_side_that_is_not_finite_is_refused(
    dtype: str, n: int, columns: int
) -> None:
    rng = np.random.default_rng(n)
    a, b = normal(rng, dtype, n, n), normal(rng, dtype, n, columns)
    solve(a, b)
    for place in ((0, 0), (n - 1, columns - 1)):
        for value in (np.nan, np.inf):
            bad = b.copy()
            bad[place] = value
            with pytest.raises(ValueError, match="b must be finite"):
                solve(a, bad)
            bad = a.copy()
            bad[n - 1, place[0]] = value
            with pytest.raises(ValueError, match="a must be finite"):
                solve(bad, b)


def test_zgesvs_solution_is_refined_only_where_it_is_not_accepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(5)
    a, b = normal(rng, "complex128", 250, 250), normal(rng, "complex128", 250, 4)
    first = solve(a, b, details=True)
    numpys = cpu_zgesv.lapack_address("zgesv") is not None
    expected = np.linalg.solve(a, b) if numpys else scipy.linalg.lapack.zgesv(a, b)[2]
    np.testing.assert_array_equal(first.x, expected)
    for share, refined in ((0.1, False), (0.05, True)):  # of 4 sqrt(n) u, 1.6 and 0.8 times as much
        monkeypatch.setattr(refine, "TARGET", share * first.backward_error * 2**53)
        api._CPU_CALLS.clear()
        found = solve(a, b, details=True)
        assert (found.steps > 0) == refined
        assert (found.backward_error < first.backward_error / 2) == refined
        for matrix in (a, a.tolist()):
            np.testing.assert_array_equal(solve(matrix, b), found.x)


def assert_solved_by_factors(a: Any, x: Any, b: Any, lu: Any, pivots: Any) -> None:
    """Hold each element of the residual to what rounding adds up to for P A = L U.

    The factors, two substitutions and the residual itself are sums of at most n products. One
    errs by n u for its additions and by at most 12 u for a product (2 sqrt(2) u), a reciprocal
    (4 sqrt(2) u) and the product with it, relative to |L| |U| |x| + |b| (Higham, Accuracy and
    Stability, 3.6 and theorems 9.3 and 9.4); 1.01 covers the terms of second order.
    """
    n = len(a)
    rows = np.arange(n)
    for row, pivot in enumerate(pivots):
        rows[[row, pivot]] = rows[[pivot, row]]
    size = (abs(np.tril(lu, -1)) + np.eye(n)) @ abs(np.triu(lu)) @ abs(x) + abs(b[rows])
    bound = 1.01 * 4 * (n + 12) * UNIT_ROUNDOFF["complex128"] * size
    left = abs((b - a @ x)[rows])
    assert (left <= bound).all(), (left / bound).max()


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("n", [1, 5, 40])
def test_both_libraries_solve_in_memory_that_is_kept(
    monkeypatch: pytest.MonkeyPatch, n: int, columns: int
) -> None:
    """Factors and pivots, counted from 0, are those that SciPy's routines read."""
    rng = np.random.default_rng(n)
    for address in (cpu_zgesv.lapack_address("zgesv"), None):
        monkeypatch.setattr(cpu_zgesv, "lapack_address", lambda _, found=address: found)
        monkeypatch.setattr(cpu_zgesv, "_MIN_ROWS", 1)
        kept = cpu_zgesv.kept_systems(n, columns)
        lu, x, solved, pivots = kept.new()
        for _ in range(2):
            a, b = normal(rng, "complex128", n, n), normal(rng, "complex128", n, columns)
            lu[...], x[...] = a, b
            assert solved() == 0
            again, info = scipy.linalg.lapack.zgetrs(lu, pivots(), b)
            assert info == 0
            for found in (x, again):
                assert_solved_by_factors(a, found, b, lu, pivots())
        lu[...] = 0
        assert solved() == 1


@pytest.mark.skipif(cpu_zgesv.lapack_address("zgesv") is None, reason="NumPy has another LAPACK")
def test_solutions_of_numpys_lapack_are_those_of_numpy() -> None:
    rng = np.random.default_rng(3)
    for n, columns in ((16, 1), (70, 5), (520, 2)):
        a, b = normal(rng, "complex128", n, n), normal(rng, "complex128", n, columns)
        found = solve(a, b)
        np.testing.assert_array_equal(found, np.linalg.solve(a, b))
        earlier = found.copy()
        solve(a, 2 * b)
        np.testing.assert_array_equal(found, earlier)


@pytest.mark.parametrize("n", [4, 40])
def test_a_solution_that_overflows_is_refused(n: int) -> None:
    a, b = np.eye(n, dtype=complex), np.full(n, 1e70 + 0j)
    a[1, 1] = 1e-300
    for details in (True, False):
        with pytest.raises(np.linalg.LinAlgError, match="x leaves the range of complex128"):
            solve(a, b, details=details)


def test_blas_takes_one_core_for_norms_where_zgesv_does(monkeypatch: pytest.MonkeyPatch) -> None:
    one_core = []

    def counted(function: Any, *arguments: Any) -> Any:
        one_core.append(len(arguments[-1]))
        return function(*arguments)

    monkeypatch.setattr(cpu_calls, "available_cores", lambda: 2)
    monkeypatch.setattr(cpu_calls, "scipy_on_one_core", counted)
    rng = np.random.default_rng(6)
    for n, columns in ((60, 3), (63, 1), (64, 1), (64, 17), (101, 2), (199, 1), (200, 1)):
        a, b = normal(rng, "complex128", n, n), normal(rng, "complex128", n, columns)
        np.testing.assert_allclose(a @ solve(a, b), b, rtol=0, atol=1e-9)
        single = solve(a.astype("complex64"), b.astype("complex64"))
        np.testing.assert_allclose(a @ single, b, rtol=0, atol=1e-1)
    # Of 200 rows threads solve, so that only norms are counted, before and after zgesv.
    assert one_core == [101, 101, 199, 199, 200, 200, 200, 200]


@pytest.mark.parametrize("columns", [2, 9])
def test_numbers_that_are_0_have_no_quotient_and_no_warning(columns: int) -> None:
    rng = np.random.default_rng(columns)
    a, b = np.diag(normal(rng, "complex128", 4)), normal(rng, "complex128", 4, columns)
    b[1, ::2] = b[2] = 0
    with np.errstate(all="raise"):
        for right in (b, 2.0**-300 * b, b * (np.arange(columns) > 0)):
            for _ in range(2):
                found = solve(a, right)
                np.testing.assert_allclose(found, right / np.diag(a)[:, None], rtol=1e-15)
                np.testing.assert_array_equal(found, solve(a, right, details=True).x)
