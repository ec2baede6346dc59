"""Coordinates that a study gives the axes of a file's data, with the unit that they must have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import h5py

from workflow.config.axis_names import operand_axis
from workflow.config.coordinate import ListedCoordinate
from workflow.config.file_input import FileInput
from workflow.data import SELECTED, TAKEN, Coordinate
from workflow.files.input_error import InputError
from workflow.files.units import BASES, check_quantity, parted
from workflow.inputs.coordinate_values import values_along
from workflow.inputs.dates import from_the_first, of_texts
from workflow.inputs.equal_steps import check_distinct, whole_axis
from workflow.inputs.selections import PickedAxis

WITH_UNITS = ("frequency", "time")
"""Axes whose values mean nothing without a unit."""


def values_with_unit(
    file: h5py.File, source: FileInput, key: str, name: str, of: Any, length: int | None,
    taken: PickedAxis | None, *, check: bool,
) -> Coordinate:  # fmt: skip
    """Return `values_along`; raises InputError where there is no unit and must be one."""
    found, first = dates_as_times(
        name, values_along(file, source, key, of, length, taken, check=check)
    )
    if name in WITH_UNITS and found.values.dtype.kind == "U" and not isinstance(of, list):
        dates = " or dates in ISO 8601" if name == "time" else ""
        said = f"must hold numbers{dates}, got {str(found.values.flat[0])!r}"
        where = "its values" if isinstance(of, ListedCoordinate) else getattr(of, "dataset", of)
        raise InputError(f"{key}: {where} {said}")
    units, date = parted(found.units)
    date = first or date
    if name in WITH_UNITS and not units:
        how = "{dataset: path, units: Hz}, {values: [...], units: Hz} or by equal steps"
        raise InputError(f"{key} has no unit; give it as {how.replace('Hz', BASES[name])}")
    check_quantity(key, name, units)
    if name in WITH_UNITS and not (name == "frequency" and isinstance(of, ListedCoordinate)):
        check_distinct(key, found)  # two receivers of one frequency are meant where a study says it
    found = replace(found, units=units)
    if date or name == "time":
        found, date = from_the_first(found, date)
    if not date:
        return found
    return replace(found, long_name=f"{found.long_name or name} since {date}")


def dates_as_times(name: str, found: Coordinate) -> tuple[Coordinate, str]:
    """Return `of_texts` of times that are text; anything else as it is, with no date."""
    is_text = operand_axis(name) == "time" and found.values.dtype.kind == "U"
    return of_texts(found) if is_text else (found, "")


def as_selected(name: str, axis: str, made: Coordinate) -> tuple[str, Coordinate]:
    """Return the name and the coordinate of one entry of an axis that an operand has not."""
    own = (f"{SELECTED}{axis}", f"{name}_component")[: made.values.ndim]
    long_name = f"{made.long_name or name} {TAKEN}"
    return f"{SELECTED}{name}", replace(made, long_name=long_name, axes=own)


def value_of_lacking(
    file: h5py.File, source: FileInput, key: str, name: str, axis: str, of: Any, *, has_axis: bool,
    check: bool,
) -> tuple[str, Coordinate]:  # fmt: skip
    """Return the one value of a coordinate along an axis that the data lack, and its name.

    It is the frequency of an array's one channel, or the feed of its one polarization. An operand
    that ``has_axis`` has it in length 1.
    """
    try:
        made = values_with_unit(file, source, key, name, of, 1, whole_axis(1), check=check)
    except InputError as error:
        raise InputError(f"{error}; {of_one_entry(axis)}") from error
    if not has_axis:
        return as_selected(name, axis, made)
    own = () if axis == name else (axis,)
    return name, replace(made, long_name=made.long_name or name, axes=own)


def of_one_entry(axis: str) -> str:
    """Return why a coordinate must have one value, for a message."""
    return f"the data have no axis {axis}, which therefore has one entry"
