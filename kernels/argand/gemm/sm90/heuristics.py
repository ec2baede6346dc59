"""The model of the time of the wgmma family's plans. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from argand.gemm.choice import GemmChoice
from argand.gemm.choice_workspace import partials_capacity
from argand.gemm.memory_rates import CACHE_BYTES, KEPT_BYTES
from argand.gemm.question import OperandTraits, Question
from argand.gemm.sm90.epilogue_times import (
    STORE_BESIDE_MAINLOOP,
    cluster_seconds,
    in_16_bit_planes,
    partials_seconds,
    reduction_seconds,
    sectors_factor,
    store_seconds,
    stores_directly,
)
from argand.gemm.sm90.mainloop_times import seconds_of_k
from argand.gemm.sm90.plan import WgmmaPlan
from argand.gemm.sm90.scheduler import TileDivision, divide, min_saved_k
from argand.gemm.sm90.start_times import start_seconds
from argand.gemm.sm90.tiles import with_ping_pong

# Seconds and rates a second, which only rank candidates. They are fitted to times in rows of calls
# on an H200. In docs/experiments 2026-11-30-fitted-constants.md has those times and what each
# constant is worth, 2026-11-29-what-bounds-a-tile.md and 2026-11-28-estimates-of-calls-in-rows.md
# the terms of the model.
_MEMORY_BYTES = 3.7e12
_FEW_IN_FLIGHT = (1.03, 1.35)
"""Factor of the traffic of tiles of one warpgroup, whose few copies under way leave memory idle: of
those that store no mirror images, and of those that do."""
_UNALIGNED_RESULT = 1.5
"""Factor of the traffic of a result whose rows begin in the middle of a sector of L2: 64 bytes at
once touch three and fill two. Derived, not fitted."""
_MIRRORED_PIECES = 0.95
"""Factor of the traffic of mirrored tiles of such a result, in place of that above, by one
warpgroup. A tile on the diagonal takes twice as long then."""
_WIDE_MIRRORED_PIECES = 1.2
"""The same by two warpgroups."""
_NEXT_TILE = {1: 0.2e-6, 2: 0.0}
"""Seconds from one tile of a block to the next that nothing hides, by warpgroups."""
_FUSED_PACKING = {False: 0.52e9, True: 0.43e9}
"""Complex numbers that the idle warps of a multiprocessor pack in a second, of rectangles and of
triangles, whose blocks wait for two panels: where they pack the larger operand, it takes the
longest."""
_FUSED_MAINLOOP = {True: 1.015, False: 1.03}
"""Factor of a rectangle's mainloop beside warps that pack, by whether rows are k-major."""
_FUSED_TRIANGLE = 1.065
"""The same of a triangle, whose warps pack nearly twice as much for each tile."""
_EXPOSED = 0.15
"""Fraction of the shorter of products and traffic that the longer does not hide."""
_EXPOSED_BOXES = 0.42
"""The same fraction of triangles in tiles of one warpgroup that TMA stores: it multiplies nothing
until the boxes of a tile and of its mirror image have been read."""


class _Product(NamedTuple):
    """A candidate's kernel on ``sm_count`` multiprocessors.

    It computes Z = X Y^T in ``tiles``, those of every split-K slice, of ``num_k_tiles`` each: X is
    the row operand, ``rows`` by k, Y the column operand, ``columns`` by k. Memory gives
    ``memory_bytes`` a second.
    """

    choice: GemmChoice
    plan: WgmmaPlan
    question: Question
    sm_count: int
    memory_bytes: float
    rows: int
    columns: int
    x: OperandTraits
    y: OperandTraits
    tiles: int
    num_k_tiles: int


def estimated_seconds(
    choice: GemmChoice, question: Question, sm_count: int, memory: float
) -> float:
    """Return the estimated seconds of a choice of the family on ``sm_count`` multiprocessors.

    ``question`` is at the precision that the plan computes. ``memory`` is the card's peak memory
    rate over an H200's.
    """
    product = _product(choice, question, sm_count, memory)
    sizes, plan = question.sizes, product.plan
    operands = (product.columns, product.y), (product.rows, product.x)
    total = start_seconds(plan, question, *operands, memory)
    total += reduction_seconds(choice.split_k_slices, sizes, question.precision.terms)
    total += cluster_seconds(plan)
    moved, result = _traffic(product)
    store = store_seconds(choice, plan, question)
    division = _division(product)
    whole = -(-division.data_parallel_tiles // division.blocks)
    spent = _whole_tiles(product, whole, store)
    fused = _fused_packing(product)
    if whole and choice.split_k_slices == 1:
        spent = max(spent, fused)
    else:  # slices and split tiles begin anywhere in k, so they wait for all of it
        total += fused
    if division.stream_k_tiles:
        part = division.stream_k_tiles / product.tiles
        split_moved = part * moved + _read_again(product, part)
        stored = 0.0 if sizes.triangle else part * result
        # All blocks load, then they exchange partial tiles and store.
        mainloop, exchange = _split_tiles(product, division)
        total += _beside(mainloop, split_moved - stored) + _beside(exchange + store, stored)
        moved *= 1 - part
    elif whole == 1 and not sizes.triangle:  # all blocks load, then all of them store
        return total + _beside(spent - store, moved - result) + _beside(store, result)
    boxes = sizes.triangle and plan.consumers == 1 and not stores_directly(
        plan, question.precision, sizes.n
    )  # fmt: skip
    return total + _beside(spent, moved, _EXPOSED_BOXES if boxes else _EXPOSED)


def _product(choice: GemmChoice, question: Question, sm_count: int, memory: float) -> _Product:
    """Return the kernel of a choice, as `estimated_seconds` takes it."""
    assert choice.wgmma is not None
    plan = choice.wgmma
    sizes, a, b = question.sizes, question.a, question.b
    m, n, k, slices = sizes.m, sizes.n, sizes.k, choice.split_k_slices
    rows, columns = (n, m) if choice.swapped else (m, n)
    turned = replace(sizes, m=rows, n=columns) if choice.swapped else sizes
    if slices == 1:  # as `plan_launch` has it
        precision, tiles = question.precision, turned.tiles(plan.block_m, plan.block_n)
        by_tma = not stores_directly(plan, precision, n)
        overlaps = by_tma and plan.can_overlap_epilogue(precision)
        plan = with_ping_pong(plan, precision, k, tiles, sm_count, overlaps=overlaps)
    whole_sectors = choice.swapped or sizes.triangle or slices > 1 or n % 2 == 0
    plan = plan if whole_sectors else plan.with_shared_columns(columns, k)
    x, y = (b, a) if choice.swapped else (a, b)
    return _Product(
        choice=choice, plan=plan, question=question, sm_count=sm_count,
        memory_bytes=memory * _MEMORY_BYTES, rows=rows, columns=columns, x=x, y=y,
        tiles=slices * turned.tiles(plan.block_m, plan.tile_stride_n),
        num_k_tiles=-(-k // (plan.block_k * slices * plan.cluster)),
    )  # fmt: skip


def _division(product: _Product) -> TileDivision:
    """Return how tiles are divided among blocks; those of slices and of clusters are whole."""
    choice, plan, question, sm_count, *_ = product
    tiles = product.tiles
    if plan.cluster > 1 or choice.split_k_slices > 1:
        return TileDivision(min(tiles, sm_count), tiles)
    # Partial tiles of a last wave lie over planes where memory of their own is short.
    capacity = partials_capacity(choice, question) // (8 * plan.block_m * plan.block_n)
    return divide(
        tiles, sm_count, product.num_k_tiles, plan.block_k,
        capacity if tiles < sm_count else None, saved_k=min_saved_k(plan, question.precision),
    )  # fmt: skip


def _whole_tiles(product: _Product, whole: int, store: float) -> float:
    """Return the seconds in which a block computes ``whole`` tiles and stores each in ``store``."""
    _, plan, question, sm_count, *_ = product
    precision, sizes, tiles = question.precision, question.sizes, product.tiles
    direct = stores_directly(plan, precision, sizes.n)
    overlaps = tiles > sm_count and not (direct or sizes.triangle)  # which stores mirror images
    overlapped = overlaps and plan.can_overlap_epilogue(precision)
    hides_store = overlapped or (plan.ping_pong and precision.terms == 1)
    remains = STORE_BESIDE_MAINLOOP if hides_store else 1.0
    # The last store of a block has no mainloop to hide under.
    stores = 1 + (whole - 1) * remains if whole else 0
    spent = whole * _mainloop(product, in_turn=overlapped or plan.ping_pong) + stores * store
    return spent + max(0, whole - 1) * _NEXT_TILE[plan.m_warpgroups]


def _mainloop(product: _Product, *, in_turn: bool) -> float:
    """Return the seconds of a whole tile's mainloop, or of a slice's.

    ``in_turn`` says that it hides a store of another tile.
    """
    choice, plan, question, sm_count, *_ = product
    precision, k = question.precision, question.sizes.k
    blocks = min(product.tiles * plan.cluster, sm_count)
    different_k = plan.cluster * choice.split_k_slices > 1
    seconds = _seconds_of_k(product, blocks, different_k=different_k)
    mainloop = product.num_k_tiles * plan.block_k * seconds
    if plan.fused_pack:
        mainloop *= _FUSED_TRIANGLE if plan.triangle else _FUSED_MAINLOOP[plan.k_major]
    ends = precision.terms == 1 and not (in_turn or choice.split_k_slices > 1)
    if ends and not in_16_bit_planes(plan, precision):
        # Such a mainloop leaves out the MMAs beyond k; a stage of 16 bits is loaded as long.
        mma_k = precision.operand.mma_k
        mainloop *= -(-k // mma_k) * mma_k / (-(-k // plan.block_k) * plan.block_k)
    return mainloop


def _split_tiles(product: _Product, division: TileDivision) -> tuple[float, float]:
    """Return the seconds in which all blocks compute parts of tiles along k, and exchange them."""
    plan, each = product.plan, division.k_tiles_per_block
    seconds = _seconds_of_k(product, product.sm_count, different_k=True)
    return each * plan.block_k * seconds, partials_seconds(plan, each / product.num_k_tiles)


def _seconds_of_k(product: _Product, blocks: int, *, different_k: bool) -> float:
    """Return the seconds of a tile for one k in one of ``blocks`` blocks, at different k or not."""
    _, plan, question, *_ = product
    precision, k = question.precision, question.sizes.k
    copies = question.sizes.batch if product.x.batched else 1
    in_place = plan.storage != "planar"  # else a launch before has written X
    from_memory = in_place and 8 * copies * product.rows * k > KEPT_BYTES
    return seconds_of_k(
        plan, precision, product.rows, k, blocks, different_k=different_k, from_memory=from_memory
    )


def _read_again(product: _Product, part: float) -> float:
    """Return the seconds in which split tiles, a ``part`` of all, read operands once more.

    Blocks at different k read X for each of the tiles beside each other and Y for each of those
    below each other, from memory what L2 does not hold.
    """
    _, plan, question, *_ = product
    precision, sizes = question.precision, question.sizes
    below = -(-product.rows // plan.block_m)
    beside = product.tiles / (sizes.batch * below)
    seconds = 0.0
    for lines, item, reads in (
        (product.rows, plan.x_element_bytes(precision), beside),
        (product.columns, precision.planar_bytes, below),
    ):
        read = part * sizes.batch * lines * sizes.k * item
        seconds += (reads - 1) * max(0.0, read - CACHE_BYTES) / product.memory_bytes
    return seconds


def _fused_numbers(product: _Product) -> int:
    """Return the complex numbers that idle warps pack."""
    sizes = product.question.sizes
    copies = sizes.batch if product.y.batched else 1
    return copies * product.columns * sizes.k if product.plan.fused_pack else 0


def _fused_packing(product: _Product) -> float:
    """Return the seconds in which idle warps pack Y, 0 where a launch before has packed it."""
    return _fused_numbers(product) / (_FUSED_PACKING[product.plan.triangle] * product.sm_count)


def _traffic(product: _Product) -> tuple[float, float]:
    """Return the seconds of a kernel's traffic of memory, and of the result in it."""
    choice, plan, question, *_ = product
    precision, sizes, memory_bytes = question.precision, question.sizes, product.memory_bytes
    n = sizes.n
    shared = sizes.triangle and plan.storage == "planar"  # both operands have the same planes
    items = product.rows * plan.x_element_bytes(precision)
    items += (not shared) * product.columns * precision.planar_bytes
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
    # Fused packing shares the memory with the product.
    return moved + _fused_numbers(product) * (8 + precision.planar_bytes) / memory_bytes, result


def _beside(work: float, traffic: float, exposed: float = _EXPOSED) -> float:
    """Return the seconds of work and of traffic of memory beside it."""
    return max(work, traffic) + exposed * min(work, traffic)
