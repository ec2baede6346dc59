"""Units of coordinates: by the end of a name, in whole words, of times since a date, converted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from workflow.config.axis_names import operand_axis
from workflow.files.input_error import InputError

Array = npt.NDArray[Any]

FACTORS = {
    "Hz": {
        "Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9, "THz": 1e12, "mHz": 1e-3, "1/min": 1 / 60,
        "1/h": 1 / 3600, "1/d": 1 / 86400,
    },
    "s": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0, "d": 86400.0},
    "m": {"m": 1.0, "km": 1e3, "cm": 1e-2, "mm": 1e-3},
}  # fmt: skip
"""Size in Hz, s and m of each unit that converts to them."""
BASES = {
    "frequency": "Hz", "time": "s", "integration": "s", "integration_time": "s", "east": "m",
    "north": "m", "up": "m",
}  # fmt: skip
"""The units that coordinates are computed with and written to UVH5 files in."""

OF_SAMPLES = "from frequency 0 of the samples"
OF_REAL = "which are real"
"""Words for such samples where frequency 0 is an edge of their band."""
OF_UPPER = "the upper half"
"""Beginning of the words for frequencies in the upper half of an axis that have another sign."""
OF_CARRIER = "from the carrier"
OF_TUNED = "less the one that was tuned to"
OFFSETS = (OF_SAMPLES, OF_CARRIER, OF_TUNED)
"""Parts of the long names of frequencies that are offsets from others."""
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
_OTHERS = {
    "minute": "min", "minutes": "min", "mins": "min", "hour": "h", "hours": "h", "hr": "h",
    "hrs": "h", "day": "d", "days": "d", "msec": "ms", "usec": "us", "nsec": "ns", "hz": "Hz",
    "khz": "kHz", "mhz": "MHz", "ghz": "GHz", "thz": "THz", "\u00b5s": "us", "\u03bcs": "us",
}  # fmt: skip
_WORDS = {
    f"{prefix}{word}{plural}": f"{before}{unit}"
    for prefix, before in _PREFIXES.items()
    for word, unit in _BASES.items()
    for plural in ("", "s")
} | _OTHERS
_EPOCHS = {
    "MJD": "d since 1858-11-17T00:00:00", "JD": "d since -4713-11-24T12:00:00",
}  # fmt: skip
"""Days that astronomers count."""
_ROOT = re.compile(r"sqrt\((?P<below>[^()]+)\)|(?P<of>[A-Za-z]+)(?:\^|\*\*)(?:0\.5|\(1/2\))")
"""A root of a unit, such as sqrt(Jy), Jy^0.5 and Jy**(1/2)."""
_NONE = ("", "1", "dimensionless")
"""Texts that files give as the unit of a number that has none."""
_EXACT = {unit for units in FACTORS.values() for unit in units}


def convertible(name: str) -> list[str]:
    """Return the units that a coordinate of `BASES` may have."""
    return list(FACTORS[BASES[name]])


def check_quantity(key: str, name: str, units: str) -> None:
    """Raise InputError where a coordinate of `BASES` has the unit of another quantity.

    A unit that none of them has, such as a count of channels, is let through.
    """
    base = BASES.get(operand_axis(name))
    if base and any(units in known for other, known in FACTORS.items() if other != base):
        raise InputError(f"{key} must be in one of {list(FACTORS[base])}, got {units!r}")


def is_same_quantity(one: str, other: str) -> bool:
    """Return whether two units convert, or ``one`` counts samples of a rate that is not known."""
    if one == other or not one or any({one, other} <= set(known) for known in FACTORS.values()):
        return True
    return one == "cycles/sample" and (other in FACTORS["Hz"] or other.startswith("1/"))


def check_place(key: str, axis: str, own: str, units: str) -> None:
    """Raise InputError where its place makes an axis one of another quantity, as bins times."""
    try:
        check_quantity("it", own, units)
    except InputError as error:
        raise InputError(
            f"{key} has {axis!r}, which by its place is {own!r}, but {error}; name all axes in "
            "input.axes"
        ) from None


def in_base(name: str, values: Array, units: str) -> Array:
    """Return the values of a coordinate of `BASES` in its unit there, of one that converts."""
    return np.asarray(values) * FACTORS[BASES[name]][units]


def check_arrived(key: str, hertz: Array, long_name: str) -> None:
    """Raise InputError for frequencies that are not those of waves but offsets from others.

    Those are below 0 Hz, or their ``long_name`` says so (`OFFSETS`), or that some stand for others
    below 0 (`OF_UPPER`). Phases of directions by them would point elsewhere.
    """
    if hertz.min(initial=0) >= 0 and not any(text in long_name for text in (*OFFSETS, OF_UPPER)):
        return
    hint = (
        "where these are offsets from a carrier, `centre_hz` of the filter bank adds it, or give "
        "the frequencies themselves"
    )
    if OF_UPPER in long_name:
        hint = "take those of the lower half by input.select, from the second on"
    said = f" ({long_name})" if long_name else ""
    raise InputError(
        f"{key} must be those of waves as they arrive, from 0 Hz on, got {hertz.min():.10g} to "
        f"{hertz.max():.10g} Hz{said}; {hint}"
    )


def parted(text: str) -> tuple[str, str]:
    """Return a unit by its symbol, and the date that its times count from, empty where none is.

    ``seconds since 2026-11-28 10:00:00`` is what netCDF's conventions write, and ``MJD`` days since
    1858.
    """
    text = _EPOCHS.get(text.strip().upper(), text)
    unit, _, date = text.strip().partition(" since ")
    unit = unit.strip()
    # A symbol as it is written: mHz is no MHz, which mhz is.
    return unit if unit in _EXACT else _WORDS.get(unit.lower(), unit), date.strip()


def dated(text: str, calendar: str) -> str:
    """Return a unit with the calendar of its date, as netCDF gives it, where it is not a usual one.

    Such a date is kept as text, and nothing is computed of it.
    """
    usual = calendar.lower() in ("", "standard", "gregorian", "proleptic_gregorian", "utc")
    return text if usual or " since " not in text else f"{text} in the calendar {calendar}"


def named(path: str) -> str:
    """Return the unit that the end of a dataset's name tells; empty where it tells none."""
    return next((unit for end, unit in _ENDINGS.items() if path.lower().endswith(end)), "")


def times(units: Mapping[str, str], names: Sequence[str]) -> str:
    """Return the unit of the product of operands; empty where none of them has one."""
    known = [unit for name in names if (unit := units.get(name, "")) not in _NONE]
    if len(known) == 2 and known[0] == known[1]:
        return squared(known[0])
    return known[0] if len(known) == 1 else " ".join(map(_whole, known))


def squared(unit: str) -> str:
    """Return the unit of a power of values in ``unit``; empty where they have none.

    A root of a unit, which calibrated voltages have, gives that unit: sqrt(Jy) gives Jy.
    """
    if (root := _ROOT.fullmatch(unit)) is not None:
        return str(root["of"] or root["below"])
    whole = unit if unit.isalpha() else f"({unit})"  # also of s-1 and m2
    return "" if unit in _NONE else f"{whole}^2"


def power_units(samples: str, frequency: str, *, density: bool) -> str:
    """Return the units of |X|^2 of samples, over those of frequency where it is a density."""
    square = squared(samples)
    if not density or not frequency:
        return square
    below = f"({frequency})" if "/" in frequency else frequency
    return f"{square or '1'}/{below}"


def over(units: Mapping[str, str], dividend: str, divisor: str) -> str:
    """Return the unit of one operand over that of another; empty where neither has one."""
    above, below = units.get(dividend, ""), units.get(divisor, "")
    if below in _NONE:
        return above
    return f"{'1' if above in _NONE else _whole(above)}/{_whole(below)}"


def _whole(unit: str) -> str:
    return f"({unit})" if {*unit} & {*" /*.(\u00b7\u22c5"} else unit
