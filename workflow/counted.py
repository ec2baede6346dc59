"""Counts in sentences."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Return a count and its noun, which takes an s unless there is one: ``1 row``, ``2 rows``."""
    return f"{count} {noun}{'s' * (count != 1)}"
