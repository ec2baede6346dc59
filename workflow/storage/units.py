"""Units of coordinates: by the end of a name, in whole words, and of times since a date."""

from __future__ import annotations

_ENDINGS = {
    "_hz": "Hz", "_khz": "kHz", "_mhz": "MHz", "_ghz": "GHz", "_s": "s", "_ms": "ms", "_us": "us",
    "_ns": "ns", "_m": "m", "_deg": "deg", "_rad": "rad",
}  # fmt: skip
"""Units that the end of a dataset's name may tell."""
_WORDS = {
    "hertz": "Hz", "kilohertz": "kHz", "megahertz": "MHz", "gigahertz": "GHz", "sec": "s",
    "second": "s", "seconds": "s", "millisecond": "ms", "milliseconds": "ms", "microsecond": "us",
    "microseconds": "us", "nanosecond": "ns", "nanoseconds": "ns", "metre": "m", "metres": "m",
    "meter": "m", "meters": "m", "kilometer": "km", "kilometers": "km", "degree": "deg",
    "degrees": "deg", "radian": "rad", "radians": "rad",
}  # fmt: skip


def parted(text: str) -> tuple[str, str]:
    """Return a unit by its symbol, and the date that its times count from, empty where none is.

    ``seconds since 2026-11-28 10:00:00`` is what netCDF's conventions write.
    """
    unit, _, date = text.strip().partition(" since ")
    return _WORDS.get(unit.strip().lower(), unit.strip()), date.strip()


def named(path: str) -> str:
    """Return the unit that the end of a dataset's name tells; empty where it tells none."""
    return next((unit for end, unit in _ENDINGS.items() if path.lower().endswith(end)), "")
