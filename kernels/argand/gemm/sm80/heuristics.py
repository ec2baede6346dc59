"""The choice of a plan of the mma.sync family, and the model of its time.

Needs no GPU and no CuPy. ``python -m benchmarks.sweep gemm --plans 1`` times all candidates.
The times that constants are fitted to are in docs/experiments/2026-11-30-fitted-constants.md.
"""

from __future__ import annotations

from dataclasses import replace

from argand.device import Arch
from argand.gemm.memory_rates import CACHE_BYTES, LATENCY, SAME_K_BYTES, UNALIGNED_BYTES
from argand.gemm.question import GemmSizes, Question
from argand.gemm.sm80.costs import Costs, costs_of
from argand.gemm.sm80.legality import check_mma_plan
from argand.gemm.sm80.occupancy import (
    multiplying_warps,
    occupancy,
    usable_multiprocessors,
    warp_eights,
)
from argand.gemm.sm80.plan import LARGEST_ONE_TILE, MmaPlan, holds_accumulators
from argand.gemm.sm80.slices import k_tiles_of, with_cluster_slices, with_grid_slices
from argand.gemm.sm80.tiles import in_layout, mma_tiles, one_tile_of, with_absmax, with_copies
from argand.gemm.workspace import absmax_bytes
from argand.precision import Precision
from argand.runtime.plan import PlanError


def plan_mma(question: Question, arch: Arch, sm_count: int, tile: MmaPlan | None = None) -> MmaPlan:
    """Return the checked plan of a product on ``sm_count`` multiprocessors.

    It is the tile and the number of split-K slices of the least estimated time; or ``tile``, in the
    operands' layout. Copies are of 16 bytes where both operands are copyable. Tiles of a triangle
    are square. The partial tiles of clusters that share a tile take at most what the question
    allows, with what the absmax kernel finds. Raises PlanError where none is legal.
    """
    precision, sizes, allowed = question.precision, question.sizes, question.allowed
    a_k_major, b_k_major = question.a.k_major, question.b.k_major
    vector = 1 + (question.a.copyable and question.b.copyable)
    if allowed is not None:
        allowed = max(0, allowed - absmax_bytes(precision, sizes.batch, sizes.m, sizes.n))
    tiles = [tile] if tile else cut_tiles(precision, arch, sizes, sm_count, allowed)
    fitted = []
    for plan in tiles:
        if sizes.triangle and plan.block_m != plan.block_n:
            continue
        plan = in_layout(plan, precision, arch, sizes.triangle, a_k_major, b_k_major, vector)
        covers = sizes.triangle and sizes.m <= plan.block_m <= LARGEST_ONE_TILE
        if covers and a_k_major == b_k_major:
            alone = replace(plan, one_tile=True)
            fits = holds_accumulators(alone) and alone.shared_bytes <= arch.shared_bytes
            plan = alone if fits else plan
        if tile is None and plan.shared_bytes > arch.shared_bytes:
            continue  # a tile and what slices receive, in this layout
        if tile is None and plan.one_warp and not plan.one_tile:
            continue
        plan = with_absmax(plan, precision, arch, sizes.k)
        fitted.append(with_copies(plan, precision, arch, sizes.k))
    if not fitted:
        raise PlanError(f"tiles of a triangle must be square, got {tile}")
    best = min(fitted, key=lambda plan: estimated_microseconds(plan, precision, sm_count, sizes))
    check_mma_plan(best, precision, arch)
    return best


def cut_tiles(
    precision: Precision, arch: Arch, sizes: GemmSizes, sm_count: int, allowed: int | None = None
) -> list[MmaPlan]:
    """Return every tile with every number of slices of a product.

    Where a tile also has three stages, that of two is for a k of up to three k-tiles: beyond, three
    stages are no slower.
    """
    alone = one_tile_of(precision, arch, sizes.m) if sizes.triangle else ()
    whole = mma_tiles(precision, arch) + alone
    few = {x for x in whole if x.stages == 2 and replace(x, stages=3) in whole}
    tiles = [
        x for x in with_cluster_slices(whole, arch, sizes.k)
        if k_tiles_of(x, sizes.k) <= x.stages + 1 or replace(x, cluster=1) not in few
    ]  # fmt: skip
    if sizes.triangle:
        return tiles
    return [*tiles, *with_grid_slices(tiles, arch, sizes, sm_count, allowed)]


_ODD_ROWS = 1.12
"""Factor of the traffic of triangles' results where rows begin in the middle of 16 bytes."""
_NUMBER_CYCLES = {(False, 1): 7.2, (True, 2): 12.1, (False, 2): 7.1}
"""Cycles in which a warp reads, rounds and splits one number a lane, by whether the format has
more than 16 bits, and terms; of one term of tf32 they are `Costs.number`."""
_TRIANGLE_BF16_NUMBER = 4.0
"""`_NUMBER_CYCLES` of bf16 in triangles."""
_FULL_WARP, _FULL_WARP_NUMBER = 32, {True: 11.2, False: 14.0}
"""Eights of rows by eights of columns from which the numbers of a warp take most of its registers,
and the cycles that one of them then takes by whether the format has more than 16 bits."""
_TRIANGLE_TERMS = 0.85
"""Factor of the time of a triangle's mainloop at two terms."""
_APART_IN_TRIANGLES = 0.85
"""Factor of a triangle's mainloop where small products have accumulators of their own."""
_TRIANGLE_TILE_TIMES = {
    (16, 16, 64): 1.1, (16, 128, 16): 0.928, (32, 16, 64): 1.02, (32, 32, 32): 0.721,
    (32, 32, 64): 1.28, (32, 64, 32): 0.887, (64, 16, 32): 1.05, (64, 32, 32): 0.924,
    (64, 64, 16): 0.79, (128, 16, 16): 1.16, (128, 128, 32): 1.06,
}  # fmt: skip
"""Factor of a triangle's mainloop at one term of tf32, by tile."""
_ONE_TILE_TIMES = {
    (16, 1): 0.64, (32, 1): 0.82, (48, 1): 0.86, (64, 1): 1.22, (80, 1): 1.2,
    (16, 2): 0.84, (32, 2): 1.1, (48, 2): 1.34, (64, 2): 1.34,
}  # fmt: skip
"""Factor of the mainloop of triangles of one tile, by rows of the tile and terms: fitted with their
costs."""
_ONE_WARP_TIMES = {(16, 1): 0.79, (32, 1): 0.93, (48, 1): 1.78, (16, 2): 0.75, (32, 2): 0.93}
"""`_ONE_TILE_TIMES` of triangles that a warp multiplies alone."""
_WHOLE_WAVES = 4
"""Waves from which on blocks no longer end together, so that no last wave is left, but in triangles
eight tiles per multiprocessor; without it 4096^3 at two terms would be cut in slices."""
_SHARED_K = 1.36
"""Factor of a mainloop of one term whose stages groups of warps share, except in triangles."""
_UNCUT_OF_TERMS = 0.87
"""Factor of a mainloop of two terms whose k is not cut, in tiles of 32 and 64 rows."""
_CROWDED = 1.25
"""Factor of narrow tiles at one term of whose clusters a multiprocessor holds three blocks or more;
tiles of 32 x 32 are not among them."""
_KEPT_BYTES = CACHE_BYTES / 6
"""Bytes of both operands that L2 may hold from before, beside those of other calls."""


def estimated_microseconds(
    plan: MmaPlan,
    precision: Precision,
    sm_count: int,
    sizes: GemmSizes,
    memory: float = 1.0,
) -> float:
    """Return the estimated microseconds of a product, to rank plans by.

    ``memory`` is the card's peak memory rate over an H200's. The blocks that share a multiprocessor
    share its rate; a quarter with few warps does not reach its own.
    """
    batch, m, n, k = sizes.batch, sizes.m, sizes.n, sizes.k
    costs = costs_of(plan)
    work, exposed = _work(plan, precision, sm_count, sizes)
    odd = plan.triangle and not plan.one_tile and n % 2 == 1
    moved = 8 * batch * (_ODD_ROWS if odd else 1) * m * n / costs.bytes
    moved = (moved + 8 * batch * k * _read(plan, m, n, costs)) / memory
    total = costs.launch + max(work, moved)
    if plan.triangle:
        total += costs.exposed * min(work, moved)
    elif exposed:
        total += costs.exposed * min(work, 8 * batch * m * n / (memory * costs.bytes))
    total += (costs.apart_term if plan.small_apart else costs.term) * (precision.terms - 1)
    if plan.grid_slices > 1:
        vectors = plan.block_m * plan.block_n / 2 / plan.cluster
        rounds = -(-vectors // plan.threads)
        total += costs.grid + costs.grid_vector * rounds * plan.grid_slices
    if precision.scaled:
        kernel = costs.absmax_launch + 8 * batch * k * (m + n) / costs.absmax_launch_bytes
        absmax = costs.absmax + costs.next_absmax * (k_tiles_of(plan, k) - 1)
        total += absmax if plan.finds_absmax else kernel
    return total


def _read(plan: MmaPlan, m: int, n: int, costs: Costs) -> float:
    """Return the microseconds a byte in which memory gives a column of A and a row of B.

    It gives whole lines; a run of a k-tile's numbers, 8 bytes each, touches one line more than it
    fills. Both operands of a triangle are one, which L2 holds from a row to its column.
    """
    if plan.triangle:
        return m / costs.bytes
    sides = (m, plan.block_m, plan.a_k_major), (n, plan.block_n, plan.b_k_major)
    lines = sum(x * (1 + 16 / (plan.block_k if k_major else tile)) for x, tile, k_major in sides)
    return lines / costs.line_bytes


def _work(
    plan: MmaPlan, precision: Precision, sm_count: int, sizes: GemmSizes
) -> tuple[float, bool]:
    """Return the microseconds of all waves of blocks, and whether stores of blocks are exposed.

    They are at one term where blocks fill more than one wave, or a multiprocessor has room for one
    block.
    """
    k, tiles = sizes.k, sizes.tiles(plan.block_m, plan.block_n)
    blocks = tiles * plan.slices
    usable = usable_multiprocessors(plan, sm_count)
    most = occupancy(plan, precision, k)
    resident = max(1, min(most, -(-blocks // usable)))
    slots = usable * resident
    many = tiles >= 8 * sm_count if plan.triangle else blocks >= _WHOLE_WAVES * slots
    full, rest = (blocks / slots, 0) if many else divmod(blocks, slots)
    # At one term the blocks of a last wave take as long as those of a full one, but large ones.
    crowded = (precision.terms == 1 or plan.triangle) and plan.blocks_per_sm == 1
    last = resident if crowded else -(-rest // usable)
    work = full * _wave(plan, precision, resident, k)
    work += _wave(plan, precision, last, k) if rest else 0.0
    narrow = max(plan.block_m, plan.block_n) >= 4 * min(plan.block_m, plan.block_n)
    clustered = plan.cluster > 1 and precision.terms == 1
    work *= _CROWDED if narrow and clustered and resident > 2 else 1.0
    if not plan.triangle:  # whose costs were fitted without it
        work = (work**4 + _copying(plan, blocks, k) ** 4) ** 0.25
        work = max(work, blocks / min(blocks, slots) * _waiting(plan, sizes))
    return work, precision.terms == 1 and (blocks > slots or most == 1)


def _waiting(plan: MmaPlan, sizes: GemmSizes) -> float:
    """Return the microseconds in which k-tiles come to one block from memory, 0 from L2."""
    if 8 * sizes.batch * (sizes.m + sizes.n) * sizes.k <= _KEPT_BYTES:
        return 0.0
    return 1e6 * LATENCY * k_tiles_of(plan, sizes.k) / (plan.stages - 1)


def _copying(plan: MmaPlan, blocks: int, k: int) -> float:
    """Return the microseconds in which L2 gives all blocks what they copy.

    Lines of copies of 8 bytes begin within its sectors.
    """
    copied = plan.whole_k or k_tiles_of(plan, k) * plan.block_k
    rate = SAME_K_BYTES if plan.vector == 2 else UNALIGNED_BYTES
    return 8e6 * blocks * (plan.block_m + plan.block_n) * copied / rate


def _wave(plan: MmaPlan, precision: Precision, held: int, k: int) -> float:
    """Return the microseconds of as many blocks as a multiprocessor holds together."""
    costs = costs_of(plan)
    warps = held * plan.threads / 128
    rate = costs.clock * warps / (warps + costs.waiting)
    store = costs.store * plan.block_m * plan.block_n * plan.warps_k / 1024
    store *= costs.scaled_store if precision.scaled else 1.0
    k_tiles = float(k_tiles_of(plan, k))
    if plan.warps_k > 1:  # groups of warps without k are left out
        group = plan.block_k // plan.warps_k
        k_tiles = min(k_tiles, -(-k // group) * group / plan.block_k)
    # MMAs beyond a whole k are left out. Triangles of one term were fitted as if they were not.
    known = plan.whole_k and not (plan.cut or (plan.triangle and precision.terms == 1))
    multiplied = plan.whole_k / plan.block_k if known else k_tiles
    cycles = held * _k_tile_cycles(plan, precision, costs) / 4
    mainloop = multiplied * cycles / rate + k_tiles * costs.k_tile
    if plan.warps_k > 1:
        mainloop = max(mainloop, costs.shared_k_tile * k_tiles)
        mainloop *= _SHARED_K if precision.terms == 1 and not plan.triangle else 1.0
    mainloop *= _uncut_time(plan, precision)
    if plan.triangle and precision.terms > 1:
        mainloop *= _TRIANGLE_TERMS * (_APART_IN_TRIANGLES if plan.small_apart else 1.0)
    elif plan.triangle and precision.operand.name == "tf32":
        mainloop *= _TRIANGLE_TILE_TIMES.get((plan.block_m, plan.block_n, plan.block_k), 1.0)
    if plan.one_tile:
        times = _ONE_WARP_TIMES if plan.one_warp else _ONE_TILE_TIMES
        mainloop *= times.get((plan.block_m, precision.terms), 1.0)
    if plan.warps_k > 1:
        one_k_tile = plan.whole_k == plan.block_k and plan.cluster == 1
        mainloop += costs.one_k_tile if one_k_tile else costs.groups
    exchange = costs.cluster + costs.cluster_vector * plan.block_m * plan.block_n / 2 / plan.threads
    return mainloop + held * store + (exchange if plan.cluster > 1 else 0.0)


def _uncut_time(plan: MmaPlan, precision: Precision) -> float:
    """Return the factor of a mainloop whose k is not cut, 1 for others."""
    fitted = plan.block_m > 16 and plan.block_k == 32 and not plan.triangle
    of_terms = precision.terms > 1 and not precision.scaled
    return _UNCUT_OF_TERMS if fitted and of_terms and not plan.cut else 1.0


def _k_tile_cycles(plan: MmaPlan, precision: Precision, costs: Costs) -> float:
    """Return the cycles of all warps of a block for one k-tile, to share among four quarters."""
    warps, mma_k = multiplying_warps(plan), precision.operand.mma_k
    eights, tiles = warp_eights(plan), plan.warp_elements / 128
    lines = plan.block_m + plan.block_n * (not plan.one_tile)
    copies = lines * plan.block_k / plan.vector / 32
    wide = precision.operand.bytes > 2
    number = _NUMBER_CYCLES.get((wide, precision.terms), costs.number)
    if plan.triangle and not (wide or precision.scaled):
        number = _TRIANGLE_BF16_NUMBER
    if 2 * tiles >= _FULL_WARP and precision.terms == 1:
        number = _FULL_WARP_NUMBER[wide]
    if wide and precision.terms > 1 and precision.roundings[0] == "nearest_even":
        number = costs.split
    mmas = tiles * 4 * len(precision.products)
    mmas_k = warps * plan.block_k / plan.warps_k / mma_k
    cycles = copies * costs.copy * (costs.wide_copy if plan.vector == 2 else 1.0)
    cycles += mmas_k * (eights * mma_k / 2 * number + mmas * costs.mma + costs.mma_k)
    if plan.promotion_interval:
        promotions = warps * tiles * 8 * plan.block_k / plan.promotion_interval
        cycles += promotions * costs.promotion
    if plan.block_k < 32 and precision.terms == 1:
        cycles *= costs.shallow
    return max(cycles, costs.line * _lines(plan))


def _lines(plan: MmaPlan) -> float:
    """Return the lines of L2 that the copies of a k-tile touch: no run begins with a line."""
    sides = (plan.block_m, plan.a_k_major), (plan.block_n, plan.b_k_major)
    runs = [(n, min(plan.block_k if k_major else n, 32 * plan.vector)) for n, k_major in sides]
    return sum(n * plan.block_k * (1 / 16 + 1 / run) for n, run in runs)
