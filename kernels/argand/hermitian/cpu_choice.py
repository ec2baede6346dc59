"""The choice of the way in which the CPU solves several Hermitian systems, by estimated times."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

Way = Literal["steps", "calls", "band"]
"""Steps over all systems, a call of LAPACK for each, or one banded system."""
_ROWS_IN_STEPS = 24
"""Most rows of a system in steps."""
_ROWS_IN_BAND = 8
"""Most rows of a system in a band."""
_NUMBERS_IN_BAND = 1 << 16
"""Most numbers of a band's matrices: more leave a core's cache."""


class _Times(NamedTuple):
    """Times in us of systems of n rows with k right-hand sides.

    They fit 500 forms of 2 to 25 rows on a core of an AMD EPYC, by least squares of relative
    errors.

    Attributes:
        steps: each row; n^2 (n / 6 + k) of each system.
        calls: all systems; each system; n^2 and n k of each system.
        band: all systems; n^2 and n k of each system.
    """

    steps: tuple[float, float]
    calls: tuple[float, float, float, float]
    band: tuple[float, float, float]


_TIMES: Mapping[str, _Times] = MappingProxyType({
    "complex64": _Times(
        (4.2, 8.5e-4), (2.06, 0.269, 4.6e-3, 1.14e-2), (3.87, 1.32e-2, 2.9e-2)
    ),
    "complex128": _Times(
        (4.1, 1.43e-3), (1.99, 0.275, 4.8e-3, 1.17e-2), (3.78, 9.4e-3, 2.9e-2)
    ),
})  # fmt: skip

_PAIRS = 4.0, 3.3e-3, 1.41e-2
"""Times as `_Times.band`, of systems of 2 rows."""


def fastest(systems: int, n: int, columns: int, dtype: str) -> Way:
    """Return the way that takes the least time."""
    times, square, sides = _TIMES[dtype], n * n, n * columns
    row, arithmetic = times.steps
    steps = row * n + systems * arithmetic * square * (n / 6 + columns)
    start, call, by_square, by_side = times.calls
    calls = start + systems * (call + by_square * square + by_side * sides)
    start, by_square, by_side = times.band if n > 2 else _PAIRS
    band = start + systems * (by_square * square + by_side * sides)
    found: dict[Way, float] = {"calls": calls}
    if n <= _ROWS_IN_STEPS:
        found["steps"] = steps
    if n <= _ROWS_IN_BAND and systems * square <= _NUMBERS_IN_BAND:
        found["band"] = band
    return min(found, key=found.__getitem__)
