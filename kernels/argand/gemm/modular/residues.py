"""Operands as residues: rounded to Gaussian integers, then two int8 numbers for each modulus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from argand.gemm.modular.moduli import Moduli, Modulus
from argand.gemm.modular.scaling import exponents

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Integers:
    """Lines of an operand as scaled Gaussian integers.

    Attributes:
        real, imag: (lines, k), int64: the operand times 2^exponent, rounded to nearest, ties to
            even. Lines that are not finite are 0 here.
        exponents: (lines,), int64.
        finite: (lines,), bool: whether the line holds neither NaN nor infinity.
    """

    real: Array
    imag: Array
    exponents: Array
    finite: Array

    def lines(self, some: slice) -> Integers:
        """Return the residues of some of the lines."""
        return Integers(*(x[some] for x in (self.real, self.imag, self.exponents, self.finite)))


def integers(x: Array, moduli: Moduli) -> Integers:
    """Return the lines of x, (lines, k) complex, as integers within the range of the moduli.

    Raises ValueError where k is too long for them.
    """
    finite = np.asarray(np.isfinite(x).all(axis=1))
    if not finite.all():
        x = np.where(finite[:, None], x, 0)
    powers = exponents(x, moduli)
    by = powers[:, None].astype(np.int32)
    real, imag = (
        np.rint(np.ldexp(part.astype(np.float64), by)).astype(np.int64) for part in (x.real, x.imag)
    )
    return Integers(real, imag, powers, finite)


def residues(x: Integers, modulus: Modulus) -> tuple[Array, Array]:
    """Return re + s im and re - s im modulo p, int8, between -(p - 1) / 2 and (p - 1) / 2."""
    p = modulus.p
    real, turned = x.real % p, x.imag % p * modulus.root
    return balanced(real + turned, p), balanced(real - turned, p)


def balanced(x: Array, p: int) -> Array:
    """Return x modulo p as int8, the residue of the least magnitude."""
    half = p // 2
    return ((x + half) % p - half).astype(np.int8)
