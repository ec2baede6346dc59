"""A call of `argand.image` as one value, without its data; covariances as complex numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from argand.precision import Precision

SPEED_OF_LIGHT = 299_792_458.0
"""The speed of light in m/s, exact by definition (SI)."""
MAX_TURNS = 2.0**20
"""Largest distance from the array's centre to an antenna, in wavelengths.

The kernel takes the phase from the low bits of a sum in fp64 that begins at 1.5 2^52, in units of
`TURN` of a turn: it stays in that binade where the phase is below 2^21 turns.
"""
TURN = 2.0**-30
"""Unit of the kernel's phases, in turns."""
HERMITIAN = 2.0**-6
"""Largest |R_ab - conj(R_ba)| of a covariance, over the largest modulus of its entries.

Two entries that products of bf16 operands made are each off by at most 2 u = 2^-7 of what they sum.
A smaller difference is rounding, and the power is that of the Hermitian part, which is exact: the
rest contributes to the imaginary part of w^H R w alone. A larger one is not a covariance.
"""


@dataclass(frozen=True)
class ImageProblem:
    """Power over directions: P(d) = sum over channels of w^H R w.

    Attributes:
        leading: the axes of the covariances before channels, which the result has too.
        channels, antennas, directions: how many.
        precision: R and the weights are rounded to its operand, and its products are summed.
        sign: the sign of the exponent of the weights.
    """

    leading: tuple[int, ...]
    channels: int
    antennas: int
    directions: int
    precision: Precision
    sign: int

    @property
    def matrices(self) -> int:
        """Covariances of one channel."""
        return math.prod(self.leading)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return (*self.leading, self.directions)

    @property
    def dtype(self) -> str:
        """Type of the result, and of weights before they are rounded."""
        return self.precision.real_output


def weight_error(precision: Precision, turns: float) -> float:
    """Return a bound on the error of each part of a weight, before it is rounded to an operand.

    Args:
        precision: the precision of the image.
        turns: largest distance of an antenna from the array's centre, in wavelengths.

    In fp64 a phase of t turns is off by at most seven roundings of t, on any device and in the
    reference: one of the position about the centre, three of products and sums over x, y, z, whose
    moduli add up to t at most, two of f / c and its sign or of 2 pi f, and one of their product.
    Reduced to half a turn, exactly, it is rounded to fp32 and to radians: on the CPU by at most
    2^-23 and the cosine by two units in the last place, 2^-23 together. The kernel's sums are
    rounded to `TURN` three times, and its polynomials err by at most 2^-23, with what a phase is
    rounded by: less than 2^-22 too. With one term to an operand it takes ``sin.approx`` and
    ``cos.approx``, off by at most 2^-21.19 between -pi and pi (CUDA C++ Programming Guide,
    intrinsic functions), and rounds the phase twice by 2^-23 (in radians): below 2^-20. At fp64,
    with u = 2^-53, an angle x of radians is off by less than 1.35 u |x|, a cosine by 2.5 u for it
    and a sine by 4.3 u |cos x|. Where the tangent of half the angle is off by a unit in the last
    place, a part is by 2 u more. A cosine is by 0.5 u for the square, 2 u for the sum, u for the
    quotient and 0.5 u for the difference; a sine is by at most 4 u |sin x| for the square, the
    sum, the quotient and the product. Together that is less than 10 u. Cosines and sines that are
    off by two units in the last place add 4 u to what the angle is off by.
    """
    phase = 2 * math.pi * turns * 7 * 2.0**-53
    if precision.real_output == "float64":
        return phase + 10 * 2.0**-53
    return phase + (2.0**-20 if precision.terms == 1 and not precision.exact_operands else 2.0**-22)


def as_complex(r: Any) -> Any:
    """Return real and integer covariances as complex ones, others as they are."""
    return r.astype(np.result_type(r.dtype, np.complex64), copy=False)
