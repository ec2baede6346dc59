"""Triangles without a GPU: each tile once, in groups that share operands, in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from weakref import ref

import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import arch_for
from argand.gemm.candidates import candidates
from argand.gemm.heuristics import choose
from argand.gemm.question import GemmSizes, OperandTraits, Question
from argand.gemm.sm80.heuristics import cut_tiles
from argand.gemm.sm80.legality import check_mma_plan
from argand.gemm.sm80.occupancy import multiplying_warps
from argand.gemm.sm80.plan import MmaPlan
from argand.gemm.sm90.scheduler import Tiles, raster_group_m
from argand.herk.problem import herk_problem
from argand.runtime.plan import PlanError

from tests.kernels.gemm.sm80.mma_plans import mma_plan
from tests.kernels.herk.herk_cases import Array
from tests.kernels.precisions import TENSOR
from tests.kernels.without_device import without_device


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 15, 16, 17, 31, 40])
def test_every_tile_once(rows: int) -> None:
    tiles = Tiles(rows, rows, 2, triangle=True)
    found = [tiles.coordinates(index) for index in range(tiles.count)]
    expected = {(p, i, j) for p in range(2) for i in range(rows) for j in range(i + 1)}
    assert len(found) == len(expected)
    assert set(found) == expected
    groups = [(product, row // raster_group_m(rows)) for product, row, _ in found]
    assert groups == sorted(groups)


@pytest.mark.each_value
@pytest.mark.parametrize("rows", [1, 32, 33, 48, 49, 64, 65, 80, 81, 112, 113, 129])
@pytest.mark.parametrize("precision", TENSOR)
def test_a_triangle_of_one_tile_holds_its_rows_once(precision: str, rows: int) -> None:
    row, arch = PRECISIONS[precision], arch_for(90)
    for tile in cut_tiles(row, arch, GemmSizes(900, rows, rows, 80, triangle=True), 132):
        if tile.block_m != tile.block_n or tile.slices > 1:
            continue
        if tile.one_warp:
            with pytest.raises(PlanError, match="a warp alone has a triangle of one tile"):
                mma_plan(
                    row, arch, sm_count=132, batch=900, m=rows, n=rows, k=80, b_k_major=False,
                    tile=tile, triangle=True,
                )  # fmt: skip
            tile = replace(tile, warps_n=2)
        one, apart = (
            mma_plan(
                row, arch, sm_count=132, batch=900, m=rows, n=rows, k=80, a_k_major=True,
                b_k_major=k_major, tile=tile, triangle=True,
            )
            for k_major in (True, False)
        )  # fmt: skip
        assert one.one_tile == (rows <= tile.block_m <= 80)
        assert not apart.one_tile
        if one.one_tile:
            result = 8 * tile.block_m * (tile.block_m + 2)
            assert one.least_bytes(32) >= result
            assert one.shared_bytes <= max(result, 0.6 * replace(one, one_tile=False).shared_bytes)
            above = min(tile.warps_m, tile.warps_n) > 1
            assert (multiplying_warps(one) < tile.threads // 32) == above
    with pytest.raises(PlanError, match="one tile"):
        check_mma_plan(replace(one, one_tile=True, b_k_major=False), row, arch)


@pytest.mark.parametrize("precision", TENSOR)
def test_one_tile_of_another_shape_covers_65_to_128_rows(precision: str) -> None:
    """Planes of its rows are those of its columns; it is one tile, where 64 rows take three."""
    row, arch = PRECISIONS[precision], arch_for(90)
    traits = OperandTraits(), OperandTraits(conjugated=True)
    for n in (64, 65, 80, 81, 112, 128, 129):
        sizes = GemmSizes(700, n, n, 600, triangle=True)
        plans = [x.wgmma for x in candidates(Question(row, sizes, *traits), arch, 132) if x.wgmma]
        other = {plan for plan in plans if plan.block_m != plan.block_n}
        assert all(plan.conjugate_y and n <= plan.block_n < plan.block_m for plan in other)
        assert bool(other) == (64 < n <= 112)
        assert {sizes.tiles(plan.block_m, plan.block_n) for plan in other} <= {700}
    sizes = GemmSizes(720, 70, 70, 595, triangle=True)
    choice = choose(Question(row, sizes, *traits), arch, 132)
    if precision == "3xfp16":
        assert choice.wgmma is not None
        assert (choice.wgmma.block_m, choice.wgmma.block_n) == (128, 80)
    elif row.terms == 1:
        assert choice.wgmma is None  # 80 x 80 by mma.sync


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("sm", [None, 90])
def test_chosen_tiles_are_square_and_half_as_many(precision: str, sm: int | None) -> None:
    row = PRECISIONS[precision]
    arch = arch_for(sm or row.min_sm)
    for n, k in ((64, 10_000), (2048, 4096), (2050, 77)):
        sizes = GemmSizes(4, n, n, k, triangle=True)
        traits = OperandTraits(), OperandTraits(conjugated=True)
        for one in candidates(Question(row, sizes, *traits), arch, 132):
            if one.wgmma is not None:
                assert one.wgmma.triangle
                assert one.wgmma.block_m == one.wgmma.block_n
                assert one.wgmma.conjugate_y == (one.wgmma.storage == "planar")
                assert not one.swapped
        assert choose(Question(row, sizes, *traits), arch, 132) is not None
        plan = mma_plan(row, arch, batch=4, m=n, n=n, k=k, sm_count=132, triangle=True)
        assert plan.triangle
        assert plan.block_m == plan.block_n
        assert "lower triangle" in plan.name
    assert GemmSizes(1, 300, 300, 1, triangle=True).tiles(128, 128) == 6
    assert GemmSizes(1, 300, 300, 1).tiles(128, 128) == 9


def test_a_tile_that_is_not_square_is_refused() -> None:
    tile = MmaPlan(128, 64, 16, 4, 2, 3)
    with pytest.raises(PlanError, match="tiles of a triangle must be square"):
        mma_plan(
            PRECISIONS["tf32"], arch_for(80), batch=1, m=64, n=64, k=64, sm_count=132, tile=tile,
            triangle=True,
        )  # fmt: skip


@pytest.fixture(scope="module")
def modules() -> Iterator[Any]:
    with without_device("herk.gpu_triangle") as (_, triangle):
        limit = import_module("argand.runtime.memory.workspace_limit")
        yield SimpleNamespace(triangle=triangle, limit=limit)


def blocks(modules: Any, batch: int, n: int, limit: int | None, product: int = 0) -> list[Any]:
    """Return the blocks of a call, whose products need so many bytes for each of their rows."""
    problem = herk_problem((batch, n, 9), precision=None, dtype="complex64", form="triangle")
    target = np.empty(problem.shape, np.complex64)
    found: list[Any] = []
    arrays: list[ref[Array]] = []

    class Noted(modules.triangle.Triangle):  # type: ignore[misc]
        def _product(self, products: slice, rows: slice) -> Array:
            assert not any(array() is not None for array in arrays)  # one block's at a time
            matrices = np.empty((products.stop - products.start, rows.stop - rows.start))
            arrays.append(ref(matrices))
            needed = (rows.stop - rows.start) * product
            allowed = modules.limit.allowed_workspace()
            if allowed is not None and needed > allowed:
                # A frame that an exception has, and which has the exception, is garbage.
                error = modules.limit.workspace_error("a product", needed, allowed)
                raise error
            return matrices

        def _gather(self, products: slice, rows: slice, _: Array) -> None:
            found.append((products, rows))

    with modules.limit.workspace_limit(limit):
        call = Noted(problem, np.empty((batch, n, 9), np.complex64), None, target, None)
        call.compute(slice(0, batch), slice(0, n))
    return found


@pytest.mark.parametrize(
    ("batch", "n", "limit"),
    [(1, 1, 100), (1, 1000, None), (1, 1000, 2 << 20), (1, 1000, 16 << 20), (9, 300, 1 << 20),
     (9, 300, 5 << 20), (300, 5, 10_000)],
)  # fmt: skip
@pytest.mark.parametrize("product", [0, 1000])
def test_each_row_is_in_one_block(
    modules: Any, batch: int, n: int, limit: int | None, product: int
) -> None:
    times = np.zeros((batch, n), int)
    try:
        found = blocks(modules, batch, n, limit, product)
    except modules.limit.WorkspaceError as error:
        found = blocks(modules, batch, n, error.needed, product)
    for products, rows in found:
        times[products, rows] += 1
        assert rows.stop - rows.start >= min(n, 64)
    assert (times == 1).all()
    assert len(found) == 1 or limit is not None


@pytest.mark.parametrize("limit", [None, 1 << 40])
@pytest.mark.parametrize(("n", "count"), [(4096, 4), (7000, 7)])
def test_without_a_small_limit_matrices_are_whole(
    modules: Any, n: int, count: int, limit: int | None
) -> None:
    """Some at a time, in at most 256 MiB, or one that takes more."""
    found = blocks(modules, 7, n, limit)
    assert all(rows == slice(0, n) for _, rows in found)
    assert len(found) == count


@pytest.mark.parametrize(("batch", "n"), [(1, 1000), (9, 300), (300, 5)])
@pytest.mark.parametrize("product", [0, 100, 100_000])
def test_what_is_refused_needs_what_its_error_says(
    modules: Any, batch: int, n: int, product: int
) -> None:
    with pytest.raises(modules.limit.WorkspaceError, match="form='triangle'") as error:
        blocks(modules, batch, n, 10, product)
    needed = error.value.needed
    least = min(n, 127)
    assert needed <= 8 * least * n + least * product
    for more in (0, 1, needed // 3, needed, 5 * needed):
        blocks(modules, batch, n, needed + more, product)
    with pytest.raises(modules.limit.WorkspaceError):
        blocks(modules, batch, n, needed - 1, product)
