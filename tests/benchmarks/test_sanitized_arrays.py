"""The sanitizer's calls of arrays, on the CPU: all of them are right."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS
from argand.softmax.problem import SOFTMAX_PRECISIONS

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
