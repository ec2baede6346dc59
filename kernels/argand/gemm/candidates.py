"""Candidate plans of a product on a GPU, and what they depend on. Needs no GPU and no CuPy.

The times that constants are fitted to are in docs/experiments/2026-11-30-fitted-constants.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from argand.device import HOPPER, Arch, arch_for
from argand.gemm.choice import GemmChoice
from argand.gemm.choice_workspace import slices_bytes, slices_capacity
from argand.gemm.fma.plan import fma_plans
from argand.gemm.in_tf32 import product_in_tf32
from argand.gemm.question import GemmSizes, OperandTraits, Question
from argand.gemm.sm90.legality import check_wgmma_plan
from argand.gemm.sm90.plan import MAX_FUSED_COLUMNS, Storage, WgmmaPlan
from argand.gemm.sm90.tiles import CLUSTERS, covering_tiles, in_planes, wgmma_tiles, with_cluster
from argand.precision import Precision
from argand.runtime.plan import WGMMA_TARGET, is_legal


def candidates(question: Question, arch: Arch, sm_count: int) -> list[GemmChoice]:
    """List every candidate plan of a product on ``sm_count`` multiprocessors.

    mma.sync and fma read neither planes nor pairs of 16 bits, and store no 16-bit results.
    """
    precision, sizes, a, b, *_ = question
    planes = any(x.packed and not x.copied for x in (a, b))
    wgmma_only = planes or a.half or b.half or sizes.narrow
    found = [] if wgmma_only else [GemmChoice()]
    if arch.target != WGMMA_TARGET or min(sizes.m, sizes.n, sizes.k) == 0:
        return found
    if not (wgmma_only or sizes.triangle or a.packed or b.packed):
        found += [GemmChoice(fma=plan) for plan in fma_plans(precision, sizes.k)]
    for swapped in (False, True)[: 1 if sizes.triangle else 2]:
        found += _of_wgmma(question, arch, sm_count, swapped=swapped)
    return found


def _of_wgmma(
    question: Question, arch: Arch, sm_count: int, *, swapped: bool
) -> Iterator[GemmChoice]:
    """Yield the candidates of the wgmma family, with the operands in this order."""
    precision, sizes, a, b, *_ = question
    rows, columns = (b, a) if swapped else (a, b)
    turned = replace(sizes, m=sizes.n, n=sizes.m) if swapped else sizes
    for storage in _storages(precision, rows, columns):
        layout = _layout_of(question, storage, rows, columns)
        for plan, legal in _laid_out(precision, layout, arch):
            if sizes.triangle and not plan.covers_triangle(sizes.m):
                continue
            for slices in _slice_counts(plan, sm_count, sizes, precision.terms) if legal else ():
                choice = GemmChoice(plan, swapped, slices)
                fits = slices == 1 or _fits_in_slices(choice, question)
                if fits and plan.takes_k(precision, -(-sizes.k // slices)):
                    yield choice
            for clustered in _with_clusters(plan, precision, sm_count, turned):
                if clustered.takes_k(precision, sizes.k):
                    yield GemmChoice(clustered, swapped)


def _fits_in_slices(choice: GemmChoice, question: Question) -> bool:
    """Return whether there is room for slices, and they do not take longer than their estimate.

    Wide tiles that round in registers take longer.
    """
    assert choice.wgmma is not None
    wide = choice.wgmma.block_n > 128 and choice.wgmma.storage == "fp32"
    if wide and question.precision.operand.bytes == 2:
        return False
    return slices_bytes(choice, question.sizes) <= slices_capacity(choice, question)


class _Layout(NamedTuple):
    """The fields of a plan that follow from layouts of operands and result, not from sizes."""

    storage: Storage
    fusable: bool
    k_major: bool
    half_output: bool
    prescaled: bool
    triangle: bool
    power: bool
    odd_pitch: bool
    odd_batches: bool


def _layout_of(
    question: Question, storage: Storage, rows: OperandTraits, columns: OperandTraits
) -> _Layout:
    """Return the layout of a row operand in a storage, beside a column operand."""
    precision, sizes, a, b, *_ = question
    # A pack kernel that packs rows packs columns as well, unless both are the same planes.
    planar = storage == "planar"
    fusable = columns.fusable and (planar if sizes.triangle else rows.packed or not planar)
    return _Layout(
        storage, fusable, k_major=storage != "planar" and rows.k_major,
        half_output=sizes.half_output, prescaled=precision.scaled and a.half and b.half,
        triangle=sizes.triangle, power=sizes.power,
        odd_pitch=storage == "fp32" and rows.odd_pitch,
        odd_batches=storage == "fp32" and rows.odd_batches,
    )  # fmt: skip


@cache
def _laid_out(
    precision: Precision, layout: _Layout, arch: Arch
) -> tuple[tuple[WgmmaPlan, bool], ...]:
    """Return each tile in a layout, with and without fused packing, and whether it is legal.

    One that is not may be legal in a cluster, with fewer stages.
    """
    storage, fusable, *_ = layout
    # Rows of A are the columns of A^H, conjugated: one set of planes is enough.
    fields = layout._asdict() | {"conjugate_y": layout.triangle and storage == "planar"}
    del fields["fusable"]
    more = covering_tiles(precision, storage) if layout.triangle else ()
    plans = [
        replace(plan, **fields, fused_pack=fused)
        for plan in (*wgmma_tiles(precision, storage), *more)
        for fused in (False, True)[: 1 + fusable]
    ]
    return tuple((plan, is_legal(check_wgmma_plan, plan, precision, arch)) for plan in plans)


_MIN_CLUSTER_K, _MIN_ROUNDED_CLUSTER_K = 64, 128
"""Shortest slice of a cluster, in elements of k, and of rows that are rounded to 16 bits in
registers: the first and the last stage of a slice are rounded under no MMAs."""
EVERY_CLUSTER_K = max(CLUSTERS) * _MIN_ROUNDED_CLUSTER_K
"""K of a tile from which on it may be cut among every cluster."""


def _with_clusters(
    plan: WgmmaPlan, precision: Precision, sm_count: int, sizes: GemmSizes
) -> list[WgmmaPlan]:
    """List the plan with each cluster that cuts k of tiles that leave multiprocessors idle."""
    tiles = sizes.tiles(plan.block_m, plan.block_n)
    rounds = plan.storage == "fp32" and precision.operand.bytes == 2 and precision.terms == 1
    shortest = _MIN_ROUNDED_CLUSTER_K if rounds else _MIN_CLUSTER_K
    found = [
        with_cluster(plan, precision, blocks)
        for blocks, filled in CLUSTERS.items()
        if tiles * blocks <= filled * sm_count and sizes.k >= blocks * shortest
    ]
    return [x for x in found if x is not None]


def candidates_in_tf32(question: Question, arch: Arch, sm_count: int) -> list[GemmChoice]:
    """List the candidates by kernels of tf32 that may compute a product of 16 bits.

    They spare a scaled precision the search for row absmax. What is packed or of 16 bits is in the
    precision's format already, and so is a 16-bit result. Estimates that compare precisions exist
    for Hopper only.
    """
    row = product_in_tf32(question.precision)
    given = any(x.packed or x.half for x in (question.a, question.b)) or question.sizes.half_output
    if row is None or given or arch.target != WGMMA_TARGET:
        return []
    in_tf32 = question._replace(precision=row)
    return [replace(x, in_tf32=True) for x in candidates(in_tf32, arch, sm_count)]


def _storages(precision: Precision, rows: OperandTraits, columns: OperandTraits) -> list[Storage]:
    """List the storages in which the row operand can be read: in place where possible, planes."""
    if not rows.readable(columns):
        return ["planar"]
    if rows.half:
        return ["half", "planar"]
    # Without promotion all of k has one scale, which is found beforehand.
    return ["planar"] if precision.scaled and precision.terms == 1 else ["fp32", "planar"]


_MIN_SLICE_K, _MIN_TRIANGLE_SLICE_K = {1: 128, 2: 96}, {1: 256, 2: 320}
"""Shortest split-K slice by terms, in elements of k: prologue and reduction outweigh less. Shorter
ones of triangles were not timed."""
_SLICED_WAVES = 2
"""Waves of blocks that split-K slices may fill at most."""


def most_slices(sm_count: int) -> int:
    """Return the most split-K slices of a product: blocks of two waves."""
    return _SLICED_WAVES * sm_count


def _slice_counts(plan: WgmmaPlan, sm_count: int, sizes: GemmSizes, terms: int) -> Sequence[int]:
    """Return 1, and numbers of slices that cut a long k of few tiles.

    They are powers of two, and as many as leave one block for each multiprocessor.
    Results of 4 bytes are rounded or squared once, from the sum over all of k, which is not cut.
    """
    tiles = sizes.tiles(plan.block_m, plan.block_n)
    shortest = _MIN_TRIANGLE_SLICE_K if sizes.triangle else _MIN_SLICE_K
    most = sizes.k // shortest[terms]
    if sizes.narrow or most < 2:
        return [1]
    found = {1}
    while (power := 2 * max(found)) <= most and power * tiles <= most_slices(sm_count):
        found.add(power)
    found.add(max(1, min(sm_count // tiles, most)))
    num_k_tiles = -(-sizes.k // plan.block_k)  # as many slices as are not empty
    return sorted({-(-num_k_tiles // -(-num_k_tiles // slices)) for slices in found})


def with_packing(
    choice: GemmChoice, precision: Precision, a: OperandTraits, b: OperandTraits
) -> GemmChoice:
    """Return the choice, with operands packed that it cannot read or hold in place."""
    if choice.wgmma is None:
        return choice
    rows, columns = (b, a) if choice.swapped else (a, b)
    readable = rows.readable(columns) and rows.half == (choice.wgmma.storage == "half")
    plan = choice.wgmma if readable else in_planes(choice.wgmma, precision)
    contiguous = plan.storage != "planar" and rows.k_major
    rows_unpacked = plan.storage == "fp32" or rows.packed or plan.conjugate_y
    fused = plan.fused_pack and rows_unpacked and columns.fusable
    fused = fused and plan.block_n <= MAX_FUSED_COLUMNS
    odd_pitch = plan.storage == "fp32" and rows.odd_pitch
    laid = replace(plan, k_major=contiguous, odd_pitch=odd_pitch, fused_pack=fused)
    if odd_pitch and not is_legal(check_wgmma_plan, laid, precision, arch_for(HOPPER)):
        # Odd lines take more shared memory than a stage of this tile leaves.
        return with_packing(replace(choice, wgmma=in_planes(plan, precision)), precision, a, b)
    odd_batches = plan.storage == "fp32" and rows.odd_batches
    fused = fused and not (odd_batches and rows.exchanges_k)
    return replace(choice, wgmma=replace(laid, fused_pack=fused, odd_batches=odd_batches))
