"""Powers of two by which lines are scaled before they are rounded to integers.

The sum of squares that decides is one of integers, so it does not depend on the order in which
lanes, warps or threads add: every backend finds the same exponents, to the bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from argand.gemm.modular.moduli import QUANTUM_BITS, Moduli

Array = npt.NDArray[Any]
_CHUNK = 1 << 18
"""Components worked on at a time."""
_LONGEST = 1 << 31
"""k below which a sum of squares fits 63 bits."""
_LIMIT_BITS = 62
"""Bits of the limit after normalization; a sum of squares has fewer, whatever k is."""


def squared_norms(x: Array) -> tuple[Array, Array]:
    """Upper bounds on the squared 2-norms of lines, as integers, and their units' exponents.

    Args:
        x: (lines, k), complex64 or complex128, finite.

    Returns:
        uint64 sums S and int64 exponents E, (lines,): the norm of a line is at most
        2^E sqrt(S). A magnitude |v| counts as floor(|v| 2^-E) + 1 units, and the largest one of
        the line as at least 2^(QUANTUM_BITS - 1).

    Raises:
        ValueError: k of 2^31 or more.
    """
    lines, k = x.shape
    if k >= _LONGEST:
        raise ValueError(f"k must be below {_LONGEST}, got {k}")
    sums, units = np.zeros(lines, np.uint64), np.zeros(lines, np.int64)
    step = max(1, _CHUNK // max(1, 2 * k))
    for start in range(0, lines, step):
        rows = slice(start, start + step)
        parts = np.abs(np.stack([x[rows].real, x[rows].imag], axis=1).astype(np.float64))
        largest = parts.max(axis=(1, 2), initial=0)
        units[rows] = np.frexp(largest)[1].astype(np.int64) - QUANTUM_BITS
        scaled = np.ldexp(parts, -units[rows, None, None].astype(np.int32))
        quanta = np.floor(scaled, out=scaled).astype(np.uint64) + np.uint64(1)
        sums[rows] = np.square(quanta, out=quanta).sum(axis=(1, 2))
    return sums, units


def exponents(x: Array, moduli: Moduli) -> Array:
    """The exponents e of lines: x 2^e, rounded, stays within the range of the moduli.

    Each is the largest that the norm of `squared_norms` allows; 0 for a line of zeros.

    Args:
        x: (lines, k), complex64 or complex128, finite.
        moduli: of the precision.

    Returns:
        (lines,), int64.

    Raises:
        ValueError: k too long for the moduli.
    """
    k = x.shape[1]
    limit = moduli.largest_squared_norm(k)
    if not limit:
        raise ValueError(f"k = {k} is too long for {moduli.count} moduli")
    sums, units = squared_norms(x)
    found = largest_scaling(sums, limit) - units
    found[~x.any(axis=1)] = 0
    return found


def largest_scaling(sums: Array, limit: int) -> Array:
    """For each sum S of at least 1 the largest t, of either sign, with S 4^t <= limit."""
    # limit 4^h has 61 or 62 bits; it is rounded down where h is negative, which loses nothing:
    # the other side is an integer multiple of as many powers of 4 or less.
    h = (_LIMIT_BITS - limit.bit_length()) // 2
    normal = np.uint64(limit << 2 * h if h >= 0 else limit >> -2 * h)
    up = (_LIMIT_BITS - bit_length(sums)) // 2
    up -= (sums << (2 * up).astype(np.uint64)) > normal
    return np.asarray(up - h)


def bit_length(x: Array) -> Array:
    """Return the number of bits of unsigned 64-bit integers, as int64; 0 for 0."""
    found = np.frexp(x.astype(np.float64))[1].astype(np.int64)
    # The conversion may have rounded up to a power of two.
    over = (found > 0) & ((x >> np.maximum(found - 1, 0).astype(np.uint64)) == 0)
    return np.asarray(found - over)
