"""Captures of SigMF recordings: whether the samples of all of them are at equal steps of time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

WHOLE = ("core:sample_start", "core:header_bytes", "core:global_index")
"""Keys of a capture that are whole numbers."""
_CLOCKS_APART = 1e-4
"""Part by which the clock of samples and that of dates may be apart: oscillators of cheap receivers
are off by up to 100 ppm."""
_MAX_DIGITS = 6
"""Digits of a second that Python's dates have."""


def is_whole(value: object) -> bool:
    """Return whether a value is a whole number that may count samples or bytes.

    JSON has 1.0 for 1 too, as do programs that have no whole numbers.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value < 1 << 62 and float(value).is_integer()


def fault_in(captures: Sequence[Mapping[str, Any]], offset: int, rate: float) -> str:
    """Return what keeps the samples of captures from equal steps of time; "" where nothing does.

    Args:
        captures: with the keys `WHOLE` as whole numbers, if at all.
        offset: the number of the file's first sample, from which captures count their samples.
        rate: samples a second.

    The specification has ``core:global_index`` count samples of the stream that was recorded,
    including any that the recorder lost, and ``core:datetime`` be the time of a capture's first.
    """
    starts = [int(one.get("core:sample_start", 0)) for one in captures]
    if starts and starts[0] < offset:
        return (
            f"its first capture must have a core:sample_start from core:offset {offset} on, got "
            f"{starts[0]}: it does not say when the first sample was"
        )
    for (one, begin), (other, end) in pairwise(zip(captures, starts, strict=True)):
        if end < begin:
            return f"its captures must be in the order of core:sample_start, got {begin} and {end}"
        apart = end - begin
        key = "core:global_index"
        counted = other[key] - one[key] if key in one and key in other else apart
        if counted != apart:
            return (
                f"its captures from samples {begin} and {end} on are {apart} samples apart, by "
                f"{key} {counted}: samples are missing between them, "
                "so write each capture as a recording of its own"
            )
        passed = _seconds_between(one.get("core:datetime"), other.get("core:datetime"))
        if passed is None:
            continue
        seconds, resolution = passed
        if abs(seconds - apart / rate) > resolution + 1 / rate + _CLOCKS_APART * abs(seconds):
            return (
                f"its captures from samples {begin} and {end} on are {apart / rate:.9g} s apart at "
                f"core:sample_rate {rate:.9g}, by core:datetime {seconds:.9g} s: samples are "
                "missing between them, or the rate is another; write each capture as a recording "
                "of its own"
            )
    return ""


def _seconds_between(first: object, second: object) -> tuple[float, float] | None:
    """Return the seconds from a date to another, and of the last digit of the coarser one.

    None where either is no date in ISO 8601; without a zone it is in UTC.
    """
    dates, digits = [], []
    for text in (first, second):
        try:
            date = datetime.fromisoformat(text) if isinstance(text, str) else None
        except ValueError:
            date = None
        if date is None:
            return None
        dates.append(date if date.tzinfo else date.replace(tzinfo=UTC))
        fraction = re.search(r"[.,](\d+)", str(text))
        digits.append(min(_MAX_DIGITS, len(fraction[1])) if fraction else 0)
    return (dates[1] - dates[0]).total_seconds(), 10.0 ** -min(digits)
