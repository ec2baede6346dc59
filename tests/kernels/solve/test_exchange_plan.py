"""The kernels that exchange rows, without a GPU: they compile, and their blocks fit."""

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

from tests.kernels.compiled import assert_clean


def test_kernels_compile(arch: Arch) -> None:
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
