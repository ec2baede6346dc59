"""Counts and lists in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def counted(count: int, noun: str) -> str:
    """Return a count and its noun, which takes an s unless there is one: ``1 row``, ``2 rows``."""
    return f"{count} {noun}{'s' * (count != 1)}"


def listed(values: Sequence[object], most: int = 8) -> str:
    """Return the first values as a list, and that there are more than ``most`` where there are."""
    return f"{list(values[:most])}{' and so on' * (len(values) > most)}"
