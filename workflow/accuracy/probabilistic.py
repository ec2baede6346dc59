"""Probabilistic error bounds, beside the worst-case ones of `bounds`.

A worst-case bound lets every rounding err by its most and in the same direction. Here roundings err
independently of each other (Higham and Mary, "A new approach to probabilistic rounding error
analysis", 2019), so errors add in quadrature: n roundings of relative size u in the 2-norm are
sqrt(n) u and not n u. A rounding to nearest is within u of what it rounds, which is taken for its
deviation (Hoeffding), though a uniform error has u / sqrt(3). Tensor cores truncate: a truncation
has a mean, which adds linearly (`PRODUCT_TRUNCATION`, `SUM_TRUNCATION`).

An error vector of n such components with a deviation s together is longer than
s sqrt(1 + 2 sqrt(t / n) + 2 t / n) with a probability of at most e^-t (Hsu, Kakade, Zhang, "A tail
inequality for quadratic forms of subgaussian random vectors", 2012): `concentration`. The largest
of T components is beyond `deviations` (T) of its own deviations as rarely.

What the model leaves out is named where it matters: roundings of data that repeat are not
independent (`coherence`), nor are those of a gate that a circuit repeats.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from argand import Precision

from workflow.accuracy.assessment import FAILURE
from workflow.accuracy.bounds import (
    PROMOTED_EVERY,
    accumulator_roundoff,
    on_tensor_cores,
    truncations,
)
from workflow.accuracy.promotion import promotions

EXTRA_BITS = 1
"""Bits below the accumulator's last place that tensor cores keep of what they align, at least.

Ampere keeps one, Hopper two (Khattak and Mikaitis, "Accurate Models of NVIDIA Tensor Cores", 2025,
arXiv 2512.07004; `benchmarks.gates.truncation` finds Hopper's). Volta kept none (Fasi and others,
2021).
"""
PRODUCT_TRUNCATION = 2.0 ** (1 - EXTRA_BITS) / math.sqrt(3)
"""Deviation of a truncated product of either sign, in u of the largest addend.

The product loses less than 2^-EXTRA_BITS places of that addend, a place being at most 2 u of it.
"""
SUM_TRUNCATION = 1.0
"""Mean of what the sum loses in one instruction, of `Format.mma_k` products, in u of the sum.

Truncated from b more bits it loses (1 - 2^-b) u. Hopper adds all products at once, with b = 2: 3/4.
Ampere adds them in two halves (Khattak and Mikaitis), with b = 1: twice 1/2.
"""
SUM_DEVIATION = 1 / math.sqrt(2)
"""Deviation of that: of 0 or 1 u twice (Ampere); 0, 1/2, 1 or 3/2 u have less (Hopper)."""
MIXED_DEPTH = PROMOTED_EVERY // 2
"""The mma.sync kernels of split precisions promote at least this often (four warps share twice as
much of k). They add the small products of an instruction's k next to its large ones; where all of
k is loaded at once they may add these apart, and promote a P-th as often (`slice_truncations`)."""


class Sums(NamedTuple):
    """The error of sums, relative to the root mean square of partial sums.

    ``mean`` is common to all elements, ``deviation`` each one's own.
    """

    mean: float
    deviation: float


def concentration(components: float, tests: float = 1) -> float:
    """Return how many deviations an error vector's length is at most, except with `FAILURE`.

    ``components`` are independent real numbers of like size, ``tests`` the vectors to check.
    """
    t = math.log(max(tests, 1) / FAILURE)
    return math.sqrt(1 + 2 * math.sqrt(t / max(components, 1)) + 2 * t / max(components, 1))


def length_within(mean: float, deviation: float, components: float) -> float:
    """Return the length that an error vector exceeds with `FAILURE`.

    With m the mean, of this length, and e the rest, |m + e|^2 = |m|^2 + 2 m.e + |e|^2. Here |e| has
    its `concentration`, and m.e is one number that deviates by |m| ``deviation`` / sqrt(n).
    """
    unit = max(mean, deviation)
    if not 0 < unit < math.inf:
        return unit
    mean, deviation = mean / unit, deviation / unit  # squares of either may be out of range
    cross = deviations(1) * deviation / math.sqrt(max(components, 1))
    rest = concentration(components, 2) * deviation
    return unit * math.sqrt(mean**2 + 2 * mean * cross + rest**2)


def deviations(tests: float) -> float:
    """Return how many deviations the largest of ``tests`` components is, except with `FAILURE`."""
    return math.sqrt(2 * math.log(2 * max(tests, 1) / FAILURE))


def accumulation_errors(precision: Precision, k: int, backend: str, coherence: float = 1) -> Sums:
    """Return the mean and the deviation of the sums of a product over k.

    IEEE arithmetic rounds 2 k partial sums of a part, and the P sums of a split's products.

    Tensor cores truncate (`bounds.truncations`): at one-term precisions all means add up, products'
    too, by at most u each. Split precisions promote their sums: the means of a slice of k are
    relative to the slice's own partial sums, so those of all slices add up to as much of the whole
    as one slice's of itself (`slice_truncations`). Promotions count in quadrature.

    ``coherence`` is the factor by which roundings to nearest exceed independent ones on the data at
    hand.
    """
    u, count = accumulator_roundoff(precision), len(precision.products)
    if not k or precision.moduli:  # sums of integers are exact
        return Sums(0.0, 0.0)
    if not on_tensor_cores(precision, backend):
        return Sums(0.0, coherence * u * math.sqrt(2 * k + count))
    if count == 1:
        # A loss between 0 and 2 u deviates by u / sqrt(3) from its mean.
        return Sums(truncations(k) * u, u * math.sqrt(truncations(k) / 3))
    instructions, products = slice_truncations(precision, k)
    squares = SUM_DEVIATION**2 * instructions + PRODUCT_TRUNCATION**2 * products
    added = coherence**2 * promotions(k)
    return Sums(SUM_TRUNCATION * instructions * u, u * math.sqrt(squares + added))


def slice_truncations(precision: Precision, k: int) -> tuple[int, int]:
    """Return instructions and products of one part that meet sums as large as a slice's, at most.

    In a slice of `MIXED_DEPTH` of mma.sync those of all P products of terms do, or of P times the
    depth one of them, where small products are added apart. The wgmma kernels add the small
    products of up to `PROMOTED_EVERY` first, while sums are small: of twice the depth one of the P
    counts, which is less. A product may be computed without scales, in a format whose instruction
    takes fewer.
    """
    depth, count = min(k, MIXED_DEPTH), len(precision.products)
    computed = [row for row in (precision, precision.without_scales) if row is not None]
    at_once = min(row.operand.mma_k for row in computed)
    return 2 * count * math.ceil(depth / at_once), 2 * count * depth
