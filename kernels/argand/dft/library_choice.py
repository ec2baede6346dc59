"""Lengths at which cuFFT is faster than we are: by its kernels, or by factors. Needs no GPU.

``python -m benchmarks.dft.plans`` times both (docs/data/h200-dft-factors.csv). Margins follow from
how far estimates were off (docs/experiments/2026-11-28-times-of-transforms.md and
2026-11-29-mixed-radices.md).

The times that constants are fitted to are in docs/experiments/2026-11-30-fitted-constants.md.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from argand.dft.butterfly import ButterflyPlan
from argand.dft.butterfly_heuristics import butterfly_time
from argand.dft.cluster import ClusterPlan
from argand.dft.method import prime_factors
from argand.dft.mixed_radix import MixedRadixPlan
from argand.dft.mixed_radix_heuristics import mixed_radix_time
from argand.dft.plan import DensePlan, Plan, TwoFactorPlan, folded_tiles
from argand.dft.single_cta import SingleCtaPlan
from argand.dft.three_kernel import ThreeKernelPlan
from argand.dft.three_kernel_heuristics import three_kernel_time
from argand.dft.two_factor_heuristics import two_factor_time
from argand.dft.two_pass import TwoPassPlan
from argand.dft.two_pass_heuristics import two_pass_time
from argand.precision import Precision

FAST_PRIME = 23
"""Largest prime factor of lengths at which cuFFT, its kernels not known, goes first: measured on an
H200 at 16 to 1000, 1024, 4095 and 4096. `argand.tune_dft` measures another card."""
LIBRARY_PRIME = 127
"""Largest prime that cuFFT has a butterfly for; it computes larger ones by a convolution."""
ONCE_PRIME = 31
"""Largest prime, from 29 on, whose powers take cuFFT no longer than the prime does."""
_ONCE_LENGTH = 12_000
"""The longest such transform. There, beside primes up to `FAST_PRIME`, cuFFT is faster except for
dense products."""

_SHORTEST_DENSE = 15
"""The shortest length whose dense plans go before cuFFT, unless `_fast_row` holds."""
_ROW_A_THREAD = 40
"""Length below which a thread of cuFFT holds a row that has a prime from 11 to `FAST_PRIME`."""
_FAST_STAGES = 70
"""The shortest length at which cuFFT nears the copy rate for primes up to 5, powers of a prime and
multiples of 13 and 17."""
_MEMORY_OF_EIGHTS = 0.82
"""An H200's share of memory below which cuFFT's kernels of 32 and 96, which compute for 1.32 of an
H200's copies, are faster than dense plans, which compute for 1.08 copies on any card."""
_MAX_PRODUCTS = {True: 0.245, False: 0.225}
_MAX_OF_TWO_TILES = {True: 0.245, False: 0.11}
"""MMAs a number up to which memory bounds a dense plan, by whether its length is odd: even rows are
padded by threads, and warps that take two tiles are few."""
_MARGIN = 1.05
"""Factor of our estimated times, as both estimates are 10% off (one standard deviation): cuFFT is
taken where they are near."""
_PASSES_MARGIN = 1.1
"""Factor of the estimated times of two passes, which are 7% off."""
_NEAR_COPY_MARGIN = 1.2
"""Factor of the estimated times of mixed radices, which are too long at plans that are taken, where
cuFFT's kernel is near a copy's rate (`_near_copy`), mostly faster than estimated."""
_MIXED_MARGIN = 1.0
"""The same factor elsewhere."""
_MANY_NUMBERS_MARGIN = 0.95
"""The same factor for two stages where cuFFT's threads hold more numbers and are few."""
_NEAR_COPY_NUMBERS = range(9, 29)
"""Numbers a thread with which a single kernel of several blocks is near a copy's rate."""
_SHORT_LINE = 11
"""Numbers below which a line is short."""
_SHORT_SPLIT = 1.2
"""Factor of a short line that begins within a sector."""
_LARGE_PRIME = 37
"""Prime from which on cuFFT's single kernels of several stages take at least `_MIN_COPIES_OF_LARGE`
times as long as a copy, and powers have no kernel of their own."""
_LARGEST_PRIME = 61
"""Largest prime of cuFFT's single kernels of several stages, but for seven multiples of four up to
508, at which butterflies of ours are faster."""
_OF_LARGEST = 1.4
"""Factor of the time of such a kernel with a stage of `_LARGEST_PRIME`."""
_MIN_COPIES = 1.05
"""Least times of cuFFT's single kernels in copies of the numbers."""
_MIN_COPIES_OF_LARGE = 1.7
"""The same with a prime from `_LARGE_PRIME` on."""
OWN_KERNEL = 13
"""The smallest prime for which cuFFT has a kernel of its own, where it has several kernels."""
_LONGEST_SINGLE = 1 << 15
"""Longest transform of one kernel of cuFFT: no block holds the numbers of a longer one."""
_LONGEST_POWER = 1 << 10
"""Longest power of a smaller prime that has one kernel."""


Compared = TwoFactorPlan | ButterflyPlan | MixedRadixPlan | TwoPassPlan
"""Plans whose time is compared with that of cuFFT's kernels."""


@dataclass(frozen=True)
class LibraryKernels:
    """cuFFT's kernels of a length, which `dft.cufft_kernels` asks it for.

    Attributes:
        several: whether a call has several kernels, each of which reads and writes every number.
        numbers: numbers that a thread of a single kernel holds.
        blocks: blocks of a single kernel that a multiprocessor holds.
    """

    several: bool
    numbers: float = 1
    blocks: int = 1


def library_is_faster(
    plan: Plan, precision: Precision, library: LibraryKernels | None = None, memory: float = 1.0
) -> str | None:
    """Return the reason to take cuFFT in place of a plan of ours; None where ours is faster.

    Where ``library`` is given, cuFFT's kernels decide in place of factors alone. ``memory`` is the
    card's `Device.relative_memory`.
    """
    length, primes = plan.length, prime_factors(plan.length)
    if isinstance(plan, SingleCtaPlan | ClusterPlan):
        return None
    two_passes = isinstance(plan, TwoPassPlan)
    ours = _margin(plan, library) * own_time(plan, precision, memory)
    if library is None and two_passes:
        library = LibraryKernels(several=True)
    if library is not None and isinstance(plan, Compared):
        # Two factors read numbers once, several kernels each: the nearer estimate decides.
        sure = library.several and isinstance(plan, TwoFactorPlan)
        theirs = library_time(length, library, memory) * (_MARGIN if sure else 1)
        return None if ours < theirs else "by its kernels, and in fp32"
    if isinstance(plan, DensePlan) and _dense_is_faster(plan, precision, memory):
        return None
    one_term = isinstance(plan, TwoFactorPlan) and precision.terms == 1
    if one_term and plan.wide_copies and max(primes) > ONCE_PRIME:
        return None
    awkward = {prime for prime in primes if prime > FAST_PRIME}
    if not awkward:
        return f"at lengths of prime factors up to {FAST_PRIME}, and in fp32"
    alone = len(awkward) == 1 and max(awkward) <= ONCE_PRIME
    products = isinstance(plan, DensePlan) and length > ONCE_PRIME
    if alone and length <= _ONCE_LENGTH and not products:
        return f"at lengths of one prime above {FAST_PRIME} to {ONCE_PRIME}, and in fp32"
    if not isinstance(plan, ThreeKernelPlan) or max(primes) > LIBRARY_PRIME:
        return None
    if ours < several_time(length, memory):
        return None
    return "at this length, whose prime factors it has butterflies of, and in fp32"


def needs_library_kernels(plan: Plan, precision: Precision) -> bool:
    """Return whether cuFFT's kernels decide between it and a plan of ours.

    Three kernels of ours are faster or slower than several of cuFFT's, by the factors. Beyond
    `_LONGEST_SINGLE` it has several.
    """
    if not isinstance(plan, Compared):
        return False
    if plan.length > _LONGEST_SINGLE:
        return False
    prime = prime_factors(plan.length)[-1]
    least = _MIN_COPIES if prime < _LARGE_PRIME else _MIN_COPIES_OF_LARGE
    return prime <= _LARGEST_PRIME and _margin(plan) * own_time(plan, precision) > least


def _margin(plan: Plan, library: LibraryKernels | None = None) -> float:
    """Return the factor of a plan's estimated time beside cuFFT's; the largest without kernels."""
    if not isinstance(plan, MixedRadixPlan):
        return _PASSES_MARGIN if isinstance(plan, TwoPassPlan) else _MARGIN
    if library is None or _near_copy(plan.length, library):
        return _NEAR_COPY_MARGIN
    many = not library.several and library.numbers >= _NEAR_COPY_NUMBERS.stop
    return _MANY_NUMBERS_MARGIN if many and len(plan.radices) == 2 else _MIXED_MARGIN


def _near_copy(length: int, library: LibraryKernels) -> bool:
    """Return whether a single kernel of cuFFT's mostly has 0.84 of an H200's copy rate or more.

    Kernels with few numbers per thread and different radices have less, and so have those with
    enough numbers per thread that a multiprocessor holds few threads.
    """
    if library.several or library.blocks == 1:
        return False
    numbers = round(library.numbers)
    powers = (numbers**stages for stages in range(1, length.bit_length() + 1))
    return numbers in _NEAR_COPY_NUMBERS or length & (length - 1) == 0 or length in powers


def own_time(plan: Plan, precision: Precision, memory: float = 1.0) -> float:
    """Return a plan's estimated time over that of an H200's copy of the numbers.

    0 of plans that have no estimate, of dense lengths and powers of two: they read numbers once.
    """
    if isinstance(plan, TwoPassPlan):
        return two_pass_time(plan, memory)
    if isinstance(plan, MixedRadixPlan):
        return mixed_radix_time(plan, memory)
    if isinstance(plan, ThreeKernelPlan):
        return three_kernel_time(plan, memory)
    if isinstance(plan, ButterflyPlan):
        return butterfly_time(plan)
    return two_factor_time(plan, precision) if isinstance(plan, TwoFactorPlan) else 0.0


def library_time(length: int, library: LibraryKernels, memory: float = 1.0) -> float:
    """Return the estimated time of cuFFT's kernels over that of an H200's copy of the numbers.

    A single one loads, computes and stores in turn, which only other blocks of a multiprocessor
    overlap. In the stage of a prime that is larger than the numbers of a thread, threads are idle.
    The threads of a row load a line at a time, which takes longer where lines are short and begin
    within sectors. ``memory`` is that of `library_is_faster`.
    """
    if library.several:
        return several_time(length, memory)
    largest = prime_factors(length)[-1]
    idle = max(1.0, largest / library.numbers)
    line = round(length / library.numbers)
    split = _SHORT_SPLIT if line < _SHORT_LINE and line % 4 else 1.0
    slower = _OF_LARGEST if largest == _LARGEST_PRIME else 1.0
    return (1.12 + 0.74 / library.blocks) * float(idle**0.28) * split * slower


def several_time(length: int, memory: float = 1.0) -> float:
    """Return the estimated time of several kernels of cuFFT's over that of an H200's copy.

    Each prime of the length has one, with all of its powers; beyond `_LONGEST_POWER` they take
    longer. Primes from `OWN_KERNEL` on have one for each square, large ones one for each power, and
    twiddles before it where a larger power comes after it. Memory bounds those of small primes.
    The estimate is fitted to an H200's times.
    """
    counts = Counter(prime_factors(length))
    largest = max(prime**count for prime, count in counts.items())
    copy = 0.23 + 0.77 / memory  # an H100's takes 1.36 times as long, of a peak rate of 0.68
    time = 0.0
    for prime, count in counts.items():
        own = 0.86 + 0.037 * prime
        if prime < OWN_KERNEL:
            time += copy * (1.2 + 0.85 * (prime**count > _LONGEST_POWER))
        elif count > 1 and prime < _LARGE_PRIME:
            time += -(-count // 2) * own
        else:
            time += count * own + 1.02 * (count - (prime**count == largest))
    return time


def _dense_is_faster(plan: DensePlan, precision: Precision, memory: float) -> bool:
    """Return whether a dense plan is faster at a length of factors that cuFFT is fast at.

    The rule follows measurements on an H200.
    """
    if plan.length < _SHORTEST_DENSE or _fast_row(plan.length, memory):
        return False
    most = _MAX_OF_TWO_TILES if plan.m_tiles > 1 else _MAX_PRODUCTS
    return _products_a_number(plan, precision) <= most[plan.length % 2 == 1]


def _fast_row(length: int, memory: float) -> bool:
    """Return whether cuFFT is as fast as a dense plan that memory bounds.

    Dense plans are slower at multiples of eight. cuFFT is not near the copy rate of an H200 at 32
    and 96, whose threads hold four numbers or eight, but an H100's memory is slower than they are.
    Rows of a thread are near it at odd lengths; even ones conflict in banks.
    """
    primes = prime_factors(length)
    largest = primes[-1]
    if length % 8 == 0:
        return length % 64 != 32 or memory < _MEMORY_OF_EIGHTS
    if length < _ROW_A_THREAD:
        return length % 2 == 1 and 7 < largest <= FAST_PRIME
    power = largest == primes[0] != length
    return length >= _FAST_STAGES and (largest <= 5 or power or bool({13, 17} & {*primes}))


def _products_a_number(plan: DensePlan, precision: Precision) -> float:
    """Return the MMAs of 16 rows over their numbers: four folded products of each pair of terms."""
    k_tiles = -(-(plan.length // 2) // precision.operand.mma_k)
    columns = folded_tiles(plan.length, plan.warps) * plan.warps
    return 4 * len(precision.products) * k_tiles * columns / (16 * plan.length)
