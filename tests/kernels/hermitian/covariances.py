"""Covariances whose systems are solved, and residuals over their bound."""

from __future__ import annotations

from typing import Any

import numpy as np
from argand.hermitian.bounds import backward_bound, probable_bound

TYPES = ("complex64", "complex128")


def normal(rng: np.random.Generator, *shape: int) -> Any:
    return rng.standard_normal((*shape, 2)).view(complex)[..., 0]


def covariances(rng: np.random.Generator, *leading: int, n: int, dtype: str) -> Any:
    """Sample covariances of n + 3 vectors: definite, with conditions up to about 1e3."""
    v = normal(rng, *leading, n, n + 3)
    return (v @ v.conj().swapaxes(-1, -2)).astype(dtype)


def excess(r: Any, b: Any, x: Any) -> float:
    """The largest residual over its bound; beside E, the residual itself rounds in fp64.

    r (systems..., n, n), b and x (systems..., n, columns); NaN where x has one.
    """
    n, dtype = r.shape[-1], str(x.dtype)
    r, b, x = (np.asarray(y, complex) for y in (r, b, x))
    size = np.linalg.norm(x, axis=-2)
    trace = np.trace(r, axis1=-2, axis2=-1).real[..., None]
    norm = np.linalg.norm(r, axis=(-2, -1))[..., None]
    own = 4 * n * 2.0**-53 * (trace * size + np.linalg.norm(b, axis=-2))
    unit = probable_bound(n, dtype, 1.0, 1.0)
    allowed = (
        np.minimum(backward_bound(n, dtype) * trace, unit * np.sqrt(trace * norm)) * size + own
    )
    return float((np.linalg.norm(b - r @ x, axis=-2) / allowed).max())
