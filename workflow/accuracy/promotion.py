"""The number of roundings of promoted sums: part of the bound on split precisions (`bounds`)."""

from __future__ import annotations

import math

from argand.gemm.sm90.plan import SPILL_INTERVAL
from argand.gemm.sm90.scheduler import MAX_PARTIAL_TILES

SLICE = 16
"""Least k whose sum leaves the tensor cores' accumulators at once, except in a tile's last
stage."""
LAST = 2
"""Most times that the sums of a tile's last stage do, where it is not a whole one."""


def promotions(k: int) -> float:
    """Return the most fp32 roundings that the sum of a slice of k meets on its way to the result.

    wgmma: it is added up in registers with those of three halves of a `SPILL_INTERVAL` at most.
    Then the accumulators spill to memory, except what is below 2^-11 of them, which stays: so each
    rounding in registers is of at most the slices since the last spill and 2^-11 of all. In memory
    there is one rounding for each spill, and one where the accumulators return: two for each spill
    are more. A stream-K tile has at most `MAX_PARTIAL_TILES` partial tiles, which are reduced, one
    rounding each; so are split-K slices of 512 or more, of half an interval or more: in place of
    its spills. Where two warpgroups share a k each has half of the slices, no more than that, and
    one rounding adds their sums: it has no spills.

    mma.sync: fl(y - fl(fl(x + y) - x)), what rounding has lost of x + y, is where the next slice
    begins. Lost for good are the roundings of the two differences, each of at most u |y| + u^2 |x|,
    and in small warps that of y, the sum of two accumulators: over all slices 3 u of the sum of
    moduli, and 2 k u^2 / SLICE. The last promotion's rounding comes on top, and three where
    warps, blocks or clusters share k, whose sums keep what rounding has lost. Sums that are
    promoted every 96 k do not: each adds four accumulators, and above 96 k there are two, eight
    roundings. Nor do those of a k that the compiler knows, where it is shared: four groups of warps
    and eight blocks are ten roundings in place of the three. All of that is less than the above,
    which is 14 at least, and 20 above 96 k.
    """
    slices = math.ceil(k / SLICE)
    in_registers = min(slices, 3 * SPILL_INTERVAL // 2) + LAST + slices * 2.0**-11
    return in_registers + 2 * math.ceil(slices / SPILL_INTERVAL) + 1 + MAX_PARTIAL_TILES
