"""The model of the time in which the wgmma family's plans multiply. Needs no GPU and no CuPy.

`gemm.sm90_heuristics` says to what the constants were fitted.
"""

from __future__ import annotations

from math import hypot

from argand.gemm.l2_rates import APART_BYTES, SLICED_BYTES, TOGETHER_BYTES
from argand.gemm.sm90_plan import WgmmaPlan
from argand.gemm.sm90_scheduler import OPERAND_BYTES
from argand.precision import Precision

_CLOCK = 1.9e9
_TILE_BYTES, _SHARED_BYTES = 64, 128
"""Bytes that a multiprocessor loads from L2 and accesses of its shared memory in a clock: the width
of its port and of 32 banks (fits gave 69 and 123)."""
_LATENCY = 1.3e-6
"""Seconds from memory to a stage. All stages but the one that is multiplied are under way."""
_ROUNDED_ROWS, _ROUNDED_ODD_LINES, _ROUNDED_ALONE = {1: 3.5, 2: 2.0}, 2.4, 5.0
"""Complex numbers that a multiprocessor rounds to 16 bits in registers in a clock: by terms; of
lines of odd pitch along k, whose numbers are read one by one, at one term; and by one warpgroup,
which multiplies nothing meanwhile."""
_EFFICIENCY = 0.835
"""Fraction of the tensor cores' rate that products of one term reach where nothing else bounds
them."""
_TILE_EFFICIENCY = {
    128: 0.876, 120: 0.875, 112: 0.873, 104: 0.871, 96: 0.869, 88: 0.845, 80: 0.822, 72: 0.790,
    64: 0.765, 48: 0.636,
}  # fmt: skip
"""Fraction of the tensor cores' rate at two terms, by columns. Those of 72, 88, 104, 112 and 120
columns were put between their neighbours: 84 drawn products took 1.00 of such estimates (H200)."""
_SHARED_K_EFFICIENCY = {48: 0.66, 64: 0.73, 128: 0.754}
"""`_TILE_EFFICIENCY` of 64 rows whose k two warpgroups share (30 products at 3xfp16 on an H200,
seeds 20261251 on)."""
_ROUNDED_BESIDE = {160: 0.94}
"""Factor of it where rounding to 16 bits has few registers, by columns."""
_SPLITTING = {4: 1.1, 2: 1.25}
"""Time of a row operand split in registers, once a column tile, over that of a packed one, by bytes
of an operand: 16 bits are scaled too, and leave half as long for it (34 drawn products; of 4 bytes
it was 1.13, and 30 products take 0.974 since)."""


def _rounds_in_place(plan: WgmmaPlan, precision: Precision) -> bool:
    """Return whether rows are rounded to 16 bits in registers."""
    return plan.storage == "fp32" and precision.operand.bytes == 2


def seconds_of_k(
    plan: WgmmaPlan, precision: Precision, rows: int, k: int, blocks: int, *, apart: bool,
    from_memory: bool,
) -> float:  # fmt: skip
    """Return the time of a tile for one k of ``rows`` by k, one of so many blocks.

    Products, loads, accesses of shared memory and rounding hide each other, but where two take
    equally long. One warpgroup that rounds has no other under whose products it does. ``apart``
    says that blocks are at different k, ``from_memory`` that L2 has no X yet.
    """
    rounds = _rounds_in_place(plan, precision)
    rate = _CLOCK * _efficiency(plan, precision) * OPERAND_BYTES / precision.operand.bytes
    products = 4 * len(precision.products) * plan.block_m * plan.block_n / rate
    row_bytes = plan.block_m * plan.x_element_bytes(precision)
    column_bytes = plan.block_n * precision.planar_bytes
    together, others = row_bytes + column_bytes, 0
    if plan.storage == "fp32":
        products *= _SPLITTING[precision.operand.bytes] if precision.terms > 1 else 1.0
        # Lines of complex64, as long as the contiguous axis.
        if (k if plan.k_major else rows) % 4:
            together, others = column_bytes, row_bytes
    shared = blocks * (together / TOGETHER_BYTES + others / APART_BYTES)
    if apart:
        shared = max(shared, blocks * (row_bytes + column_bytes) / SLICED_BYTES)
    loads = max((row_bytes + column_bytes) / (_TILE_BYTES * _CLOCK), shared)
    latency = _LATENCY / ((plan.stages - 1) * plan.block_k) if from_memory else 0.0
    rounding = 0.0
    if rounds and plan.consumers == 1:
        products = hypot(products, plan.block_m / (_ROUNDED_ALONE * _CLOCK))
    elif rounds:
        odd = plan.odd_pitch and plan.k_major and precision.terms == 1
        in_a_clock = _ROUNDED_ODD_LINES if odd else _ROUNDED_ROWS[precision.terms]
        rounding = plan.block_m / (in_a_clock * _CLOCK)
    accesses = 0.0  # of two terms they are in the efficiency of a tile
    if precision.terms == 1:
        accesses = _shared_bytes(plan, precision) / (_SHARED_BYTES * _CLOCK)
    bounds = products, loads, latency, accesses, rounding
    return float(sum(bound**8 for bound in bounds) ** 0.125)


def _shared_bytes(plan: WgmmaPlan, precision: Precision) -> int:
    """Return the bytes of shared memory that are written and read for one k of a tile, of one term.

    TMA writes X and Y, consumers read X once, and each MMA of each warpgroup reads a plane of Y. So
    MMAs of narrow tiles wait for shared memory.
    """
    row_bytes = plan.block_m * plan.x_element_bytes(precision)
    planes = 2 + 4 * plan.consumer_warpgroups  # written, and read
    return 2 * row_bytes + planes * plan.block_n * precision.operand.bytes


def _efficiency(plan: WgmmaPlan, precision: Precision) -> float:
    """Return the fraction of the tensor cores' rate that a tile's products reach."""
    if plan.k_warpgroups > 1:
        return _SHARED_K_EFFICIENCY[plan.block_n]
    found = _EFFICIENCY if precision.terms == 1 else _TILE_EFFICIENCY[plan.block_n]
    rounds = _rounds_in_place(plan, precision)
    return found * (_ROUNDED_BESIDE.get(plan.block_n, 1.0) if rounds else 1.0)
