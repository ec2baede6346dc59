"""Plans of two factors: the candidates and their estimated time. Needs no GPU.

``python -m benchmarks.dft.plans`` times the candidates of a length that the estimate is fitted to.

The times that constants are fitted to are in docs/experiments/2026-11-30-fitted-constants.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from math import isqrt

from argand.dft.method import LARGEST_FUSED
from argand.dft.plan import TwoFactorPlan, folded_tiles, padded
from argand.precision import Precision

_MAX_WARPS = 16
"""Most warps of a block."""


def two_factor_plans(length: int, wide: bool) -> Iterator[TwoFactorPlan]:
    """Yield plans of every N1 >= N2 up to `LARGEST_FUSED` with the product N, legal or not.

    Each has the most groups.
    """
    for second in range(2, isqrt(length) + 1):
        first = length // second
        if length % second or first > LARGEST_FUSED:
            continue
        for m_tiles in (1, 2):
            least = -(-second // (16 * m_tiles))
            for warps, buffers in product(sorted({least, max(least, -(-first // 16))}), (1, 2, 3)):
                groups = _MAX_WARPS // warps
                if groups:
                    yield TwoFactorPlan(first, second, warps, m_tiles, groups, buffers, wide)


def two_factor_order(plan: TwoFactorPlan, precision: Precision) -> tuple[float, ...]:
    """Return the sort key of plans, the best first: the estimated time, then two buffers."""
    return (0, two_factor_time(plan, precision), abs(plan.buffers - 2))


def two_factor_time(plan: TwoFactorPlan, precision: Precision) -> float:
    """Return the estimated time of many transforms over that of a copy of their numbers.

    Warps compute all rows of their tiles, also those that no transform has; where there are none,
    no lane branches. In the second stage some warps wait for others. Lines of some pitches conflict
    in banks; those with gaps in shared memory, and odd lengths, are copied by threads. The
    estimate is fitted to times of an H200 at 3xfp16 and tf32.
    """
    mma_k, pairs = precision.operand.mma_k, len(precision.products)
    tiles = (plan.warps * plan.m_tiles, -(-plan.n1 // 16))
    folds = mmas = 0.0
    for rows, size in zip(tiles, (plan.n1, plan.n2), strict=True):
        k_tiles = -(-(size // 2) // mma_k)
        folds += precision.terms * rows * k_tiles * mma_k / 8
        mmas += 4 * pairs * rows * k_tiles * folded_tiles(size, 1)
    branches = (1 - 0.33 * (16 * tiles[0] == plan.n2)) * (1 - 0.22 * (plan.n1 % 16 == 0))
    conflicts = 0.02 * (_bank_ways(plan.n2) - 1) + 0.05 * (_bank_ways(plan.n1) - 1)
    gaps = sum(padded(width) != width for width in (plan.n1, plan.n2))
    copies = 0.18 * gaps if plan.wide_copies else 0.44
    idle = -(-tiles[1] // plan.warps) * plan.warps / tiles[1] - 1
    a_number = (branches * (6.3 * folds + 2 * mmas) + 80 * plan.warps) / plan.length
    a_number += 0.4 + 0.07 * precision.scaled + copies + conflicts
    return a_number * (1 + 5.5 / (plan.groups * plan.warps)) * (1 + 0.265 * idle)


@lru_cache(maxsize=256)
def _bank_ways(width: int) -> int:
    """Return how many of 16 lanes meet in one bank where they access 4 numbers of 4 lines."""
    places = Counter((line * padded(width) + k) % 16 for line in range(4) for k in range(4))
    return max(places.values())
