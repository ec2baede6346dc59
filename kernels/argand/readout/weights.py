"""Probabilities as integers, so that their sums are exact and every device draws the same shots.

|a|^2 is taken in fp64 and rounded to a multiple of 2^-UNIT_BITS of a power of two near the norm's
square. Integers add exactly in any order, so prefix sums do not depend on blocks or devices.
Each probability is off by at most 2^-62 of the norm's square, all of them by 2^(n - 62).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

UNIT_BITS = 61
"""A norm of 1 is 2^61 units: sums up to 4 fit 64 bits, and only they are taken."""


_MAX_EXPONENT = 900
"""Largest exponent of the norm's square: scales of weights stay within fp64."""


def probabilities_of(amplitudes: Any) -> Any:
    """Return |a|^2 in fp64; exact up to one rounding where amplitudes are complex64."""
    parts = np.asarray(amplitudes).view(amplitudes.real.dtype).astype(np.float64)
    np.multiply(parts, parts, out=parts)
    return parts[::2] + parts[1::2]


def weights_of(probabilities: Any, exponent: int) -> Any:
    """Return probabilities 2^exponent in units of 2^-UNIT_BITS, uint64."""
    scaled = probabilities * 2.0 ** (UNIT_BITS + exponent)
    np.rint(scaled, out=scaled)
    return scaled.astype(np.int64).view(np.uint64)  # they are below 2^63; this conversion is faster


def norm_exponent(norm_squared: float) -> int:
    """Return the exponent that brings the norm's square to [1/2, 2): 0 where it is there.

    Raises ValueError for a state without a norm: zero, or not finite.
    """
    if not 2.0**-_MAX_EXPONENT <= norm_squared <= 2.0**_MAX_EXPONENT:  # nor NaN
        raise ValueError(
            "the probabilities of a state must have a finite, positive sum (from 2^-900 to 2^900), "
            f"but its amplitudes' |a|^2 add up to {norm_squared}"
        )
    return 0 if 0.5 <= norm_squared < 2 else -math.frexp(norm_squared)[1]
