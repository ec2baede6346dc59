"""Numbers halfway between two of an operand format, which a GPU may round either way."""

from __future__ import annotations

import numpy as np
from argand import Precision
from argand.gemm.in_tf32 import product_in_tf32
from argand.rounding import split

from workflow.accuracy.references import Array


def other_rounding(precision: Precision, backend: str) -> Precision | None:
    """Return the row by which a GPU may round what ``precision`` rounds to even; None where none.

    It has as many bits and no scales (`product_in_tf32`).
    """
    found = product_in_tf32(precision) if backend == "cuda" and precision.scaled else None
    return None if found == precision.without_scales else found


def ties(x: Array, precision: Precision, backend: str) -> Array:
    """Return how far x, rounded to even, may lie from what a product on ``backend`` took.

    It has x's shape, and is the modulus of complex numbers. It is 0 except for ties, and 0 where x
    is not finite.
    """
    away, even = other_rounding(precision, backend), precision.without_scales
    if away is None or even is None:
        return np.zeros(x.shape)
    x = x.astype(precision.output, copy=False)
    sums = [sum(term.astype(complex) for term in split(x, row)) for row in (away, even)]
    moved = np.abs(sums[0] - sums[1])
    return np.where(np.isfinite(moved), moved, 0)
