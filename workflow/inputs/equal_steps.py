"""Coordinates that a study gives itself, and the steps of those that have equal ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from workflow.config.coordinate import ListedCoordinate, RegularCoordinate
from workflow.counted import counted
from workflow.data import MAX_CHECKED, Array, Coordinate, blank, is_blank
from workflow.files.input_error import InputError
from workflow.inputs.selections import PickedAxis

OFF_STEP = 1e-3
"""Fraction of a step that an entry may be off equal steps: at the highest frequency it then is
wrong by at most pi times as much of itself, 0.3 %."""
_FIRST = 1 << 16
"""Values whose steps tell the usual one."""


def whole_axis(length: int) -> PickedAxis:
    """Return the selection of all entries of an axis."""
    return PickedAxis(slice(0, length, 1))


def given_coordinate(
    key: str, of: RegularCoordinate | ListedCoordinate | Sequence[float | str], length: int,
    taken: PickedAxis, *, check: bool,
) -> Coordinate:  # fmt: skip
    """Return the coordinate that a config gives an axis of ``length``, at the entries ``taken``.

    Raises InputError for another number of values than entries, and for values beyond any number.
    """
    if isinstance(of, RegularCoordinate):
        step, unit = of.distance
        return regular(key, of.start, step, unit, taken, check=check)
    listed = of.values if isinstance(of, ListedCoordinate) else of
    unit = (of.units if isinstance(of, ListedCoordinate) else "") or ""
    if len(listed) != length:
        raise InputError(f"{key} must have {counted(length, 'value')}, got {len(listed)}")
    text = any(isinstance(value, str) for value in listed)
    values = np.array(list(map(_name, listed)) if text else listed)[taken.indices]
    if not text and not np.all(np.isfinite(values)):
        raise InputError(f"{key}: its values must be finite numbers")
    return Coordinate(values, unit)


def _name(value: float | str) -> str:
    """Return a name, of a number among names as a study has it: 3 and not 3.0."""
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if whole else value)


def regular(
    key: str, start: float, step: float, units: str, taken: PickedAxis, *, check: bool
) -> Coordinate:
    """Return start + n step at the entries ``taken`` of an axis; raises InputError for infinity.

    With ``check`` there are no values where they are many (`blank`): a check of a study takes no
    memory for each sample. The step is kept beside them.
    """
    entries = taken.entries
    ends = [start + step * n for n in (*entries[:1], *entries[-1:])]
    if not np.all(np.isfinite(ends)):
        raise InputError(
            f"{key}: its values must be finite numbers, got {ends[0]:g} to {ends[1]:g}"
        )
    apart = taken.apart(step)
    if check and len(entries) > MAX_CHECKED:
        return Coordinate(blank((len(entries),), np.float64), units, step=apart)
    values = np.asarray(taken.indices, np.float64)
    values *= step
    values += start
    return Coordinate(values, units, step=apart)


def step_of(coordinate: Coordinate, key: str) -> float:
    """Return the step of a coordinate of equal steps.

    Raises InputError where they are not equal, beyond the rounding of fp64, or so small that their
    inverse is infinite.
    """
    if coordinate.step is not None:
        return coordinate.step
    if coordinate.values.dtype.kind == "U":
        first = coordinate.values.flat[0]
        raise InputError(f"{key} must be numbers, whose steps a transform needs, got {first!s:.60}")
    values = np.asarray(coordinate.values, np.float64)
    if len(values) > 1 and is_blank(coordinate.values):
        return 1.0
    if len(values) < 2:
        raise InputError(f"{key} has one entry, so its step is unknown; give step_s or step_hz")
    step, off = _steps(values)
    floats, is_off = coordinate.values.dtype.kind == "f", off.max() > OFF_STEP * abs(step)
    if step == 0 or (is_off and not (floats and _are_rounded(values, step, values.dtype))):
        raise InputError(
            f"{key} must have equal steps, but {_uneven_entry(values, step, off)}; take entries of "
            "equal steps by input.select, or give a file's axis such steps in input.coordinates"
            f"{_digits(values, step)}"
        )
    if math.isinf(1 / float(step)):
        raise InputError(
            f"{key} must be at steps whose inverse is a number, got {step:g} {coordinate.units}"
        )
    return step


def step_of_rounded(values: Array, stored: np.dtype[Any]) -> float | None:
    """Return the step of values that are equal steps apart up to rounding to fp32 or fp16.

    It is None where they need no rounding for that, where rounding does not explain them, and where
    ``stored`` is another type.
    """
    if not _is_narrow(stored) or values.ndim != 1 or len(values) < 2:
        return None
    step, off = _steps(values)
    is_off = off.max() > OFF_STEP * abs(step)
    return step if is_off and _are_rounded(values, step, stored) else None


def _are_rounded(values: Array, step: float, stored: np.dtype[Any]) -> bool:
    """Return whether rounding to a type explains how far values are off steps of their mean.

    Each value and the line through both ends may be off by half the distance of numbers, which must
    be small beside the span, so that the step is known, and leave entries apart. Values count from
    the first, so that nothing is rounded to fp64 once more.
    """
    apart = _spacing(values, stored)
    if 2 * apart > abs(step) or apart > OFF_STEP * abs(step) * (len(values) - 1):
        return False
    off = np.abs((values - values[0]) - step * np.arange(len(values)))
    return bool(off.max() <= apart)


def rounding_to(values: Array, stored: np.dtype[Any]) -> float:
    """Return half the distance of numbers of fp32 or fp16 at the largest value, else 0."""
    return _spacing(values, stored) / 2 if _is_narrow(stored) and values.size else 0.0


def _is_narrow(stored: np.dtype[Any]) -> bool:
    """Return whether a type is fp32 or fp16."""
    return stored.kind == "f" and stored.itemsize <= 4


def _spacing(values: Array, stored: np.dtype[Any] | None = None) -> float:
    """Return how far numbers of a type, else that of the values, are apart at the largest value."""
    largest = np.abs(values).max()
    return float(np.spacing(largest if stored is None else largest.astype(stored)))


def _uneven_entry(values: Array, step: float, off: Array) -> str:
    """Return the place of an entry that is not a step after the one before, or off equal steps."""
    apart = np.diff(values)
    if not apart.any():
        return f"all {len(values)} entries are at {values[0]:.16g}"
    usual = float(np.median(apart))
    where = int(np.argmax(np.abs(apart - usual) > abs(usual) / 4)) + 1
    if abs(apart[where - 1] - usual) > abs(usual) / 4:
        return (
            f"entry {where} is at {values[where]:.16g}, {apart[where - 1]:.6g} after the one "
            f"before it, where most are {usual:.6g} apart"
        )
    where = int(off.argmax())
    return (
        f"entry {where} is at {values[where]:.16g}, where steps of {step:.6g} have "
        f"{values[0] + step * where:.16g}"
    )


def is_coarse(values: Array, step: float) -> bool:
    """Return whether numbers of the size of the values are too far apart for such steps."""
    return _spacing(values) > OFF_STEP * abs(step)


def _digits(values: Array, step: float) -> str:
    """Return a remark for an error where the values' type is too coarse for the step, else ""."""
    if not is_coarse(values, step):
        return ""
    apart = _spacing(values)
    return f" (numbers of that size are {apart:.2g} apart, which is too coarse for the step)"


def usual_step(coordinate: Coordinate) -> float:
    """Return the step between two entries or more, the mean over the first; some may be missing.

    Steps that are far from their median are left out, but where most entries stand several times,
    as times of samples in whole seconds. A median alone is as coarse as the numbers, such as Julian
    dates of milliseconds.
    """
    if coordinate.step is not None:
        return coordinate.step
    apart = first_steps(coordinate)
    median = float(np.median(apart))
    near = np.abs(apart - median) <= abs(median) / 2 if median else slice(None)
    return float(np.mean(apart[near]))


def first_steps(coordinate: Coordinate) -> Array:
    """Return how far the first neighbours are apart, of as many as tell the usual step."""
    return np.diff(coordinate.values[:_FIRST])


def is_listed(coordinate: Coordinate) -> bool:
    """Return whether two values or more along an axis are known, and no step beside them."""
    values = coordinate.values
    several = values.ndim == 1 and len(values) > 1
    return coordinate.step is None and several and not is_blank(values)


def check_distinct(key: str, found: Coordinate) -> None:
    """Raise InputError for several entries that all have one value, as by too few digits."""
    values = found.values
    if is_listed(found) and values.dtype.kind in "fiu" and np.all(values == values[0]):
        apart = f", where the file's numbers are {2 * found.rounding:.3g} apart"
        raise InputError(
            f"{key}: its {len(values)} entries are all at {values[0]:.10g}"
            f"{apart if found.rounding else ''}; give equal steps by input.coordinates, or "
            "`values` of frequencies that are meant to be the same"
        )


def is_uneven(coordinate: Coordinate) -> bool:
    """Return whether a coordinate has numbers that are not of equal steps, as far as is known."""
    values = coordinate.values
    if not is_listed(coordinate) or values.dtype.kind not in "fiu":
        return False
    step, off = _steps(np.asarray(values, np.float64))
    return step == 0 or float(off.max()) > OFF_STEP * abs(step)


def _steps(values: Array) -> tuple[float, Array]:
    """Return the mean step of (n,) values and how far each is off multiples of it."""
    step = float(values[-1] - values[0]) / (len(values) - 1)
    return step, np.abs(values - (values[0] + step * np.arange(len(values))))
