"""A-priori error bounds of what runs on a GPU: by butterflies in fp32, or as a plan says.

Relative 2-norm errors of one transform, u = 2^-24. Every stage is sqrt(R) times unitary, so errors
before it reach its output with the same relative size, and those of stages compound.
"""

from __future__ import annotations

import math
from functools import lru_cache

from argand.dft_butterfly import ButterflyPlan
from argand.dft_cluster import ClusterPlan
from argand.dft_method import dense, prime_factors, product
from argand.dft_passes import PassesPlan
from argand.dft_plan import Plan, ProductPlan
from argand.dft_whole import WholePlan
from argand.precision import PRECISIONS, Precision

from workflow.accuracy.bounds import gamma, roundings, transform_bound
from workflow.accuracy.transform_bounds import (
    amplification,
    dft_bound,
    folded_bound,
    reference_error,
)

FastPlan = ButterflyPlan | WholePlan | ClusterPlan | PassesPlan
"""Plans whose sums are fp32's."""
_FP32 = PRECISIONS["fp32"]
_U = 2.0**-24
TWIDDLE = roundings(1, _U) + math.sqrt(2) * gamma(2, _U)
"""A product with a rounded table entry."""


@lru_cache(maxsize=64)
def radix_bound(radix: int) -> float:
    """Relative error of a butterfly in registers (``cuda/dft_radix.cuh``).

    It is divided to its prime factors, with at most a twiddle between two. A butterfly of 2 is one
    rounding of each sum; of an odd prime a folded product in IEEE arithmetic.
    """
    primes = prime_factors(radix)
    each = [_U if prime == 2 else folded_bound(_FP32, prime, "cpu") for prime in primes]
    return math.expm1(sum(map(math.log1p, each)) + (len(primes) - 1) * math.log1p(TWIDDLE))


def plan_bound(plan: Plan | None, precision: Precision, length: int) -> float:
    """Relative error of one transform on a GPU by what ran; a plan of None is cuFFT, in fp32.

    Tensor cores' products have the precision, butterflies and cuFFT are fp32's at every one but
    fp64. Of cuFFT nothing but a dense stage for each prime factor is assumed.
    """
    if plan is None:
        ran = precision if precision.exact_operands else PRECISIONS["fp32"]
        return transform_bound(ran, prime_factors(length), "cuda")
    if isinstance(plan, FastPlan):
        return butterfly_bound(plan)
    if isinstance(plan, ProductPlan):
        return dft_bound(precision, product(plan.first, plan.second), "cuda")
    return dft_bound(precision, dense(plan.length), "cuda")


def butterfly_bound(plan: FastPlan) -> float:
    """Relative error of one transform, its norm and its fp64 reference included.

    Twiddles stand between stages. Where a kernel multiplies table entries with each other to make
    one, each entry counts as a twiddle of its own: up to log2 R of a whole transform's powers, two
    between the columns and the lines of clusters and passes.

    A convolution passes its stages there and back, and has three more products: with the chirp (or
    none, by Rader) before and after, and with the spectrum, which enlarges what is relative to the
    norm (`transform_bounds.amplification`).
    """
    radices, made = _stages(plan)
    there = sum(math.log1p(radix_bound(radix)) for radix in radices)
    there += (len(radices) - 1 + made) * math.log1p(TWIDDLE)
    grown = 1.0
    if isinstance(plan, ButterflyPlan | PassesPlan):
        there = 2 * there + 3 * math.log1p(TWIDDLE)
        grown = amplification(plan.method)
    total = math.expm1(there)
    return grown * (total + (1 + total) * roundings(4, _U)) + reference_error(plan.length)


def _stages(plan: FastPlan) -> tuple[tuple[int, ...], int]:
    """The radices of a transform, and how many table entries are made of others beyond them."""
    if isinstance(plan, WholePlan):
        powers = (plan.radix - 1).bit_length()
        return (plan.radix, plan.radix, plan.last), 2 * (powers - 1)
    if isinstance(plan, ClusterPlan):
        return plan.radices, 1
    if isinstance(plan, PassesPlan):
        return (*plan.columns, *plan.radices), 1
    return plan.radices, 0
