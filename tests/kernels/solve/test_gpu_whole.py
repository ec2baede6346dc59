"""Matrices that a GPU's library factors whole: kernels around it, and what is accepted or not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from argand import solve
from argand.device import gpu
from argand.runtime.complex_types import PRECISION, UNIT_ROUNDOFF
from argand.solve.problem import solve_problem

from tests.kernels.solve.systems import backward_error, bound, normal, solved

pytestmark = pytest.mark.gpu
TYPES = ("complex64", "complex128")


@pytest.mark.parametrize("dtype", TYPES)
def test_one_panel_is_not_refined(cp: Any, rng: np.random.Generator, dtype: str) -> None:
    a, b = normal(rng, 500, 500).astype(dtype), normal(rng, 500).astype(dtype)
    found = solved(cp, a, b)
    assert (found.precision, found.steps) == (PRECISION[dtype], 0)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [1, 2, 31, 257, 512])
def test_whole_systems(cp: Any, rng: np.random.Generator, n: int, dtype: str) -> None:
    """Operands of every layout; memory that was poisoned, and operands that stay as they are."""
    wide = cp.asarray(normal(rng, n, 2 * n).astype(dtype))
    for a in (wide[:, :n].copy(), cp.asfortranarray(wide[:, :n]), wide[:, ::2]):
        for b in (normal(rng, n), normal(rng, n, 1), normal(rng, n, 3), normal(rng, 3, n).T):
            right = cp.asarray(b.astype(dtype))
            kept = a.get(), right.get()
            poison = [cp.full(size, np.nan) for size in (n * n, 2 * n * n, 2 * n, 6 * n)]
            del poison
            x = solve(a, right)
            assert (x.dtype, x.shape) == (dtype, b.shape)
            assert x.flags.c_contiguous
            assert backward_error(kept[0], x.get(), kept[1]) <= bound(n, dtype)
            np.testing.assert_array_equal(a.get(), kept[0])
            np.testing.assert_array_equal(right.get(), kept[1])


def substituted(cp: Any, a: Any, b: Any, system: Any, info: int = 0) -> tuple[float, Any]:
    """Return the error and x that kernels leave of a column-major system, which holds U and U x."""
    from argand.solve.gpu_calls import _substituted
    from argand.solve.whole_launch import whole_launches
    from argand.solve.whole_plan import state_numbers

    problem = replace(
        solve_problem((a.shape, a.dtype), (b.shape, b.dtype), "cuda", precision=None),
        working=str(system.dtype),
    )  # fmt: skip
    launches = whole_launches(
        *b.shape, str(a.dtype), problem.working, bool(a.flags.c_contiguous), gpu(0)
    )
    found = cp.zeros(len(a) + 2 + state_numbers(*b.shape), np.int32)
    found[len(a)] = info
    poison = [cp.full(size, np.nan) for size in (2 * launches.parts, 4 * b.size, b.size)]
    del poison
    return _substituted(problem, launches, a, b, system, found)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("n", "columns"), [
    (1, 1), (64, 3), (65, 2), (1000, 64), (1537, 5), (9000, 1), (300, 130),
])  # fmt: skip
def test_back_substitution(
    cp: Any, rng: np.random.Generator, n: int, columns: int, dtype: str
) -> None:
    """The kernel reads nothing below the diagonal, whose numbers are of many scales."""
    scales = cp.asarray(10.0 ** rng.uniform(-9, 9, n))
    u = cp.random.default_rng(1).standard_normal((n, n, 2)).view(complex)[..., 0]
    u = cp.asfortranarray(scales[:, None] * (cp.triu(u) / n + cp.eye(n))).astype(dtype)
    y = (scales[:, None] * cp.asarray(normal(rng, n, columns))).astype(dtype)
    system = cp.empty((n, n + columns), dtype, order="F")
    system[:, :n], system[:, n:] = cp.where(cp.tri(n, k=-1, dtype=bool), np.nan, u), y
    _, result = substituted(cp, u, y, system)
    np.testing.assert_array_equal(result.get(), system[:, n:].get())
    wide, found = u.astype(complex), result.astype(complex)
    size = abs(wide) @ abs(found) + abs(y)
    error = abs(wide @ found - y) / size
    assert float(error.max()) <= 4 * (n + 3) * UNIT_ROUNDOFF[dtype]


@pytest.mark.parametrize(("dtype", "working"), [
    ("complex64", "complex64"), ("complex64", "complex128"), ("complex128", "complex128"),
])  # fmt: skip
@pytest.mark.parametrize(("n", "columns"), [
    (1, 1), (31, 2), (33, 3), (64, 70), (257, 5), (1100, 16), (1500, 1),
])  # fmt: skip
def test_the_backward_error_of_any_x(
    cp: Any, rng: np.random.Generator, n: int, columns: int, dtype: str, working: str
) -> None:
    """It is NaN for NaN anywhere and a column without pivot; A has either order, and b has gaps."""
    a, b = normal(rng, n, n).astype(dtype), normal(rng, n, 2 * columns).astype(dtype)[:, ::2]
    x = normal(rng, n, columns).astype(working)
    tiny = {"complex64": 1e-30, "complex128": 1e-200}[dtype]  # whose squares are 0
    x[:, 0], b[:, 0] = tiny * x[:, 0], tiny * b[:, 0]
    expected = backward_error(a, x, b)
    eye = cp.eye(n, dtype=working)  # in the place of U: x is found as it is

    def error_of(a: Any, b: Any, x: Any, info: int = 0) -> float:
        system = cp.asfortranarray(cp.concatenate([eye, cp.asarray(x)], axis=1))
        error, result = substituted(cp, a, b, system, info)
        assert result.flags.c_contiguous
        if np.isfinite(x).all():
            np.testing.assert_array_equal(result.get(), x.astype(dtype))
        return error

    gaps = cp.asarray(np.repeat(b, 3, axis=1))[:, ::-3][:, ::-1]
    for left in (cp.asarray(a), cp.asfortranarray(cp.asarray(a))):
        for right in (cp.asarray(b), gaps):
            np.testing.assert_allclose(error_of(left, right, x), expected, rtol=1e-12)
    assert np.isnan(error_of(cp.asarray(a), gaps, x, info=1))
    for which in range(3):
        given = [a.copy(), b.copy(), x.copy()]
        given[which][rng.integers(n), rng.integers(given[which].shape[1])] = np.nan
        assert np.isnan(error_of(cp.asarray(given[0]), cp.asarray(given[1]), given[2]))


def test_what_is_refined_scaled_or_refused(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Grown factors, numbers far from 1, right sides of zeros, singular matrices, NaN."""
    from argand.solve import gpu_calls

    taken, solved_by_gpu = [], gpu_calls.solved
    monkeypatch.setattr(
        gpu_calls, "solved", lambda *given: taken.append(solved_by_gpu(*given)) or taken[-1]
    )
    n, b = 60, normal(rng, 60)
    plain = normal(rng, n, n)
    grown = np.eye(n) - np.tril(np.ones((n, n)), -1)
    grown[:, -1] = 1
    for a, scale in ((plain, 1.0), (grown, 1.0), (plain, 1e200), (plain, 1e-200)):
        x = solve(cp.asarray(a * scale), cp.asarray(b)).get() * scale
        assert backward_error(a, x, b) <= 2 * bound(n, "complex128")
    assert not solve(cp.asarray(plain), cp.zeros(n)).any()
    steps = [x and x.steps for x in taken]
    assert steps[:3] + steps[4:] == [0, 1, None, 0]
    for matrix, column in ((cp.zeros((40, 40)), 0), (cp.ones((40, 40)), 1),
                           (cp.kron(cp.ones((2, 2)), cp.eye(20)), 20)):  # fmt: skip
        with pytest.raises(np.linalg.LinAlgError, match=f"column {column} is 0"):
            solve(matrix, cp.ones(40))
    for value in (np.nan, np.inf):
        matrix = cp.asarray(plain)
        matrix[7, 3] = value
        with pytest.raises(ValueError, match="a must be finite"):
            solve(matrix, cp.ones(n))
        with pytest.raises(ValueError, match="b must be finite"):
            solve(cp.eye(n), matrix[7])


@pytest.mark.parametrize(("n", "random", "least"), [(50, 20, 1e-9), (60, 30, 1.0)])
def test_complex64_in_fp64_where_factors_have_grown(
    cp: Any, rng: np.random.Generator, n: int, random: int, least: float
) -> None:
    """Wilkinson's matrix but for some columns: cgesv's x, even refined, is not accepted."""
    a = (np.eye(n) - np.tril(np.ones((n, n)), -1)).astype(complex)
    left = np.linalg.qr(normal(rng, n, random))[0] * np.geomspace(1, least, random)
    a[:, -random:] = left @ np.linalg.qr(normal(rng, random, random))[0]
    found = solved(cp, a.astype("c8"), normal(rng, n, 2).astype("c8"))
    assert found.precision == "fp64"
    plain = normal(rng, n, n).astype("c8")
    assert solved(cp, plain, normal(rng, n).astype("c8")).precision == "fp32"
