"""Blocks of the mma.sync family that a multiprocessor holds. Needs no GPU and no CuPy."""

from __future__ import annotations

from argand.device import HOPPER, Arch
from argand.gemm.sm80.plan import SMALL_WARP, MmaPlan
from argand.multiprocessor import REGISTERS, RESERVED_BYTES, RESIDENT_THREADS, SHARED_BYTES
from argand.precision import Precision

_REGISTERS = {1: (46, 2.0), 2: (50, 3.4)}
"""By terms, registers of a thread beside its accumulators, and registers for each accumulator.

They are fitted so that the occupancy of every tile compiled for Hopper follows."""
_APART_REGISTERS = {False: 4.75, True: 9.6}
"""Registers for each accumulator where small products have sums of their own, by whether these are
promoted again; three tiles compiled for Hopper have 125 to 127 and 202 to 204."""
_ONE_WARP_REGISTERS = {1: (40, 1.4), 2: (43, 2.7)}
"""`_REGISTERS` of a warp that multiplies a triangle alone."""
_COPIES_BETWEEN_REGISTERS = 16
"""Further registers of a thread that copies between MMAs, from the same fit."""
_UNROLLED_REGISTERS = 30
"""Registers of a small warp for the numbers of a second 16-bit MMA of a k-tile, which it reads and
rounds under the first one. The three such tiles of bf16 compiled for Hopper with `unrolled_k` of 32
and of 16 (sm80_plan.cuh) differ by 28 to 30 where all of k is loaded at once, by 19 to 23 where
copies are between MMAs."""


def occupancy(plan: MmaPlan, precision: Precision, k: int) -> int:
    """Return about how many blocks a multiprocessor holds, by threads, memory and registers."""
    registers = -(-_registers(plan, precision) // 8) * 8
    return max(1, min(
        RESIDENT_THREADS // plan.threads, _by_memory(plan, k),
        REGISTERS // (plan.threads * registers),
    ))  # fmt: skip


def _by_memory(plan: MmaPlan, k: int) -> int:
    """Return the blocks that shared memory has room for.

    The costs of triangles were fitted without what is reserved for each block, and with room for
    one part more among those that a cluster exchanges.
    """
    if not plan.triangle:
        return SHARED_BYTES // (plan.least_bytes(k) + RESERVED_BYTES)
    more = plan.part_bytes * (plan.cluster > 1)
    return (SHARED_BYTES - RESERVED_BYTES) // (plan.least_bytes(k) + more)


def launched_bytes(plan: MmaPlan, k: int, blocks: int, sm_count: int, arch: Arch) -> int:
    """Return the shared memory of a block in a launch of ``blocks`` blocks.

    Blocks are not spread over the multiprocessors: where memory has room for more than are needed,
    those that the call before leaves first take more than others. So on Hopper a block takes so
    much that no more fit. A block of a cluster takes that of one part more, unless that leaves room
    for too few (docs/experiments/2026-11-30-fitted-constants.md).
    """
    least = plan.least_bytes(k)
    if plan.cluster == 1:
        if arch.sm != HOPPER:
            return least
        needed = -(-blocks // sm_count)
        alone = SHARED_BYTES // (needed + 1) + 1 - RESERVED_BYTES  # one more does not fit
        more = -(-alone // _ALLOCATED_BYTES) * _ALLOCATED_BYTES
        fits = needed * (more + RESERVED_BYTES) <= SHARED_BYTES
        return max(least, more) if fits and more + RESERVED_BYTES <= arch.shared_bytes else least
    more = least + plan.part_bytes
    fit = SHARED_BYTES // (more + RESERVED_BYTES) * usable_multiprocessors(plan, sm_count)
    return more if blocks <= fit and more + RESERVED_BYTES <= arch.shared_bytes else least


_ALLOCATED_BYTES = 128
"""Unit in which a block's shared memory is allocated."""
_CLUSTERED = {1: 1.0, 2: 1.0, 3: 0.89, 4: 0.91, 5: 0.83, 6: 0.77, 8: 0.91}
"""Fraction of the multiprocessors that clusters of so many blocks fill: an H200 runs 39 clusters of
3, 30 of 4, 22 of 5, 17 of 6 and 15 of 8 together (cudaOccupancyMaxActiveClusters)."""


def usable_multiprocessors(plan: MmaPlan, sm_count: int) -> int:
    """Return how many multiprocessors the plan's clusters fill.

    The blocks of a cluster share a GPC, whose last multiprocessors hold no whole cluster.
    """
    return int(sm_count * _CLUSTERED[plan.cluster])


def _registers(plan: MmaPlan, precision: Precision) -> int:
    """Return about how many registers a thread has.

    Triangles of several tiles have the numbers with which their costs were fitted.
    """
    if plan.triangle and not plan.one_tile:
        whole = plan.whole_k and not plan.promotion_interval
        return 64 if plan.threads >= 512 else 96 if whole else 104
    accumulators = plan.warp_elements // 16
    others, each = (_ONE_WARP_REGISTERS if plan.one_warp else _REGISTERS)[precision.terms]
    each = _APART_REGISTERS[plan.promoted_again] if plan.small_apart else each
    others += _COPIES_BETWEEN_REGISTERS * plan.copies_between
    two_mmas = plan.block_k // plan.warps_k > precision.operand.mma_k
    half = precision.operand.bytes == 2 and precision.terms == 1
    if half and two_mmas and plan.warp_elements <= SMALL_WARP:
        others += _UNROLLED_REGISTERS
    most = min(255, REGISTERS // (plan.threads * plan.launch_blocks) // 8 * 8)
    return min(most, int(others + each * accumulators))


def warp_eights(plan: MmaPlan) -> float:
    """Return the eights of rows and columns that a warp reads and rounds."""
    rows, columns = plan.block_m // plan.warps_m, plan.block_n // plan.warps_n
    return (rows + (0 if plan.one_warp else columns)) / 8


def multiplying_warps(plan: MmaPlan) -> int:
    """Return the warps of a block but those of one tile that are above its diagonal."""
    rows, columns = plan.block_m // plan.warps_m, plan.block_n // plan.warps_n
    above = sum((i + 1) * rows <= j * columns
                for i in range(plan.warps_m) for j in range(plan.warps_n))  # fmt: skip
    return plan.threads // 32 - plan.warps_k * above * plan.one_tile
