"""What plans of all operations share: their error, and what instructions an architecture has."""

from __future__ import annotations


class PlanError(ValueError):
    """A plan that the kernel or the architecture does not allow."""


TARGET = "sm_90a"
"""wgmma and setmaxnreg exist there only."""
MMA_DEPTH = {"tf32": 8, "fp16": 16, "bf16": 16}
"""How many k one mma.sync instruction contracts, by operand format: those that there are."""
