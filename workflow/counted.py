"""Counts, times and lists in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def counted(count: int, noun: str) -> str:
    """Return a count and its noun, which takes an s unless there is one: ``1 row``, ``2 rows``."""
    return f"{count} {noun}{'s' * (count != 1)}"


def in_time_units(us: float) -> str:
    """Return microseconds to three digits, in the unit with up to three digits before the point."""
    for unit, size in (("s", 1e6), ("ms", 1e3), ("µs", 1.0)):
        if us >= 0.9995 * size:
            found = us / size
            digits = f"{found:#.3g}".rstrip(".") if found < 999.5 else f"{found:.0f}"
            return f"{digits} {unit}"
    return f"{1e3 * us:#.3g}".rstrip(".") + " ns"


def listed(values: Sequence[object], most: int = 8) -> str:
    """Return the first values as a list, and that there are more than ``most`` where there are."""
    return f"{list(values[:most])}{' and so on' * (len(values) > most)}"
