"""The check that coordinates of two operands are the same, in whatever unit each has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from workflow.data import Array, Coordinate, is_blank
from workflow.files.input_error import InputError
from workflow.files.units import FACTORS
from workflow.inputs.dates import date_in, resolution, seconds_between
from workflow.inputs.equal_steps import OFF_STEP
from workflow.inputs.input_operand import OperandHeader

_ROUNDING = 1e-9
"""Relative difference of numbers that are the same, only computed differently."""


def check_agrees(operand: str, name: str, known: Coordinate, carried: Coordinate) -> None:
    """Raise InputError where an operand's coordinate contradicts another operand's."""
    if not differ(known, carried) and not _is_beyond(name, known, carried):
        return
    one, other = ends_in_words(known), ends_in_words(carried)
    if one == other and known.values.shape == carried.values.shape:  # in another order between
        first = int(np.argmax(known.values != carried.values))
        one, other = (f"{each.values.flat[first]} at entry {first}" for each in (known, carried))
    raise InputError(
        f"input.{operand}: it must have the values of another operand along {name}, "
        f"{one}, got {other}; select the same entries by "
        "input.select, correct one of them by input.coordinates, or name that axis otherwise in "
        "input.axes"
    )


def check_numbers(
    operand: str, axis: str, carried: Coordinate, others: Sequence[OperandHeader],
    *, whole: bool = True,
) -> None:  # fmt: skip
    """Raise InputError where others have other antennas or feeds than a product, by number.

    Numbers of entries tell nothing of most axes. Coordinates of a product's antennas and feed
    without names belong to the voltages that it is made of, and weights of other ones would be
    multiplied with the samples. Nothing else is known of the axis in ``others``, which are datasets
    and products. With ``whole`` an axis of which nothing is selected is compared too, if the
    product has all of its numbers: another order of them means other entries. A product with fewer
    may be made of all that another file has.
    """
    if carried.values.dtype.kind not in "iu":
        return
    for each in others:
        taken = each.numbers.get(axis)
        indices = None if taken is None else taken.indices
        if whole and taken is None and axis in each.map.axes:
            all_of_it = np.arange(each.shape[each.map.axes.index(axis)])
            indices = all_of_it if np.array_equal(np.sort(carried.values), all_of_it) else None
        if indices is not None:
            check_agrees(operand, axis, Coordinate(indices), carried)


def hold_to_one(coordinates: dict[str, Coordinate], headers: Mapping[str, OperandHeader]) -> None:
    """Leave out the number of the one feed that weights are of, which may be for several.

    By its name it would be of no other (`check_agrees`). Raises InputError where one operand has a
    single feed or frequency, which is known, and another has several that nothing tells.
    """
    for axis in ("polarization", "frequency"):
        one = coordinates.get(axis)
        lengths = {
            key: each.shape[each.map.axes.index(axis)]
            for key, each in headers.items()
            if axis in each.map.axes
        }
        operand, length = max(lengths.items(), key=lambda each: each[1], default=("", 1))
        if one is None or one.of(axis) != (axis,) or one.values.size != 1 or length == 1:
            continue
        if axis == "polarization" and one.values.dtype.kind in "iu":
            del coordinates[axis]
            continue
        raise InputError(
            f"input.{operand}: nothing tells its {length} entries along {axis}, and "
            f"another operand is of {ends_in_words(one)} alone; say what they are by "
            "input.coordinates, or take one by input.select"
        )


def _is_beyond(name: str, one: Coordinate, other: Coordinate) -> bool:
    """Return whether the single entry of one is none that may be for all entries of the other.

    Weights of one feed by its name are of no other one. Coordinates of one frequency may be for a
    band that has it, and for no other band.
    """
    one, other = sorted((one, other), key=lambda each: each.values.size)
    if one.values.size != 1 or other.values.size < 2 or is_blank(other.values):
        return False
    if name == "polarization":
        return one.values.dtype.kind == other.values.dtype.kind == "U" and differ(
            replace(one, values=np.resize(one.values, other.values.shape)), other
        )
    factors = _factors(one.units, other.units)
    if name != "frequency" or factors is None or other.values.dtype.kind not in "fiu":
        return False
    value, band = one.values[0] * factors[0], other.values * factors[1]
    step = float(np.abs(np.diff(band)).max())
    return not band.min() - step <= value <= band.max() + step


def in_names(
    name: str, *given: tuple[Coordinate, Mapping[str, Coordinate]]
) -> tuple[Coordinate, ...]:
    """Return coordinates as given, or where some are names the names beside those of numbers.

    Antennas have numbers in some formats and names in others; those of numbers may have both. Each
    coordinate comes with those that stand beside it.
    """
    if all(one.values.dtype.kind in "fiu" for one, _ in given):
        return tuple(one for one, _ in given)
    return tuple(
        beside.get(f"{name}_name", one) if one.values.dtype.kind in "fiu" else one
        for one, beside in given
    )


def names_beside_count(one: Coordinate, other: Coordinate) -> Coordinate | None:
    """Return the coordinate that has names where the other's numbers only count, else None."""
    for names, numbers in ((one, other), (other, one)):
        if names.values.dtype.kind == "U" and _is_counted(numbers):
            return names if names.values.shape == numbers.values.shape else None
    return None


def _is_counted(one: Coordinate) -> bool:
    """Return whether a coordinate is numbers without a unit that count entries from any number."""
    values = one.values
    if one.units or values.dtype.kind not in "iuf" or values.ndim != 1 or is_blank(values):
        return False
    return bool(np.all(np.diff(values) == 1))


def differ(one: Coordinate, other: Coordinate) -> bool:
    """Return whether two coordinates contradict each other, as far as their values are known.

    Numbers in units that convert are compared in one, to a thousandth of their distance and to the
    rounding of those that a file has in fp32, and names without regard to case. Times since two
    dates are compared as instants, to the rounding of fp64 numbers and of dates too.
    """
    known = not any(is_blank(each.values) for each in (one, other))
    if not known or one.values.shape != other.values.shape:  # of one entry, or a mistake of its own
        return False
    if any(each.values.dtype.kind not in "fiu" for each in (one, other)):
        texts = [
            [str(value).strip().lower() for value in each.values.flat] for each in (one, other)
        ]
        return texts[0] != texts[1]
    dates = [date_in(each.long_name) for each in (one, other)]
    later = seconds_between(*dates) if all(dates) else 0.0
    factors = _factors(one.units, other.units)
    if factors is None or later is None or (later and one.units not in FACTORS["s"]):
        return True
    a, b = (each.values * factor for each, factor in zip((one, other), factors, strict=True))
    rounding = one.rounding * factors[0] + other.rounding * factors[1]
    allowed = _allowed(a)
    if all(dates):
        rounding += sum(map(resolution, dates)) + _spacing(a, b, later)
        # Times since a date have any size, so that one entry says nothing about how far it is off.
        allowed = allowed if np.ndim(allowed) == 0 else 0.0
    return bool(np.any(np.abs(a - b - later) > allowed + _rounded(a, b, rounding)))


def ends_in_words(coordinate: Coordinate) -> str:
    """Return the first and the last value of a coordinate, with its unit and its date."""
    values, date = coordinate.values, date_in(coordinate.long_name)
    ends = dict.fromkeys((values.flat[0], values.flat[-1])) if values.size else {}
    number = values.dtype.kind in "fiu"
    shown = " to ".join(f"{end:.10g}" if number else str(end) for end in ends)
    return f"{shown} {coordinate.units}".rstrip() + (f" since {date}" if date else "")


def _factors(one: str, other: str) -> tuple[float, float] | None:
    """Return the factors of two units to a common one; None where they do not convert."""
    for units in FACTORS.values():
        if one in units and other in units:
            return units[one], units[other]
    return (1.0, 1.0) if one == other else None


def _spacing(a: Array, b: Array, later: float) -> float:
    """Return how far numbers of fp64 as large as these are apart: half of it each is rounded by."""
    largest = max(abs(later), *(float(np.abs(each).max(initial=0.0)) for each in (a, b)))
    return float(np.spacing(largest))


def _allowed(values: Array) -> Array | float:
    """Return the largest difference of equal values: a little of their distance or size."""
    apart = np.abs(np.diff(values, axis=0))
    if not apart.size or not apart.min():
        return np.asarray(_ROUNDING * np.abs(values))
    return OFF_STEP * float(apart.min())


def _rounded(a: Array, b: Array, rounding: float) -> float:
    """Return how far ``rounding`` takes equal values apart; 0 where it may hide another entry.

    Values of the next entry are off by a step less the rounding, which must be clearly more.
    """
    apart = min(float(np.abs(np.diff(each, axis=0)).min(initial=np.inf)) for each in (a, b))
    return rounding if 4 * rounding <= apart else 0.0
