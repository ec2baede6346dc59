"""Where cuFFT is faster than our transforms, by length. Needs no GPU.

``python -m benchmarks.dft`` times both (docs/data/h200-dft-factors.csv).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from argand.dft.butterfly_heuristics import three_kernel_cycles
from argand.dft.cluster import ClusterPlan
from argand.dft.method import prime_factors
from argand.dft.plan import DensePlan, Plan, TwoFactorPlan
from argand.dft.single_cta import SingleCtaPlan
from argand.dft.three_kernel import ThreeKernelPlan
from argand.precision import Precision

FAST_PRIME = 23
"""cuFFT is faster at lengths of prime factors up to here: measured on an H200 at 16 to 1000 and at
1024, 4095 and 4096 (7, 11, 13, 23). Another card is measured by `argand.tune_dft`."""
SLOW_LENGTHS = (32, 1860, 9425, 10_075, 11_904, 12_000, 14_104)
"""Lengths where ours is 1.14 to 1.49 times as fast although the rules below say cuFFT. No rule of
their factors replaces the list: cuFFT takes slow kernels for 11904 = 2^7 3 31 and fast ones for
11136 = 2^7 3 29, and 9000, 10080 and 14400 are fast beside 12000."""
FAST_LENGTHS = (148, 740, 777, 999, 1645, 2068, 2120, 3552, 3700, 12_416, 21_627)
"""Lengths where cuFFT is 1.07 to 1.6 times as fast although the rules below say ours. No rule of
their factors replaces the list: 37 x 96 is cuFFT's and 37 x 48 ours, at 1.22 times its rate."""
LIBRARY_PRIME = 127
"""cuFFT has butterflies of primes up to here, and convolutions for larger ones."""
_ONCE_PRIME, _ONCE_LENGTH = 31, 12_000
"""Powers of one of the primes from 29 to here take cuFFT no longer than the prime does. Up to this
length, beside primes up to `FAST_PRIME`, ours has 0.36 to 1.06 of its rate (67 lengths), but dense
products (58 to 124), which are 1.05 to 1.24 times as fast."""

_SHORTEST_DENSE, _DENSE_PRIMES = 40, {13, 17}
"""Least length of dense plans of one term that are taken where cuFFT is of two, but multiples of
eight, whose rows threads pad, and of these primes, whose kernels of cuFFT's have 0.95 to 0.96 of an
H200's copy rate at 78, 85, 91, 102 and 119 (ours 0.91 to 0.94). Others have 0.90 to 0.95 and cuFFT
0.62 to 0.95: 0.97 (75) to 1.46 times its speed, 1.13 on average (32 lengths at tf32 and fp16)."""
_APART, _SHORTEST_APART, _MOST_WASTE = 11, 1 << 8, 1.5
"""cuFFT is slow where two different primes from `_APART` on, beside others, divide a length from
`_SHORTEST_APART` on: 0.12 to 0.65 of the copy rate at 63 of 66 lengths to 16384. A block's only
transform is slower still where its warps waste more than that (8073)."""


def library_is_faster(plan: Plan, precision: Precision) -> str | None:
    """Return the reason to take cuFFT in place of a plan of ours; None where ours is faster."""
    length, primes = plan.length, prime_factors(plan.length)
    if length in SLOW_LENGTHS or isinstance(plan, SingleCtaPlan | ClusterPlan):
        return None
    if precision.terms == 1 and _one_term_is_faster(plan):
        return None
    awkward = {prime for prime in primes if prime > FAST_PRIME}
    if not awkward:
        return f"at lengths of prime factors up to {FAST_PRIME}, and in fp32"
    alone = len(awkward) == 1 and max(awkward) <= _ONCE_PRIME
    products = isinstance(plan, DensePlan) and length > _ONCE_PRIME
    if alone and length <= _ONCE_LENGTH and not products:
        return f"at lengths of one prime above {FAST_PRIME} to {_ONCE_PRIME}, and in fp32"
    if length in FAST_LENGTHS:
        return "at this length, and in fp32"
    if isinstance(plan, ThreeKernelPlan) and _library_cycles(primes) * length < three_kernel_cycles(
        plan
    ):
        return "at this length, whose prime factors it has butterflies of, and in fp32"
    return None


def _one_term_is_faster(plan: Plan) -> bool:
    """Return whether a plan of one term is faster although the rules of two terms say cuFFT.

    Its products are a third of those of two terms, so the rate of memory bounds it more often.
    """
    length, primes = plan.length, prime_factors(plan.length)
    if isinstance(plan, DensePlan):
        return length >= _SHORTEST_DENSE and length % 8 != 0 and not _DENSE_PRIMES & {*primes}
    if not isinstance(plan, TwoFactorPlan):
        return False
    apart = {prime for prime in primes if prime >= _APART}
    if len(apart) > 1 and len(primes) > 2 and length >= _SHORTEST_APART:
        return plan.groups > 1 or plan.waste < _MOST_WASTE
    return plan.wide_copies and max(primes) > _ONCE_PRIME


def _library_cycles(primes: Sequence[int]) -> float:
    """Return the estimated cycles of cuFFT a number, for a length of such prime factors.

    Comparable to `three_kernel_cycles`. Fitted to 98 lengths from 12416 to 1040384 on an H200: the
    choice is the faster one, or one within 2% of it, but for three of `FAST_LENGTHS` and
    `SLOW_LENGTHS`.
    """
    if max(primes) > LIBRARY_PRIME:
        return inf
    often = sum(prime for prime in primes if prime > _ONCE_PRIME)
    once = sum({prime for prime in primes if FAST_PRIME < prime <= _ONCE_PRIME})
    return 3.37 + 0.0344 * (often + once)
