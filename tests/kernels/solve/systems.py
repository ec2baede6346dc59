"""Systems of equations that solvers err on, and the backward error of a solution."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from argand import solve

Array = npt.NDArray[Any]
U = {"complex64": 2.0**-24, "complex128": 2.0**-53}
SYSTEMS = (
    "normal", "real", "hermitian", "rows of many scales", "columns of many scales",
    "nearly singular", "zeros on the diagonal", "tiny leading pivot", "reversed rows", "positive",
)  # fmt: skip


def normal(rng: np.random.Generator, *shape: int) -> Array:
    """Complex normal numbers."""
    parts = rng.standard_normal((2, *shape))
    return parts[0] + 1j * parts[1]


def system(kind: str, n: int, rng: np.random.Generator) -> Array:
    """A matrix (n, n) of a kind of ``SYSTEMS``."""
    a = normal(rng, n, n)
    if kind == "real":
        return a.real.copy()
    if kind == "hermitian":
        return a + a.conj().T
    if kind == "rows of many scales":
        return 10.0 ** rng.uniform(-9, 9, (n, 1)) * a
    if kind == "columns of many scales":
        return 10.0 ** rng.uniform(-9, 9, n) * a
    if kind == "nearly singular":
        a[-1] = a[:-1].sum(axis=0) + 1e-11 * a[-1]
    elif kind == "zeros on the diagonal":
        np.fill_diagonal(a, 0)
    elif kind == "tiny leading pivot":
        a[0, 0] = 1e-20
    elif kind == "reversed rows":
        return np.array((np.triu(a) + n * np.eye(n))[::-1])
    elif kind == "positive":
        return np.abs(a) + 0j
    return a


def far_rows(rng: np.random.Generator, n: int, span: int, dtype: str) -> tuple[Array, Array, Array]:
    """A matrix of rows near 1, what brings them 2^-span to 2^span apart, and right-hand sides.

    These are so small that x, which the smallest row makes large, stays in range.
    """
    a, b = normal(rng, n, n), 2.0 ** (-span // 2) * normal(rng, n, 2)
    powers = rng.permutation(np.linspace(-span, span, n).astype(int))[:, None]
    return a.astype(dtype), powers, b.astype(dtype)


def backward_error(a: Any, x: Any, b: Any) -> float:
    """The largest ||b - A x|| / (||A|| ||x|| + ||b||) of a column, residuals in long double."""
    a, x, b = (np.asarray(z).astype(np.clongdouble) for z in (a, x, b))
    x, b = x.reshape(len(x), -1), b.reshape(len(b), -1)
    scale = np.abs(a).sum(axis=1).max() * np.abs(x).max(axis=0) + np.abs(b).max(axis=0)
    return float((np.abs(b - a @ x).max(axis=0) / scale).max())


def bound(n: int, dtype: str) -> float:
    """The largest backward error that a solution may have.

    The call accepts 4 sqrt(n) u in the residual that it computes in fp64. That one errs by
    gamma_(n + 3), twice for complex numbers, of |A| |x| + |b| (Higham, Accuracy and Stability,
    3.6), and rounding x to its type adds u.
    """
    return (4 * n**0.5 + 1) * U[dtype] + 4 * (n + 3) * U["complex128"]


def solved(cp: Any, a: Any, b: Any, **options: Any) -> Any:
    """Solve on the GPU, against the bound; operands stay as they are."""
    left, right = cp.asarray(a), cp.asarray(b)
    found = solve(left, right, **options, details=True)
    assert isinstance(found.x, cp.ndarray)
    assert found.x.shape == b.shape
    assert found.steps <= 5
    assert backward_error(a, found.x.get(), b) <= bound(len(a), str(found.x.dtype))
    np.testing.assert_array_equal(left.get(), a)
    np.testing.assert_array_equal(right.get(), b)
    return found
