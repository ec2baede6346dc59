"""Products by mma.sync whose k is cut over the blocks of a cluster, and small ones (a GPU)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, gemm, launched, to_pairs
from argand.device import Arch
from argand.gemm.choice import GemmChoice
from argand.gemm.sm80.plan import CLUSTER_SIZES, FULL_WARP, MmaPlan, holds_accumulators
from argand.gemm.sm80.slices import k_tiles_of
from argand.gemm.sm80.tiles import mma_tiles
from argand.runtime.plan import WGMMA_TARGET

from tests.kernels.compiled import ARCHS
from tests.kernels.gemm.product_cases import (
    FP32_CLASS,
    OPS,
    assert_contained,
    assert_within,
    check,
    long_operands,
    magnitude,
    nonfinite,
    normal,
    relative_error,
    repeats_bit_for_bit,
    stored,
    summation,
)
from tests.kernels.gemm.sm90.wgmma_cases import overridden
from tests.kernels.precisions import SCALED, SINGLE_HALF, SPLIT, TENSOR

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma")]

HOPPER = ARCHS[WGMMA_TARGET]
SLICED = CLUSTER_SIZES[1:]


def sliced_tiles(precision: str, arch: Arch = HOPPER) -> list[MmaPlan]:
    """Every tile with every number of slices that shared memory holds."""
    found = [
        replace(tile, cluster=slices)
        for tile in mma_tiles(PRECISIONS[precision], arch)
        for slices in SLICED
    ]
    return [tile for tile in found if tile.shared_bytes <= arch.shared_bytes]


def tiles_and_slices(precision: str) -> list[MmaPlan]:
    """Every tile once, the numbers of slices in turn, and the smallest tile with each."""
    found = {tile.name: tile for tile in sliced_tiles(precision)[-len(SLICED) :]}
    for index, tile in enumerate(mma_tiles(PRECISIONS[precision], HOPPER)):
        sliced = replace(tile, cluster=SLICED[index % len(SLICED)])
        if sliced.shared_bytes <= HOPPER.shared_bytes:
            found[sliced.name] = sliced
    return list(found.values())


TILES = [
    pytest.param(precision, tile, id=f"{precision} {tile.name}")
    for precision in TENSOR
    for tile in tiles_and_slices(precision)
]


@pytest.mark.parametrize(("precision", "tile"), TILES)
def test_every_tile_in_slices(
    cp: Any, rng: np.random.Generator, precision: str, tile: MmaPlan
) -> None:
    """Ragged, of a batch, with slices that are empty, and one of the absmax kernel."""
    a, b = normal(rng, 2, 70, 333), normal(rng, 2, 333, 45)
    c = normal(rng, 2, 70, 45)
    short = normal(rng, 21, 5), normal(rng, 5, 34)
    long = stored(normal(rng, 18, 2500), "C"), stored(normal(rng, 2500, 34), "T")
    with overridden(GemmChoice(mma=tile)), launched() as names:
        check(cp, a, b, c, precision=precision, alpha=0.5 - 2j, beta=-1.25 + 0.75j)
        check(cp, *short, precision=precision)
        check(cp, *long, op_a="C", op_b="T", precision=precision, alpha=1j)
    assert all(f", {tile.cluster} split-K slices: " in name for name in names)
    row = PRECISIONS[precision]
    if row.scaled and (row.terms > 1 or tile.warp_elements < FULL_WARP):  # else a warp would spill
        assert any("absmax by each block" in name for name in names)


@pytest.mark.parametrize("precision", [x for x in TENSOR if x not in SCALED])
@pytest.mark.parametrize("tile", [MmaPlan(32, 32, 32, 2, 2, 3), MmaPlan(16, 16, 64, 1, 2, 4)])
@pytest.mark.parametrize(("slices", "groups"), [(1, 4), (2, 1), (5, 4)])
def test_a_k_that_the_stages_of_slices_hold(
    cp: Any, rng: np.random.Generator, precision: str, tile: MmaPlan, slices: int, groups: int
) -> None:
    """A kernel knows how many k-tiles a slice has, and the last slices may be beyond k."""
    row = PRECISIONS[precision]
    interval = 64 if row.terms > 1 else 0
    plan = replace(tile, cluster=slices, warps_k=groups, promotion_interval=interval)
    plan = replace(plan, block_k=max(tile.block_k, groups * row.operand.mma_k))
    held = plan.stages * plan.block_k * slices
    with overridden(GemmChoice(mma=plan)):
        for k in (1, plan.block_k + 1, held // 2 + 3, held - 8, held, held + 1):
            a, b = normal(rng, 45, k), normal(rng, k, 37)
            check(cp, stored(a, "C"), b, precision=precision, op_a="C")


def shared_tiles(precision: str) -> list[MmaPlan]:
    """Tiles that clusters of 1 to 8 blocks share, in a number that is no power of two."""
    found = []
    for index, tile in enumerate(mma_tiles(PRECISIONS[precision], HOPPER)):
        every = len(CLUSTER_SIZES)
        for slices in {CLUSTER_SIZES[place % every] for place in (index, index + every // 2)}:
            plan = replace(tile, cluster=slices, grid_slices=3)
            if plan.shared_bytes + 16 <= HOPPER.shared_bytes and holds_accumulators(plan):
                found.append(plan)
    return found


@pytest.mark.parametrize(
    ("precision", "tile"),
    [pytest.param(x, tile, id=f"{x} {tile.name}") for x in TENSOR for tile in shared_tiles(x)],
)
def test_clusters_share_a_tile(
    cp: Any, rng: np.random.Generator, precision: str, tile: MmaPlan
) -> None:
    """Ragged, of a batch, with clusters that have no k; counters are zero for the next call."""
    a, b = normal(rng, 2, 70, 1333), normal(rng, 2, 1333, 45)
    c = normal(rng, 2, 70, 45)
    short = normal(rng, 21, 5), normal(rng, 5, 34)
    with overridden(GemmChoice(mma=tile)), launched() as names:
        for _ in range(4):  # from the third call on as a graph
            check(cp, a, b, c, precision=precision, alpha=0.5 - 2j, beta=-1.25 + 0.75j)
        check(cp, *short, precision=precision)
        left, right = cp.asarray(a), cp.asarray(b)
        assert repeats_bit_for_bit(partial(gemm, left, right, precision=precision))
    assert all(f"{tile.slices} split-K slices in 3 clusters" in name for name in names)


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("op_a", OPS)
@pytest.mark.parametrize("op_b", OPS)
def test_small_products_of_any_k(
    cp: Any, rng: np.random.Generator, precision: str, op_a: str, op_b: str
) -> None:
    """By the family's own choice: vectors, odd and even, of short and long k."""
    for m, n in ((1, 1), (196, 1), (1, 77), (37, 167), (64, 32)):
        for k in (1, 2, 9, 64, 65, 390, 1501):
            a, b = stored(normal(rng, m, k), op_a), stored(normal(rng, k, n), op_b)
            check(cp, a, b, precision=precision, kernels="mma.sync", op_a=op_a, op_b=op_b)


@pytest.mark.parametrize("precision", TENSOR)
def test_small_products_are_cut_and_repeat(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    a, b = (cp.asarray(normal(rng, *shape)) for shape in ((37, 1501), (1501, 60)))
    call = partial(gemm, a, b, precision=precision, kernels="mma.sync")
    with launched() as names:
        assert repeats_bit_for_bit(call)
    (name,) = names
    assert "split-K slices" in name


@pytest.mark.parametrize("precision", TENSOR)
def test_places_and_strides_of_sliced_products(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    """Broadcast and reversed operands, a result that lies transposed, C that is the result."""
    a, b = normal(rng, 3, 50, 500), normal(rng, 500, 34)
    left, right = cp.asarray(a), cp.asarray(b)
    slack = summation(500, precision) * magnitude(a, b, None)
    with overridden(GemmChoice(mma=sliced_tiles(precision)[-1])):
        out = cp.full((3, 34, 50), np.nan, cp.complex64).swapaxes(-1, -2)
        gemm(left[::-1], right, precision=precision, out=out)
        assert_within(out.get(), gemm(a[::-1], b, precision=precision), slack[::-1])
        wide = cp.full((50, 41), np.nan, cp.complex64)
        gemm(left[1], right, precision=precision, out=wide[:, 3:37])
        assert_within(wide[:, 3:37].get(), gemm(a[1], b, precision=precision), slack[1])
        assert bool(cp.isnan(wide[:, :3]).all() and cp.isnan(wide[:, 37:]).all())
        c = cp.asarray(normal(rng, 3, 50, 34))
        expected = gemm(a, b, c.get(), precision=precision, beta=2)
        gemm(left, right, c, precision=precision, beta=2, out=c)
        assert_within(c.get(), expected, slack + summation(1, precision) * np.abs(expected))


@pytest.mark.parametrize("precision", SCALED)
@pytest.mark.parametrize("slices", SLICED)
def test_slices_have_scales_of_their_own(
    cp: Any, rng: np.random.Generator, precision: str, slices: int
) -> None:
    """Numbers that are small in their line, but not in their slice, keep all their bits."""
    tile = next(x for x in sliced_tiles(precision) if x.warps_k > 1 and x.cluster == slices)
    k = 512
    part = k_tiles_of(tile, k) * tile.block_k
    a, b = normal(rng, 40, k), normal(rng, k, 30)
    a[:, :part] *= np.float32(2.0**60)
    b[:part] *= np.float32(2.0**-90)
    with overridden(GemmChoice(mma=tile)):
        found = gemm(cp.asarray(a), cp.asarray(b), precision=precision).get()
    row = PRECISIONS[precision]
    size = magnitude(a.astype(complex), b.astype(complex), None)
    rounding = 2 * row.u + row.u**2 + row.dropped
    exact = a.astype(np.complex128) @ b.astype(np.complex128)
    assert_within(found, exact, (summation(k, precision) + rounding) * size)


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("slices", SLICED)
def test_nonfinite_stays_in_its_row_and_column_of_slices(
    cp: Any, rng: np.random.Generator, precision: str, slices: int
) -> None:
    a, b = nonfinite(rng)
    tile = next(x for x in sliced_tiles(precision) if x.cluster == slices)
    with overridden(GemmChoice(mma=tile)):
        assert_contained(gemm(cp.asarray(a), cp.asarray(b), precision=precision).get())


@pytest.mark.parametrize("precision", SPLIT)
@pytest.mark.parametrize("slices", SLICED)
def test_slices_do_not_add_to_the_error_of_a_split(
    cp: Any, rng: np.random.Generator, precision: str, slices: int
) -> None:
    tile = next(x for x in sliced_tiles(precision) if x.cluster == slices)
    errors = []
    with overridden(GemmChoice(mma=tile)):
        for a, b in long_operands(rng):
            found = gemm(cp.asarray(a), cp.asarray(b), precision=precision).get()
            errors.append(relative_error(found, a, b))
    assert max(errors) < FP32_CLASS


@pytest.mark.parametrize("precision", SINGLE_HALF)
def test_pairs_by_sliced_products(cp: Any, rng: np.random.Generator, precision: str) -> None:
    a, b = cp.asarray(normal(rng, 37, 900)), cp.asarray(normal(rng, 900, 20))
    plain = gemm(a, b, precision=precision, kernels="mma.sync")
    halves = gemm(a, b, precision=precision, kernels="mma.sync", output="complex-half")
    assert bool((halves.array == to_pairs(plain, precision).array).all())
