"""Random complex numbers, drawn in single precision: what is staged is exactly what was drawn."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Init = Literal["normal", "uniform", "integer", "lognormal"]

LARGEST_INTEGER = 8
"""Largest ``integer``: exact in every precision, as are sums of 2 k products for k up to 2^17."""


def complex_normal(rng: np.random.Generator, shape: tuple[int, ...], power: float = 1.0) -> Array:
    """Return circular complex Gaussian numbers of mean square modulus ``power``, complex64."""
    values = _complex(rng.standard_normal((*shape, 2), dtype=np.float32))
    values *= np.float32((power / 2) ** 0.5)
    return values


def draw(rng: np.random.Generator, shape: tuple[int, ...], init: Init, phi: float) -> Array:
    """Return complex64 numbers whose real and imaginary parts are drawn apart.

    ``normal``: of mean 0 and variance 1. ``uniform``: in [-0.5, 0.5). ``integer``: whole, from -8
    to 8. ``lognormal``: (rand - 0.5) exp(phi randn), rand uniform in [0, 1) and randn normal: the
    input of the papers on emulated products (Ootomo, Ozaki and Yokota, 2024), whose magnitudes
    spread with phi.
    """
    shape = (*shape, 2)
    if init == "normal":
        return _complex(rng.standard_normal(shape, dtype=np.float32))
    if init == "integer":
        limit = LARGEST_INTEGER
        return _complex(rng.integers(-limit, limit + 1, shape, dtype=np.int8).astype(np.float32))
    parts = rng.random(shape, dtype=np.float32)
    parts -= np.float32(0.5)
    if init == "lognormal":
        spread = rng.standard_normal(shape, dtype=np.float32)
        spread *= np.float32(phi)
        parts *= np.exp(spread, out=spread)
    return _complex(parts)


def _complex(parts: Array) -> Array:
    return parts.view(np.complex64)[..., 0]
