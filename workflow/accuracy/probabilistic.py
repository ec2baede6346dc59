"""Probabilistic error bounds, beside the worst-case ones of `bounds`.

A worst-case bound lets every rounding err by its most and in the same direction. Here roundings err
independently of each other (Higham and Mary, "A new approach to probabilistic rounding error
analysis", 2019), so errors add in quadrature: n roundings of relative size u in the 2-norm are
sqrt(n) u and not n u. A rounding to nearest is within u of what it rounds, which is taken for its
deviation (Hoeffding), though a uniform error has u / sqrt(3). A truncation is within 2 u, always in
the same direction: its mean u adds linearly, its products' 2 / sqrt(3) u in quadrature.

An error vector of n such components with a deviation s together is longer than
s sqrt(1 + 2 sqrt(t / n) + 2 t / n) with a probability of at most e^-t (Hsu, Kakade, Zhang, "A tail
inequality for quadratic forms of subgaussian random vectors", 2012): `concentration`. The largest
of T components is beyond `deviations` (T) of its own deviations as rarely.

What the model leaves out is named where it matters: roundings of data that repeat are not
independent (`coherence`), nor are those of a gate that a circuit repeats.
"""

from __future__ import annotations

import math

from argand import Precision

from workflow.accuracy.bounds import (
    PROMOTED_EVERY,
    accumulator_roundoff,
    on_tensor_cores,
    truncations,
)
from workflow.accuracy.promotion import promotions

FAILURE = 1e-9
"""Probability that a right result is beyond a probabilistic bound."""
PRODUCT_CUT = 2 / math.sqrt(3)
"""Deviation of a truncated product of either sign, in u of the sum that it is aligned to."""
SPLIT_DEPTH = 8
"""Products that an instruction sums at once where split precisions promote (tf32; fp16 has 16)."""


def concentration(components: float, tests: float = 1) -> float:
    """Factor from the deviation of an error vector to its length, exceeded with `FAILURE`.

    ``components`` are independent real numbers of like size, and ``tests`` such vectors are judged.
    """
    t = math.log(max(tests, 1) / FAILURE)
    return math.sqrt(1 + 2 * math.sqrt(t / max(components, 1)) + 2 * t / max(components, 1))


def deviations(tests: float) -> float:
    """Factor from one component's deviation to what the largest of so many stays within."""
    return math.sqrt(2 * math.log(2 * max(tests, 1) / FAILURE))


def accumulation_deviation(
    precision: Precision, k: int, backend: str, coherence: float = 1
) -> float:
    """Deviation of the sums of a product, relative to the root mean square of partial sums.

    IEEE arithmetic rounds 2 k partial sums of a part, and the P sums of a split's products.

    Tensor cores truncate (`bounds.truncations`): all means add up. Split precisions promote their
    sums every `PROMOTED_EVERY` at most: the means of a slice's instructions are relative to the
    slice's own partial sums, so those of all slices add up to as much of the whole as one slice's
    of itself; products of either sign and promotions count in quadrature. Products of small terms
    have sums too small to count.

    ``coherence`` says by how much roundings to nearest exceed independent ones on the data at hand.
    """
    u, count = accumulator_roundoff(precision), len(precision.products)
    if not k:
        return 0.0
    if not on_tensor_cores(precision, backend):
        return coherence * u * math.sqrt(2 * k + count)
    if count == 1:
        return truncations(k) * u
    depth = min(k, PROMOTED_EVERY)
    means = 2 * math.ceil(depth / SPLIT_DEPTH)
    cuts = PRODUCT_CUT * math.sqrt(2 * depth)
    added = coherence * math.sqrt(promotions(k))
    return u * (means + math.hypot(cuts, added))
