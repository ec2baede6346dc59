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
from argand.dft.plan import DensePlan, Plan, TwoFactorPlan
from argand.dft.single_cta import SingleCtaPlan
from argand.dft.three_kernel import ThreeKernelPlan
from argand.dft.two_factor_heuristics import ENOUGH_WARPS
from argand.precision import TF32, Precision

FAST_PRIME = 23
"""cuFFT is faster at lengths of prime factors up to here: measured on an H200 at 16 to 1000 and at
1024, 4095 and 4096 (7, 11, 13, 23). Another card is measured by `argand.tune_dft`."""
SLOW_LENGTHS = (32, 1860, 14_104)
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

_SHORTEST_DENSE, _LONGEST_OF_TWO_TERMS, _LONGEST_OF_3XTF32 = 15, 120, 57
"""Lengths of dense plans that go before cuFFT: from the first on, and at two terms, whose tables
leave room for fewer rows, up to the others. Multiples of eight, whose rows threads pad, are
cuFFT's, and primes up to `FAST_PRIME`, which it transforms at 0.95 to 1.0 of the copy rate."""
_DENSE_PRIMES, _SHORTEST_OF_PRIMES = {13, 17}, 70
"""cuFFT's kernels of multiples of these primes have 0.95 to 0.99 of the copy rate at 39 and from
the length on (ours 0.91 to 0.95)."""
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
    if isinstance(plan, DensePlan) and _dense_is_faster(length, precision):
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


def _dense_is_faster(length: int, precision: Precision) -> bool:
    """Return whether a dense plan is faster at a length of factors that cuFFT is fast at.

    Measured on an H200 at 80 lengths: 0.97 to 1.46 times cuFFT's speed, 1.1 on average. At one term
    the rate of memory bounds it.
    """
    primes = prime_factors(length)
    if length < _SHORTEST_DENSE or length % 8 == 0 or primes[-1] == length <= FAST_PRIME:
        return False
    if _DENSE_PRIMES & {*primes} and (length == 39 or length >= _SHORTEST_OF_PRIMES):
        return False
    if precision.terms == 1:
        return True
    if precision.operand == TF32:
        short = length % 2 == 0 and length < 27
        fast = short or length in range(33, 40) or 13 in primes
        return length <= _LONGEST_OF_3XTF32 and not fast
    if (length in range(33, 40) and length % 2 == 0) or length > _LONGEST_OF_TWO_TERMS:
        return False
    return length < 96 or length % 4 != 0


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
