"""Exact products on the CPU, by BLAS in fp64: the model that every other backend equals bit by bit.

Products of residues are at most 120^2, so sums of up to 2^39 of them are exact in fp64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from argand.gemm.modular import proof
from argand.gemm.modular.moduli import Moduli, Modulus
from argand.gemm.modular.reconstruction import Accumulator, modulo, rounded
from argand.gemm.modular.residues import Integers, integers, residues

Array = npt.NDArray[Any]
_COLUMNS = 1 << 20
"""Elements of a panel of the result, whose integers are held at a time."""


def product(
    a: Array | Integers,
    b: Array | Integers,
    moduli: Moduli,
    *,
    dtype: npt.DTypeLike | None = None,
    check: bool = False,
) -> Array:
    """Return a b for (m, k) and (k, n) of complex64 or complex128, exact up to three roundings.

    Either may be the integers of its lines, of these moduli; ``dtype`` is the result's, by default
    that of a.

    Rows of a and columns of b are rounded to integers after a power of two, and the result to its
    type; a row or column that is not finite gives NaN in its results. With ``check`` the integers
    are proved (`proof.check`).

    Returns:
        (m, n), of a's type.

    Raises:
        ValueError: k too long for the moduli.
        WrongProductError: the check failed.
    """
    m, k = a.real.shape
    n = len(b.real) if isinstance(b, Integers) else b.shape[1]
    out = np.zeros((m, n), a.dtype if dtype is None and not isinstance(a, Integers) else dtype)
    if 0 in (m, n, k):
        return out
    rows = a if isinstance(a, Integers) else integers(a, moduli)
    step = max(1, _COLUMNS // m)
    for start in range(0, n, step):
        panel = slice(start, start + step)
        if isinstance(b, Integers):
            columns = b.lines(panel)
        else:
            columns = integers(np.ascontiguousarray(b[:, panel].T), moduli)
        out[:, panel] = _panel(rows, columns, moduli, out.real.dtype, check=check)
    return out


def _panel(
    rows: Integers, columns: Integers, moduli: Moduli, dtype: npt.DTypeLike, *, check: bool
) -> Array:
    shape = (len(rows.real), len(columns.real))
    real, imag = Accumulator(shape, moduli), Accumulator(shape, moduli)
    for index, modulus in enumerate(moduli.rows):
        plus, minus = (
            _real_product(left, right, modulus)
            for left, right in zip(residues(rows, modulus), residues(columns, modulus), strict=True)
        )
        real.add(index, (plus + minus) * modulus.real % modulus.p)
        imag.add(index, (plus - minus) * modulus.imag % modulus.p)
    parts = real.magnitudes(), imag.magnitudes()
    if check:
        proof.check(rows, columns, *(modulo(*part, proof.PRIME) for part in parts))
    exponent = -(rows.exponents[:, None] + columns.exponents)
    out = np.empty(shape, np.result_type(dtype, np.complex64))
    out.real, out.imag = (rounded(*part, exponent, dtype) for part in parts)
    out[~rows.finite] = complex(np.nan, np.nan)
    out[:, ~columns.finite] = complex(np.nan, np.nan)
    return out


def _real_product(left: Array, right: Array, modulus: Modulus) -> Array:
    """Return left right^T modulo p, int64 from 0 to p - 1, of int8 lines along k."""
    found = left.astype(np.float64) @ right.astype(np.float64).T
    return found.astype(np.int64) % modulus.p
