"""Candidate two-pass plans, and their estimated times. Needs no GPU.

``python -m benchmarks.dft.plans`` times the candidates of a length that times are fitted to.

The times that constants are fitted to are in docs/experiments/2026-11-30-fitted-constants.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from heapq import nsmallest
from itertools import product
from math import isqrt, prod
from typing import NamedTuple

from argand.dft.butterfly_heuristics import butterfly_instructions
from argand.dft.method import is_prime, prime_factors
from argand.dft.two_pass import (
    LARGEST_BUTTERFLY,
    LARGEST_SHARED_PRIME,
    TwoPassPlan,
    pairs_of,
    pass_blocks,
    pass_bytes,
    pass_registers,
)
from argand.multiprocessor import registers

MIN_TWO_PASS = 12_288
"""The shortest length of two-pass plans: blocks hold most shorter transforms."""
_UNEQUAL = 8
"""Largest ratio of columns or lines to the root of their product."""
_WIDTHS = {False: (16,), True: (16, 32)}
"""Columns of a tile, and lines of one: results of 32 lines have half as many split sectors, which
take more time in stores than in loads."""
_LARGEST_TILE = 224 * 1024
"""Bytes of the largest tile: shared memory of a block of Hopper."""
_WARPS = range(2, 17)
"""Warps of a block among the candidates."""
_ROUNDS = (1, 2, 3, 4, 6, 8)
"""Butterflies of a thread in a stage among the candidates."""
_CANDIDATES = 8
"""Candidate plans of a length."""
SPLIT_SECTORS = (0.0, 0.75, 0.5, 0.75)
"""Share of lines in memory that begin within a sector, of four numbers, by how many
numbers lie from one to the next."""


class PassEstimate(NamedTuple):
    """A pass of a plan, and its estimated time over that of an H200's copy."""

    time: float
    radices: tuple[int, int]
    width: int
    warps: int


def two_pass_plans(length: int) -> Iterator[TwoPassPlan]:
    """Yield the candidates of least estimated time, one of each N1.

    None for short lengths, and none without a stage for each prime.
    """
    if length < MIN_TWO_PASS or prime_factors(length)[-1] > LARGEST_SHARED_PRIME:
        return
    root = isqrt(length)
    found: list[tuple[float, TwoPassPlan]] = []
    for columns in range(max(2, root // _UNEQUAL), min(length // 2, root * _UNEQUAL) + 1):
        if length % columns:
            continue
        first = _fastest_pass(columns, length // columns, in_lines=False)
        second = _fastest_pass(length // columns, columns, in_lines=True)
        if first is None or second is None:
            continue
        plan = TwoPassPlan(
            length, first.radices, second.radices,
            (first.width, second.width), (first.warps, second.warps),
        )  # fmt: skip
        found.append((first.time + second.time, plan))
    yield from (plan for _, plan in nsmallest(_CANDIDATES, found, key=lambda one: one[0]))


def _fastest_pass(length: int, across: int, *, in_lines: bool) -> PassEstimate | None:
    """Return the fastest pass of ``across`` columns, or lines, of a length; None: none fits."""
    found = [
        PassEstimate(
            pass_time(radices, width, warps, across, in_lines=in_lines), radices, width, warps
        )
        for radices, width, warps in _passes(length, in_lines=in_lines)
    ]
    return min(found, default=None)


@lru_cache(maxsize=4096)
def _passes(length: int, *, in_lines: bool) -> list[tuple[tuple[int, int], int, int]]:
    """Return radices, widths and warps of passes of a length that fit a multiprocessor.

    Threads are as many as make whole rounds of one of its stages.
    """
    found = []
    for radices, width in product(_splits(length), _WIDTHS[in_lines]):
        if pass_bytes(radices, width, in_lines=in_lines) > _LARGEST_TILE:
            continue
        needed = pass_registers(radices, in_lines=in_lines)
        items = stage_items(radices, width)
        every = {-(-one // (32 * rounds)) for one in items for rounds in _ROUNDS}
        found += [
            (radices, width, warps)
            for warps in every
            if warps in _WARPS and registers(32 * warps) >= needed
        ]
    return found


def _splits(length: int) -> list[tuple[int, int]]:
    """Return the first and last radices of a pass of a length, two at most: the best by work.

    A first stage that only copies is left to primes: it takes longer than a copy.
    """
    every = [
        (first, length // first)
        for first in range(1, LARGEST_BUTTERFLY + 1)
        if length % first == 0 and _is_last(length // first) and (first > 1 or is_prime(length))
    ]
    return nsmallest(2, every, key=_work)


def _is_last(radix: int) -> bool:
    """Return whether a last stage may have a radix."""
    return 2 <= radix <= (LARGEST_SHARED_PRIME if pairs_of(radix) else LARGEST_BUTTERFLY)


def stage_items(radices: tuple[int, int], width: int) -> tuple[int, int]:
    """Return the butterflies of both stages of a tile, or the shares of the last one."""
    first, last = radices
    return last * width, first * _shares(last) * width


def _shares(radix: int) -> int:
    """Return the shares of a last stage's transform, 1 for a butterfly."""
    pairs = pairs_of(radix)
    return -(-(radix // 2) // pairs) if pairs else 1


@lru_cache(maxsize=4096)
def _instructions(radix: int, accesses: int) -> float:
    """Return the estimated instructions a number of a butterfly, with its accesses a number."""
    return (butterfly_instructions(radix) + accesses * radix + 25) / radix


@lru_cache(maxsize=256)
def _share_cycles(prime: int) -> float:
    """Return the cycles a number for which L1 and shared memory are busy with shares of a prime.

    Each share reads all numbers, and for each pair of them the roots of its own results.
    """
    half, pairs = prime // 2, pairs_of(prime)
    return _shares(prime) * (half * (2 * pairs + 4) + 8 * pairs + 20) / prime


def _work(radices: tuple[int, int]) -> float:
    """Return the cost that ranks the splits of a pass: instructions a number, cycles of shares."""
    first, last = radices
    return _instructions(first, 7) + (
        2 * _share_cycles(last) if pairs_of(last) else _instructions(last, 8)
    )


def pass_time(
    radices: tuple[int, int], width: int, warps: int, across: int, *, in_lines: bool
) -> float:
    """Return the estimated time of a pass of ``across`` columns, or lines, over an H200's copy.

    Threads that have a butterfly, or a share, hide the latency of memory and of shared memory. A
    tile loads lines of its columns, or stores lines of its results, which take longer where they
    begin within a sector. The estimate is fitted to times of an H200.
    """
    (first, last), threads = radices, 32 * warps
    blocks = pass_blocks(radices, width, warps, in_lines=in_lines)
    loading, storing = (
        blocks * items / -(-items // threads) for items in stage_items(radices, width)
    )
    tiles = width * -(-across // width) / across
    split = SPLIT_SECTORS[across % 4] * 16 / width
    waiting = last // 2 * _shares(last) / storing
    if in_lines:
        time = 0.84 * tiles + 84 / loading + 0.51 * split + 0.2 / blocks
        if pairs_of(last):
            return time + 0.0152 * _share_cycles(last) + 2.14 * waiting
        return time + 42 / storing
    time = 0.51 * tiles + 110 / loading + 0.043 * split + 0.15 / blocks
    time += 0.008 * _instructions(first, 7)
    if pairs_of(last):
        return time + 0.028 * _share_cycles(last) + 1.76 * waiting
    return time + 27 / storing + 0.008 * _instructions(last, 8)


def two_pass_time(plan: TwoPassPlan, memory: float = 1.0) -> float:
    """Return the estimated time of many transforms over that of an H200's copy of their numbers.

    ``memory`` is the card's `Device.relative_memory`, which bounds half of it, as for three
    kernels.
    """
    return (0.5 + 0.5 / memory) * sum(
        pass_time(radices, plan.widths[i], plan.block_warps[i], across, in_lines=i == 1)
        for i, (radices, across) in enumerate(
            ((plan.columns, prod(plan.lines)), (plan.lines, prod(plan.columns)))
        )
    )
