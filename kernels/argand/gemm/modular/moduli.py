"""The moduli of exact products, and what follows from the number that a precision takes.

All prime factors of a modulus p are 1 modulo 4, so there is an s with s^2 = -1 modulo p. Then the
ring of Gaussian integers modulo p splits: z -> (re + s im, re - s im) turns a complex product into
two independent real ones. The moduli are the largest ones below 256, so that residues fit int8,
that are pairwise coprime. The tests prove each of these properties.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from math import isqrt, prod, sqrt
from types import MappingProxyType

from argand.precision import EXACT_PRECISIONS
from argand.runtime.complex_types import UNIT_ROUNDOFF

MODULI = (241, 233, 229, 221, 205, 197, 193, 181, 173, 157, 149, 137, 113, 109, 101, 97, 89)
"""The odd numbers from 255 down that are coprime to those before and whose prime factors are 1
modulo 4, so that -1 has a square root (docs/kernels/modular.md)."""
MODULAR_PRECISIONS: Mapping[str, int] = MappingProxyType(
    {name: row.moduli for name, row in EXACT_PRECISIONS.items()}
)
"""The names of the precisions of exact integers, and how many moduli each takes."""
MIN_PRECISION_MODULI = min(MODULAR_PRECISIONS.values())
MAX_MODULI = max(MODULAR_PRECISIONS.values())
MIN_MODULI = 3
"""Fewest moduli that the arithmetic takes; fewer than `MIN_PRECISION_MODULI` are only for integers
of few bits."""
EXACT = "exact"
"""The precision that takes as few moduli as products of integers need that are not rounded."""
EXACT_ALGORITHM = "integers, two real products a modulus"
"""The algorithm of such products, for records."""
QUANTUM_BITS = 15
"""Bits of the integers that stand for magnitudes in a line's norm (`scaling.squared_norms`)."""
NORM_BLOCK = 256
"""Numbers along k whose magnitudes are counted in one unit."""
MARGIN_BITS = 11
"""Norms stay below the largest by 2^-11 of it, so that no result comes near half the range: a
quotient of few bits then says which multiple of the product of all moduli to subtract."""


@dataclass(frozen=True)
class Modulus:
    """One modulus p of a set whose product is P.

    Attributes:
        p: odd, below 256.
        root: s with s^2 = -1 modulo p.
        real, imag: factors that take the sum and the difference of the two real products to the
            real and the imaginary part, times the weight of the Chinese remainder theorem: modulo
            p, 1 / (2 P/p) and 1 / (2 s P/p).
        rest: P / p.
    """

    p: int
    root: int
    real: int
    imag: int
    rest: int


@dataclass(frozen=True)
class Moduli:
    """The first ``count`` moduli. Raises ValueError for a count that is not provided for."""

    count: int

    def __post_init__(self) -> None:
        if not MIN_MODULI <= self.count <= MAX_MODULI:
            raise ValueError(f"moduli must be {MIN_MODULI} to {MAX_MODULI}, got {self.count}")

    @cached_property
    def product(self) -> int:
        """P: results are found modulo it, so they lie between -P/2 and P/2."""
        return prod(MODULI[: self.count])

    @cached_property
    def rows(self) -> tuple[Modulus, ...]:
        """The constants of each modulus, the largest modulus first."""
        return tuple(self._row(p) for p in MODULI[: self.count])

    def _row(self, p: int) -> Modulus:
        root, rest = root_of_minus_one(p), self.product // p
        return Modulus(p, root, pow(2 * rest, -1, p), pow(2 * root * rest, -1, p), rest)

    def largest_squared_norm(self, k: int) -> int:
        """Return the largest square of a 2-norm that a line of k numbers may have before rounding.

        Rounding adds sqrt(2 k) / 2 to a norm at most, so that of the integers stays below
        sqrt(P / 2), and no component of a result, which is at most the product of two norms,
        reaches P / 2. At least 0; 0 says that k is too long for so few moduli.
        """
        # The square of sqrt(P/2) - sqrt(2k)/2 is P/2 - sqrt(P k) + k/2; rounded down throughout.
        square = (self.product + k) // 2 - isqrt(self.product * k) - 1
        below = isqrt(self.product // 2) ** 2 > k // 2 + 1 and square > 0
        return square - (square >> MARGIN_BITS - 1) if below else 0

    def component_loss(self, k: int) -> float:
        """Return a bound on how far rounding to integers moves a component.

        It is relative to the 2-norm of the component's line.

        Infinite where k is too long.
        """
        square = self.largest_squared_norm(k)
        if not square:
            return float("inf")
        # The squared norm in use counts one unit too many for each of 2 k components, and one
        # squared unit for each block that is rounded up. The norm is at least half of
        # 2^QUANTUM_BITS units. The factor is at least half of the largest that is allowed.
        over = 1 + (sqrt(2 * k) + sqrt(-(-k // NORM_BLOCK))) * 2.0 ** (1 - QUANTUM_BITS)
        return over / sqrt(square)

    def relative_truncation(self, k: int) -> float:
        """Return the proven bound on a result's error before it is rounded to its type.

        |C^ - C|_ij <= this |a_i| |b_j|, with the 2-norms of a row of A and a column of B: the
        components of both are rounded to integers, after a factor that is at least half of the
        largest that `largest_squared_norm` allows. Infinite where k is too long.
        """
        lost = sqrt(2 * k) * self.component_loss(k)
        return 2 * lost + lost * lost


@cache
def moduli(count: int) -> Moduli:
    """Return the set of ``count`` moduli, made once."""
    return Moduli(count)


def root_of_minus_one(p: int) -> int:
    """Return the smallest s with s^2 = -1 modulo p. Raises ValueError where there is none."""
    for s in range(2, p):
        if (s * s + 1) % p == 0:
            return s
    raise ValueError(f"-1 has no square root modulo {p}")


def fewest_moduli(k: int, tolerance: float, roundoff: float) -> int:
    """Return the fewest moduli whose proven bound, with the result's roundoff, is in a tolerance.

    Raises ValueError with what can be had where none is.
    """
    bounds = {}
    for count in range(MIN_PRECISION_MODULI, MAX_MODULI + 1):
        lost = moduli(count).relative_truncation(k)
        # A result to be rounded is at most (1 + lost) |a_i| |b_j|.
        bounds[count] = lost + roundoff * (1 + lost)
    for count, bound in bounds.items():
        if bound <= tolerance:
            return count
    narrow = roundoff == UNIT_ROUNDOFF["complex64"]
    advice = "; a result of complex128 operands errs less" if narrow else ""
    raise ValueError(
        f"no precision proves a tolerance of {tolerance:g} at k = {k}: {MAX_MODULI} moduli prove "
        f"{bounds[MAX_MODULI]:.2g}, of which rounding the result is {roundoff:.2g}{advice}"
    )
