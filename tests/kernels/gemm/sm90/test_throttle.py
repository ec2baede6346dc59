"""CTA throttle of the wgmma family: for which products blocks wait for each other."""

from __future__ import annotations

import pytest
from argand import PRECISIONS
from argand.gemm.sm90.plan import WgmmaPlan
from argand.gemm.sm90.scheduler import Tiles, divide
from argand.gemm.sm90.throttle import MIN_WAVES, find_throttle

from tests.kernels.precisions import SPLIT

BLOCKS, CACHE = 132, 50 << 20
"""Multiprocessors and bytes of L2 of an H200."""


def throttle(
    precision: str, m: int, n: int, k: int, batch: int = 1, cache: int = CACHE
) -> tuple[int, int]:
    row = PRECISIONS[precision]
    plan = WgmmaPlan(2, 128, 64 // row.operand.bytes, 3, "planar")
    tiles = Tiles(-(-m // 128), -(-n // 128), batch)
    division = divide(tiles.count, BLOCKS, -(-k // plan.block_k), plan.block_k)
    return find_throttle(plan, row, tiles, division, k, cache)


def test_large_products_of_split_operands_are_throttled() -> None:
    """Every 512 k, in stages of 16 or 32 k: each of 31 waves reads 200 MB or more."""
    assert throttle("3xtf32", 8192, 8192, 8192) == (32, 8)
    assert throttle("3xfp16", 8192, 8192, 8192) == (16, 4)
    assert throttle("3xfp16", 16384, 8192, 4000) == (16, 4)


@pytest.mark.parametrize("precision", SPLIT)
def test_other_products_are_not_throttled(precision: str) -> None:
    assert 4096 * 4096 // 128**2 // BLOCKS < MIN_WAVES
    assert throttle(precision, 4096, 4096, 8192) == (0, 0)
    assert throttle(precision, 16384, 16384, 256) == (0, 0)  # operands stay in the cache


@pytest.mark.parametrize("precision", ["tf32", "fp16", "bf16"])
def test_one_term_is_not_throttled(precision: str) -> None:
    assert throttle(precision, 8192, 8192, 8192) == (0, 0)


@pytest.mark.parametrize("precision", SPLIT)
def test_a_large_cache_needs_no_throttle(precision: str) -> None:
    assert throttle(precision, 8192, 8192, 8192, cache=20 * CACHE) == (0, 0)


@pytest.mark.parametrize(("rows", "columns", "expected"), [
    (64, 64, 16 * 128 + 9 * 64), (64, 4, 128 + 4 * 64), (8, 64, 8 * 128 + 17 * 64),
    (2, 5, 2 * 128 + 5 * 64),
])  # fmt: skip
def test_operand_rows_of_a_wave(rows: int, columns: int, expected: int) -> None:
    """132 tiles of 128 x 64, or all that a product has."""
    assert Tiles(rows, columns, 1).wave_rows(132, 128, 64) == expected
