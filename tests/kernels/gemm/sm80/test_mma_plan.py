"""Plans of the mma.sync family: which are legal, that each architecture has one, shared memory."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, Precision
from argand.device import ARCHITECTURES, Arch, arch_for
from argand.gemm.question import GemmSizes
from argand.gemm.sm80.heuristics import estimated_microseconds
from argand.gemm.sm80.legality import check_mma_plan
from argand.gemm.sm80.occupancy import launched_bytes
from argand.gemm.sm80.plan import CLUSTER_SIZES, FULL_WARP, MmaPlan, holds_accumulators
from argand.gemm.sm80.tiles import mma_tiles, with_copies
from argand.multiprocessor import RESERVED_BYTES, SHARED_BYTES
from argand.runtime.plan import PlanError

from tests.covers import covered
from tests.kernels.compiled import ARCHS, LAYOUTS, refused
from tests.kernels.gemm.sm80.mma_plans import mma_plan
from tests.kernels.precisions import SCALED, TENSOR

FORMS = list(product([(1, 1), (16, 100_000), (4096, 4096), (1, 70_000)], (1, 2), LAYOUTS))
"""Rows and columns, numbers a copy, and which operands are k-major."""


@pytest.mark.parametrize("arch_row", ARCHITECTURES, ids=lambda row: row.target)
@pytest.mark.parametrize("precision", TENSOR)
def test_every_architecture_has_a_plan(arch_row: Arch, precision: str) -> None:
    if refused(precision, arch_row):
        return
    for (m, n), vector, (a_k_major, b_k_major) in covered(FORMS, lambda row: dict(enumerate(row))):
        plan = mma_plan(
            PRECISIONS[precision], arch_row, batch=3, m=m, n=n, k=64, sm_count=108,
            a_k_major=a_k_major, b_k_major=b_k_major, vector=vector,
        )  # fmt: skip
        assert plan.shared_bytes <= arch_row.shared_bytes


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("k", [1, 40, 256, 257])
def test_small_scaled_products_have_stages_for_all_of_k(precision: str, k: int) -> None:
    row = PRECISIONS[precision]
    plan = mma_plan(row, ARCHS["sm_90a"], batch=1, m=256, n=256, k=k, sm_count=132, vector=2)
    assert plan.finds_absmax == row.scaled
    held = plan.cluster * (plan.stages - 1) * plan.block_k
    assert not plan.finds_absmax or held >= k


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"block_k": 24}, "multiples of 16"),
        ({"warps_k": 3}, "for each of warps_k"),
        ({"finds_absmax": True}, "only a precision that scales"),
        ({"block_m": 120}, "multiple of 16 warps_m"),
        ({"promotion_interval": 24}, "promotion_interval must be a multiple"),
        ({"vector": 4}, "vector must be 1 or 2"),
        ({"stages": 1}, "stages must be at least 2"),
        ({"stages": 9}, "bytes of shared memory"),
        ({"whole_k": 8, "grid_slices": 2}, "all of a k that no clusters share"),
        ({"whole_k": 8, "warps_k": 2}, "or of block_k where k is cut"),
        ({"whole_k": 12}, "whole_k must be a multiple of 8"),
        ({"whole_k": 1024}, "that the stages hold"),
        ({"copies_between": True, "warps_k": 2, "block_k": 32}, "a k that no warps share"),
        ({"cluster": 9}, r"cluster must be one of \[1, 2, 3, 4, 5, 6, 8\] blocks"),
        ({"cluster": 2}, "from compute capability 9.0 on"),
        ({"triangle": True, "block_n": 64}, "tiles of a triangle must be square"),
        ({"mirror": True}, "mirrored tiles are of a triangle"),
        ({"warps_m": 1, "warps_n": 1}, "a warp alone has a triangle of one tile"),
        ({"one_tile": True}, "one tile is that of a triangle of up to"),
        ({"grid_slices": 0}, "grid_slices must be 1 to"),
        # A row has 48 words, of which 128 threads copy two rows and a part of a third.
        ({"block_m": 64, "block_n": 64, "block_k": 48, "warps_n": 2}, "must cover whole rows"),
    ],
)
def test_an_illegal_plan_says_why(change: dict[str, Any], message: str) -> None:
    row: Precision = PRECISIONS["tf32"]
    arch = ARCHS["sm_80"]
    plan = replace(mma_tiles(row, arch)[0], **change)
    with pytest.raises(PlanError, match=message):
        check_mma_plan(plan, row, arch)


def test_static_shared_memory_counts() -> None:
    """Blocks of slices tell each other 16 bytes, which lie beside the stages."""
    row, arch = PRECISIONS["tf32"], ARCHS["sm_80"]
    plan = mma_tiles(row, arch)[0]
    full = replace(arch, shared_bytes=plan.shared_bytes)
    check_mma_plan(plan, row, full)
    with pytest.raises(PlanError, match=f"this one takes {plan.shared_bytes + 16}"):
        check_mma_plan(replace(plan, grid_slices=2), row, full)


def test_full_warps_leave_the_absmax_to_a_launch_before() -> None:
    row, arch = PRECISIONS["fp16"], ARCHS["sm_90a"]
    (plan,) = (x for x in mma_tiles(row, arch) if x.warp_elements >= FULL_WARP)
    assert plan.block_k == 16  # of 32 it spills without absmax, too
    with pytest.raises(PlanError, match="spills where blocks find the absmax"):
        check_mma_plan(replace(plan, finds_absmax=True, stages=2), row, arch)


@pytest.mark.parametrize("copies", [{"whole_k": 16}, {"copies_between": True}])
@pytest.mark.parametrize("precision", ["3xfp16", "fp16"])
def test_copies_are_for_operands_without_scales(copies: dict[str, Any], precision: str) -> None:
    """Others need the absmax of all k before the first MMA."""
    row, arch = PRECISIONS[precision], ARCHS["sm_90a"]
    with pytest.raises(PlanError, match="are for operands without scales"):
        check_mma_plan(replace(mma_tiles(row, arch)[0], **copies), row, arch)


def test_stages_hold_the_sums_that_slices_reduce() -> None:
    """2 stages of 128 x 64 x 16 have 60 KiB, its accumulators 64."""
    row, arch = PRECISIONS["3xfp16"], ARCHS["sm_90a"]
    tile = next(
        x for x in mma_tiles(row, arch) if (x.block_m, x.block_n, x.block_k) == (128, 64, 16)
    )
    check_mma_plan(replace(tile, stages=2), row, arch)
    with pytest.raises(PlanError, match="stages must hold the accumulators"):
        check_mma_plan(replace(tile, stages=2, cluster=4), row, arch)
    small = {"batch": 1, "m": 40, "n": 40, "k": 60, "sm_count": 132}
    planned_tile = mma_plan(row, arch, **small, tile=replace(tile, cluster=4))
    assert (planned_tile.finds_absmax, planned_tile.stages) == (True, 3)


def test_copies_suit_k() -> None:
    row, arch, tile = PRECISIONS["tf32"], ARCHS["sm_90a"], MmaPlan(32, 32, 32, 2, 2, 3)
    for k, whole, between in ((1, 8, False), (75, 80, False), (96, 96, False), (97, 0, True)):
        plan = with_copies(tile, row, arch, k)
        assert (plan.whole_k, plan.copies_between) == (whole, between)
        assert plan == mma_plan(row, arch, batch=1, m=99, n=99, k=k, sm_count=132, tile=tile)
    cut = replace(tile, cluster=2)
    assert [with_copies(cut, row, arch, k) for k in (64, 65, 192, 193)] == [
        replace(cut, whole_k=32), replace(cut, whole_k=64), replace(cut, whole_k=96),
        replace(cut, copies_between=True),
    ]  # fmt: skip
    assert not with_copies(replace(cut, triangle=True), row, arch, 64).whole_k
    assert not with_copies(replace(cut, grid_slices=2), row, arch, 64).whole_k
    for given in (1, 97):
        plan = with_copies(tile, row, arch, given)
        assert all(
            with_copies(plan, row, arch, k) == with_copies(tile, row, arch, k) for k in (1, 97)
        )
        longer = with_copies(plan, PRECISIONS["3xtf32"], arch, 97)
        assert longer == replace(tile, copies_between=True)
    split = replace(tile, promotion_interval=32)
    for k, whole, between in ((1, 8, False), (75, 80, False), (96, 96, False), (97, 0, True)):
        plan = with_copies(split, PRECISIONS["3xtf32"], arch, k)
        assert (plan.whole_k, plan.copies_between) == (whole, between)
        of_triangle = with_copies(replace(split, triangle=True), PRECISIONS["3xtf32"], arch, k)
        assert (of_triangle.whole_k, of_triangle.copies_between) == (whole, False)
    # Sums of a longer slice would be promoted again, and spill.
    deep = replace(split, stages=5, cluster=2)
    found = [with_copies(deep, PRECISIONS["3xtf32"], arch, k) for k in (192, 193)]
    assert [x.whole_k for x in found] == [96, 0]
    wide = MmaPlan(64, 32, 32, 2, 2, 3, 32)
    of_slices = [
        with_copies(replace(x, cluster=2), PRECISIONS["3xtf32"], arch, k).copies_between
        for x in (split, wide) for k in (192, 193)
    ]  # fmt: skip
    assert of_slices == [False, True, False, False]
    assert not with_copies(wide, PRECISIONS["3xtf32"], arch, 129).copies_between
    large, shared = MmaPlan(64, 64, 16, 2, 2, 4), MmaPlan(32, 32, 64, 2, 1, 4, warps_k=4)
    assert with_copies(large, row, arch, 48) == large
    assert with_copies(shared, row, arch, 256) == replace(shared, whole_k=256)
    assert with_copies(shared, row, arch, 257) == shared
    assert with_copies(tile, PRECISIONS["3xfp16"], arch, 48) == tile
    assert not with_copies(tile, row, ARCHS["sm_80"], 97).copies_between


@pytest.mark.parametrize("slices", CLUSTER_SIZES[1:])
def test_blocks_of_a_cluster_hold_equal_parts_of_whole_pairs(slices: int) -> None:
    """As SliceVectors of gemm/sm80_slices.cuh counts them: the last block stores what is left."""
    for tile in mma_tiles(PRECISIONS["tf32"], ARCHS["sm_90a"]):
        held, size = replace(tile, cluster=slices).exchanged, tile.block_m * tile.block_n
        assert held % (2 * slices) == 0
        assert size <= held < size + 2 * slices


@pytest.mark.parametrize("precision", SCALED)
@pytest.mark.parametrize("k", [1, 5, 60])
def test_blocks_find_the_absmax_of_a_short_k_at_every_tile(precision: str, k: int) -> None:
    """Tiles whose accumulators take more stages than so short a k are among them."""
    row, arch = PRECISIONS[precision], ARCHS["sm_90a"]
    for tile in mma_tiles(row, arch):
        for slices in CLUSTER_SIZES:
            one = replace(tile, cluster=slices)
            if one.shared_bytes > arch.shared_bytes or not holds_accumulators(one):
                continue
            plan = mma_plan(row, arch, batch=1, m=40, n=40, k=k, sm_count=132, tile=one)
            full = row.terms == 1 and tile.warp_elements >= FULL_WARP  # which would spill
            assert plan.finds_absmax == (not full)
            assert full or slices * (plan.stages - 1) * plan.block_k >= k


SMALL = [(1, 196, 1, 390), (1, 37, 167, 1501), (1, 99, 188, 918), (2, 16, 16, 2000)]
"""Few tiles of a long k."""


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("sizes", SMALL, ids=str)
def test_k_is_cut_where_blocks_are_few(precision: str, sizes: tuple[int, ...]) -> None:
    plan = planned(precision, "sm_90a", *sizes)
    blocks = sizes[0] * -(-sizes[1] // plan.block_m) * -(-sizes[2] // plan.block_n)
    assert plan.cluster > 1 or blocks * plan.warps_k >= 132
    first = arch_for(PRECISIONS[precision].min_sm).target  # before clusters
    assert planned(precision, first, *sizes).cluster == 1


@pytest.mark.parametrize("precision", TENSOR)
def test_slices_are_shorter_than_fewer_and_large_products_are_whole(precision: str) -> None:
    rng = np.random.default_rng(24)
    for _ in range(40):
        m, n, k = (int(2**x) for x in rng.uniform(0, 11, 3))
        plan = planned(precision, "sm_90a", 1, m, n, k)
        k_tiles = -(-k // plan.block_k)
        halved = max(1, plan.cluster // 2)
        assert plan.cluster == 1 or -(-k_tiles // plan.cluster) < -(-k_tiles // halved)
        # No launch goes before a product whose slices fit shared memory.
        row = PRECISIONS[precision]
        assert plan.finds_absmax == row.scaled or -(-k // plan.cluster) > 128
    for size in (4096, 8192):
        assert planned(precision, "sm_90a", 1, size, size, size).cluster == 1


@pytest.mark.parametrize("precision", TENSOR)
def test_longer_products_do_not_take_less(precision: str) -> None:
    row = PRECISIONS[precision]
    for m, n in ((1, 1), (60, 70), (500, 9), (400, 300)):
        times = [
            estimated_microseconds(
                planned(precision, "sm_90a", 1, m, n, k), row, 132, GemmSizes(1, m, n, k)
            )
            for k in (2, 64, 500, 4000, 30_000)
        ]
        assert times == sorted(times)
        assert 2 < times[0] < 10


BY_TARGET = {arch.target: arch for arch in ARCHITECTURES}


@pytest.mark.parametrize(("sizes", "narrow"), [((758, 107, 353), False), ((598, 38, 585), True)])
def test_narrow_tiles_are_left_where_three_of_their_clusters_share_multiprocessors(
    sizes: tuple[int, int, int], narrow: bool
) -> None:
    """336 blocks of 64 x 16 took 8.95 us, 96 of 64 x 64 7.15 (an H200); 120 have theirs alone."""
    m, n, k = sizes
    found = mma_plan(
        PRECISIONS["tf32"], arch_for(90), sm_count=132, batch=1, m=m, n=n, k=k, b_k_major=True
    )
    assert (found.block_n == 16) == narrow


def planned(precision: str, arch: str, batch: int, m: int, n: int, k: int) -> MmaPlan:
    return mma_plan(
        PRECISIONS[precision], BY_TARGET[arch], batch=batch, m=m, n=n, k=k, sm_count=132, vector=2
    )


def test_fp64_has_no_tensor_core_plan() -> None:
    row = PRECISIONS["tf32"]
    with pytest.raises(PlanError, match="operand must be one of"):
        check_mma_plan(mma_tiles(row, ARCHS["sm_80"])[0], PRECISIONS["fp64"], ARCHS["sm_80"])


def test_a_short_k_leaves_memory_of_its_stages() -> None:
    tile = MmaPlan(32, 32, 32, 2, 2, 3)
    stage = tile.shared_bytes // 3
    stages = [tile.least_bytes(k) // stage for k in (0, 1, 32, 33, 64, 65, 5000)]
    assert stages == [1, 1, 1, 2, 2, 3, 3]
    # Partial sums lie in the memory of all stages.
    for cut in (replace(tile, warps_k=2), replace(tile, cluster=2)):
        assert cut.least_bytes(1) == cut.shared_bytes


def test_clusters_have_no_more_room_than_their_blocks_need() -> None:
    """A multiprocessor has room for three blocks of 64 x 16, for two with memory of a part more."""
    arch, tile = ARCHS["sm_90a"], MmaPlan(64, 16, 32, 4, 1, 3, cluster=3)
    least = tile.least_bytes(855)
    more = [launched_bytes(tile, 855, x, 132, arch) - least for x in (1, 234, 235, 468)]
    assert more == [tile.part_bytes, tile.part_bytes, 0, 0]
    for plan, slices in product(mma_tiles(PRECISIONS["3xtf32"], arch), CLUSTER_SIZES[1:]):
        cut = replace(plan, cluster=slices)
        if cut.shared_bytes < arch.shared_bytes:
            assert launched_bytes(cut, 4096, 1, 132, arch) <= arch.shared_bytes


def test_a_multiprocessor_has_room_for_no_more_blocks_than_it_needs() -> None:
    arch, tile = ARCHS["sm_90a"], MmaPlan(64, 16, 32, 4, 1, 3)
    for blocks, held in ((1, 1), (132, 1), (133, 2), (264, 2), (397, 4)):
        nbytes = launched_bytes(tile, 40, blocks, 132, arch) + RESERVED_BYTES
        assert SHARED_BYTES // nbytes == held, blocks
    # Many blocks follow each other, and other cards have other memory.
    assert launched_bytes(tile, 40, 9999, 132, arch) == tile.least_bytes(40)
    assert launched_bytes(tile, 40, 1, 108, ARCHS["sm_80"]) == tile.least_bytes(40)
