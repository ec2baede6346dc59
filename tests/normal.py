"""Complex normal numbers, which most tests compute with."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def normal(rng: np.random.Generator, *shape: int, dtype: npt.DTypeLike = np.complex64) -> Array:
    """Numbers of a complex type, whose parts are drawn in its precision."""
    part = np.dtype(dtype).type(0).real.dtype
    return rng.standard_normal((*shape, 2), part).view(dtype)[..., 0]


def wide_normal(rng: np.random.Generator, *shape: int) -> Array:
    """The same of complex128."""
    return normal(rng, *shape, dtype=np.complex128)
