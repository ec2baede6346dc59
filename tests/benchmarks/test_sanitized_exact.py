"""The sanitizer's exact products and systems, on the CPU: all of them are right."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from argand.gemm.modular.moduli import FEWEST, MOST
from argand.gemm.modular.product_plan import MMA_PLANS, WGMMA_PLANS

from benchmarks.sanitize import solve as sanitized_solve
from benchmarks.sanitize.exact import OVERRIDES, TYPES, products
from tests.covers import EXHAUSTIVE


@pytest.mark.parametrize("dtype", TYPES if EXHAUSTIVE else TYPES[-1:])
def test_every_product_has_its_bits(dtype: str) -> None:
    found = dict(products(dtype, np))
    assert all(found.values())
    assert {f"{count} moduli, proved" for count in range(FEWEST, MOST + 1)} <= set(found)


def test_every_plan_and_what_large_calls_take_is_there() -> None:
    names = {name for name, _ in OVERRIDES}
    assert {plan.name for plan in (*WGMMA_PLANS, *MMA_PLANS)} < names


def test_what_overrides_replace_is_there() -> None:
    """In a module that cannot be imported without CuPy."""
    spec = find_spec("argand.gemm.modular.launch")
    assert spec is not None
    tree = ast.parse(Path(str(spec.origin)).read_text())
    imported = [x for x in tree.body if isinstance(x, ast.ImportFrom)]
    names = {alias.name for x in imported for alias in x.names}
    assert {name for _, members in OVERRIDES for name in members} <= names


@pytest.mark.parametrize("dtype", TYPES)
def test_every_system_is_solved(dtype: str) -> None:
    for name, ratio in sanitized_solve.solutions(dtype, np):
        assert ratio <= 1, name
