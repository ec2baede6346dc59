"""Times that count from a date in integers too large for fp64, such as nanoseconds since 1970."""

from __future__ import annotations

import numpy as np

from workflow.data import Array, is_blank

EXACT = 1 << 53
"""Integers up to this are numbers of fp64."""
_NANOSECONDS = {"ns": 1, "us": 1000, "ms": 10**6, "s": 10**9}


def from_the_first(values: Array, units: str, date: str) -> tuple[Array, str]:
    """Return times from the first of them on, and its date, where fp64 cannot hold the integers.

    The same values and date otherwise. A date that is not in ISO 8601 stays, and what the first
    entry is after it is said beside it.
    """
    if values.dtype.kind != "i" or not values.size or is_blank(values):
        return values, date
    if max(abs(int(values.min())), abs(int(values.max()))) <= EXACT:
        return values, date
    first = int(values.flat[0])
    try:
        date = _later(date, first * _NANOSECONDS[units])
    except (ValueError, KeyError, OverflowError):
        date = f"{date} and {first} {units}"
    return values - first, date


def _later(date: str, nanoseconds: int) -> str:
    """Return a date in ISO 8601 so much later. Raises ValueError for another text.

    NumPy's nanoseconds reach from 1677 to 2262, and beyond they begin anew without an error.
    """
    start = np.datetime64(date.removesuffix("Z"))
    whole = start.astype("datetime64[s]")
    fraction = int((start - whole) / np.timedelta64(1, "ns"))
    seconds, rest = divmod(nanoseconds + fraction, 10**9)
    return f"{np.datetime64(int(whole.astype(np.int64)) + seconds, 's')}.{rest:09d}"
