"""A workload's result by argand on the CPU."""

from __future__ import annotations

from typing import Any

from argand import PRECISIONS
from argand.device import cpu

from workflow.data import Staged


def computed(one: Any, precision: str = "fp64") -> tuple[Staged, Any]:
    """The staged operands of a workload, and the result of ours at a precision."""
    staged = one.stage()
    implementation = one.argand(staged, PRECISIONS[precision], cpu())
    return staged, implementation.compute(implementation.prepare(staged.operands))
