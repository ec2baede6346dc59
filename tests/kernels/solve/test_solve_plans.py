"""Kernels of dense systems, without a GPU: they compile, and blocks fit and divide the matrix."""

from __future__ import annotations

import pytest
from argand.device import Arch
from argand.runtime.complex_types import ITEM
from argand.solve.exchange_plan import (
    MOVE_KERNEL,
    ORDER_KERNEL,
    move_source,
    moved_columns,
    order_bytes,
    order_source,
)
from argand.solve.whole_plan import (
    COPY,
    MEASURE,
    PRODUCT,
    PRODUCT_TILE,
    UPPER,
    copy_blocks,
    product_plan,
    upper_columns,
    upper_grid,
)

from tests.covers import EXHAUSTIVE
from tests.kernels.compiled import assert_clean


def ends(*columns: int) -> tuple[int, ...]:
    """The numbers of columns to compile for: in the short run the smallest and the largest."""
    return columns if EXHAUSTIVE else (columns[0], columns[-1])


@pytest.mark.parametrize(("dtype", "working"), [
    ("complex64", "complex64"), ("complex64", "complex128"), ("complex128", "complex128"),
])  # fmt: skip
def test_kernels_compile(arch: Arch, dtype: str, working: str) -> None:
    assert_clean(COPY.source(dtype, working), arch.target, COPY.name)
    for columns in ends(1, 2, 4, 8, 16):
        source = PRODUCT.source(dtype, working, columns=columns)
        assert_clean(source, arch.target, PRODUCT.name)
    assert_clean(MEASURE.source(dtype, working), arch.target, MEASURE.name)


@pytest.mark.parametrize("dtype", ITEM)
def test_back_substitution_compiles(arch: Arch, dtype: str) -> None:
    for columns in ends(1, 2, 4):
        assert_clean(UPPER.source(dtype, columns=columns), arch.target, UPPER.name)


@pytest.mark.each_value
@pytest.mark.parametrize("columns", [1, 2, 3, 16, 17, 64, 1000])
@pytest.mark.parametrize("n", [1, 31, 64, 65, 1000, 4096, 8192])
def test_blocks_divide_the_matrix(n: int, columns: int) -> None:
    plan = product_plan(n, columns, 132)
    assert plan.columns in (1, 2, 4, 8, 16)
    assert plan.width % PRODUCT_TILE == 0
    assert (plan.splits - 1) * plan.width < n <= plan.splits * plan.width
    rows, of_x = -(-n // PRODUCT_TILE), -(-columns // plan.columns)
    assert plan.blocks == rows * of_x * plan.splits
    assert plan.splits == 1 or plan.width >= 2 * PRODUCT_TILE
    assert plan.splits == 1 or rows * of_x * (plan.splits - 1) < 4 * 132


def test_grids() -> None:
    assert [upper_columns(columns) for columns in (1, 2, 3, 4, 5, 64)] == [1, 2, 4, 4, 4, 4]
    assert upper_grid(1, 1) == (1, 2)
    assert upper_grid(65, 2) == (2, 2)
    assert upper_grid(4096, 9) == (192, 4)
    assert copy_blocks(1, 1) == 1
    assert copy_blocks(64, 1) == 6


def test_kernels_that_exchange_rows_compile(arch: Arch) -> None:
    assert_clean(order_source(), arch.target, ORDER_KERNEL)
    for dtype in ITEM:
        assert_clean(move_source(dtype), arch.target, MOVE_KERNEL)


@pytest.mark.parametrize("dtype", ITEM)
def test_blocks_fit_shared_memory(arch: Arch, dtype: str) -> None:
    assert moved_columns(2, dtype, arch) * ITEM[dtype] == 128
    # Three blocks of a panel of 512 columns on a multiprocessor.
    assert 3 * 1024 * moved_columns(1024, dtype, arch) * ITEM[dtype] <= 227 << 10
    for moves in range(1, 40_000, 97):
        columns = moved_columns(moves, dtype, arch)
        assert columns & (columns - 1) == 0
        assert moves * columns * ITEM[dtype] <= arch.shared_bytes
        assert columns or moves * ITEM[dtype] > arch.shared_bytes


def test_rows_that_do_not_fit_have_memory_elsewhere(arch: Arch) -> None:
    most = arch.shared_bytes // 4
    assert order_bytes(most - 512, 512, arch) == (4 * most, True)
    assert order_bytes(most - 511, 512, arch) == (4 * 512, False)
