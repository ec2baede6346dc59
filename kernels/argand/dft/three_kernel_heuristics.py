"""Candidate three-kernel plans in fp32, and their estimated time. Needs no GPU.

The times that constants are fitted to are in docs/experiments/2026-11-30-fitted-constants.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

from argand.dft.butterfly_heuristics import (
    CHIRP_RADICES,
    SPARE,
    WARPS,
    butterfly_cycles,
    chirp_sizes,
)
from argand.dft.three_kernel import ThreeKernelPlan

_MIN_THREE_KERNEL = 4096
"""The shortest length of three-kernel plans; below, one block is faster."""
_COLUMNS = ((8, 8), (8, 16), (16, 16), (16, 32), (32, 32))
"""Radices of the transforms of columns."""
_WIDTHS = (16, 32)
"""Columns of a tile: 128 and 256 bytes of a line."""
_MIN_LINE, _LARGEST_LINE = 128, 8192
"""Least and largest length of the transforms of lines."""
_BLOCK_WARPS = 8
"""Warps of a block, which has as many lines at a time as they suffice for."""
_LARGE_TILE = 48 * 1024
"""Bytes of a tile of columns."""


def three_kernel_plans(length: int) -> Iterator[ThreeKernelPlan]:
    """Yield three-kernel plans of the shortest convolutions that columns and lines give.

    A thread has one butterfly of a line in each stage, or two where there are many.
    """
    if length < _MIN_THREE_KERNEL:
        return
    for columns, width in product(_COLUMNS, _WIDTHS):
        lines = prod(columns)
        least = -(-(2 * length - 1) // lines)
        least = max(_MIN_LINE, -(-least // width) * width)
        splits: list[tuple[int, ...]] = []
        most = min(_LARGEST_LINE, int((2 * length - 1) * SPARE) // lines)
        for size in range(least, most + 1, width):
            found = chirp_sizes(CHIRP_RADICES).get(size, [])
            splits += found
            if found and size > 1.05 * least:
                break
        for radices in splits:
            smallest = prod(radices) // max(radices)
            most = max(warps for warps in WARPS if warps <= max(1, smallest // 32))
            tile = width * min(columns) // 32
            for warps in sorted({max(1, most // 2), most}):
                groups = max(1, _BLOCK_WARPS // warps)
                yield ThreeKernelPlan(length, columns, radices, width, tile, warps, groups)


def three_kernel_cycles(plan: ThreeKernelPlan) -> float:
    """Return a multiprocessor's estimated cycles for a three-kernel transform: traffic and stalls.

    A line's kernel takes longer where a multiprocessor has room for few of its blocks. The
    estimate is fitted to measurements on an H200; it only has to rank.
    """
    line = plan.line
    butterflies = -(-line.size // min(plan.radices) // (32 * plan.warps))
    a_number = (
        1.1 + 0.93 * plan.length / plan.size  # traffic: columns and lines
        + 0.43 * butterfly_cycles(line) / line.size + 0.053 * max(0, butterflies - 2)
        + 0.89 / plan.kernel_blocks("convolve_lines")
        + 0.39 * (8 * plan.width * plan.lines >= _LARGE_TILE)
    )  # fmt: skip
    return plan.size * a_number


def three_kernel_time(plan: ThreeKernelPlan, memory: float = 1.0) -> float:
    """Return the estimated time of many transforms over that of an H200's copy of their numbers.

    ``memory`` is the card's `Device.relative_memory`, which bounds half of it.
    """
    return 1.1 * three_kernel_cycles(plan) / plan.length * (0.5 + 0.5 / memory)
