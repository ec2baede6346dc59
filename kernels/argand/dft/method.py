"""Methods: transforms of any length, as folded dense ones. Needs no GPU.

- dense: a product with the matrix of the length, folded to half its size;
- product: N = N1 N2 by Cooley and Tukey (1965). With n = N2 n1 + n2 and k = k1 + N1 k2,

      X[k1 + N1 k2] = sum_n2 W_N2^(n2 k2)  W_N^(n2 k1)  sum_n1 W_N1^(n1 k1) x[N2 n1 + n2],

  W_N = exp(-2 pi i / N);
- rader: a prime length p by a cyclic convolution of length p - 1 (Rader 1968): with g a generator
  of the multiplicative group modulo p,

      X[g^-q] = x[0] + sum_m x[g^m] W_p^(g^(m - q)),   X[0] = sum_n x[n];

- bluestein: any length by a convolution of length M >= 2 N - 1 (Bluestein 1970), from
  n k = (n^2 + k^2 - (k - n)^2) / 2; or by two of length M >= N, a cyclic and a negacyclic one,
  whose mean is the first half of a convolution of length 2 M.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import gcd, isqrt
from typing import Literal

LARGEST_LENGTH = 1 << 26
"""The tests go to 2^20."""
LARGEST_DENSE = 768
"""Largest dense prime: at 719 the error of 3xfp16 is 7e-7."""
LARGEST_FACTOR = 128
"""Up to here every length is dense."""
LARGEST_FUSED = 120
"""Largest factor of a two-factor plan: 128 columns leave too few registers for the twiddles."""

Kind = Literal["dense", "product", "rader", "bluestein"]


@dataclass(frozen=True)
class Method:
    """The method of a length.

    Attributes:
        length: N.
        kind: see the module.
        parts: for a product the transforms of N1 and N2; for a convolution the one of its length.
    """

    length: int
    kind: Kind
    parts: tuple[Method, ...] = ()

    def __str__(self) -> str:
        if self.kind == "dense":
            return str(self.length)
        inner = " x ".join(str(part) for part in self.parts)
        return inner if self.kind == "product" else f"{self.kind}({inner})"

    @property
    def halves(self) -> int:
        """Convolutions of the part's length that bluestein takes, 1 or 2; else 1."""
        return 1 + (self.kind == "bluestein" and self.parts[0].length < 2 * self.length - 1)

    @property
    def coprime(self) -> bool:
        """Whether it is a product of two dense transforms whose lengths have no common divisor.

        A convolution of such a length has two dimensions (Agarwal and Cooley 1977): number n stands
        at (n mod N1, n mod N2), and its transform needs no twiddles.
        """
        return (
            self.kind == "product"
            and all(part.kind == "dense" for part in self.parts)
            and gcd(*(part.length for part in self.parts)) == 1
        )

    @property
    def convolves(self) -> bool:
        """Whether there is a convolution in it."""
        return self.kind in ("rader", "bluestein") or any(part.convolves for part in self.parts)

    @property
    def stages(self) -> tuple[int, ...]:
        """The lengths of the dense transforms that a number goes through, in order."""
        if self.kind == "dense":
            return (self.length,)
        inner = tuple(stage for part in self.parts for stage in part.stages)
        return inner if self.kind == "product" else (*inner, *reversed(inner))


def dense(length: int) -> Method:
    """Return the product with the matrix of a length."""
    return Method(length, "dense")


def product(first: Method | int, second: Method | int) -> Method:
    """Return the transform of N1 N2 by those of N1 and N2."""
    parts = tuple(dense(x) if isinstance(x, int) else x for x in (first, second))
    return Method(parts[0].length * parts[1].length, "product", parts)


def rader(prime: int, inner: Method) -> Method:
    """Return the transform of a prime by one of that less 1."""
    return Method(prime, "rader", (inner,))


def bluestein(length: int, inner: Method) -> Method:
    """Return the convolution of a length by one transform of 2 length - 1 or more, or by two."""
    return Method(length, "bluestein", (inner,))


def check_length(length: int) -> None:
    """Raise ValueError for a length out of range."""
    if not 1 <= length <= LARGEST_LENGTH:
        raise ValueError(f"n must be from 1 to {LARGEST_LENGTH}, got {length}")


@lru_cache(maxsize=4096)
def method_for(length: int) -> Method:
    """Return the method with the fewest and smallest stages.

    Raises ValueError for a length out of range.
    """
    check_length(length)
    if length <= LARGEST_FACTOR or (length <= LARGEST_DENSE and is_prime(length)):
        return dense(length)
    found = two_factors(length)
    if found is not None:
        return product(*found)
    first = next((d for d in range(LARGEST_FACTOR, 1, -1) if length % d == 0), 1)
    if first > 1:
        return product(first, method_for(length // first))
    if is_prime(length):
        inner = method_for(length - 1)
        if not inner.convolves and max(inner.stages) <= LARGEST_FACTOR:
            return rader(length, inner)
    for least in (2 * length - 1, length):
        factors = cheapest_factors(least)
        if factors is not None:
            return bluestein(length, product(*factors))
    return bluestein(length, method_for(convolution_length(length)))


def two_factors(length: int) -> tuple[int, int] | None:
    """Return the most equal N1 >= N2 up to `LARGEST_FACTOR` with N1 N2 = ``length``, or None."""
    for second in range(isqrt(length), 1, -1):
        if length % second == 0:
            first = length // second
            return (first, second) if first <= LARGEST_FACTOR else None
    return None


@lru_cache(maxsize=1024)
def cheapest_factors(least: int) -> tuple[int, int] | None:
    """Return N1 >= N2, even, up to `LARGEST_FUSED`, of a product from ``least`` on; None beyond.

    The one that takes the fewest products of 16 transforms by 16 k by 8 columns, then the least.
    """
    found = []
    for first in range(2, LARGEST_FUSED + 1, 2):
        second = max(2, -(-least // first))
        second += second % 2
        if second <= first:
            work = sum(
                -(-b // 16) * -(-a // 32) * -(-a // 16)
                for a, b in ((first, second), (second, first))
            )
            found.append((work, first * second, first, second))
    return min(found)[2:] if found else None


def convolution_length(length: int) -> int:
    """Return the least number from 2 N - 1 on that is a power of two, or 5 / 8 or 3 / 4 of one."""
    least = 2 * length - 1
    power = 1 << max(3, (least - 1).bit_length())
    return next(x for x in (power * 5 // 8, power * 3 // 4, power) if x >= least)


@lru_cache(maxsize=1024)
def is_prime(number: int) -> bool:
    """Return whether a number above 1 has no divisor."""
    return number > 1 and all(number % divisor for divisor in range(2, isqrt(number) + 1))


@lru_cache(maxsize=4096)
def prime_factors(number: int) -> tuple[int, ...]:
    """Return the prime factors of a number, the smallest first, as often as they divide it."""
    found, rest = [], number
    for divisor in range(2, isqrt(number) + 1):
        while rest % divisor == 0:
            found.append(divisor)
            rest //= divisor
    return (*found, rest) if rest > 1 else tuple(found)


def generator(prime: int) -> int:
    """Return the smallest generator of the multiplicative group modulo a prime."""
    order = prime - 1
    primes = [d for d in range(2, order + 1) if order % d == 0 and is_prime(d)]
    return next(g for g in range(1, prime) if all(pow(g, order // d, prime) != 1 for d in primes))
