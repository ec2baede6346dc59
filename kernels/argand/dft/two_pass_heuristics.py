"""Candidate two-pass plans, and their estimated times. Needs no GPU.

``python -m benchmarks.dft.plans`` times the candidates of a length that times are fitted to.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from heapq import nsmallest
from math import isqrt
from typing import NamedTuple

from argand.dft.butterfly_heuristics import butterfly_instructions
from argand.dft.method import prime_factors
from argand.dft.registers import registers
from argand.dft.two_pass import (
    LARGEST_BUTTERFLY,
    LARGEST_SHARED_PRIME,
    TwoPassPlan,
    pairs_of,
    pass_blocks,
    pass_bytes,
    pass_registers,
)

LEAST_TWO_PASS = 12_288
"""From this length on two-pass plans are candidates: blocks hold most shorter transforms."""
_UNEQUAL = 8
"""Largest ratio of columns or lines to the root of their product."""
WIDTH = 16
"""Columns of a tile: 32 take 0.87 to 1.17 times as long on an H200, 1.04 on average."""
_LARGEST_TILE = 224 * 1024
_WARPS = range(2, 17)
_ROUNDS = (1, 2, 3, 4, 6, 8)
_CANDIDATES = 8


class Pass(NamedTuple):
    """A pass of a plan, and its estimated time over that of an H200's copy."""

    time: float
    radices: tuple[int, int]
    warps: int


def two_pass_plans(length: int) -> Iterator[TwoPassPlan]:
    """Yield the candidates of least estimated time, one of each N1.

    None for short lengths, and none without a stage for each prime.
    """
    if length < LEAST_TWO_PASS or prime_factors(length)[-1] > LARGEST_SHARED_PRIME:
        return
    root = isqrt(length)
    found: list[tuple[float, TwoPassPlan]] = []
    for columns in range(max(2, root // _UNEQUAL), min(length // 2, root * _UNEQUAL) + 1):
        if length % columns:
            continue
        first = fastest_pass(columns, in_lines=False)
        second = fastest_pass(length // columns, in_lines=True)
        if first is None or second is None:
            continue
        plan = TwoPassPlan(
            length, first.radices, second.radices, (WIDTH, WIDTH), (first.warps, second.warps)
        )  # fmt: skip
        found.append((first.time + second.time, plan))
    yield from (plan for _, plan in nsmallest(_CANDIDATES, found, key=lambda one: one[0]))


@lru_cache(maxsize=4096)
def fastest_pass(length: int, *, in_lines: bool) -> Pass | None:
    """Return the fastest pass of columns, or lines, of a length; None where none fits.

    Threads are as many as make whole rounds of one of its stages.
    """
    found = []
    for radices in _splits(length):
        if pass_bytes(radices, WIDTH, in_lines=in_lines) > _LARGEST_TILE:
            continue
        needed = pass_registers(radices, in_lines=in_lines)
        items = stage_items(radices, WIDTH)
        for warps in {-(-one // (32 * rounds)) for one in items for rounds in _ROUNDS}:
            if warps in _WARPS and registers(32 * warps) >= needed:
                time = pass_time(radices, WIDTH, warps, in_lines=in_lines)
                found.append(Pass(time, radices, warps))
    return min(found, default=None)


def _splits(length: int) -> list[tuple[int, int]]:
    """Return the first and last radices of a pass of a length, two at most: the best by work."""
    every = [
        (first, length // first)
        for first in range(1, LARGEST_BUTTERFLY + 1)
        if length % first == 0 and _is_last(length // first)
    ]
    return nsmallest(2, every, key=lambda radices: sum(stage_instructions(radices)))


def _is_last(radix: int) -> bool:
    """Return whether a last stage may have a radix."""
    return 2 <= radix <= (LARGEST_SHARED_PRIME if pairs_of(radix) else LARGEST_BUTTERFLY)


def stage_items(radices: tuple[int, int], width: int) -> tuple[int, int]:
    """Return the butterflies of both stages of a tile, or the shares of the last one."""
    first, last = radices
    pairs = pairs_of(last)
    shares = -(-(last // 2) // pairs) if pairs else 1
    return last * width, first * shares * width


@lru_cache(maxsize=4096)
def stage_instructions(radices: tuple[int, int]) -> tuple[float, float]:
    """Return the estimated instructions a number of both stages of a pass."""
    first, last = radices
    pairs, half = pairs_of(last), last // 2
    before = (butterfly_instructions(first) + 7 * first + 25) / first
    if not pairs:
        return before, (butterfly_instructions(last) + 8 * last + 25) / last
    shares = -(-half // pairs)
    return before, shares * (half * (4.5 * pairs + 8) + 6 * pairs + 25) / last


def pass_time(radices: tuple[int, int], width: int, warps: int, *, in_lines: bool) -> float:
    """Return the estimated time of a pass over that of an H200's copy of the numbers.

    Threads that have a butterfly, or a share, hide the latency of memory and of shared memory.
    Fitted to 220 passes of an H200 (7 to 14% off, one standard deviation).
    """
    blocks, threads = pass_blocks(radices, width, warps, in_lines=in_lines), 32 * warps
    first, last = (blocks * items / -(-items // threads) for items in stage_items(radices, width))
    before, after = stage_instructions(radices)
    if not pairs_of(radices[1]):
        return (
            1.05 + 140 / first if in_lines else 0.8 + 115 / first + 0.2 / blocks + 0.0067 * before
        )
    if in_lines:
        return max(1.6, 0.55 + 0.0153 * after + 80 / last)
    return max(1.9, 1 + 0.0143 * after + 100 / last)


def two_pass_time(plan: TwoPassPlan, memory: float = 1.0) -> float:
    """Return the estimated time of many transforms over that of an H200's copy of their numbers.

    ``memory`` is the card's `Device.relative_memory`, which bounds half of it, as of three kernels.
    """
    return (0.5 + 0.5 / memory) * sum(
        pass_time(radices, plan.widths[i], plan.block_warps[i], in_lines=i == 1)
        for i, radices in enumerate((plan.columns, plan.lines))
    )
