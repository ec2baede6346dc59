"""Times since a date that are too large for fp64 beside their steps, as nanoseconds since 1970."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np

from workflow.data import Coordinate, is_blank
from workflow.storage.equal_steps import is_coarse

EXACT = 1 << 53
"""Integers up to this are numbers of fp64."""
_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?)?")
_UNIX_EPOCH = 2_440_587.5
"""The Julian date of 1970."""
_NANOSECONDS = {"ns": 1, "us": 1000, "ms": 10**6, "s": 10**9}


def from_the_first(found: Coordinate, date: str) -> tuple[Coordinate, str]:
    """Return times from the first of them on, and its date, where fp64 cannot tell them apart.

    Those are integers beyond fp64, and a step that was given beside a start to which it adds
    nothing. Others stay as they are. A date that is not in ISO 8601 stays, and what the first entry
    is after it is said beside it; where there is none, that alone.
    """
    values, step = found.values, found.step
    if values.dtype.kind not in "iuf" or not values.size or is_blank(values):
        return found, date
    if values.dtype.kind in "iu":
        if max(abs(int(values.min())), abs(int(values.max()))) <= EXACT:
            return found, date
        made = (values - values.flat[0]).view(np.int64)  # modulo 2^64, so times before it too
    elif step is None or not is_coarse(values, step):
        return found, date
    else:
        made = step * np.arange(len(values))
    first = values.flat[0].item()
    try:
        date = _later(date, round(first * _NANOSECONDS[found.units]))
    except (ValueError, KeyError, OverflowError):
        date = f"{date} and {first} {found.units}".removeprefix(" and ")
    return replace(found, values=made), date


def date_in(long_name: str) -> str:
    """Return the date that a coordinate's times count from, empty where none is said."""
    return long_name.partition(" since ")[2]


def julian_date(date: str) -> float | None:
    """Return the Julian date of a date in ISO 8601 and UTC; None of another text."""
    start = _instant(date)
    if start is None:
        return None
    return _UNIX_EPOCH + float((start - np.datetime64(0, "us")) / np.timedelta64(1, "D"))


def same_date(one: str, other: str) -> bool:
    """Return whether two texts are the same date, in ISO 8601 written in one way or another."""
    instant = _instant(one)
    return one == other or (instant is not None and instant == _instant(other))


def _instant(date: str) -> Any:
    """Return a date in ISO 8601 and UTC as NumPy has it; None of another text."""
    text = date.removesuffix(" UTC").removesuffix("Z")
    if not _ISO.fullmatch(text):
        return None
    try:
        found = np.datetime64(text)
    except ValueError:  # such as a 13th month
        return None
    digits = len(text.partition(".")[2])
    return found.astype("datetime64[ns]" if digits > 6 else "datetime64[us]")


def _later(date: str, nanoseconds: int) -> str:
    """Return a date in ISO 8601 so much later. Raises ValueError for another text.

    NumPy's nanoseconds reach from 1677 to 2262, and beyond they begin again without an error.
    """
    start = np.datetime64(date.removesuffix("Z"))
    whole = start.astype("datetime64[s]")
    fraction = int((start - whole) / np.timedelta64(1, "ns"))
    seconds, rest = divmod(nanoseconds + fraction, 10**9)
    return f"{np.datetime64(int(whole.astype(np.int64)) + seconds, 's')}.{rest:09d}"
