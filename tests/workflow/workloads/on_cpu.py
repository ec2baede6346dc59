"""A workload's result by argand on the CPU."""

from __future__ import annotations

from typing import Any

from argand.device import cpu
from argand.precision import any_precision

from workflow.data import Staged


def result_of(one: Any, staged: Staged, precision: str = "fp64") -> Any:
    """The result of ours at a precision."""
    ours = one.argand(staged, any_precision(precision), cpu())
    return ours.compute(ours.prepare(staged.operands))


def computed(one: Any, precision: str = "fp64") -> tuple[Staged, Any]:
    """The staged operands of a workload, and the result of ours."""
    staged = one.stage()
    return staged, result_of(one, staged, precision)
