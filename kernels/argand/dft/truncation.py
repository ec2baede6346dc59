"""Truncation bias of transforms on tensor cores, which their tables compensate. Needs no GPU.

A tensor core aligns products and accumulator with two bits below the last place of the largest, and
truncates the sum to fp32, which loses 3/8 of its last place on average. (The tests' model of such
sums has the errors of an H200's transforms.) Every MMA truncates again, and two terms of fp16 have
22 bits. So the kernels accumulate the low-order products of all k first, while accumulators are
small; long mainloops promote the accumulators once; and the table enlarges each high-order product
by the average loss of its own MMA and those after it.
"""

from __future__ import annotations

import math

from argand.precision import Precision

TRUNCATION_BIAS = 0.375 * 2.0**-23 / (2 * math.log(2))
"""Average relative loss of a sum by one MMA. The last place of fp32 is 2^-24 to 2^-23 of a number,
2^-23 / (2 ln 2) on average where logarithms of mantissas are uniform."""


def truncation_bias(precision: Precision) -> float:
    """Return `TRUNCATION_BIAS` for two terms; 0 for one term, whose rounding loses far more."""
    return TRUNCATION_BIAS if precision.terms == 2 else 0.0
