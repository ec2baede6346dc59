"""Candidate plans in fp32, and their estimated cycles. Needs no GPU.

``python -m benchmarks.dft.plans`` times the candidates of a length that cycles are fitted to.

The times that constants are fitted to are in docs/experiments/2026-11-30-fitted-constants.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import chain, product
from math import prod

import numpy as np

from argand.dft.butterfly import (
    LARGEST_FIRST_BUTTERFLIES,
    LARGEST_SIZE,
    STAGES,
    ButterflyPlan,
)
from argand.dft.cluster import ClusterPlan
from argand.dft.method import is_prime, prime_factors
from argand.dft.single_cta import SingleCtaPlan
from argand.multiprocessor import LARGEST_BLOCK, PORTABLE_CLUSTER

CHIRP_RADICES = (4, 8, 10, 12, 16, 20, 24, 32)
"""Radices of Bluestein's convolutions, whose length is free."""
_BLOCK_RADICES = tuple(sorted((*CHIRP_RADICES, 14, 15)))
"""Radices of convolutions that a block computes for many rows."""
_LARGEST_PRIME = 13
"""Largest prime of a radix: the work of a prime's butterfly is quadratic."""
_RADER_RADICES = tuple(range(4, 17))
"""Radices of Rader's convolutions, whose length is the prime less one."""
SPARE = 1.2
"""Largest length of a Bluestein convolution, as a multiple of the least."""
WARPS = (1, 2, 4, 8, 12, 16)
"""Warps of a transform."""
_MARGIN = 1.1
"""Factor of the cycles of blocks of other numbers of warps, as estimates are 7% off."""
_GROUPS = 16
"""Most groups of warps of a block: with more, threads have fewer registers."""
_SCHEDULERS = 4
"""Schedulers of a multiprocessor, each of which issues for a part of the warps."""
_ROWS_AT_ONCE = (1, 2, 4)
"""Transforms of a block at a time, where there are few."""
_MAX_THREADS = 512
"""Threads of a block of such transforms: with more, their butterflies would not fit registers."""
_STAGE_CYCLES = 520
"""Cycles that a stage, forward and back, takes beside its instructions: it waits for shared memory,
for twiddles and at barriers."""
_SEEN = 128
"""First butterflies of a stage, whose accesses stand for those of all."""
_BUTTERFLIES = np.arange(_SEEN)
_LANES = _BUTTERFLIES // 16 * 16
"""The first butterfly of each one's half warp: lanes of different half warps meet in no bank."""
_CLUSTERS = {
    1 << 15: ((8, 16, 16, 16),),
    1 << 16: ((16, 16, 16, 16),),
    1 << 17: ((16, 16, 32, 16), (16, 16, 16, 32)),
}
"""Radices of powers of two that a cluster transforms, by length."""
_SHORT = 1 << 10
"""Length of a convolution up to which a third stage takes longer than its instructions."""


def butterfly_plans(length: int) -> Iterator[ButterflyPlan]:
    """Yield butterfly plans by Bluestein, and of a prime by Rader where radices allow.

    Each has as many groups as a block has threads for. None for lengths beyond 16-bit offsets, and
    none with more threads or first butterflies than are legal.
    """
    if length > LARGEST_SIZE:
        return
    splits = [(False, radices) for radices in _chirp_splits(length, _BLOCK_RADICES)]
    if is_prime(length) and max(prime_factors(length - 1)) <= _LARGEST_PRIME:
        splits += [
            (True, radices) for stages in range(2, STAGES + 1)
            for radices in _splits(length - 1, stages, _RADER_RADICES)
        ]  # fmt: skip
    for rader, radices in splits:
        for warps in _block_warps(radices):
            most = min(_GROUPS, LARGEST_BLOCK // (32 * warps))
            plan = ButterflyPlan(length, rader, radices, warps, group_counts(warps, most)[0])
            if rader or plan.first_butterflies <= LARGEST_FIRST_BUTTERFLIES:
                yield plan


@lru_cache(maxsize=256)
def group_counts(warps: int, most: int) -> tuple[int, ...]:
    """Return the numbers of groups of ``warps`` up to ``most``, the best by `_waiting` first."""
    return tuple(sorted(range(1, most + 1), key=lambda groups: _waiting(warps * groups)))


def _waiting(warps: int) -> float:
    """Return the time of a multiprocessor with ``warps`` warps over that of its instructions.

    Each warp has as many rows, so all wait for the scheduler of the most warps.
    """
    uneven = -(-warps // _SCHEDULERS) * _SCHEDULERS / warps
    return (1 + 4 / warps) * float(uneven**0.55)


@lru_cache(maxsize=4096)
def _block_warps(radices: tuple[int, ...]) -> tuple[int, ...]:
    """Return the numbers of warps of a convolution that a block computes for many rows.

    Beside `WARPS` those counts with which each thread has as many butterflies of the first stage:
    20 x 20 x 16 takes 5 or 10, so that no thread idles (`butterfly_order`).
    """
    first = prod(radices[1:])
    return tuple(
        warps for warps in range(1, WARPS[-1] + 1)
        if warps in WARPS or first % (32 * warps) == 0
    )  # fmt: skip


def short_plan(length: int, rows: int, sm_count: int) -> ButterflyPlan | None:
    """Return the Bluestein butterfly plan of the least latency; None for too many ``rows``.

    A multiprocessor works on all of its rows at once, so small radices on many threads are best:
    each thread has at most one butterfly of a stage.
    """
    groups = next((x for x in _ROWS_AT_ONCE if x * sm_count >= rows), None)
    if groups is None:
        return None
    plans = (
        ButterflyPlan(length, False, radices, _warps_of(radices), groups)
        for radices in _chirp_splits(length, CHIRP_RADICES)
    )
    fitting = (plan for plan in plans if plan.threads <= _MAX_THREADS)
    return min(fitting, key=lambda plan: _latency(plan.radices), default=None)


def _warps_of(radices: tuple[int, ...]) -> int:
    """Return the warps whose threads have at most one butterfly of a stage each."""
    least = -(-prod(radices) // (32 * min(radices)))
    return next((warps for warps in WARPS if warps >= least), least)


def _latency(radices: tuple[int, ...]) -> float:
    """Return the estimated cycles of a convolution where each thread has one butterfly of a stage.

    It ranks splits as an H200 does.
    """
    return sum(2 * (butterfly_instructions(radix) + 9 * radix) + _STAGE_CYCLES for radix in radices)


def large_plans(length: int) -> Iterator[SingleCtaPlan | ClusterPlan]:
    """Yield single-CTA plans, and cluster plans of one or two blocks per multiprocessor."""
    if length == 1 << 14:
        yield SingleCtaPlan(32, 16)
    for radices, cluster in product(_CLUSTERS.get(length, ()), (2, 4, PORTABLE_CLUSTER)):
        for warps, blocks in ((16, 1), (8, 2)):
            yield ClusterPlan(radices, cluster, warps, blocks)


@lru_cache(maxsize=256)
def _chirp_splits(length: int, radices: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return two or three radices of every length up to `SPARE` times the least."""
    least = 2 * length - 1
    most = int(least * SPARE)
    sizes = chirp_sizes(radices).items()
    return tuple(split for size, splits in sizes if least <= size <= most for split in splits)


@cache
def chirp_sizes(radices: tuple[int, ...]) -> dict[int, list[tuple[int, ...]]]:
    """Return the lengths that two or three radices make, in order, and the radices of each."""
    found: dict[int, list[tuple[int, ...]]] = {}
    for split in chain(product(radices, repeat=2), product(radices, repeat=3)):
        found.setdefault(prod(split), []).append(split)
    return dict(sorted(found.items()))


@lru_cache(maxsize=4096)
def _splits(size: int, stages: int, radices: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the products of ``stages`` radices that make ``size``, in every order."""
    if stages == 0:
        return ((),) if size == 1 else ()
    return tuple(
        (radix, *rest)
        for radix in radices
        if size % radix == 0
        for rest in _splits(size // radix, stages - 1, radices)
    )


def butterfly_cycles(plan: ButterflyPlan) -> float:
    """Return the estimated cycles of a multiprocessor for a transform: issue and stalls.

    The estimate is fitted to measurements on an H200; it only has to rank.
    """
    threads, warps, size = 32 * plan.warps, plan.warps * plan.groups, plan.size
    issued = 0.0
    conflicts = (1.0,) * len(plan.radices) if plan.rader else _bank_ways(plan.radices)
    for index, (radix, ways) in enumerate(zip(plan.radices, conflicts, strict=True)):
        each = _stage_instructions(radix, ways, last=index + 1 == len(plan.radices))
        issued += plan.warps * -(-(size // radix) // threads) * each
    issued += plan.warps * (24 * plan.length / threads + 60)
    # Rader's orders scatter and gather numbers in all banks; a lone warp waits for each of them.
    slower = (1.1 + size / 12_000) * (1.3 if plan.warps == 1 else 1) if plan.rader else 1
    # A fourth stage exchanges twice more; lines of a last stage are best a power of two.
    more, line = max(0, len(plan.radices) - 3), plan.radices[-1]
    slower *= (1 + 0.2 * more) * (1.12 if line & (line - 1) else 1)
    if plan.length < size <= _SHORT and len(plan.radices) > 2:
        slower *= 1.05  # so does a third of a chirp's short one
    return float(issued / _SCHEDULERS * _waiting(warps) * slower)


@lru_cache(maxsize=4096)
def _stage_instructions(radix: int, ways: float, *, last: bool) -> float:
    """Return the instructions of a butterfly of a stage, forward and back.

    They are those of its numbers, of twiddles or half the spectrum, of accesses and of addresses.
    """
    twiddles = 2.5 * radix if last else 5 * (radix - 1)
    return 2 * (butterfly_instructions(radix) + twiddles + (1 + ways) * radix + 25)


def butterfly_order(plan: ButterflyPlan) -> float:
    """Return the sort key of butterfly plans, the best first: cycles, and a margin of some.

    Warps that are not in `WARPS` are taken where they are estimated to gain a tenth, which the
    estimate's error does not explain.
    """
    return butterfly_cycles(plan) * (1.0 if plan.warps in WARPS else _MARGIN)


@lru_cache(maxsize=4096)
def _bank_ways(radices: tuple[int, ...]) -> tuple[float, ...]:
    """Return how many of 16 lanes meet in one bank on average, by stage.

    They access the same number of neighbouring butterflies. Where lines are even, the last stage
    has no conflicts, and where they have 16 or 32 numbers none has.
    """
    line, size = radices[-1], prod(radices)
    found = [1.0] * len(radices)
    for stage, radix in enumerate(radices[:-1] if line % 16 else ()):
        size //= radix
        first = _BUTTERFLIES + _BUTTERFLIES // size * size * (radix - 1)
        banks = (first + first // line) % 16 + _LANES
        found[stage] = float(np.bincount(banks, minlength=_SEEN).reshape(-1, 16).max(1).mean())
    return tuple(found)


def butterfly_time(plan: ButterflyPlan) -> float:
    """Return the estimated time of many transforms over that of a copy of their numbers.

    The estimate is fitted to times of an H200.
    """
    alone = 0.9 if plan.groups == 1 else 1
    a_number = 0.63 + 0.78 * butterfly_cycles(plan) / plan.length
    return a_number * alone * (1 + plan.size / 50_000)


@lru_cache(maxsize=64)
def butterfly_instructions(radix: int) -> float:
    """Return the instructions of a butterfly that ``cuda/dft/radix.cuh`` divides."""
    if radix <= 4:
        return {1: 0, 2: 4, 3: 16, 4: 16}[radix]
    primes = prime_factors(radix)
    if len(primes) == 1:
        return 4 * (radix // 2) ** 2 + 10 * (radix // 2)
    part = primes[0] ** primes.count(primes[0])
    twiddles = 0.0
    if part == radix:
        part = primes[0] ** (len(primes) // 2) if primes[0] == 2 else primes[0]
        twiddles = 3.5 * (part - 1) * (radix // part - 1)
    other = radix // part
    return float(
        other * butterfly_instructions(part) + part * butterfly_instructions(other) + twiddles
    )
