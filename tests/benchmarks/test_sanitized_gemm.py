"""The sanitizer's products, on the CPU: every call is right and every kind of call is there."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import ARCHITECTURES
from argand.gemm.fma.plan import fma_plans
from argand.gemm.sm80.tiles import MAX_BLOCK_ABSMAX_K, mma_tiles
from argand.runtime.plan import WGMMA_TARGET

from benchmarks.gemm.shapes import Shape
from benchmarks.sanitize import gemm as sanitized_gemm
from benchmarks.sanitize.gemm import SHAPES, products
from tests.covers import EXHAUSTIVE
from tests.kernels.compiled import ARCHS
from tests.kernels.gemm.sm80.mma_plans import mma_plan


@pytest.mark.parametrize("precision", PRECISIONS if EXHAUSTIVE else ["fp32", "3xfp16", "bf16"])
def test_every_product_is_within_its_bound(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sanitized_gemm, "SHAPES", (Shape(7, 5, 3), Shape(9, 4, 6, batch=2)))
    found = dict(products(PRECISIONS[precision], np))
    assert {name for name in found if "7x5x3" in name} >= {
        *(f"gemm 7x5x3 {a}{b}" for a in "NTC" for b in "NTC"), "gemm 7x5x3 packed",
    }  # fmt: skip
    assert ("gemm 7x5x3 complex-half" in found) == (precision in ("fp16", "bf16"))
    for name, accuracy in found.items():
        assert accuracy.verified, f"{name}: {accuracy.reason}"


def test_shapes_are_ragged() -> None:
    assert any(shape.batch > 1 for shape in SHAPES)
    assert any(1 in (shape.m, shape.n) for shape in SHAPES)
    assert sum(shape.k % 8 != 0 for shape in SHAPES) >= 4


def test_a_shape_is_of_odd_pitches_and_one_of_a_short_k() -> None:
    odd = [shape for shape in sanitized_gemm.HOPPER_SHAPES if shape.n % 2 and shape.k % 2]
    assert any(shape.k > 1024 for shape in odd)
    for row in (x for x in PRECISIONS.values() if not x.exact_operands):
        plans = fma_plans(row, sanitized_gemm.SHORT.k)
        assert bool(plans) != row.scaled
        for plan in plans:
            assert sanitized_gemm.SHORT.m % plan.block_m
            assert sanitized_gemm.SHORT.n > plan.block_n


def test_shapes_of_tiles_are_ragged_and_of_both_ways_to_scale() -> None:
    shapes = [shape for shape, *_ in sanitized_gemm.TILED]
    depths = [shape.k for shape in shapes]
    assert min(depths) <= MAX_BLOCK_ABSMAX_K < max(depths)
    tiles = mma_tiles(PRECISIONS["tf32"], ARCHITECTURES[0])
    largest = max(max(tile.block_m, tile.block_n) for tile in tiles)
    assert any(min(s.m, s.n) > largest for s in shapes)
    assert all(s.m % 16 and s.n % 8 for s in shapes)


@pytest.mark.parametrize("precision", ["tf32", "3xtf32", "bf16"])
def test_every_copy_of_a_known_k_is_walked(precision: str) -> None:
    """A known k that is cut is walked, and one that is not cut, whose first k-tile is full."""
    row, found = PRECISIONS[precision], set()
    mma_k = row.operand.mma_k
    tiles = mma_tiles(row, ARCHITECTURES[0])
    for (shape, op_a, op_b), tile, cluster in product(sanitized_gemm.TILED, tiles, (1, 2)):
        plan = mma_plan(
            row, ARCHS[WGMMA_TARGET], batch=shape.batch, m=shape.m, n=shape.n, k=shape.k,
            sm_count=132, a_k_major=op_a == "N", b_k_major=op_b != "N",
            vector=2 - shape.n % 2, tile=replace(tile, cluster=cluster),
        )  # fmt: skip
        if plan.whole_k and (plan.cut or plan.block_k <= plan.whole_k - mma_k):
            found |= {(plan.cut, plan.vector, major) for major in (plan.a_k_major, plan.b_k_major)}
    assert found >= {(cut, *copies) for cut in (False, True) for copies in ((1, True), (2, False))}
