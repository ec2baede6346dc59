"""Plans of two factors: the candidates and their estimated time. Needs no GPU.

``python -m benchmarks.dft.plans`` times the candidates of a length that the estimate is fitted to.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import isqrt

from argand.dft.method import LARGEST_FUSED
from argand.dft.plan import TwoFactorPlan, folded_tiles, padded
from argand.precision import Precision

_MOST_WARPS = 16


def two_factor_plans(length: int, wide: bool) -> Iterator[TwoFactorPlan]:
    """Return plans of every N1 >= N2 up to `LARGEST_FUSED` with the product N, legal or not."""
    for second in range(2, isqrt(length) + 1):
        first = length // second
        if length % second or first > LARGEST_FUSED:
            continue
        for rows in (1, 2):
            least = -(-second // (16 * rows))
            for warps, buffers in product(sorted({least, max(least, -(-first // 16))}), (1, 2, 3)):
                for groups in range(1, _MOST_WARPS // warps + 1):
                    yield TwoFactorPlan(first, second, warps, rows, groups, buffers, wide)


def two_factor_order(plan: TwoFactorPlan, precision: Precision) -> tuple[float, ...]:
    """Return the estimated time, then two buffers.

    Of the plans that were measured, an H200's fastest has 1 to 1.22 of the first one's speed, 1.008
    on average (609 lengths and precisions).
    """
    return (0, two_factor_time(plan, precision), abs(plan.buffers - 2))


def two_factor_time(plan: TwoFactorPlan, precision: Precision) -> float:
    """Return the estimated time of many transforms over that of a copy of their numbers.

    Warps compute all rows of their tiles, also those that no transform has, and in the second stage
    some wait for others. Lines with gaps in shared memory, and odd lengths, are copied by threads.
    Fitted to 2,092 times of an H200 at four precisions (10% off, one standard deviation).
    """
    mma_k, pairs = precision.operand.mma_k, len(precision.products)
    tiles = (plan.warps * plan.m_tiles, -(-plan.n1 // 16))
    folds = mmas = 0.0
    for rows, size in zip(tiles, (plan.n1, plan.n2), strict=True):
        k_tiles = -(-(size // 2) // mma_k)
        folds += precision.terms * rows * k_tiles * mma_k / 8
        mmas += 4 * pairs * rows * k_tiles * folded_tiles(size, 1)
    gaps = sum(padded(width) != width for width in (plan.n1, plan.n2))
    copies = 0.13 * gaps if plan.wide_copies else 0.41
    idle = -(-tiles[1] // plan.warps) * plan.warps / tiles[1] - 1
    a_number = (7.1 * folds + 2.2 * mmas + 68 * plan.warps) / plan.length
    a_number += 0.55 + 0.11 * precision.scaled + copies
    return a_number * (1 + 4.4 / (plan.groups * plan.warps)) * (1 + 0.16 * idle)
