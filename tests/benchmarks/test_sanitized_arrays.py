"""The sanitizer's calls of arrays, products and systems, on the CPU: right, and of every kind."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import ARCHITECTURES
from argand.gemm.fma.plan import fma_plans
from argand.gemm.modular.moduli import MAX_MODULI, MIN_PRECISION_MODULI
from argand.gemm.modular.product_plan import MMA_PLANS, WGMMA_PLANS
from argand.gemm.sm80.tiles import MAX_BLOCK_ABSMAX_K, mma_tiles
from argand.runtime.plan import WGMMA_TARGET
from argand.softmax.problem import SOFTMAX_PRECISIONS

from benchmarks.gemm.shapes import Shape
from benchmarks.sanitize import exact
from benchmarks.sanitize import gemm as sanitized_gemm
from benchmarks.sanitize import solve as sanitized_solve
from benchmarks.sanitize.channelise import banks
from benchmarks.sanitize.gemm import SHAPES
from benchmarks.sanitize.gemm import products as gemm_products
from benchmarks.sanitize.herk import EXACT, products
from benchmarks.sanitize.hermitian import solutions
from benchmarks.sanitize.image import images
from benchmarks.sanitize.softmax import every_rounding
from benchmarks.sanitize.spectrum import estimates
from tests.covers import EXHAUSTIVE
from tests.kernels.compiled import ARCHS
from tests.kernels.gemm.sm80.mma_plans import mma_plan

SOME = tuple(PRECISIONS) if EXHAUSTIVE else ("fp32", "3xfp16")
"""A precision of one term and one of two: each operation's own tests hold the others."""
PROGRAMS: dict[Callable[[str, Any], Iterable[tuple[str, float]]], tuple[str, ...]] = {
    products: (EXACT, *SOME), images: SOME, banks: SOME, estimates: SOME,
    solutions: ("complex64", "complex128"),
}  # fmt: skip
"""Programs, and what each is given."""


@pytest.mark.parametrize(
    ("program", "choice"), [(one, choice) for one, some in PROGRAMS.items() for choice in some]
)
def test_every_call_is_within_its_bound(program: Any, choice: str) -> None:
    assert {name: ratio for name, ratio in program(choice, np) if not ratio <= 1} == {}


def test_every_rounding_of_softmax_is_within_its_bound() -> None:
    found = dict(every_rounding(np))
    rounded = {name for name in SOFTMAX_PRECISIONS if not PRECISIONS[name].exact_operands}
    assert {name.split()[0] for name in found} == rounded
    assert not [f"{name}: {reason}" for name, reason in found.items() if reason]


@pytest.mark.parametrize("dtype", exact.TYPES if EXHAUSTIVE else exact.TYPES[-1:])
def test_every_product_has_its_bits(dtype: str) -> None:
    found = dict(exact.products(dtype, np))
    assert all(found.values())
    assert {
        f"{count} moduli, proved" for count in range(MIN_PRECISION_MODULI, MAX_MODULI + 1)
    } <= set(found)


def test_every_plan_and_what_large_calls_take_is_there() -> None:
    names = {name for name, _ in exact.OVERRIDES}
    assert {plan.name for plan in (*WGMMA_PLANS, *MMA_PLANS)} < names


def test_what_overrides_replace_is_there() -> None:
    """In a module that cannot be imported without CuPy."""
    spec = find_spec("argand.gemm.modular.launch")
    assert spec is not None
    tree = ast.parse(Path(str(spec.origin)).read_text())
    imported = [x for x in tree.body if isinstance(x, ast.ImportFrom)]
    names = {alias.name for x in imported for alias in x.names}
    assert {name for _, members in exact.OVERRIDES for name in members} <= names


@pytest.mark.parametrize("dtype", exact.TYPES)
def test_every_system_is_solved(dtype: str) -> None:
    for name, ratio in sanitized_solve.solutions(dtype, np):
        assert ratio <= 1, name


@pytest.mark.parametrize("precision", PRECISIONS if EXHAUSTIVE else ["fp32", "3xfp16", "bf16"])
def test_every_product_is_within_its_bound(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sanitized_gemm, "SHAPES", (Shape(7, 5, 3), Shape(9, 4, 6, batch=2)))
    found = dict(gemm_products(PRECISIONS[precision], np))
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
