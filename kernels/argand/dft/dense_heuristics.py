"""Dense plans: the candidates and their rank. Needs no GPU.

``python -m benchmarks.dft.plans`` times the candidates of a length.

The times that constants are fitted to are in docs/experiments/2026-11-30-fitted-constants.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from argand.dft.method import LARGEST_DENSE, LARGEST_FACTOR
from argand.dft.plan import DensePlan, folded_tiles
from argand.precision import TF32, Precision

_LONGEST, _LONGEST_OF_TF32, _LONGEST_OF_3XTF32 = 512, 430, 128
"""Largest dense primes without wgmma, also of tf32 and of 3xtf32: beyond, butterflies or cuFFT are
faster."""
_WARPS = ((160, 2), (224, 4), (264, 2), (LARGEST_DENSE, 4))
"""Warps that share a tile without wgmma: (longest dense length, warps), measured at 131, 191, 251
and 257, 383 and 509."""
_ENOUGH_WARPS = 8
"""Warps of a multiprocessor that hide each other's latencies."""
_BETTER = 1.5
"""Warps that a second buffer of a tile is worth, or that tiles of a single warp are."""
_TWO_TILES = range(14, 40)
"""Lengths of dense plans whose warps take 32 rows at once, but multiples of eight: 16 rows have few
bytes for so many requests."""
_MAX_WARPS = 16
"""Most warps of a block."""


def dense_plans(length: int, precision: Precision, wide: bool) -> Iterator[DensePlan]:
    """Yield dense plans where they are worth it, legal or not, each of most groups."""
    of_tf32 = _LONGEST_OF_TF32 if precision.terms == 1 else _LONGEST_OF_3XTF32
    if length > (of_tf32 if precision.operand == TF32 else _LONGEST):
        return
    for warps in (1, 2, 3, 4, 6, 8, 12, 16):
        if warps > 1 and folded_tiles(length, warps) == folded_tiles(length, warps - 1):
            continue  # no fewer columns for each
        groups = _MAX_WARPS // warps
        for m_tiles, buffers, in_shared in product((1, 2), (1, 2, 3), (True, False)):
            yield DensePlan(length, warps, m_tiles, groups, buffers, in_shared, wide)


def dense_order(plan: DensePlan) -> tuple[float, ...]:
    """Return the sort key of dense plans, the best first; it only has to rank them."""
    warps = min(plan.groups * plan.warps, _ENOUGH_WARPS)
    if plan.length > LARGEST_FACTOR:
        best = next(warps for limit, warps in _WARPS if plan.length <= limit)
        return (1, abs(plan.warps - best), plan.m_tiles, -plan.groups, -plan.buffers)
    better = (plan.buffers > 1) + (plan.warps == 1)
    tiles = 2 if plan.length in _TWO_TILES and plan.length % 8 else 1
    return (0, plan.m_tiles != tiles, -warps - _BETTER * better, plan.warps, -plan.buffers)
