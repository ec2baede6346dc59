"""Candidate mixed-radix plans, and their estimated times. Needs no GPU.

The times that constants are fitted to are in docs/experiments/2026-11-30-fitted-constants.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from heapq import nsmallest

from argand.dft.butterfly_heuristics import butterfly_instructions
from argand.dft.method import LARGEST_FACTOR, prime_factors
from argand.dft.mixed_radix import (
    LARGEST_MIXED_RADIX,
    MIXED_STAGES,
    MixedRadixPlan,
    mixed_radix_blocks,
    needed_registers,
)
from argand.dft.two_pass_heuristics import SPLIT_SECTORS
from argand.multiprocessor import registers

_LARGEST_LENGTH = 27_000
"""Largest length that a block has room for."""
_MIN_RADIX = 4
"""Smallest radix of a plan."""
_LARGE_RADIX = {2: 27, 3: 22, 4: LARGEST_MIXED_RADIX}
"""Radix above which, if all of the fewest stages are, plans of one stage more are compared."""
_SPLITS = 24
"""Orders of radices whose tiles are compared, the best by work."""
_MAX_NUMBERS = 9_000
"""Most numbers of a tile of several transforms."""
_TRANSFORMS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 19, 22, 26, 31)
"""Transforms of a tile among the candidates."""
_WARPS = range(2, 25)
"""Warps of a block among the candidates."""
_ROUNDS = (1, 2, 3)
"""Butterflies of a thread in a stage among the candidates."""
_CANDIDATES = 4
"""Candidate plans of a length."""


def mixed_radix_plans(length: int) -> Iterator[MixedRadixPlan]:
    """Yield the candidates of least estimated time.

    None for lengths of dense plans, and none without a radix for each prime.
    """
    if not LARGEST_FACTOR < length <= _LARGEST_LENGTH:
        return
    found: list[tuple[float, MixedRadixPlan]] = []
    for radices in _splits(length):
        needed = needed_registers(radices)
        plans = {
            MixedRadixPlan(radices, transforms, warps)
            for transforms in _TRANSFORMS
            if transforms == 1 or transforms * length <= _MAX_NUMBERS
            for items in {transforms * length // radix for radix in radices}
            for warps in {-(-items // (32 * rounds)) for rounds in _ROUNDS}
            if warps in _WARPS and registers(32 * warps) >= needed
        }
        found += nsmallest(
            _CANDIDATES, ((_time(plan, _blocks(plan)), plan) for plan in plans), key=_first
        )
    nearest = [plan for _, plan in nsmallest(2 * _CANDIDATES, found, key=_first)]
    yield from nsmallest(_CANDIDATES, nearest, key=mixed_radix_time)


def _first(found: tuple[float, MixedRadixPlan]) -> float:
    return found[0]


@lru_cache(maxsize=256)
def _splits(length: int) -> tuple[tuple[int, ...], ...]:
    """Return radices of as few stages as the length allows, in every order, the best by work."""
    if prime_factors(length)[-1] > LARGEST_MIXED_RADIX:
        return ()
    found: list[tuple[int, ...]] = []
    for stages in range(2, MIXED_STAGES + 1):
        enough = bool(found)
        found += nsmallest(_SPLITS, _products(length, stages), key=_work)
        if enough or (found and min(map(max, found)) <= _LARGE_RADIX[stages]):
            break
    return tuple(found)


def _products(length: int, stages: int) -> list[tuple[int, ...]]:
    """Return the products of ``stages`` radices that make a length, in every order."""
    if stages == 1:
        return [(length,)] if _MIN_RADIX <= length <= LARGEST_MIXED_RADIX else []
    return [
        (radix, *rest)
        for radix in range(_MIN_RADIX, LARGEST_MIXED_RADIX + 1)
        if length % radix == 0
        for rest in _products(length // radix, stages - 1)
    ]


@lru_cache(maxsize=4096)
def _work(radices: tuple[int, ...]) -> float:
    """Return the estimated instructions a number: butterflies, twiddles, accesses, addresses."""
    return sum((butterfly_instructions(radix) + 8 * radix + 25) / radix for radix in radices)


def _blocks(plan: MixedRadixPlan) -> int:
    """Return nearly `MixedRadixPlan.blocks_per_sm`, without a search for pitches."""
    pitch = 1
    for radix in plan.radices[:0:-1]:
        pitch = radix * pitch | 1
    return mixed_radix_blocks(
        plan.radices, 8 * plan.transforms * plan.radices[0] * pitch, plan.warps
    )


def mixed_radix_time(plan: MixedRadixPlan, memory: float = 1.0) -> float:
    """Return the estimated time of many transforms over that of an H200's copy of their numbers.

    ``memory`` is the card's `Device.relative_memory`, which bounds half of it, as for two passes.
    """
    return (0.5 + 0.5 / memory) * _time(plan, plan.blocks_per_sm)


def _time(plan: MixedRadixPlan, blocks: int) -> float:
    """Return the estimated time of a plan, given the blocks that a multiprocessor holds.

    Threads that have a butterfly hide the latency of memory and of each other's instructions, and
    numbers in flight that of loads. Results are lines of the numbers before the last radix. The
    estimate is fitted to times of an H200.
    """
    length, idle, several = plan.length, [], 0
    for radix in plan.radices:
        items = plan.transforms * length // radix
        rounds = -(-items // plan.threads)
        idle.append(rounds / (blocks * items))
        several += rounds > 1
    line, first = length // plan.radices[-1], plan.radices[0]
    return (
        0.91 + 0.625 * _work(plan.radices) * sum(idle) + 220 * idle[0] / first + 0.3 / blocks
        + 0.045 * several + 0.144 * SPLIT_SECTORS[line % 4] + 0.25 / line + 0.33 * first / length
    )  # fmt: skip
