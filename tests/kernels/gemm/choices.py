"""Candidate plans of products on Hopper, for tests of the choice among them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from argand import PRECISIONS
from argand.device import arch_for
from argand.gemm.candidates import candidates
from argand.gemm.choice import GemmChoice
from argand.gemm.heuristics import choose
from argand.gemm.question import GemmSizes, OperandTraits, Question
from argand.gemm.sm90.plan import WgmmaPlan

HOPPER = arch_for(90)
SM_COUNT = 132  # of an H200
LARGE = GemmSizes(1, 4096, 4096, 4096)
A, B = OperandTraits(k_major=True), OperandTraits(k_major=False)
"""Row-major operands."""
PACKED = OperandTraits(packed=True)


def candidates_of(
    precision: str, a: OperandTraits = A, b: OperandTraits = B, sizes: GemmSizes = LARGE
) -> list[GemmChoice]:
    return candidates(Question(PRECISIONS[precision], sizes, a, b), HOPPER, SM_COUNT)


def wgmma(found: list[GemmChoice]) -> list[tuple[GemmChoice, WgmmaPlan]]:
    return [(choice, choice.wgmma) for choice in found if choice.wgmma is not None]


def chosen(precision: str, *sizes: int, **traits: Any) -> GemmChoice:
    a, b = replace(A, **traits), replace(B, **traits)
    return choose(Question(PRECISIONS[precision], GemmSizes(*sizes), a, b), HOPPER, SM_COUNT)
