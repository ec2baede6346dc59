"""The model of the time of the wgmma family's plans. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

from dataclasses import replace

from argand.gemm.candidates import GemmChoice
from argand.gemm.choice_workspace import partials_capacity
from argand.gemm.pack_plan import panel_fill
from argand.gemm.question import OperandTraits, Question
from argand.gemm.sm90_plan import WgmmaPlan
from argand.gemm.sm90_scheduler import OPERAND_BYTES, TileDivision, divide, min_saved_k
from argand.gemm.sm90_store_times import (
    in_16_bit_planes,
    store_beside_mainloop,
    store_seconds,
    stores_directly,
)
from argand.gemm.sm90_tiles import with_ping_pong
from argand.precision import Precision

# Seconds and rates a second, which only rank candidates. They were fitted to 2,992 times of
# candidates at drawn sizes on an H200, each between two events (seeds 20261123 to 20261202).
# Launches, waits, the rates of memory and stores, and a factor of tiles' efficiencies by terms and
# warpgroups, are fitted anew to times in rows of calls: 101 candidates of 27 products on an H200,
# and the chosen plans of the sweeps' products up to 400 us on an H200 and an H100 (8% off in the
# standard deviation, at 26 candidates of 12 other products too), with a memory rate 0.979 of the
# card's, which is in the rates here. What each later fit gained is in
# docs/experiments/2026-11-27-choices-of-products.md and 2026-11-28-estimates-of-calls-in-rows.md.
_CLOCK = 1.9e9
_TILE_BYTES = 69
"""Bytes of tiles that a multiprocessor loads in a clock."""
_UNALIGNED = 3.1
"""Factor of loading an operand whose lines are not multiples of 32 bytes, the sectors of L2."""
_ROUNDED_ROWS = {1: 3.6, 2: 2.0}
"""Complex numbers that a multiprocessor rounds to 16 bits in registers in a clock, by terms."""
_MEMORY_BYTES = 3.76e12
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
_PACK_BYTES = 4.31e12
_SCALED_PACKING = 1.3
"""Factor of packing rows whose absmax is found first."""
_NEXT_TILE = {1: 0.2e-6, 2: 0.0}
"""Seconds from one tile of a block to the next that nothing hides, by warpgroups: without them 53
plans of one warpgroup and 4 to 8 tiles a block took 1.1 us longer than their estimates, 20 of more
tiles 3.0 us."""
_LAUNCH = 1.23e-6
"""Seconds of a call with one launch that does nothing."""
_PACK_LAUNCH, _PLANAR_WAIT = 0.85e-6, {1: 0.8e-6, 2: 0.4e-6}
"""Seconds of packing's launch, and what an X in planes adds, by terms: nothing of it is loaded
meanwhile (44 drawn products at tf32 and 3xfp16, H200). One term of 16 bits adds nothing: its planes
are half as long (with 0.8 us 108 plans of up to 12 us took 0.89 of their estimates)."""
_ABSMAX_EXCHANGE = 1.64e-6
"""Seconds in which blocks that pack rows exchange their absmax. Products of a k that a block holds
alone take as long: without it 30 candidates at 3xfp16 of up to 20 us took 1.05 to 1.2 of their
estimates."""
_REDUCE_LAUNCH = {1: 1.64e-6, 2: 2.68e-6}
"""By terms. The fit was 2.65 us; 0.9 less since the reduction begins as the product's blocks end
(the mean of 44 drawn products at tf32 and 3xtf32). At two terms that left slices 0.04 to 0.07 too
short beside tiles that are not sliced (94 products on an H200, seeds 20261251 to 20261321)."""
_HIDDEN_PARTIALS = 3e6
"""Bytes of slices' partial tiles that are written while others multiply; what is beyond takes as
long as reading it. Without that 434 plans of one term with more than 4 MB took 1.07 of their
estimates, 755 with less 0.99 (products of five seeds on an H200)."""
_ODD_PITCH = 6.1e-7
"""Seconds that a row operand of odd pitch adds: another map, another box, elements read one by one.
Fitted to 170 candidates of 44 drawn products that a library won."""
_FILL = 1.52e-6
"""Seconds until a kernel's first k-tile is loaded."""
_FUSED_PACK_FILL = 11e-6
"""Seconds until fused packing has written the first planes."""
_FUSED_PACKING = 0.52e9
"""Complex numbers that the idle warps of a multiprocessor pack in a second: where they pack the
larger operand (9256 x 179 x 1256 swapped, 9 x 1906 x 240 x 646), it takes the longest."""
_FUSED_MAINLOOP = 1.015
"""Factor of the mainloop beside warps that pack (46 drawn products of 0.2 to 13 ms on an H200)."""
_STREAM_K = 2.96e-6
"""Seconds in which blocks wait for the partial tiles of others."""
_ALL_SPLIT, _ROUNDED_SPLIT = 1.08, 1.4
"""Factor of the mainloop of one term where all tiles are split: blocks at different k share less in
L2. Without it 59 candidates of drawn products at tf32 took 1.04 of their estimates, 180 of slices
0.95; at 3xfp16 45 and 87 took 0.98 and 1.01. Tiles of 128 columns or more whose rows are rounded to
16 bits take the second one: 30 plans of two seeds on an H200 and an H100 took 1.0 to 1.44 of their
estimates, 1.24 in the mean."""
_TOGETHER = 4
"""Whole tiles of a block after which blocks are apart anyway. Before so many, tiles of 128 columns
take that factor beside whole ones, too: five changed choices at bf16 gain 0.96 on an H200, those of
160 columns lose."""
_SPLIT_LINES = 1.05
"""Factor of the traffic of one term where all tiles are split and k is not contiguous in a row
operand: each block then reads pieces of lines of its own."""
_PARTIAL_BYTES = 48.8e9
"""Bytes a second of partial tiles that one block reduces."""
_TILE_EFFICIENCY = {
    (2, 128, 1): 0.860, (2, 96, 1): 0.852, (2, 64, 1): 0.812, (2, 32, 1): 0.453,
    (2, 160, 1): 0.860, (2, 120, 1): 0.859, (2, 112, 1): 0.858, (2, 104, 1): 0.855,
    (2, 88, 1): 0.846, (2, 80, 1): 0.839, (2, 48, 1): 0.584,
    (1, 96, 1): 0.653, (1, 64, 1): 0.614, (1, 32, 1): 0.397, (1, 80, 1): 0.583,
    (1, 48, 1): 0.549,
    (2, 128, 2): 0.876, (2, 120, 2): 0.875, (2, 112, 2): 0.873, (2, 104, 2): 0.871,
    (2, 96, 2): 0.869, (2, 88, 2): 0.845, (2, 80, 2): 0.822, (2, 72, 2): 0.790,
    (2, 64, 2): 0.765, (2, 48, 2): 0.636,
}  # fmt: skip
"""Fraction of the tensor cores' rate that a tile reaches, by warpgroups, columns and terms. Those
of 72, 88, 104, 112 and 120 columns were put between their neighbours: 84 drawn products took 1.00
of such estimates (H200)."""
_SHARED_K_EFFICIENCY = {48: 0.597, 64: 0.685, 128: 0.754}
"""The same of 64 rows whose k two warpgroups share, at two terms, by columns (30 products at
3xfp16 on an H200, seeds 20261251 on)."""
_CLUSTER_EXCHANGE = 1.4e-6
"""Seconds in which blocks of a cluster begin together and exchange parts of a tile (36 plans of 20
products on an H200: 7% off in the standard deviation)."""
_ROUNDED_BESIDE = {(2, 160): 0.94, (1, 96): 0.8}
"""Factor of it where rounding to 16 bits has few registers, by warpgroups and columns."""
_EXPOSED = 0.112
"""Fraction of the shorter of products and traffic that the longer does not hide."""
_SPLITTING = {4: 1.13, 2: 1.25}
"""Time of a row operand split in registers, once a column tile, over that of a packed one, by bytes
of an operand: 16 bits are scaled too, and leave half as long for it (34 drawn products)."""


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
    shared = sizes.triangle and plan.storage == "planar"  # both operands have the same planes
    items = rows * plan.x_element_bytes(precision) + (not shared) * columns * precision.planar_bytes
    result = batch * (4 if sizes.narrow else 8) * m * n / memory_bytes
    whole_rows = choice.swapped or sizes.triangle or choice.split_k_slices > 1 or n % 2 == 0
    plan = plan if whole_rows else plan.with_shared_columns(columns, k)
    pieces = not sizes.narrow and n % 4 > 0 and not plan.shared_columns
    if pieces:
        result *= _UNALIGNED_RESULT
    moved = batch * items * k / memory_bytes + result
    if pieces and sizes.triangle:
        on_diagonal = 2 / (-(-n // plan.block_m) + 1)
        one = _MIRRORED_PIECES * (1 + on_diagonal)
        moved *= one if plan.consumers == 1 else _WIDE_MIRRORED_PIECES
    elif plan.consumers == 1:
        moved *= _FEW_IN_FLIGHT[sizes.triangle]
    if plan.fused_pack:  # packing then shares the memory with the product
        copied = (batch if column_traits.batched else 1) * columns * k
        moved += copied * (8 + precision.planar_bytes) / memory_bytes
    total = _start(plan, question, (columns, column_traits), (rows, row_traits), pack_bytes)
    turned = replace(sizes, m=rows, n=columns) if choice.swapped else sizes
    tiles = choice.split_k_slices * turned.tiles(plan.block_m, plan.columns_apart)
    num_k_tiles = -(-k // (plan.block_k * choice.split_k_slices * plan.cluster))
    each = -(-num_k_tiles // plan.k_warpgroups)  # of a warpgroup
    mainloop = each * plan.k_warpgroups * plan.block_k * _seconds_of_k(plan, precision, rows, k)
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
        partials = result_bytes * choice.split_k_slices
        exchanged = max(0, partials - _HIDDEN_PARTIALS) + partials + result_bytes
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
    if division.stream_k_tiles:
        share = division.k_tiles_per_block / num_k_tiles
        partial_bytes = 8 * plan.block_m * plan.block_n / share
        factor, traffic = _split(plan, precision, whole)
        moved *= traffic
        spent += factor * share * mainloop + store + _STREAM_K + partial_bytes / _PARTIAL_BYTES
    if plan.fused_pack:  # slices and split tiles begin anywhere in k, so they wait for all of it
        fused = copied / (_FUSED_PACKING * sm_count)
        spent = max(spent, fused) if whole and choice.split_k_slices == 1 else spent + fused
    return total + max(spent, moved) + _EXPOSED * min(spent, moved)


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
            packing += factor * copies * rows * k * item / pack_bytes
            scaled |= finds_absmax
    total = _LAUNCH + _FILL + packing + (_PACK_LAUNCH if packing else 0.0)  # one launch for both
    waits = packing and plan.storage == "planar" and not sizes.triangle
    short = precision.terms == 1 and precision.operand.bytes == 2
    total += _PLANAR_WAIT[precision.terms] if waits and not short else 0.0
    total += _ABSMAX_EXCHANGE if scaled else 0.0
    return total + (_FUSED_PACK_FILL * plan.fused_pack + _ODD_PITCH * plan.odd_pitch)


def _split(plan: WgmmaPlan, precision: Precision, whole: int) -> tuple[float, float]:
    """Return the factors of a split tile's mainloop, and of the traffic where all are split.

    ``whole`` tiles of a block come before.
    """
    if precision.terms > 1:
        return 1.0, 1.0
    rounds = plan.storage == "fp32" and precision.operand.bytes == 2
    if whole:
        slow = rounds and plan.block_n == 128 and whole < _TOGETHER
        return _ROUNDED_SPLIT if slow else 1.0, 1.0
    factor = _ROUNDED_SPLIT if rounds and plan.block_n >= 128 else _ALL_SPLIT
    return factor, 1.0 if plan.k_major else _SPLIT_LINES


def _seconds_of_k(plan: WgmmaPlan, precision: Precision, rows: int, k: int) -> float:
    """Return the time of a tile for one k of ``rows`` by k.

    Products, loads and rounding hide each other, but where two take equally long.
    """
    if plan.k_warpgroups > 1:
        efficiency = _SHARED_K_EFFICIENCY[plan.block_n]
    else:
        efficiency = _TILE_EFFICIENCY[plan.consumer_warpgroups, plan.block_n, precision.terms]
    if plan.storage == "fp32" and precision.operand.bytes == 2:
        efficiency *= _ROUNDED_BESIDE.get((plan.consumer_warpgroups, plan.block_n), 1.0)
    rate = _CLOCK * efficiency * OPERAND_BYTES / precision.operand.bytes
    products = 4 * len(precision.products) * plan.block_m * plan.block_n / rate
    row_bytes = float(plan.block_m * plan.x_element_bytes(precision))
    if plan.storage == "fp32":
        products *= _SPLITTING[precision.operand.bytes] if precision.terms > 1 else 1.0
        # Lines of complex64, as long as the contiguous axis.
        row_bytes *= _UNALIGNED if (k if plan.k_major else rows) % 4 else 1.0
    loads = (row_bytes + plan.block_n * precision.planar_bytes) / (_TILE_BYTES * _CLOCK)
    rounds = plan.storage == "fp32" and precision.operand.bytes == 2
    rounding = plan.block_m / (_ROUNDED_ROWS[precision.terms] * _CLOCK) if rounds else 0.0
    return float((products**8 + loads**8 + rounding**8) ** 0.125)
