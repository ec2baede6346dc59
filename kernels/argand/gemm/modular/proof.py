"""A proof of exact products: A'(B' x) = C' x modulo a prime, on the integers before rounding.

For a random x a matrix C' with a wrong element passes with probability 1 / q at most, whatever the
size of the error (Freivalds 1977). Nothing is rounded, so there is no tolerance.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
import numpy.typing as npt

from argand.gemm.modular.residues import Integers

Array = npt.NDArray[Any]
PRIME = (1 << 31) - 1
"""q: prime, so that a non-zero difference times a random number is 0 in one of q cases."""
_HALF_BITS = 16
_TERMS = 1 << 15
"""Products of 31 and 16 bits that are added before they are reduced."""


class WrongProductError(RuntimeError):
    """A product of integers is not what it must be: the machine computed or stored it wrongly."""


def wrong_product(wrong: int, lines: int, first: int, name: str = "row") -> WrongProductError:
    """Return the error that names how many rows, or columns, are wrong."""
    return WrongProductError(
        f"{wrong} of {lines} {name}s of an exact product are wrong, the first of them "
        f"{name} {first}: memory or arithmetic of this machine failed; compute it again"
    )


def check(rows: Integers, columns: Integers, real: Array, imag: Array) -> None:
    """Raise WrongProductError where C' is not A' B'.

    Args:
        rows, columns: (m, k) and (n, k), the lines of A' and B'.
        real, imag: (m, n), C' modulo PRIME.
    """
    rng = np.random.default_rng(secrets.randbits(128))
    x: Array = rng.integers(PRIME, size=real.shape[1:])
    right = [_times(part.T % PRIME, x) for part in (columns.real, columns.imag)]
    left = [part % PRIME for part in (rows.real, rows.imag)]
    differences = (
        _times(left[0], right[0]) - _times(left[1], right[1]) - _times(real, x),
        _times(left[0], right[1]) + _times(left[1], right[0]) - _times(imag, x),
    )
    wrong = np.flatnonzero(np.any([part % PRIME != 0 for part in differences], axis=0))
    if wrong.size:
        raise wrong_product(wrong.size, len(real), wrong[0])


def _times(matrix: Array, x: Array) -> Array:
    """Return matrix x modulo PRIME, of integers from 0 to PRIME - 1."""
    high, low = x >> _HALF_BITS, x & (1 << _HALF_BITS) - 1
    found = np.zeros(len(matrix), np.int64)
    for start in range(0, len(x), _TERMS):
        some = slice(start, start + _TERMS)
        upper = matrix[:, some] @ high[some] % PRIME
        found += ((upper << _HALF_BITS) + matrix[:, some] @ low[some]) % PRIME
    return found % PRIME
