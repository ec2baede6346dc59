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


class _LapackTimes(NamedTuple):
    """Times in us of calls of LAPACK on systems of n rows with k right-hand sides.

    The sum of ``start`` and, for each system, ``system``, ``by_square`` for each of n^2 numbers and
    ``by_side`` for each of n k.
    """

    start: float
    system: float
    by_square: float
    by_side: float

    def of(self, systems: int, n: int, columns: int) -> float:
        """Return the time of all systems with ``columns`` right-hand sides each."""
        return self.start + systems * (
            self.system + self.by_square * (n * n) + self.by_side * (n * columns)
        )


class _Times(NamedTuple):
    """Times in us of each way, fitted by least squares of relative errors.

    They fit 500 forms of 2 to 25 rows on a core of an AMD EPYC.

    Attributes:
        step_row: a row in steps over all systems.
        step_product: the arithmetic of steps, for each of n^2 (n / 6 + k) of each system.
        calls: a call for each system.
        band: one call for all systems.
    """

    step_row: float
    step_product: float
    calls: _LapackTimes
    band: _LapackTimes


_TIMES: Mapping[str, _Times] = MappingProxyType({
    "complex64": _Times(
        4.2, 8.5e-4,
        calls=_LapackTimes(2.06, 0.269, 4.6e-3, 1.14e-2),
        band=_LapackTimes(3.87, 0.0, 1.32e-2, 2.9e-2),
    ),
    "complex128": _Times(
        4.1, 1.43e-3,
        calls=_LapackTimes(1.99, 0.275, 4.8e-3, 1.17e-2),
        band=_LapackTimes(3.78, 0.0, 9.4e-3, 2.9e-2),
    ),
})  # fmt: skip

_PAIRS = _LapackTimes(4.0, 0.0, 3.3e-3, 1.41e-2)
"""Times of a band of systems of 2 rows."""


def fastest(systems: int, n: int, columns: int, dtype: str) -> Way:
    """Return the way that takes the least time."""
    times, square = _TIMES[dtype], n * n
    steps = times.step_row * n + systems * times.step_product * square * (n / 6 + columns)
    calls = times.calls.of(systems, n, columns)
    band = (times.band if n > 2 else _PAIRS).of(systems, n, columns)
    found: dict[Way, float] = {"calls": calls}
    if n <= _ROWS_IN_STEPS:
        found["steps"] = steps
    if n <= _ROWS_IN_BAND and systems * square <= _NUMBERS_IN_BAND:
        found["band"] = band
    return min(found, key=found.__getitem__)
