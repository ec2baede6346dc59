"""Candidate plans of the wgmma family, which its tests take one after the other by override."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from argand import PRECISIONS
from argand.gemm.candidates import candidates
from argand.gemm.choice import GemmChoice
from argand.gemm.question import GemmSizes, OperandTraits, Question


def choices(cp: Any, precision: str, sizes: GemmSizes, **traits: Any) -> Iterator[GemmChoice]:
    """Every candidate of the wgmma family: each tile, storage, role and number of slices."""
    from argand.device import gpu

    card = gpu(cp.cuda.Device().id)
    a, b = OperandTraits(**traits), OperandTraits(**({"k_major": False} | traits))
    for choice in candidates(
        Question(PRECISIONS[precision], sizes, a, b), card.require_arch(), card.sm_count
    ):
        if choice.wgmma is not None:
            yield choice


def overridden(choice: GemmChoice) -> Any:
    from argand.gemm.prepare import PLAN_OVERRIDE

    return PLAN_OVERRIDE.use(choice)


def first_choices(cp: Any, precision: str, sizes: GemmSizes, **traits: Any) -> list[GemmChoice]:
    """The largest tile of each storage and role, Y packed before and by fused packing."""
    seen: dict[Any, GemmChoice] = {}
    for choice in choices(cp, precision, sizes, **traits):
        plan = choice.wgmma
        assert plan is not None
        kind = (plan.storage, plan.fused_pack, choice.swapped, choice.split_k_slices)
        seen.setdefault(kind, choice)
    return list(seen.values())
