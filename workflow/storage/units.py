"""Units of coordinates: by the end of a name, in whole words, and of times since a date."""

from __future__ import annotations

_ENDINGS = {
    "_hz": "Hz", "_khz": "kHz", "_mhz": "MHz", "_ghz": "GHz", "_s": "s", "_ms": "ms", "_us": "us",
    "_ns": "ns", "_m": "m", "_deg": "deg", "_rad": "rad",
}  # fmt: skip
"""Units that the end of a dataset's name may tell."""
_PREFIXES = {
    "": "", "nano": "n", "micro": "u", "milli": "m", "centi": "c", "kilo": "k", "mega": "M",
    "giga": "G",
}  # fmt: skip
_BASES = {
    "hertz": "Hz", "second": "s", "sec": "s", "metre": "m", "meter": "m", "degree": "deg",
    "radian": "rad",
}  # fmt: skip
_WORDS = {
    f"{prefix}{word}{plural}": f"{before}{unit}"
    for prefix, before in _PREFIXES.items()
    for word, unit in _BASES.items()
    for plural in ("", "s")
}


def parted(text: str) -> tuple[str, str]:
    """Return a unit by its symbol, and the date that its times count from, empty where none is.

    ``seconds since 2026-11-28 10:00:00`` is what netCDF's conventions write.
    """
    unit, _, date = text.strip().partition(" since ")
    return _WORDS.get(unit.strip().lower(), unit.strip()), date.strip()


def named(path: str) -> str:
    """Return the unit that the end of a dataset's name tells; empty where it tells none."""
    return next((unit for end, unit in _ENDINGS.items() if path.lower().endswith(end)), "")
