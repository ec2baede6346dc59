"""Uniform 64-bit integers of a seed and a shot's number: Philox 4x64-10, NumPy's own stream.

Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. A counter
gives each number, so a GPU draws a shot's number without those before it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from argand.checks import as_integer

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_PIECE = 1 << 15
"""Shots whose products are taken at a time: 256 KiB for each of their parts, in a core's cache."""


def checked_seed(seed: int) -> int:
    """Return a seed as an integer. Raises ValueError where it does not fit 64 bits."""
    found = as_integer(seed, "seed")
    if not 0 <= found < 2**64:
        raise ValueError(f"seed must be from 0 to 2^64 - 1, got {found}")
    return found


def thresholds(seed: int, shots: int, total: int) -> Any:
    """Return floor(u total / 2^64) for each shot, uint64: where it falls among the weights."""
    drawn, found = np.random.Philox(key=seed), np.empty(shots, np.uint64)
    for first in range(0, shots, _PIECE):
        piece = found[first : first + _PIECE]
        piece[...] = high_product(drawn.random_raw(piece.size), np.uint64(total))
    return found


def high_product(x: Any, y: np.uint64) -> Any:
    """Return the upper 64 bits of the products x y of unsigned integers."""
    x_low, x_high, y_low, y_high = x & _LOW, x >> _HALF, y & _LOW, y >> _HALF
    middle = x_high * y_low + (x_low * y_low >> _HALF)
    other = x_low * y_high + (middle & _LOW)
    return x_high * y_high + (middle >> _HALF) + (other >> _HALF)
