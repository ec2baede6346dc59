"""`solve_hermitian`, the public solver of many small Hermitian systems, by Cholesky on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from argand.device import is_cuda_array
from argand.runtime.checks import check_out
from argand.solve.hermitian_cpu import factored, substituted
from argand.solve.problem import UNIT_ROUNDOFF, solution_type

LARGEST_N = 128
"""Rows of a matrix at most; `argand.solve` takes larger ones."""


def solve_hermitian(r: Any, b: Any, *, out: Any = None) -> Any:
    """Solve R x = b for each of many Hermitian positive definite matrices, by Cholesky.

    R = L L^H, L y = b and L^H x = y, all in the result's type. Only the lower triangles of R are
    read, and of their diagonals the real parts. x solves (R + E) x = b with the norm of E bounded
    by `backward_bound` (docs/kernels/solve.md).

    Args:
        r: ``(..., n, n)`` NumPy array, n up to 128, of any strides.
        b: ``(n,)`` or ``(..., n, k)``. Leading axes broadcast against those of r.
        out: where x goes, of its shape and type. It may overlap r and b.

    Returns:
        x, ``(..., n)`` where b is ``(n,)``, else ``(..., n, k)``: complex128 where an operand needs
        it, else complex64. What is not finite in b leaves no finite x.

    Raises:
        ValueError: shapes that do not fit, n above 128, a wrong out.
        TypeError: operands that are no numbers or do not fit complex128, or that are on a GPU,
            where this call has no kernels.
        numpy.linalg.LinAlgError: a matrix that is not positive definite or not finite, with its
            index and the row of the pivot.
    """
    if any(is_cuda_array(x) for x in (r, b, out)):
        raise TypeError(
            "solve_hermitian computes on the CPU alone and got CuPy arrays; pass NumPy arrays, "
            "such as those of cupy.asnumpy"
        )
    r, b = np.asarray(r), np.asarray(b)
    dtype = solution_type("r", r.dtype, b.dtype)
    vector, leading = b.ndim == 1, _leading(r, b)
    shape = (*leading, *b.shape[-1 if vector else -2 :])
    check_out(out, shape, dtype)
    factors = factored(r.astype(dtype, copy=False))
    columns = (b[:, None] if vector else b).astype(dtype, copy=False)
    found = substituted(factors, columns, leading).reshape(shape)
    if out is None:
        return found
    out[...] = found
    return out


def backward_bound(n: int, dtype: str) -> float:
    """Return what ||E||_2 is at most for (R + E) x = b, over the trace of R.

    |E| <= gamma_(3n+1) |L| |L^H| (Higham, "Accuracy and Stability of Numerical Algorithms", 2002,
    theorem 10.4), where complex products make sqrt(2) gamma_2 of the unit roundoff (lemma 3.5). The
    norm of |L| |L^H| is at most that of L squared, in the Frobenius norm: the trace of L L^H, which
    is at most that of R over 1 - gamma_(n+1) (theorem 10.3).
    """
    u = UNIT_ROUNDOFF[dtype]
    of_product = 2**0.5 * 2 * u / (1 - 2 * u)
    gamma, of_factors = (k * of_product / (1 - k * of_product) for k in (3 * n + 1, n + 1))
    return gamma / (1 - of_factors)


def _leading(r: Any, b: Any) -> tuple[int, ...]:
    if r.ndim < 2 or r.shape[-1] != r.shape[-2]:
        raise ValueError(f"r must have shape (..., n, n), got {r.shape}")
    n = r.shape[-1]
    if n > LARGEST_N:
        raise ValueError(f"r must have at most {LARGEST_N} rows, got {n}; argand.solve takes more")
    if b.ndim == 0 or b.shape[-1 if b.ndim == 1 else -2] != n:
        raise ValueError(f"b must have shape ({n},) or (..., {n}, k), got {b.shape}")
    try:
        return np.broadcast_shapes(r.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ValueError(
            f"leading axes of r and b must broadcast, got {r.shape} and {b.shape}"
        ) from None
