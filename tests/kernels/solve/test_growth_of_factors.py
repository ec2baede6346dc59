"""Growth of factors on the CPU: what is accepted without a residual, and what it leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from argand import solve
from argand.solve import error_bounds, refine
from argand.solve.problem import solve_problem

from tests.kernels.solve.systems import SYSTEMS, U, backward_error, bound, normal, system


def bound_of(dtype: str, n: int) -> error_bounds.Bound:
    types = np.dtype(dtype)
    return error_bounds.bounded_by_factors(
        solve_problem(((n, n), types), ((n, 3), types), "cpu", precision=None)
    )


@pytest.mark.parametrize("scale", [1e-7, 1.0, 1e7])
@pytest.mark.parametrize("n", [2, 30, 200])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_factors_of_random_matrices_suffice_at_all_scales(dtype: str, n: int, scale: float) -> None:
    """Factors that have grown are refused, as are numbers not finite or to be scaled."""
    rng = np.random.default_rng(n)
    is_accepted = bound_of(dtype, n)
    a, b = scale * normal(rng, n, n), normal(rng, n, 3)
    size = error_bounds.sums(a)
    np.testing.assert_allclose(size, (abs(a.real) + abs(a.imag)).sum(), rtol=1e-12)
    np.testing.assert_allclose(error_bounds.squares(a), np.linalg.norm(a) ** 2, rtol=1e-12)
    lu, _, x, _ = scipy.linalg.lapack.zgesv(a, b)
    assert is_accepted(size, a, lu, x)
    grown = lu.copy("F")
    grown[0, 0] *= 2.0**60
    assert not is_accepted(size, a, grown, x)
    assert not is_accepted(size * 1e-100, a, lu, x)
    for value in (np.nan, np.inf, 1e99):
        bad = x.copy("F")
        bad[:, 1] *= value
        assert not is_accepted(size, a, lu, bad)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("matrix", [
    np.eye(90) + 0j, np.diag(10.0 ** np.arange(-40, 41)) + 0j,
    normal(np.random.default_rng(2), 150, 150) + 300 * np.eye(150),
])  # fmt: skip
def test_uneven_matrices_suffice(matrix: Any, scale: float) -> None:
    a = scale * matrix
    b = normal(np.random.default_rng(3), len(a), 3)
    lu, _, x, _ = scipy.linalg.lapack.zgesv(a, b)
    assert bound_of("complex128", len(a))(error_bounds.sums(a), a, lu, x)


def growing(n: int, below: float, block: int) -> Any:
    """Wilkinson's matrix of some rows with -``below`` in its triangle, and a random one."""
    a = normal(np.random.default_rng(block), n, n)
    a[:block], a[:, :block] = 0, 0
    a[:block, :block] = np.eye(block) - below * np.tril(np.ones((block, block)), -1)
    a[:block, block - 1] = 1
    return a


def evenly_summed(n: int, diagonal: float) -> Any:
    """Equal numbers, whose roundings have one sign."""
    return np.full((n, n), 0.1 + 0.1j) + diagonal * np.eye(n)


@pytest.mark.parametrize("matrix", [
    *(growing(n, below, n) for n in (8, 24, 60) for below in (0.05, 0.1, 0.2, 0.3, 0.5, 1)),
    *(growing(n, 1, block) for n in (24, 60, 150, 300) for block in (4, 8, 12, 16, 20)),
    *(evenly_summed(n, diagonal) for n in (60, 300) for diagonal in (1e-3, 1, 30)),
    *(scipy.linalg.dft(n) for n in (16, 81, 250)),
    *(system(kind, n, np.random.default_rng(n)) for n in (5, 40, 250) for kind in SYSTEMS),
])  # fmt: skip
def test_an_accepted_growth_leaves_no_larger_error(matrix: Any) -> None:
    """One solution is a column of ones, whose roundings do not change their sign."""
    n, rng = len(matrix), np.random.default_rng(1)
    a, b = matrix.astype(complex), normal(rng, n, 3)
    b[:, 0] = a.sum(axis=1)
    lu, _, x, _ = scipy.linalg.lapack.zgesv(a, b)
    if bound_of("complex128", n)(error_bounds.sums(a), a, lu, x):
        assert backward_error(a, x, b) <= refine.accepted(n, U["complex128"])
    np.testing.assert_array_less(backward_error(a, solve(a, b), b), bound(n, "complex128"))
