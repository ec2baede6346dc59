"""Positions, frequencies and directions of `argand.image`: read as float64, and checked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from argand.checks import refuse_misaligned
from argand.device import is_cuda_array
from argand.image.problem import MAX_TURNS, SPEED_OF_LIGHT
from argand.runtime.cpu.threads import ONE_CORE_DOT, ONE_CORE_VECTOR

Array = np.ndarray[Any, np.dtype[np.float64]]
LONGEST_SQUARE = 1 + 1e-12
"""Largest |direction|^2: 1, and what rounding of unit vectors leaves."""
_ONES = np.ones(3)


def read_positions(
    positions: Any, frequencies: Any, antennas: int, channels: int
) -> tuple[Array, Array]:
    """Return positions (antennas, 3) and frequencies (channels,), on the host, checked."""
    x = as_places(_numbers(positions, "positions", antennas, np))
    f: Array = _typed(frequencies, "frequencies")
    if f.shape != (channels,):
        raise ValueError(f"frequencies must have shape ({channels} channels,), got {f.shape}")
    require_places(x, f)
    return x, f


def require_places(x: Array, f: Array) -> None:
    """Raise ValueError for frequencies that are no positive numbers and positions too far away."""
    highest = 0.0
    for one in f.tolist():
        if not 0 < one < math.inf:
            raise ValueError("frequencies must be finite and positive, in Hz")
        if one > highest:
            highest = one
    # The centre is no farther from the origin than twice the farthest antenna.
    distance = math.sqrt(np.vdot(x, x)) if x.size <= ONE_CORE_DOT else math.inf
    if not 3 * distance * highest <= MAX_TURNS * SPEED_OF_LIGHT:
        _require_near(x, highest)


def as_places(x: Array) -> Array:
    """Return positions (antenna, 2 or 3) of float64 as vectors of three numbers."""
    return x if x.shape[1] == 3 else np.column_stack([x, np.zeros(len(x))])


def as_float64(x: Any) -> Array:
    """Return an array of NumPy's as a contiguous one of float64."""
    return np.ascontiguousarray(x, np.float64)


def read_directions(given: Any, arrays: Any) -> Any:
    """Return directions as given, (direction, 2 or 3), on the device of ``arrays``."""
    return _numbers(given, "directions", None, arrays)


def unit_vectors(s: Any, arrays: Any) -> Any:
    """Return unit vectors (direction, 3), or shorter ones, of read directions that it checks."""
    length = _squared_length(s, arrays)
    if len(s):
        # NumPy finds the place of the largest number, or of NaN, in less time than the number.
        longest = length[length.argmax()] if arrays is np else length.max()
        if not longest <= LONGEST_SQUARE:
            _refuse_directions(s, length, arrays)
    if s.shape[1] == 2:
        s = arrays.column_stack([s, arrays.sqrt(arrays.maximum(0.0, 1 - length))])
    return s


def _squared_length(s: Any, arrays: Any) -> Any:
    """Return l^2 + m^2 (direction,), or with n^2, of read directions."""
    if arrays is np and s.size <= ONE_CORE_VECTOR:
        return (s * s).dot(_ONES[: s.shape[1]])  # on one core less time than NumPy's sums
    squares = s.T * s.T  # numbers of a row are added in a loop for each
    length = squares[0] + squares[1]
    if len(squares) == 3:
        length += squares[2]
    return length


def _require_near(x: Array, highest: float) -> None:
    """Raise ValueError for positions that are not finite or too far from the array's centre.

    ``highest`` is the highest frequency, which tells how far that is, 0 where there is none.
    """
    if not np.isfinite(x).all():
        raise ValueError("positions must be finite metres")
    with np.errstate(over="ignore"):  # an infinite distance is refused like any other
        turns = float(np.sqrt((centred(x) ** 2).sum(axis=1).max(initial=0)) * highest)
    turns /= SPEED_OF_LIGHT
    if not turns <= MAX_TURNS:
        raise ValueError(
            f"positions must be within 2^20 wavelengths of the array's centre, in metres, with "
            f"frequencies in Hz, got one at {turns:.3g} wavelengths"
        )


def centred(x: Array) -> Array:
    """Return positions about their centre: a common shift changes no power."""
    if not len(x):
        return x
    centre: Array = np.minimum.reduce(x, 0) / 2 + np.maximum.reduce(x, 0) / 2
    return x - centre


def _refuse_directions(s: Any, length: Any, arrays: Any) -> None:
    """Raise ValueError where one of the directions is not finite or too long."""
    if not arrays.isfinite(s).all():
        raise ValueError("directions must be finite direction cosines")
    worst = int(length.argmax())
    raise ValueError(
        f"directions must not be longer than 1 (below the horizon l^2 + m^2 > 1), but "
        f"directions[{worst}] is {s[worst].tolist()}"
    )


def _numbers(given: Any, name: str, rows: int | None, arrays: Any) -> Any:
    """Return an array of real numbers, (rows, 2 or 3)."""
    values = _typed(given, name, arrays)
    if values.ndim != 2 or values.shape[1] not in (2, 3) or rows not in (None, len(values)):
        shape = "(direction, 2 or 3)" if rows is None else f"({rows} antennas, 2 or 3)"
        raise ValueError(f"{name} must have shape {shape}, got {values.shape}")
    return values


def _typed(given: Any, name: str, arrays: Any = np) -> Any:
    if type(given) is np.ndarray and given.dtype == np.float64 and given.flags.c_contiguous:
        return given
    refuse_misaligned(name, given)
    values = given.get() if arrays is np and is_cuda_array(given) else arrays.asarray(given)
    if values.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be real numbers, got {values.dtype}")
    return arrays.ascontiguousarray(values, np.float64)
