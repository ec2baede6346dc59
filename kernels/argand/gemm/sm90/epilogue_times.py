"""The model of the time after a mainloop: of stores, and of sums of a tile's k by several blocks.

The latter are split-K slices, slices of a cluster, and partial tiles of stream-K. Needs no GPU and
no CuPy. `gemm.sm90.heuristics` says to what the constants were fitted.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import gcd

from argand.device import HOPPER, arch_for
from argand.gemm.choice import GemmChoice
from argand.gemm.question import GemmSizes, Question
from argand.gemm.sm90.legality import check_wgmma_plan
from argand.gemm.sm90.plan import SWIZZLE_BYTES, WgmmaPlan
from argand.multiprocessor import SECTOR
from argand.precision import Precision
from argand.runtime.plan import is_legal

_STORE_BYTES = 39.5e9
"""Bytes a second that a multiprocessor's epilogue stores."""
_EXCHANGED_STORE = 1.15
"""Factor of a store from registers whose lanes exchange results: of C^T, or of rows of complex64
that begin in the middle of 16 bytes. Tiles that share columns store whole sectors of L2."""
_PARTIAL_SECTORS = 3
"""Sectors that a run of stores costs in addition where it begins within a sector: it touches one
sector more, and writes two in part, each of which costs as much as two. A run is what a warp stores
of a line of results at once. This number is derived."""
_TMA_SECTORS = {False: 4.0, True: 3.5}
"""The same of TMA, by whether it stores C^T: then several warps store runs beside each other at
once, else one after another."""
STORE_BESIDE_MAINLOOP = 0.7
"""Fraction of a store's time that remains where another tile is multiplied meanwhile: with an
overlapped epilogue, or by the other of two warpgroups. At two terms nearly all of it remains."""
_EXCHANGE_BYTES = 1.1e11
"""Bytes a second that one of two warpgroups that share k adds of the accumulators of the other."""
_REDUCE_LAUNCH = {1: 1.8e-6, 2: 2.68e-6}
"""Seconds of the launch that adds split-K slices, by terms."""
_REDUCED_BYTES = 6e12
"""Bytes a second of the slices that it reads and writes, most of them in L2."""
_CLUSTER_START = 0.3e-6
"""Seconds in which the blocks of a cluster begin together."""
_CLUSTER_BYTES = 20e9
"""Bytes a second that a multiprocessor sends to the shared memory of others, 10 a clock: the blocks
send all but their own part of a tile's sums at once."""
_STREAM_K = 2.9e-6
"""Seconds in which blocks wait for the partial tiles of others."""
_PARTIAL_BYTES = 100e9
"""Bytes a second of the partial tiles that one block reduces."""


def stores_directly(plan: WgmmaPlan, precision: Precision, columns: int) -> bool:
    """Return whether a tile is stored from registers: TMA or the block's memory allow nothing else.

    TMA stores complex64 in boxes of 16 columns, in rows that begin at 16 bytes.
    """
    narrow = plan.half_output or plan.power
    return columns % 2 == 1 or narrow or plan.cluster > 1 or not _tma_stores(plan, precision)


@cache
def _tma_stores(plan: WgmmaPlan, precision: Precision) -> bool:
    return is_legal(check_wgmma_plan, replace(plan, tma_epilogue=True), precision, arch_for(HOPPER))


def sectors_factor(choice: GemmChoice, plan: WgmmaPlan, question: Question) -> float:
    """Return the sectors that stores of results cost over those that results fill.

    Lines begin at multiples of their greatest common divisor with a sector. Slices are padded to
    whole sectors.
    """
    columns, item = question.sizes.n, 4 if question.sizes.narrow else 8
    if choice.split_k_slices > 1 or plan.shared_columns:
        return 1.0
    aligned = gcd(columns * item, SECTOR)
    more: float = _PARTIAL_SECTORS
    if not stores_directly(plan, question.precision, columns):
        run, more = SWIZZLE_BYTES, _TMA_SECTORS[choice.swapped]
    elif choice.swapped:
        run = (16 if plan.adjacent_rows else 8) * item
        aligned = max(aligned, 2 * item if plan.adjacent_rows else item)
    elif columns % 2:  # rows are shifted to four elements: of complex64 to whole sectors
        run = 8 * item if question.sizes.narrow else plan.block_n * item
        aligned = max(aligned, 4 * item) if question.sizes.narrow else aligned
    else:
        run = 8 * item
    return 1 + more * SECTOR / run * (1 - aligned / SECTOR)


def store_seconds(choice: GemmChoice, plan: WgmmaPlan, question: Question) -> float:
    """Return the seconds of a tile's epilogue that nothing overlaps."""
    sizes = question.sizes
    store = plan.block_m * plan.block_n * (4 if sizes.narrow else 8) / _STORE_BYTES
    shifts = sizes.n % 2 == 1 and not (sizes.narrow or plan.shared_columns)
    if choice.split_k_slices == 1 and stores_directly(plan, question.precision, sizes.n):
        store *= _EXCHANGED_STORE if choice.swapped or shifts else 1.0
    added = 8 * plan.block_m * plan.block_n * (plan.k_warpgroups - 1) / _EXCHANGE_BYTES
    return store / plan.parts + added


def in_16_bit_planes(plan: WgmmaPlan, precision: Precision) -> bool:
    """Return whether the row operand, too, is in planes of 16 bits."""
    return plan.storage == "planar" and precision.operand.bytes == 2


def reduction_seconds(slices: int, sizes: GemmSizes, terms: int) -> float:
    """Return the seconds of the launch that adds split-K slices, 0 for a single one."""
    if slices == 1:
        return 0.0
    result_bytes = 8 * sizes.batch * sizes.m * sizes.n
    # Each slice's results are written and read again.
    return _REDUCE_LAUNCH[terms] + (2 * slices + 1) * result_bytes / _REDUCED_BYTES


def cluster_seconds(plan: WgmmaPlan) -> float:
    """Return the seconds in which the blocks of a cluster exchange parts of a tile, 0 for one."""
    if plan.cluster == 1:
        return 0.0
    sent = 8 * plan.block_m * plan.block_n * (1 - 1 / plan.cluster)
    return _CLUSTER_START + sent / _CLUSTER_BYTES


def partials_seconds(plan: WgmmaPlan, share: float) -> float:
    """Return the seconds in which blocks exchange partial tiles of stream-K, each a ``share``.

    A block stores one and reduces those of a tile.
    """
    tile = 8 * plan.block_m * plan.block_n
    return _STREAM_K + tile / _STORE_BYTES + tile / share / _PARTIAL_BYTES
