"""Where cuFFT is faster than our transforms, by length. Needs no GPU.

``python -m benchmarks.dft`` times both (docs/data/h200-dft-factors.csv).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from argand.dft.butterfly import ButterflyPlan
from argand.dft.butterfly_heuristics import three_kernel_cycles
from argand.dft.cluster import ClusterPlan
from argand.dft.method import prime_factors
from argand.dft.plan import DensePlan, Plan, TwoFactorPlan, folded_tiles
from argand.dft.single_cta import SingleCtaPlan
from argand.dft.three_kernel import ThreeKernelPlan
from argand.dft.two_factor_heuristics import ENOUGH_WARPS
from argand.precision import TF32, Precision

FAST_PRIME = 23
"""cuFFT is faster at lengths of prime factors up to here: measured on an H200 at 16 to 1000 and at
1024, 4095 and 4096 (7, 11, 13, 23). Another card is measured by `argand.tune_dft`."""
SLOW_LENGTHS = (1860, 14_104)
"""Lengths where ours is 1.14 to 1.4 times as fast although the rules below say cuFFT."""
FAST_LENGTHS = (148, 740, 777, 999, 1645, 2068, 2120, 3552, 3700, 12_416, 21_627)
"""Lengths where cuFFT is 1.07 to 1.6 times as fast although the rules below say ours. No rule of
their factors replaces the list: 37 x 96 is cuFFT's and 37 x 48 ours, at 1.22 times its rate."""
LIBRARY_PRIME = 127
"""cuFFT has butterflies of primes up to here, and convolutions for larger ones."""
_ONCE_PRIME, _ONCE_LENGTH = 31, 12_000
"""Powers of one of the primes from 29 to here take cuFFT no longer than the prime does. Up to this
length, beside primes up to `FAST_PRIME`, ours has 0.36 to 1.06 of its rate (67 lengths), but dense
products (58 to 124), which are 1.05 to 1.24 times as fast."""

_SHORTEST_DENSE = 15
"""From this length on dense plans go before cuFFT, but where `_fast_row` says so."""
_ROW_A_THREAD = 40
"""Below this length a thread of cuFFT's holds a row that has a prime from 11 to `FAST_PRIME`."""
_EVEN_STAGES = 70
"""From this length on cuFFT has 0.9 to 0.96 of the copy rate where its stages are even: at lengths
of primes up to 5, powers of a prime and multiples of 13 and 17. It has 0.65 to 0.93 at others."""
_MOST_PRODUCTS = {True: 0.245, False: 0.225}
_MOST_OF_TWO_TILES = {True: 0.245, False: 0.11}
"""MMAs a number up to which memory bounds a dense plan, by whether its length is odd: even rows are
padded by threads, and warps that take two tiles are few."""
_TUNED_PRIME = 11
"""cuFFT has fast kernels for smaller primes, whatever threads do: 0.56 to 0.86 of the copy rate."""


@dataclass(frozen=True)
class LibraryKernels:
    """cuFFT's kernels of a length, which `dft.cufft_kernels` asks it for.

    Attributes:
        several: whether a call has several kernels, each of which reads and writes every number.
        numbers: numbers that a thread of a single kernel holds; infinite where that is not known.
    """

    several: bool
    numbers: float


def library_is_faster(
    plan: Plan, precision: Precision, library: LibraryKernels | None = None
) -> str | None:
    """Return the reason to take cuFFT in place of a plan of ours; None where ours is faster.

    Where ``library`` is given, cuFFT's kernels decide in place of factors alone.
    """
    length, primes = plan.length, prime_factors(plan.length)
    if length in SLOW_LENGTHS or isinstance(plan, SingleCtaPlan | ClusterPlan):
        return None
    if library is not None and _library_is_slow(library, plan, precision):
        return None
    if isinstance(plan, DensePlan) and _dense_is_faster(plan, precision):
        return None
    one_term = isinstance(plan, TwoFactorPlan) and precision.terms == 1
    if one_term and plan.wide_copies and max(primes) > _ONCE_PRIME:
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


def asks(plan: Plan) -> bool:
    """Return whether cuFFT is asked for its kernels before it is taken in place of a plan.

    Three kernels of ours take 0.89 to 1.6 times as long as several of cuFFT's, by the factors.
    """
    return isinstance(plan, TwoFactorPlan | ButterflyPlan) and plan.length not in FAST_LENGTHS


def _library_is_slow(library: LibraryKernels, plan: Plan, precision: Precision) -> bool:
    """Return whether cuFFT's kernels at a length are slower than a plan of ours.

    Several have 0.12 to 0.3 of an H200's copy rate. A single one of three stages or more has 0.15
    to 0.65 where its threads hold fewer numbers than the largest prime factor: in that prime's
    stage most threads are idle. At 62 such lengths two factors of one term are 1.42 times as fast
    (0.84 to 2.7), and at 20 of two terms, where threads hold less than a quarter, 1.26 (0.86 to
    1.7).
    """
    if library.several:
        return True
    prime = max(prime_factors(plan.length))
    if prime <= _TUNED_PRIME or plan.length <= library.numbers * prime:
        return False
    return library.numbers / prime < _busy_threads(plan, precision)


def _busy_threads(plan: Plan, precision: Precision) -> float:
    """Return the share of threads with work in a prime's stage below which cuFFT is slower."""
    if not isinstance(plan, TwoFactorPlan):
        return 1 / 4
    if precision.terms == 1:
        return 1
    # Products of tf32 take twice the instructions of 16 bits, and few warps wait for each other.
    few = plan.groups * plan.warps < ENOUGH_WARPS
    return 1 / 8 if few or precision.operand == TF32 else 1 / 4


def _dense_is_faster(plan: DensePlan, precision: Precision) -> bool:
    """Return whether a dense plan is faster at a length of factors that cuFFT is fast at.

    Measured on an H200 at 83 lengths: 0.97 to 1.46 times cuFFT's speed, 1.1 on average. Where cuFFT
    is taken, ours has 0.55 to 1.03 of its speed, but 1.06 to 1.09 at 24 and 104.
    """
    if plan.length < _SHORTEST_DENSE or _fast_row(plan.length):
        return False
    most = _MOST_OF_TWO_TILES if plan.m_tiles > 1 else _MOST_PRODUCTS
    return _products_a_number(plan, precision) <= most[plan.length % 2 == 1]


def _fast_row(length: int) -> bool:
    """Return whether cuFFT is as fast as a dense plan that memory bounds, 0.9 to 0.95 of a copy.

    Dense plans have 0.77 to 0.87 at multiples of eight; cuFFT has 0.6 to 0.74 at 32 and 96, whose
    threads hold four numbers or eight. Rows of a thread have 0.94 to 0.99 at odd lengths and 0.86
    to 0.91 at even ones, which conflict in banks.
    """
    primes = prime_factors(length)
    largest = primes[-1]
    if length % 8 == 0:
        return length % 64 != 32
    if length < _ROW_A_THREAD:
        return length % 2 == 1 and 7 < largest <= FAST_PRIME
    power = largest == primes[0] != length
    return length >= _EVEN_STAGES and (largest <= 5 or power or bool({13, 17} & {*primes}))


def _products_a_number(plan: DensePlan, precision: Precision) -> float:
    """Return the MMAs of 16 rows over their numbers: four folded products of each pair of terms."""
    k_tiles = -(-(plan.length // 2) // precision.operand.mma_k)
    columns = folded_tiles(plan.length, plan.warps) * plan.warps
    return 4 * len(precision.products) * k_tiles * columns / (16 * plan.length)


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
