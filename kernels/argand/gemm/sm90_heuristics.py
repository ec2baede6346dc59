"""The model of the time of the wgmma family's plans. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

from dataclasses import replace

from argand.gemm.candidates import GemmChoice
from argand.gemm.choice_workspace import partials_capacity
from argand.gemm.pack_plan import panel_fill, scaled_blocks
from argand.gemm.question import OperandTraits, Question
from argand.gemm.sm90_mainloop_times import seconds_of_k
from argand.gemm.sm90_plan import WgmmaPlan
from argand.gemm.sm90_scheduler import TileDivision, divide, min_saved_k
from argand.gemm.sm90_store_times import (
    in_16_bit_planes,
    sectors_factor,
    store_beside_mainloop,
    store_seconds,
    stores_directly,
)
from argand.gemm.sm90_tiles import with_ping_pong

# Seconds and rates a second, which only rank candidates. They are fitted to 3,200 times in rows of
# calls on an H200: near candidates of 167 products (seed 317961766, recorded_row_plans.csv of the
# tests, and 21 that differ in what bounds them), and chosen plans of 200 at five precisions.
# Before, they were fitted to times between two events. What each fit gained is in
# docs/experiments: 2026-11-27-choices-of-products.md, 2026-11-28-estimates-of-calls-in-rows.md and
# 2026-11-29-what-bounds-a-tile.md.
_MEMORY_BYTES = 3.7e12
_FEW_IN_FLIGHT = (1.03, 1.35)
"""Factor of the traffic of tiles of one warpgroup, and of those that store mirror images, too."""
_UNALIGNED_RESULT = 1.5
"""Factor of the traffic of a result whose rows begin in the middle of a sector of L2: 64 bytes at
once touch three and fill two. Derived, not fitted."""
_MIRRORED_PIECES, _WIDE_MIRRORED_PIECES = 0.95, 1.2
"""Factor of the traffic of mirrored tiles of such a result, in place of that above, by one
warpgroup and by two. Of one, a tile on the diagonal takes twice as long: 19 x 1279 x 70, of few of
those, took 0.80 of its estimate without it, 750 x 181 x 66, of many, 1.16. Of two, 19 x 1279 x 70,
16 x 1401 x 94 and 37 x 930 x 32 took 1.19 to 1.28 (an H200)."""
_PACK_BYTES = 4.3e12
_SCALED_PACKING = 1.3
"""Factor of packing rows whose absmax is found first."""
_SCALED_BLOCK = 9e-9
"""Least seconds of a block of those, of which a short k leaves most of a tile empty (2987 x 78 x 66
and 972 x 82 x 81 at fp16 and 3xfp16 on an H200)."""
_NEXT_TILE = {1: 0.2e-6, 2: 0.0}
"""Seconds from one tile of a block to the next that nothing hides, by warpgroups: without them 53
plans of one warpgroup and 4 to 8 tiles a block took 1.1 us longer than their estimates, 20 of more
tiles 3.0 us."""
_LAUNCH = 1.23e-6
"""Seconds of a call with one launch that does nothing."""
_PACK_LAUNCH, _PLANAR_WAIT = 1e-6, {1: 0.65e-6, 2: 0.4e-6}
"""Seconds of packing's launch, and what an X in planes adds, by terms: nothing of it is loaded
meanwhile (44 drawn products at tf32 and 3xfp16, H200). One term of 16 bits adds nothing: its planes
are half as long (with 0.8 us 108 plans of up to 12 us took 0.89 of their estimates)."""
_ABSMAX_EXCHANGE = 1.3e-6
"""Seconds in which blocks that pack rows exchange their absmax. Products of a k that a block holds
alone take as long: without it 30 candidates at 3xfp16 of up to 20 us took 1.05 to 1.2 of their
estimates."""
_REDUCE_LAUNCH = {1: 1.64e-6, 2: 2.68e-6}
"""By terms. The fit was 2.65 us; 0.9 less since the reduction begins as the product's blocks end
(the mean of 44 drawn products at tf32 and 3xtf32). At two terms that left slices 0.04 to 0.07 too
short beside tiles that are not sliced (94 products on an H200, seeds 20261251 to 20261321)."""
_ODD_PITCH = 6.1e-7
"""Seconds that a row operand of odd pitch adds: another map, another box, elements read one by one.
Fitted to 170 candidates of 44 drawn products that a library won."""
_FILL = 2.1e-6
"""Seconds until a kernel's first k-tile is loaded."""
_FUSED_PACK_FILL = 11e-6
"""Seconds until fused packing has written the first planes."""
_FUSED_PACKING = 0.52e9
"""Complex numbers that the idle warps of a multiprocessor pack in a second: where they pack the
larger operand (9256 x 179 x 1256 swapped, 9 x 1906 x 240 x 646), it takes the longest."""
_FUSED_MAINLOOP = 1.015
"""Factor of the mainloop beside warps that pack (46 drawn products of 0.2 to 13 ms on an H200)."""
_STREAM_K = 2.9e-6
"""Seconds in which blocks wait for the partial tiles of others."""
_CACHE_BYTES = 50e6
"""Bytes of L2: of an operand that tiles at different k read, this much is read from memory once."""
_PARTIAL_BYTES = 48.8e9
"""Bytes a second of partial tiles that one block reduces. Fits to 44 products of each of two seeds
gave 34 and 62 GB/s (an H200)."""
_CLUSTER_EXCHANGE = 1.2e-6
"""Seconds in which blocks of a cluster begin together and exchange parts of a tile (36 plans of 20
products on an H200: 7% off in the standard deviation)."""
_EXPOSED = 0.125
"""Fraction of the shorter of products and traffic that the longer does not hide."""


def estimate(
    choice: GemmChoice, plan: WgmmaPlan, question: Question, sm_count: int, memory: float
) -> float:
    """Return the estimated seconds of a choice and its plan on ``sm_count`` multiprocessors.

    ``question`` is at the precision that the plan computes. ``memory`` is the card's peak memory
    rate over an H200's.
    """
    precision, sizes, a, b, *_ = question
    m, n, k, batch = sizes.m, sizes.n, sizes.k, sizes.batch
    memory_bytes, pack_bytes = memory * _MEMORY_BYTES, memory * _PACK_BYTES
    rows, columns = (n, m) if choice.swapped else (m, n)
    row_traits, column_traits = (b, a) if choice.swapped else (a, b)
    whole_rows = choice.swapped or sizes.triangle or choice.split_k_slices > 1 or n % 2 == 0
    plan = plan if whole_rows else plan.with_shared_columns(columns, k)
    moved, result = _traffic(choice, plan, question, memory_bytes)
    if plan.fused_pack:  # packing then shares the memory with the product
        copied = (batch if column_traits.batched else 1) * columns * k
        moved += copied * (8 + precision.planar_bytes) / memory_bytes
    total = _start(plan, question, (columns, column_traits), (rows, row_traits), pack_bytes)
    turned = replace(sizes, m=rows, n=columns) if choice.swapped else sizes
    tiles = choice.split_k_slices * turned.tiles(plan.block_m, plan.columns_apart)
    num_k_tiles = -(-k // (plan.block_k * choice.split_k_slices * plan.cluster))
    multiplied = num_k_tiles * plan.block_k
    blocks = min(tiles * plan.cluster, sm_count)
    mainloop = multiplied * seconds_of_k(
        plan, precision, rows, k, blocks, apart=plan.cluster > 1
    )  # fmt: skip
    mainloop *= _FUSED_MAINLOOP if plan.fused_pack else 1.0
    store = store_seconds(choice, plan, question)
    direct = stores_directly(plan, precision, n)
    overlaps = tiles > sm_count and not (direct or sizes.triangle)  # which stores mirror images
    overlapped = overlaps and plan.can_overlap_epilogue(precision)
    laid = with_ping_pong(plan, precision, k, tiles, sm_count, overlaps=overlapped)
    in_turn = laid.ping_pong and choice.split_k_slices == 1
    ends = precision.terms == 1 and not (overlapped or in_turn or choice.split_k_slices > 1)
    if ends and not in_16_bit_planes(plan, precision):
        # Such a mainloop leaves out the MMAs beyond k; a stage of 16 bits is loaded as long.
        mma_k = precision.operand.mma_k
        mainloop *= -(-k // mma_k) * mma_k / (-(-k // plan.block_k) * plan.block_k)
    if choice.split_k_slices > 1:
        result_bytes = 8 * batch * m * n
        # Each slice's partial tiles are written and read again.
        exchanged = (2 * choice.split_k_slices + 1) * result_bytes
        total += _REDUCE_LAUNCH[precision.terms] + exchanged / pack_bytes
    division = TileDivision(min(tiles, sm_count), tiles)
    if plan.cluster > 1:
        total += _CLUSTER_EXCHANGE
    elif choice.split_k_slices == 1:
        # Partial tiles of a last wave lie over planes where memory of their own is short.
        capacity = partials_capacity(choice, question) // (8 * plan.block_m * plan.block_n)
        division = divide(
            tiles, sm_count, num_k_tiles, plan.block_k, capacity if tiles < sm_count else None,
            saved_k=min_saved_k(plan, precision),
        )  # fmt: skip
    whole = -(-division.data_parallel_tiles // division.blocks)
    remains = store_beside_mainloop(plan, precision, n, overlapped=overlapped, in_turn=in_turn)
    # The last store of a block has no mainloop to hide under.
    stores = 1 + (whole - 1) * remains if whole else 0
    spent = whole * mainloop + stores * store
    spent += max(0, whole - 1) * _NEXT_TILE[plan.consumer_warpgroups]
    split, split_moved = 0.0, 0.0
    if division.stream_k_tiles:
        share = division.k_tiles_per_block / num_k_tiles
        partial_bytes = 8 * plan.block_m * plan.block_n / share
        split = share * multiplied * seconds_of_k(plan, precision, rows, k, sm_count, apart=True)
        split += store + _STREAM_K + partial_bytes / _PARTIAL_BYTES
        part = division.stream_k_tiles / tiles
        # Blocks at different k read a row operand once for each of the tiles beside each other.
        row_bytes = part * batch * rows * k * plan.x_element_bytes(precision)
        beside = tiles / (batch * -(-rows // plan.block_m))
        again = (beside - 1) * max(0.0, row_bytes - _CACHE_BYTES)
        split_moved = part * moved + again / memory_bytes
        moved *= 1 - part
    if plan.fused_pack:  # slices and split tiles begin anywhere in k, so they wait for all of it
        fused = copied / (_FUSED_PACKING * sm_count)
        if whole and choice.split_k_slices == 1:
            spent = max(spent, fused)
        else:
            total += fused
    total += _beside(split, split_moved)
    if whole == 1 and not (split or sizes.triangle):  # all blocks load, then all of them store
        return total + _beside(spent - store, moved - result) + _beside(store, result)
    return total + _beside(spent, moved)


def _traffic(
    choice: GemmChoice, plan: WgmmaPlan, question: Question, memory_bytes: float
) -> tuple[float, float]:
    """Return the seconds of a kernel's traffic of memory, and of the result in it."""
    precision, sizes, *_ = question
    n = sizes.n
    rows, columns = (n, sizes.m) if choice.swapped else (sizes.m, n)
    shared = sizes.triangle and plan.storage == "planar"  # both operands have the same planes
    items = rows * plan.x_element_bytes(precision) + (not shared) * columns * precision.planar_bytes
    result = sizes.batch * (4 if sizes.narrow else 8) * sizes.m * n / memory_bytes
    mirrors_pieces = sizes.triangle and n % 4 > 0 and not (sizes.narrow or plan.shared_columns)
    if mirrors_pieces:
        result *= _UNALIGNED_RESULT
    elif not sizes.triangle:
        result *= sectors_factor(choice, plan, question)
    moved = sizes.batch * items * sizes.k / memory_bytes + result
    if mirrors_pieces:
        on_diagonal = 2 / (-(-n // plan.block_m) + 1)
        one = _MIRRORED_PIECES * (1 + on_diagonal)
        moved *= one if plan.consumers == 1 else _WIDE_MIRRORED_PIECES
    elif plan.consumers == 1:
        moved *= _FEW_IN_FLIGHT[sizes.triangle]
    return moved, result


def _beside(work: float, traffic: float) -> float:
    """Return the seconds of work and of traffic of memory beside it."""
    return max(work, traffic) + _EXPOSED * min(work, traffic)


def _start(
    plan: WgmmaPlan, question: Question, column_operand: tuple[int, OperandTraits],
    row_operand: tuple[int, OperandTraits], pack_bytes: float,
) -> float:  # fmt: skip
    """Return the seconds of a call until a first k-tile is loaded: launches and packing.

    An operand is its rows, of k each, and its traits; ``pack_bytes`` the rate of packing.
    """
    precision, sizes, *_ = question
    k, packing, scaled = sizes.k, 0.0, False
    for (rows, traits), packs in (
        (column_operand, not plan.fused_pack), (row_operand, plan.storage == "planar"),
    ):  # fmt: skip
        if sizes.triangle and packing:
            continue  # the planes of both operands are the same
        if packs and not traits.packed:
            item = (4 if traits.half else 8) + precision.planar_bytes
            copies = sizes.batch if traits.batched else 1
            finds_absmax = precision.scaled and not traits.half
            factor = _SCALED_PACKING if finds_absmax else 1.0
            if finds_absmax and sizes.triangle and precision.terms == 1:
                factor *= panel_fill(precision, rows, k)
            seconds = factor * copies * rows * k * item / pack_bytes
            if finds_absmax:
                seconds = max(seconds, _SCALED_BLOCK * copies * scaled_blocks(precision, rows, k))
            packing += seconds
            scaled |= finds_absmax
    total = _LAUNCH + _FILL + packing + (_PACK_LAUNCH if packing else 0.0)  # one launch for both
    waits = packing and plan.storage == "planar" and not sizes.triangle
    short = precision.terms == 1 and precision.operand.bytes == 2
    total += _PLANAR_WAIT[precision.terms] if waits and not short else 0.0
    total += _ABSMAX_EXCHANGE if scaled else 0.0
    return total + (_FUSED_PACK_FILL * plan.fused_pack + _ODD_PITCH * plan.odd_pitch)
