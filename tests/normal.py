"""Complex normal numbers, which most tests compute with."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def normal(rng: np.random.Generator, *shape: int, dtype: npt.DTypeLike = np.complex64) -> Array:
    """Numbers of a complex type, whose parts are drawn in its precision.

    Parts of 24 bits have their last bit set: they lie halfway between no two numbers of 11 or 8,
    where a GPU may round fp16 away from zero and the CPU's model rounds to even
    (`workflow.accuracy.ties`). Tests of ties make their own.
    """
    parts = rng.standard_normal((*shape, 2), np.dtype(dtype).type(0).real.dtype)
    if parts.dtype == np.float32:
        parts.view(np.uint32)[...] |= np.uint32(1)
    return parts.view(dtype)[..., 0]


def wide_normal(rng: np.random.Generator, *shape: int) -> Array:
    """The same of complex128."""
    return normal(rng, *shape, dtype=np.complex128)
