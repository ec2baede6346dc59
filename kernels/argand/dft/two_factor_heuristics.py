"""Plans of two factors: the candidates, their rank, where butterflies go first. Needs no GPU."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import sqrt

from argand.dft.plan import TwoFactorPlan
from argand.precision import Precision

_MOST_WARPS = 16
ENOUGH_WARPS = 12
"""Warps of a multiprocessor that hide each other's latencies: they wait twice a tile."""


def two_factor_plans(first: int, second: int, wide: bool) -> Iterator[TwoFactorPlan]:
    """Return plans of two factors, legal or not."""
    for rows in (1, 2):
        least = -(-second // (16 * rows))
        for warps, buffers in product(sorted({least, max(least, -(-first // 16))}), (1, 2, 3)):
            for groups in range(1, _MOST_WARPS // warps + 1):
                yield TwoFactorPlan(first, second, warps, rows, groups, buffers, wide)


def two_factor_order(plan: TwoFactorPlan) -> tuple[float, ...]:
    """Return the most warps, less what they compute in vain, then few of a tile and two buffers.

    Of the plans that were measured, an H200's fastest has 1 to 1.17 of the first one's speed, 1.004
    on average (tf32 and fp16, 201 lengths from 130 to 13108), and 1 to 1.02 (3xfp16, 34).
    """
    warps = min(plan.groups * plan.warps, ENOUGH_WARPS)
    return (0, -warps / sqrt(plan.waste), plan.warps, abs(plan.buffers - 2))


def wasteful(plan: TwoFactorPlan, precision: Precision) -> bool:
    """Return whether warps hold so many more transforms than there are that butterflies win.

    Odd lengths, which have no wide copies, may waste less. Measured on an H200 at 180 lengths from
    141 to 12245; the faster one is taken, or one within 12% of it, at all but 333, 1647 and 4575.
    Of one term they waste more: at 35 such lengths two factors are 0.98 to 2.25 times as fast up to
    three times the transforms, 0.75 to 1.26 at nine of more (265 to 565), 1.16 to 1.63 below 256.
    """
    if precision.terms == 1:
        return plan.waste > (4 if plan.length < 256 else 3)
    most = 2.2 if plan.length >= 1024 else 1.9
    if plan.length % 2:
        most = 1.8 if plan.length < 640 else 1.11 if plan.length not in range(1024, 8192) else 0
    return plan.waste > most
