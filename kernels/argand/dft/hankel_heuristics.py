"""Candidate Hankel plans, and their order. Needs no GPU."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from argand.dft.hankel import ROW_COPIES, HankelPlan

_MAX_WARPGROUPS = 6
"""Most warpgroups of a block."""


def hankel_plans(length: int, wide: bool) -> Iterator[HankelPlan]:
    """Yield the plans of a prime, of up to six warpgroups; ``wide``: rows come by 16 bytes."""
    groups = range(1, _MAX_WARPGROUPS + 1)
    for row_copies, warpgroups, count, buffers in product(
        ROW_COPIES, (1, 2, 3), groups, range(1, 9)
    ):
        if warpgroups * count <= _MAX_WARPGROUPS:
            yield HankelPlan(length, row_copies, warpgroups, count, buffers, wide)


def hankel_order(plan: HankelPlan) -> tuple[float, ...]:
    """Return one warpgroup a tile, then a tile in flight beside two in work, then few row copies.

    Two groups are best with four buffers; of small tiles three groups with two more in flight.
    """
    best = 3 if plan.row_copies > 1 and plan.buffers >= 5 else 2
    spare = abs(plan.buffers - 4) if plan.row_copies == 1 else -plan.buffers
    apart = abs(plan.groups - best)
    return (plan.warpgroups, plan.waits, plan.row_copies, apart, spare)
