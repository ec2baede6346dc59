"""The sanitizer's calls of arrays, products and systems, on the CPU: all of them are right."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS
from argand.gemm.modular.moduli import MAX_MODULI, MIN_PRECISION_MODULI
from argand.gemm.modular.product_plan import MMA_PLANS, WGMMA_PLANS
from argand.softmax.problem import SOFTMAX_PRECISIONS

from benchmarks.sanitize import exact
from benchmarks.sanitize import solve as sanitized_solve
from benchmarks.sanitize.channelise import banks
from benchmarks.sanitize.herk import EXACT, products
from benchmarks.sanitize.hermitian import solutions
from benchmarks.sanitize.image import images
from benchmarks.sanitize.softmax import every_rounding
from benchmarks.sanitize.spectrum import estimates
from tests.covers import EXHAUSTIVE

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
