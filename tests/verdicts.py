"""The verdict that a right result has."""

from __future__ import annotations

from typing import Any

from argand import PRECISIONS

from workflow.accuracy.assessment import PROVABLE

COARSE = [name for name, row in PRECISIONS.items() if 2 * row.u > PROVABLE]
"""Precisions of so few bits that no bound proves a digit: two operands, each off by u, make a
product off by 2 u before anything is summed."""


def is_right(accuracy: Any, precision: str) -> bool:
    """Whether a result is verified, or unproven at a precision of `COARSE`."""
    return accuracy.verified or (accuracy.verdict == "unproven" and precision in COARSE)
