"""The choice of a plan for few rows, which leave a part of a GPU idle. Needs no GPU.

A part of a call's time does not depend on how many rows it has: launches, tables that blocks load,
the chain of one row. Times here are microseconds of an H200, fitted to calls in rows
(docs/experiments/2026-11-28-times-of-transforms.md).
"""

from __future__ import annotations

from functools import lru_cache

from argand.device import Arch, Device
from argand.dft.butterfly import ButterflyPlan
from argand.dft.butterfly_heuristics import butterfly_plans, butterfly_time, short_plan
from argand.dft.candidates import best_legal
from argand.dft.hankel import HankelPlan
from argand.dft.heuristics import Choice
from argand.dft.legality import check_dft_plan
from argand.dft.library_choice import FAST_PRIME, LIBRARY_PRIME, ONCE_PRIME, several_time
from argand.dft.method import prime_factors
from argand.dft.plan import DensePlan, TwoFactorPlan
from argand.precision import PRECISIONS, Precision
from argand.runtime.plan import is_legal

FEW_NUMBERS = 4096
"""Numbers per multiprocessor below which rows are few."""
SHORT = range(41, 3201)
"""Lengths whose few rows are transformed by convolutions of least latency, if their largest prime
factor is above `FAST_PRIME`, or `ONCE_PRIME` at lengths beyond `_LONGEST_OF_FAST`."""
_LONGEST_OF_FAST = 1024
_MANY = 16
"""Multiple of `FEW_NUMBERS` from which on the time to load tables does not decide."""
_COPY = 2.1
"""Time of a copy of `FEW_NUMBERS` numbers of each multiprocessor."""
_ANY = PRECISIONS["3xfp16"]
"""No convolution's plan depends on the precision."""


def with_few_rows(
    choice: Choice, precision: Precision, rows: int, length: int, device: Device
) -> Choice:
    """Return the choice for ``rows`` rows, given the ``choice`` for many."""
    plan, share = choice.plan, _share(rows, length, device)
    short = plan_of_few_rows(length, rows, device) if share < 1 else None
    if short is not None:
        return _convolved(short)
    if isinstance(plan, DensePlan | HankelPlan) and share < _MANY:
        return _beside_tables(choice, plan, precision, share, device)
    alone = share < 1 and rows <= device.sm_count
    if not alone or not isinstance(plan, TwoFactorPlan | ButterflyPlan):
        return choice
    other = _convolution(length, device.require_arch())
    if other is None:
        return choice
    if prime_factors(length)[-1] <= LIBRARY_PRIME and _library_time(length, share) < _chain(other):
        return _by_library()
    return _convolved(other)


def fills(rows: int, length: int, device: Device) -> bool:
    """Return whether transforms have numbers for all multiprocessors of a GPU."""
    return _share(rows, length, device) >= 1


def plan_of_few_rows(length: int, rows: int, device: Device) -> ButterflyPlan | None:
    """Return the convolution of least latency; None for many rows and for cuFFT's lengths."""
    small = FAST_PRIME if length <= _LONGEST_OF_FAST else ONCE_PRIME
    taken = length in SHORT and prime_factors(length)[-1] > small
    short = short_plan(length, rows, device.sm_count) if taken else None
    if short is None or not is_legal(check_dft_plan, short, _ANY, device.require_arch()):
        return None
    return short


def _share(rows: int, length: int, device: Device) -> float:
    """Return the numbers of a multiprocessor in multiples of `FEW_NUMBERS`."""
    few = FEW_NUMBERS * device.sm_count
    return rows * length / few if few else _MANY


def _beside_tables(
    choice: Choice, plan: DensePlan | HankelPlan, precision: Precision, share: float, device: Device
) -> Choice:
    """Return the fastest of a plan whose blocks load tables, a convolution and cuFFT."""
    length, one_term = plan.length, precision.terms == 1
    largest = prime_factors(length)[-1]
    if largest <= ONCE_PRIME:
        return _by_library() if share < _least_of_dense(length, one_term=one_term) else choice
    ours = _tables_time(plan, share, one_term=one_term)
    other = _convolution(length, device.require_arch())
    convolved = float("inf") if other is None else 2.1 + 1.1 * _COPY * share * butterfly_time(other)
    if largest <= LIBRARY_PRIME and _library_time(length, share) < min(ours, convolved):
        return _by_library()
    return choice if other is None or ours <= convolved else _convolved(other)


def _least_of_dense(length: int, *, one_term: bool) -> float:
    """Return the `_share` from which on a dense plan is faster than cuFFT.

    The length has primes up to `ONCE_PRIME`, so cuFFT has one kernel, slower with a prime above
    `FAST_PRIME`. Dense plans of one term are faster at rows too long for a thread of cuFFT's.
    """
    if prime_factors(length)[-1] > FAST_PRIME:
        return 4
    return 3 if one_term and length > ONCE_PRIME else 7


def _tables_time(plan: DensePlan | HankelPlan, share: float, *, one_term: bool) -> float:
    """Return the time of a plan whose blocks load tables."""
    length = plan.length
    if isinstance(plan, HankelPlan):
        first = 4.4 + 0.01 * length if one_term else 3.8 + 0.021 * length
        return first + _COPY * share * (1.05 if one_term else 0.8 + 0.002 * length)
    first = 2.9 + 0.033 * length if one_term else 3 + 0.05 * length
    return first + _COPY * share * max(1, 0.33 + 0.0054 * length)


def _library_time(length: int, share: float) -> float:
    """Return the time of cuFFT's kernels, one for each prime factor.

    A prime, or a power of one, takes as long as twice the length.
    """
    kernels = len({*prime_factors(length)})
    copies = several_time(length if kernels > 1 else 2 * length)
    return 2.9 * kernels + 1.14 * _COPY * share * copies


def _chain(plan: ButterflyPlan) -> float:
    """Return the time of a convolution whose blocks have one row each."""
    return 3.3 + 0.0006 * plan.size


@lru_cache(maxsize=256)
def _convolution(length: int, arch: Arch) -> ButterflyPlan | None:
    """Return the convolution for many rows of a length; None where none is legal."""
    plan = best_legal(butterfly_plans(length), _ANY, arch)
    return plan if isinstance(plan, ButterflyPlan) else None


def _convolved(plan: ButterflyPlan) -> Choice:
    return Choice(plan, f"{plan.stages} in fp32, of few rows")


def _by_library() -> Choice:
    return Choice(None, "faster at so few numbers, and in fp32")
