"""The choice of the way in which the CPU solves several Hermitian systems, by estimated times."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

Way = Literal["steps", "calls", "band"]
"""Steps over all systems, a call of LAPACK for each, or one banded system."""
_ROWS_IN_STEPS, _ROWS_IN_BAND, _NUMBERS_IN_BAND = 24, 8, 1 << 16
"""Most rows of a system in steps and in a band, and most numbers of a band's matrices: more leave a
core's cache."""


class _Times(NamedTuple):
    """Times in us of systems of n rows with k right-hand sides.

    They fit 1480 forms of 2 to 32 rows on a core of an Intel Xeon (Ice Lake), by least
    squares of relative errors. A band's are 1.1 times that: of 150 forms on an Emerald Rapids it
    takes 1.3 times as much beside the others.

    Attributes:
        steps: of all; for each row; for n^2 (n / 6 + k) and for n (n + 2 k) of each system.
        calls: of all; of each system; for n^2, n^3 and n k of each system.
        band: of all; for n^2 and n k of each system.
    """

    steps: tuple[float, float, float, float]
    calls: tuple[float, float, float, float, float]
    band: tuple[float, float, float]


_TIMES: Mapping[str, _Times] = MappingProxyType({
    "complex64": _Times(
        (31, 13, 1.35e-3, 2.5e-3), (16, 1.5, 4.4e-3, 9e-5, 2.3e-2), (14, 3.0e-2, 5.4e-2)
    ),
    "complex128": _Times(
        (6, 15, 4.0e-3, 3.5e-4), (13, 0.83, 1.3e-2, 0, 2.6e-2), (11, 2.1e-2, 4.0e-2)
    ),
})  # fmt: skip


def fastest(systems: int, n: int, columns: int, dtype: str, shares: int) -> Way:
    """Return which way takes the least time, steps on so many cores, the others on one."""
    times, square, sides = _TIMES[dtype], n * n, n * columns
    start, row, arithmetic, copies = times.steps
    work = arithmetic * square * (n / 6 + columns) + copies * (square + 2 * sides)
    steps = start + row * n + systems * work / shares
    start, call, by_square, by_cube, by_side = times.calls
    calls = start + systems * (call + by_square * square + by_cube * n * square + by_side * sides)
    start, by_square, by_side = times.band
    band = start + systems * (by_square * square + by_side * sides)
    found: dict[Way, float] = {"calls": calls}
    if n <= _ROWS_IN_STEPS:
        found["steps"] = steps
    if n <= _ROWS_IN_BAND and systems * square <= _NUMBERS_IN_BAND:
        found["band"] = band
    return min(found, key=found.__getitem__)
