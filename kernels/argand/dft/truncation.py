"""What tensor cores cut from the sums of transforms, and how tables give it back. Needs no GPU.

A tensor core adds products and a sum with two bits below the last place of the largest, and cuts
the result towards zero to fp32's places: 3/8 of its last place on average (so it is on an H200: the
tests' model of such sums has the errors of its transforms). Every instruction cuts again, and two
terms of fp16 have 22 bits. So the kernels take the small products of all k first, while sums have
small places; they put long sums of large ones aside half way, so that they begin anew; and a large
product is larger, in the table, by what its own instruction and those after it cut on average.
"""

from __future__ import annotations

import math

from argand.precision import Precision

CUT = 0.375 * 2.0**-23 / (2 * math.log(2))
"""Of a sum by one instruction on average, relatively. The last place of fp32 is 2^-23 to 2^-24 of a
number, 2^-23 / (2 ln 2) where all mantissas are as likely as their logarithms are long."""


def cut_of(precision: Precision) -> float:
    """`CUT` where sums are of two terms; rounding of a single term loses far more."""
    return CUT if precision.terms == 2 else 0.0
