"""The model of the time in which the wgmma family's plans multiply. Needs no GPU and no CuPy.

`gemm.sm90.heuristics` says to what the constants were fitted.
"""

from __future__ import annotations

from math import hypot, inf

from argand.gemm.memory_rates import DIFFERENT_K_BYTES, LATENCY, SAME_K_BYTES, UNALIGNED_BYTES
from argand.gemm.sm90.plan import WgmmaPlan
from argand.gemm.sm90.scheduler import OPERAND_BYTES
from argand.precision import Precision

_CLOCK = 1.9e9
_TILE_BYTES = 64
"""Bytes that a multiprocessor loads from L2 in a clock: the width of its port."""
_SHARED_BYTES = 128
"""Bytes of its shared memory that a multiprocessor accesses in a clock: 32 banks."""
_ROUNDED = {1: 5.0, 2: 2.0}
"""Complex numbers that a multiprocessor rounds to 16 bits in registers in a clock, by terms."""
_ODD_LINES = 2.8
"""The same of lines of odd pitch at one term, whose numbers are read one by one, at tf32 as
well."""
_EFFICIENCY = 0.835
"""Fraction of the tensor cores' rate that products of one term reach where nothing else bounds
them."""
_ROUNDED_BESIDE = {160: 0.95}
"""Factor of it where rounding to 16 bits has few registers, by columns."""
_SPLIT_EFFICIENCY = {1: 0.875, 2: 0.75}
"""The fraction that products of two terms reach, by the warpgroups that share the k of a tile."""
_ROW_COLUMNS = 36
"""Columns, at that rate without loss, whose products take as long as a warpgroup loads and splits
rows of X at two terms. Warpgroups that share the k of a tile load and split rows at once."""
_COLUMN = 0.78
"""Time of a column of the tile with its promotions, over that of its products at that rate without
loss. So narrow tiles reach 0.65 of the rate, and those from 96 columns on `_SPLIT_EFFICIENCY`."""
_SPLITTING = {4: 1.1, 2: 1.22}
"""Time of a row operand split in registers, once a column tile, over that of a packed one, by bytes
of an operand: 16 bits are scaled too, and leave half as long for it."""


def _rounds_in_place(plan: WgmmaPlan, precision: Precision) -> bool:
    """Return whether rows are rounded to 16 bits in registers."""
    return plan.storage == "fp32" and precision.operand.bytes == 2


def seconds_of_k(
    plan: WgmmaPlan, precision: Precision, rows: int, k: int, blocks: int, *, different_k: bool,
    from_memory: bool,
) -> float:  # fmt: skip
    """Return the time of a tile for one k of ``rows`` by k, in one of ``blocks`` blocks.

    Products, loads and accesses of shared memory hide each other, but where two take equally long,
    and warps that read and round rows one by one hide less. One warpgroup that rounds has no other
    under whose products it does. ``different_k`` says that blocks are at different k,
    ``from_memory`` that L2 has no X yet.
    """
    rounds = _rounds_in_place(plan, precision)
    rate = _CLOCK * _efficiency(plan, precision) * OPERAND_BYTES / precision.operand.bytes
    products = 4 * len(precision.products) * plan.block_m * plan.block_n / rate
    row_bytes = plan.block_m * plan.x_element_bytes(precision)
    column_bytes = plan.block_n * precision.planar_bytes
    aligned, unaligned = row_bytes + column_bytes, 0
    if plan.storage == "fp32":
        products *= _SPLITTING[precision.operand.bytes] if precision.terms > 1 else 1.0
        # Lines of complex64, as long as the contiguous axis.
        if (k if plan.k_major else rows) % 4:
            aligned, unaligned = column_bytes, row_bytes
    shared = blocks * (aligned / SAME_K_BYTES + unaligned / UNALIGNED_BYTES)
    if different_k:
        shared = max(shared, blocks * (row_bytes + column_bytes) / DIFFERENT_K_BYTES)
    loads = max((row_bytes + column_bytes) / (_TILE_BYTES * _CLOCK), shared)
    latency = LATENCY / ((plan.stages - 1) * plan.block_k) if from_memory else 0.0
    rounding = plan.block_m / (_rounded_in_a_clock(plan, precision) * _CLOCK)
    if rounds and plan.consumers == 1:
        products = hypot(products, plan.block_m / (_ROUNDED[precision.terms] * _CLOCK))
        rounding = 0.0
    accesses = 0.0  # of two terms they are in the efficiency of a tile
    if precision.terms == 1:
        accesses = _shared_bytes(plan, precision) / (_SHARED_BYTES * _CLOCK)
    beside = sum(bound**8 for bound in (products, loads, latency, accesses)) ** 0.125
    return float((beside**5 + rounding**5) ** 0.2)


def _rounded_in_a_clock(plan: WgmmaPlan, precision: Precision) -> float:
    """Return the numbers of rows that a multiprocessor reads and rounds in a clock.

    It is infinite where MMAs take them as they are read. Odd lines across k are rounded to 16 bits
    as fast as others.
    """
    odd = plan.odd_pitch and precision.terms == 1
    if odd and (plan.k_major or precision.operand.bytes > 2):
        return _ODD_LINES
    return _ROUNDED[precision.terms] if _rounds_in_place(plan, precision) else inf


def _shared_bytes(plan: WgmmaPlan, precision: Precision) -> int:
    """Return the bytes of shared memory that are written and read for one k of a tile, of one term.

    TMA writes X and Y, consumers read X once, and each MMA of each warpgroup reads a plane of Y. So
    MMAs of narrow tiles wait for shared memory.
    """
    row_bytes = plan.block_m * plan.x_element_bytes(precision)
    planes = 2 + 4 * plan.m_warpgroups  # written, and read
    return 2 * row_bytes + planes * plan.block_n * precision.operand.bytes


def _efficiency(plan: WgmmaPlan, precision: Precision) -> float:
    """Return the fraction of the tensor cores' rate that a tile's products reach."""
    if precision.terms == 1:
        rounds = _rounds_in_place(plan, precision)
        return _EFFICIENCY * (_ROUNDED_BESIDE.get(plan.block_n, 1.0) if rounds else 1.0)
    narrow = plan.block_n / (_ROW_COLUMNS / plan.k_warpgroups + _COLUMN * plan.block_n)
    return min(_SPLIT_EFFICIENCY[plan.k_warpgroups], narrow)
