"""Numbers halfway between two of an operand format, which a GPU may round either way."""

from __future__ import annotations

import numpy as np
from argand import Precision
from argand.rounding import split

from workflow.accuracy.references import Array


def other_rounding(precision: Precision, backend: str) -> Precision | None:
    """Return the row by which a GPU may round what ``precision`` rounds to even; None where none.

    It has as many bits and no scales (`Precision.product_without_scales`).
    """
    found = precision.product_without_scales if backend == "cuda" else None
    return None if found == precision.without_scales else found


def ties(x: Array, precision: Precision, backend: str) -> Array:
    """Return how far x, rounded to even, may lie from what a product on ``backend`` took.

    Of x's shape: moduli of complex numbers, which are 0 but for ties, and of what is not finite.
    """
    away, even = other_rounding(precision, backend), precision.without_scales
    if away is None or even is None:
        return np.zeros(x.shape)
    x = x.astype(precision.output, copy=False)
    moved = np.abs(split(x, away)[0].astype(complex) - split(x, even)[0])
    return np.where(np.isfinite(moved), moved, 0)
