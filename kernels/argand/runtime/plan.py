"""The error of plans of all operations, and the depths of MMA instructions."""

from __future__ import annotations


class PlanError(ValueError):
    """A plan that its kernel or the architecture cannot run."""


TARGET = "sm_90a"
"""The only architecture with wgmma and setmaxnreg."""
MMA_DEPTH = {"tf32": 8, "fp16": 16, "bf16": 16}
"""mma_k, the k of one MMA instruction, by the operand formats of tensor cores."""
