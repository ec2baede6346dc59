"""Bounds of the residual of a small Hermitian system: worst case, and exceeded once in 1e9.

Both backends compute R = L D L^H, with or without square roots of D, then L y = b and D L^H x = y.
Derivations: docs/kernels/hermitian.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from argand.runtime.complex_types import UNIT_ROUNDOFF

FAILURE = 1e-9
"""The probability that a right solution exceeds `probable_bound`."""


def backward_bound(n: int, dtype: str) -> float:
    """Return an upper bound of ||E||_2 / trace(R), for (R + E) x = b.

    |E| <= gamma_(3n+3) |L| |L^H| (Higham, "Accuracy and Stability of Numerical Algorithms", 2002,
    theorem 10.4, with two more roundings where a reciprocal of the pivot is multiplied by), where
    complex products make sqrt(2) gamma_2 of the unit roundoff (lemma 3.5). The norm of |L| |L^H| is
    at most that of L squared, in the Frobenius norm: the trace of L L^H, which is at most that of R
    over 1 - gamma_(n+3) (theorem 10.3).
    """
    u = UNIT_ROUNDOFF[dtype]
    of_product = 2**0.5 * 2 * u / (1 - 2 * u)
    gamma, of_factors = (k * of_product / (1 - k * of_product) for k in (3 * n + 3, n + 3))
    return gamma / (1 - of_factors)


def probable_bound(n: int, dtype: str, trace: float, norm: float) -> float:
    """Return a bound that ||b - R x|| / ||x|| exceeds at most once in 1e9.

    It is sqrt(2 ln(2 / 1e-9)) u sqrt(3 (2n + 8) tr(R) ||R||), with rounding errors as independent
    variables of mean zero (Higham and Mary, SIAM J. Sci. Comput. 41, 2019): a sum of vectors by
    such variables has a norm above lambda times the root of the sum of their squares with a
    probability of 2 exp(-lambda^2 / 2) at most (Pinelis, Ann. Probab. 22, 1994).

    Args:
        n: rows of R.
        dtype: the type of the solution.
        trace: the trace of R.
        norm: the 2-norm of R, or what it is at most, as the Frobenius norm.
    """
    deviations = math.sqrt(2 * math.log(2 / FAILURE))
    return deviations * UNIT_ROUNDOFF[dtype] * math.sqrt(3 * (2 * n + 8) * trace * norm)


def residual_bound(r: Any, b: Any, x: Any, dtype: str) -> Any:
    """Return the bound of the 2-norm of each column of b - R x, (..., k), of a right x.

    The smaller one of both bounds, with what the residual itself rounds in fp64.

    Args:
        r, b, x: NumPy arrays (..., n, n), (..., n, k) and (..., n, k).
        dtype: the type in which x was computed.
    """
    n = r.shape[-1]
    size = _norm(x, -2)
    trace = np.trace(r, axis1=-2, axis2=-1).real[..., None]
    norm = _norm(r, (-2, -1))[..., None]
    own = 4 * n * UNIT_ROUNDOFF["complex128"] * (trace * size + _norm(b, -2))
    probable = probable_bound(n, dtype, 1.0, 1.0) * (np.sqrt(trace) * np.sqrt(norm))
    return np.minimum(backward_bound(n, dtype) * trace, probable) * size + own


def _norm(x: Any, axis: int | tuple[int, int]) -> Any:
    """Return 2-norms whose squares may be out of fp64's range."""
    moduli = np.abs(x)
    largest = moduli.max(axis=axis, keepdims=True, initial=0)
    unit = np.where((largest > 0) & np.isfinite(largest), largest, 1)
    return np.linalg.norm(moduli / unit, axis=axis) * np.squeeze(unit, axis)
