"""Covariances whose systems are solved, and residuals over their bound."""

from __future__ import annotations

from typing import Any

import numpy as np
from argand.hermitian.bounds import residual_bound

from tests.normal import wide_normal

TYPES = ("complex64", "complex128")


def covariances(rng: np.random.Generator, *leading: int, n: int, dtype: str) -> Any:
    """Sample covariances of n + 3 vectors: definite, with conditions up to about 1e3."""
    v = wide_normal(rng, *leading, n, n + 3)
    return (v @ v.conj().swapaxes(-1, -2)).astype(dtype)


def excess(r: Any, b: Any, x: Any) -> float:
    """The largest residual over its bound, NaN where x has one.

    r (systems..., n, n), b and x (systems..., n, columns).
    """
    dtype = str(x.dtype)
    r, b, x = (np.asarray(y, complex) for y in (r, b, x))
    return float((np.linalg.norm(b - r @ x, axis=-2) / residual_bound(r, b, x, dtype)).max())
