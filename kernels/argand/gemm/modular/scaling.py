"""Powers of two by which lines are scaled before they are rounded to integers.

The sum of squares that decides is one of integers, so it does not depend on the order in which
lanes, warps or threads add: every backend finds the same exponents, to the bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from argand.gemm.modular.moduli import NORM_BLOCK, QUANTUM_BITS, Moduli

Array = npt.NDArray[Any]
_NO_UNIT = -(1 << 20)
"""The exponent of the unit of a block of zeros: below that of any other."""
_CHUNK = 1 << 17
"""Complex numbers worked on at a time."""
_LONGEST = 1 << 31
"""k below which a sum of squares fits 63 bits."""
_LIMIT_BITS = 62
"""Bits of the limit after normalization; a sum of squares has fewer, whatever k is."""


def squared_norms(x: Array) -> tuple[Array, Array]:
    """Return upper bounds on the squared 2-norms of lines, as integers, and their units' exponents.

    A line is taken in blocks of `NORM_BLOCK` along k, so that a GPU finds each sum from registers.
    In a block a magnitude |v| counts as floor(|v| 2^-u) + 1 units 2^u, where the block's largest
    one counts at least 2^(QUANTUM_BITS - 1); a block of zeros counts nothing. The sums of blocks
    are brought to the largest unit of the line, each rounded up, and added.

    Args:
        x: (lines, k), complex64 or complex128, finite.

    Returns:
        uint64 sums S and int64 exponents E, (lines,): the norm of a line is at most
        2^E sqrt(S). A line of zeros has S = 0.

    Raises:
        ValueError: k of 2^31 or more.
    """
    lines, k = x.shape
    if k >= _LONGEST:
        raise ValueError(f"k must be below {_LONGEST}, got {k}")
    blocks = -(-k // NORM_BLOCK)
    sums, units = np.zeros((blocks, lines), np.uint64), np.full((blocks, lines), _NO_UNIT)
    for block in range(blocks):
        of_block = x[:, block * NORM_BLOCK : (block + 1) * NORM_BLOCK]
        step = max(1, _CHUNK // NORM_BLOCK)
        for start in range(0, lines, step):
            rows = slice(start, start + step)
            sums[block, rows], units[block, rows] = _block_norms(of_block[rows])
    largest = units.max(axis=0, initial=_NO_UNIT)
    # Squares count in squared units. A sum of a block has 40 bits at most, so a shift by 62
    # leaves only what is rounded up.
    by = np.minimum(2 * (largest - units), 62).astype(np.uint64)
    rounded_up = (sums >> by) + ((sums & ((np.uint64(1) << by) - np.uint64(1))) > 0)
    return rounded_up.sum(axis=0, dtype=np.uint64), largest


def _block_norms(x: Array) -> tuple[Array, Array]:
    parts = np.abs(np.stack([x.real, x.imag], axis=1).astype(np.float64))
    largest = parts.max(axis=(1, 2), initial=0)
    units = np.frexp(largest)[1].astype(np.int64) - QUANTUM_BITS
    scaled = np.ldexp(parts, -units[:, None, None].astype(np.int32))
    quanta = np.floor(scaled, out=scaled).astype(np.uint64) + np.uint64(1)
    sums = np.square(quanta, out=quanta).sum(axis=(1, 2))
    return np.where(largest > 0, sums, np.uint64(0)), np.where(largest > 0, units, _NO_UNIT)


def exponents(x: Array, moduli: Moduli) -> Array:
    """Return the exponents e of lines: x 2^e, rounded, stays within the range of the moduli.

    Each is the largest that the norm of `squared_norms` allows; 0 for a line of zeros.

    Args:
        x: (lines, k), complex64 or complex128, finite.
        moduli: the moduli of the precision.

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
    return np.where(sums > 0, largest_scaling(np.maximum(sums, 1), limit) - units, 0)


def largest_scaling(sums: Array, limit: int) -> Array:
    """Return the largest t, of either sign, with S 4^t <= limit, for each sum S of at least 1."""
    normal, h = normal_limit(limit)
    up = (_LIMIT_BITS - bit_length(sums)) // 2
    up -= (sums << (2 * up).astype(np.uint64)) > np.uint64(normal)
    return np.asarray(up - h)


def normal_limit(limit: int) -> tuple[int, int]:
    """Return a limit times 4^h, of 61 or 62 bits, and h.

    It is rounded down where h is negative, which loses nothing: what it is compared with is an
    integer multiple of as many powers of 4 or less.
    """
    h = (_LIMIT_BITS - limit.bit_length()) // 2
    return (limit << 2 * h if h >= 0 else limit >> -2 * h), h


def bit_length(x: Array) -> Array:
    """Return the number of bits of unsigned 64-bit integers, as int64; 0 for 0."""
    found = np.frexp(x.astype(np.float64))[1].astype(np.int64)
    # The conversion may have rounded up to a power of two.
    over = (found > 0) & ((x >> np.maximum(found - 1, 0).astype(np.uint64)) == 0)
    return np.asarray(found - over)
