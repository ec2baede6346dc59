"""How tensor cores add, as they are known to: the model that tests of sums are held to.

An instruction aligns its 16 products and the sum to the largest exponent, cuts each there, adds,
and cuts the sum to 24 bits (Fasi, Higham, Mikaitis, Pranesh 2021). With two more bits kept in
between the errors come out to two digits as an H200 has them, of gates
(`benchmarks.gates.truncation`) and of transforms (`benchmarks.dft`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
EXTRA_BITS = 2


def cut_to(x: Array, spacing: Array) -> Array:
    """Towards zero."""
    return np.asarray(np.trunc(x / spacing) * spacing)


def exponents(x: Array) -> Array:
    """The exponent of each number; far below all others for 0."""
    return np.where(x == 0, -900, np.frexp(x)[1] - 1)


def added(sums: Array, rows: Array, columns: Array, extra_bits: int = EXTRA_BITS) -> Array:
    """One instruction: (m, n) += (m, d) @ (d, n)."""
    products = rows[:, :, None] * columns[None]
    largest = np.maximum(exponents(sums), exponents(products).max(axis=1))
    spacing = np.ldexp(1.0, largest - 23 - extra_bits)
    total = cut_to(sums, spacing) + cut_to(products, spacing[:, None]).sum(axis=1)
    return cut_to(total, np.ldexp(1.0, exponents(total) - 23))
