"""The a-priori bound on the power of an image, for every precision.

With R = X + i Y and w = c + i s the power is z^T M z for z = [c; s] and M = [[X, -Y], [Y, X]], all
real. Everything that can go wrong is a relative perturbation of a term M_ij z_i z_j, or an absolute
one of z, and |c_a c_b| + |s_a s_b| <= 1, |s_a c_b| + |c_a s_b| <= 1: so the error is bounded by a
coefficient times T, the sum of |Re R_ab| + |Im R_ab| over all entries and channels.
"""

from __future__ import annotations

import math

from argand import PRECISIONS, Precision
from argand.image.plan import PANEL
from argand.image.problem import weight_error

from workflow.accuracy.bounds import (
    accumulator_roundoff,
    gamma,
    kept_size,
    on_tensor_cores,
    operand_roundoff,
    roundings,
    truncations,
)
from workflow.accuracy.underflow import underflow

_ROWS_OF_A_THREAD = 4
"""Rows of a panel's cosines and sines whose products with the weights one thread adds."""
_THREADS = 12
"""Additions of the threads, warps and splits that share a direction, rounded up."""


def image_bound(
    precision: Precision, antennas: int, channels: int, turns: float, backend: str
) -> float:
    """Return c with |P^ - P| <= c T, without underflow of results; P is the fp64 reference.

    Args:
        precision: the precision of the image.
        antennas, channels: how many are summed over.
        turns: largest distance of an antenna from the centre, in wavelengths.
        backend: ``cpu`` or ``cuda``.

    R and both weights are rounded to an operand (v each), R to the output's type and, with its
    conjugate transpose, to a Hermitian matrix (two roundings at u). Each part of a weight is off by
    e before (`argand.image.problem.weight_error`, and half a subnormal where the operand's range
    ends): 2 sqrt(2) e for both weights, and e^2 twice. A scaled precision loses a part of the
    largest entry in each of the 4 antennas^2 entries of M, whose weights' moduli sum up to at most
    2 antennas^2. Sums are those of a real dot product: of antennas or twice as many terms, then of
    antennas or twice as many, then of channels, in any order.
    """
    own = _coefficient(precision, antennas, channels, turns, backend)
    return own + _coefficient(PRECISIONS["fp64"], antennas, channels, turns, "cpu")


def _coefficient(
    precision: Precision, antennas: int, channels: int, turns: float, backend: str
) -> float:
    u, v = accumulator_roundoff(precision), operand_roundoff(precision)
    error = weight_error(precision, turns)
    if precision.scaled:
        error += precision.operand.smallest_subnormal / 2
    of_largest = 2 * 2 * underflow(precision, backend).of_largest  # twice for what is dropped
    lost = 2 * antennas**2 * of_largest
    operands = (1 + roundings(3, v)) * (1 + roundings(2, u)) - 1
    weights = 2 * math.sqrt(2) * error + 2 * error**2
    data = operands + precision.dropped + weights * (1 + operands) + lost
    summed = _sums(precision, antennas, channels, backend) * kept_size(precision)
    return data + summed * (1 + data)


def _sums(precision: Precision, antennas: int, channels: int, backend: str) -> float:
    u, count = accumulator_roundoff(precision), len(precision.products)
    if not on_tensor_cores(precision, backend):
        return gamma(4 * antennas + count + channels + 6, u)
    # Tensor cores sum over a panel's cosines and sines; fp32 adds the sums of pairs of panels.
    # `truncations` counts both real products of a complex one: a panel's 128 reals are 64 of them.
    inner = gamma(count * truncations(PANEL), 2 * u)
    panels = math.ceil(antennas / PANEL)
    outer = gamma(_ROWS_OF_A_THREAD * panels * (panels + 1) // 2 + channels + _THREADS, u)
    return inner + outer * (1 + inner)
