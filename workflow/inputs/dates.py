"""Times since a date that are too large for fp64 beside their steps, as nanoseconds since 1970."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from workflow.data import Coordinate, is_blank
from workflow.inputs.equal_steps import is_coarse

EXACT = 1 << 53
"""Integers up to this are numbers of fp64."""
_ISO = re.compile(r"-?\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?)?")
_ZONE = re.compile(r"(.*[T ]\d\d:\d\d[\d:.]*) ?([+-](?:[01]\d|2[0-3])):?([0-5]\d)")
_JULIAN = re.compile(r"the Julian date (\d{1,9})\.(\d{1,12})")
_UNIX_EPOCH = 2_440_587.5
"""The Julian date of 1970."""
_DAY = 86400 * 10**9
"""Nanoseconds of a day."""
_NANOSECONDS = {"ns": 1, "us": 1000, "ms": 10**6, "s": 10**9}


def from_the_first(found: Coordinate, date: str) -> tuple[Coordinate, str]:
    """Return times from the first of them on, and its date, where fp64 cannot tell them apart.

    Those are integers beyond fp64, and a step that was given beside a start to which it adds
    nothing. Others stay as they are. A date that is not in ISO 8601 stays, and what the first entry
    is after it is said beside it; where there is none, that alone. ``rounding`` is what a start in
    fp64 is rounded by.
    """
    values, step, rounding = found.values, found.step, 0.0
    if values.dtype.kind not in "iuf" or not values.size or is_blank(values):
        return found, date
    if values.dtype.kind in "iu":
        if max(abs(int(values.min())), abs(int(values.max()))) <= EXACT:
            return found, date
        made = (values - values.flat[0]).view(np.int64)  # modulo 2^64, so times before it too
    elif step is None or not is_coarse(values, step):
        return found, date
    else:
        made, rounding = step * np.arange(len(values)), float(np.spacing(abs(values.flat[0]))) / 2
    first = values.flat[0].item()
    try:
        date = _later(date, round(first * _NANOSECONDS[found.units]))
    except (ValueError, KeyError, OverflowError):
        date = f"{date} and {first} {found.units}".removeprefix(" and ")
    return replace(found, values=made, rounding=rounding), date


def of_texts(found: Coordinate) -> tuple[Coordinate, str]:
    """Return times that are dates in ISO 8601 as seconds since the first of them, and its date.

    Other text stays, with no date.
    """
    texts = found.values.tolist()
    counts = [_nanoseconds(text) for text in texts]
    known = [count for count in counts if count is not None]
    if not known or len(known) < len(texts):
        return found, ""
    apart = np.array([count - known[0] for count in known]) / 10**9
    return replace(found, values=apart, units="s"), texts[0]


def date_in(long_name: str) -> str:
    """Return the date that a coordinate's times count from, empty where none is said."""
    return long_name.partition(" since ")[2]


def julian_date(date: str) -> float | None:
    """Return the Julian date of a date in ISO 8601 and UTC; None for another text."""
    start = _nanoseconds(date)
    return None if start is None else _UNIX_EPOCH + start / _DAY


def seconds_between(one: str, other: str) -> float | None:
    """Return how much later the other date is, in s; None where one is neither ISO 8601 nor Julian.

    The same text is the same date, whatever it says.
    """
    if one == other:
        return 0.0
    first, last = _nanoseconds(one), _nanoseconds(other)
    return None if first is None or last is None else (last - first) / 10**9


def resolution(date: str) -> float:
    """Return half of what the last digit of a date counts, in s, where it is rounded.

    Programs round seconds to ms, us or ns and write all of the digits. Numbers of fewer digits are
    exact.
    """
    if julian := _JULIAN.fullmatch(date):
        return 0.5 * 86400 * 10.0 ** -len(julian[2])
    digits = len(_fraction(date)) if _ISO.fullmatch(_zoneless(date)) else 0
    return 0.5 * 10.0**-digits if digits >= 3 else 0.0


def _nanoseconds(date: str) -> int | None:
    """Return a date, in ISO 8601 and UTC or Julian, as ns since 1970; None for another text."""
    if julian := _JULIAN.fullmatch(date):
        fraction = int(julian[2].ljust(12, "0")) * _DAY // 10**12
        return (2 * int(julian[1]) - int(2 * _UNIX_EPOCH)) * _DAY // 2 + fraction
    text = _zoneless(date)
    if not _ISO.fullmatch(text):
        return None
    try:
        whole = np.datetime64(text.partition(".")[0], "s")
    except ValueError:  # such as a 13th month
        return None
    seconds = int(whole.astype(np.int64)) - _ahead(date)
    return seconds * 10**9 + int(_fraction(date).ljust(9, "0"))


def _fraction(date: str) -> str:
    """Return the digits after the point of a date's seconds."""
    return _zoneless(date).partition(".")[2]


def _zoneless(date: str) -> str:
    zoned = _ZONE.fullmatch(date)
    return zoned[1] if zoned else date.removesuffix(" UTC").removesuffix("Z")


def _ahead(date: str) -> int:
    """Return how far the zone of a date is ahead of UTC, in s: 7200 of +02:00."""
    zoned = _ZONE.fullmatch(date)
    if zoned is None:
        return 0
    hours = int(zoned[2])
    return 3600 * hours + (60 if zoned[2][0] == "+" else -60) * int(zoned[3])


def _later(date: str, nanoseconds: int) -> str:
    """Return a date in ISO 8601 so much later. Raises ValueError for another text."""
    start = _nanoseconds(date) if _ISO.fullmatch(_zoneless(date)) else None
    if start is None:
        raise ValueError(f"{date} is no date in ISO 8601")
    seconds, rest = divmod(start + nanoseconds, 10**9)
    return f"{np.datetime64(seconds, 's')}.{rest:09d}"
