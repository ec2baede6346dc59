"""Values of a coordinate: by the study, or by a dataset of the user's file."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import h5py
import numpy as np

from workflow.config.coordinate import DatasetCoordinate, ListedCoordinate, RegularCoordinate
from workflow.config.file_input import FileInput
from workflow.counted import counted
from workflow.data import Array, Coordinate, blank, is_blank
from workflow.files.input_error import InputError
from workflow.files.names import is_of_letters, is_text, read_letters, read_names
from workflow.files.numbers import read_numbers
from workflow.files.stored_types import StoredError, stored_in
from workflow.files.text_attributes import LONGEST_NAME, text_attribute, unit_of
from workflow.files.units import dated, named
from workflow.inputs.equal_steps import (
    given_coordinate,
    rounding_to,
    step_of_rounded,
    whole_axis,
)
from workflow.inputs.operand_datasets import open_datasets
from workflow.inputs.selected_offsets import of_one_half
from workflow.inputs.selections import PickedAxis
from workflow.inputs.table_columns import column_of_table

MAX_COMPONENTS = 16
"""Numbers that a coordinate may have at each entry: three of a position."""


def values_along(
    file: h5py.File, source: FileInput, key: str, of: Any, length: int | None,
    taken: PickedAxis | None, *, check: bool,
) -> Coordinate:  # fmt: skip
    """Return a coordinate at the entries ``taken`` of the file's axis, or at all of them.

    The axis has ``length`` entries, or where that is None as many as there are values. With
    ``check`` long ones are without their values (`blank`). Raises InputError for values of another
    shape, or that are not finite numbers or text.
    """
    if not isinstance(of, str | DatasetCoordinate):
        if length is None:
            values = of.values if isinstance(of, ListedCoordinate) else of
            length = 1 if isinstance(of, RegularCoordinate) else len(values)
        return given_coordinate(key, of, length, taken or whole_axis(length), check=check)
    where = of if isinstance(of, str) else of.dataset
    (dataset,) = open_datasets(file, source, [where], key)
    if isinstance(of, DatasetCoordinate) and isinstance(of.column, str):
        return _of_table(dataset, of, of.column, key, length, taken)
    if is_of_letters(dataset, length):
        return _by_letters(dataset, key, length, taken)
    shape, column = _shape_along(dataset, of, key, length)
    taken = taken or whole_axis(shape[0])
    said = of.units if isinstance(of, DatasetCoordinate) else None
    units = said or dated(unit_of(dataset), text_attribute(dataset, "calendar")) or named(where)
    long_name = text_attribute(dataset, "long_name", LONGEST_NAME)
    if is_text(dataset) and len(shape) == 1:
        names = read_names(dataset, key).reshape(shape)
        return Coordinate(names[taken.indices], "", long_name)
    values = np.atleast_1d(read_numbers(dataset, key, check=check))
    try:
        stored = replace(stored_in(dataset), kind="float64")
    except StoredError as error:
        raise InputError(f"{key}: {dataset.name} {error}") from None
    if is_blank(values):
        inner = shape[1:] if column is None else ()
        long_name = of_one_half(Coordinate(values, units, long_name), taken).long_name
        return Coordinate(blank((taken.length, *inner), values.dtype), units, long_name)
    values = stored.values(values)
    if values.shape != shape == values.shape[::-1]:  # the components first
        values = values.T
    values = values.reshape(shape)
    whole = of_one_half(Coordinate(values, units, long_name), taken)
    values, long_name = whole.values[taken.indices], whole.long_name
    values = values if column is None else np.ascontiguousarray(values[:, column])
    _check_finite(values, key)
    return Coordinate(
        values, units, long_name, step=step_of_rounded(values, dataset.dtype),
        rounding=rounding_to(values, dataset.dtype),
    )  # fmt: skip


def _of_table(
    dataset: h5py.Dataset, of: DatasetCoordinate, column: str, key: str, length: int | None,
    taken: PickedAxis | None,
) -> Coordinate:  # fmt: skip
    """Return what `column_of_table` reads; other arguments as in `values_along`."""
    values = column_of_table(dataset, column, key)
    if length not in (None, len(values)):
        raise _other_length(dataset, key, length or 0)
    values = values[(taken or whole_axis(len(values))).indices]
    if values.dtype.kind == "U":
        return Coordinate(values, "", "")
    _check_finite(values, key)
    return Coordinate(values, of.units or named(column), "")


def _check_finite(values: Array, key: str) -> None:
    """Raise InputError where any of (entries, ...) is not a finite number."""
    if not np.all(finite := np.isfinite(values)):
        where = int(np.argmin(finite.reshape(len(values), -1).all(axis=1)))
        raise InputError(
            f"{key}: its values must be finite numbers, entry {where} of what is selected is "
            f"{values[where]}; take others by input.select"
        )


def _other_length(dataset: h5py.Dataset, key: str, length: int) -> InputError:
    return InputError(
        f"{key}: {dataset.name} must have {counted(length, 'value')}, one for each entry of "
        f"the axis in the file, got shape {dataset.shape}"
    )


def _by_letters(
    dataset: h5py.Dataset, key: str, length: int | None, taken: PickedAxis | None
) -> Coordinate:
    """Return the names of a dataset that `is_of_letters`; arguments as in `values_along`."""
    names = read_letters(dataset, key)
    if len(names) != (length or len(names)):
        raise InputError(
            f"{key}: {dataset.name} must have {length} names, one for each entry of the axis "
            f"in the file, got {names.tolist()[:6]}"
        )
    long_name = text_attribute(dataset, "long_name", LONGEST_NAME)
    return Coordinate(names[(taken or whole_axis(len(names))).indices], "", long_name)


def _shape_along(
    dataset: h5py.Dataset, of: Any, key: str, length: int | None
) -> tuple[tuple[int, ...], int | None]:
    """Return the shape of what a dataset has along an axis, and the column of it that is meant.

    That is (length,), or with components, such as those of places, (length, components), also where
    the dataset has its axes the other way round and other numbers of both. Raises InputError for
    another shape and for a column that there is not.
    """
    column = None
    if isinstance(of, DatasetCoordinate) and isinstance(of.column, int):
        column = of.column
    several = dataset.ndim == 2 and (
        column is not None or (isinstance(of, DatasetCoordinate) and of.axis is not None)
    )
    if length is None:
        length = dataset.shape[0] if several else max(dataset.shape, default=1)
    shape: tuple[int, ...] = (length,)
    fits = max(dataset.shape, default=1) == length
    if several:
        found = dataset.shape if dataset.shape[0] == length else dataset.shape[::-1]
        shape, fits = (length, found[1]), found[0] == length
    if not fits or dataset.size != math.prod(shape) or max(shape[1:], default=1) > MAX_COMPONENTS:
        raise _other_length(dataset, key, length)
    if column is not None and column >= (shape[1] if several else 0):
        raise InputError(
            f"{key}.column: {dataset.name} must have two axes, the second of at least "
            f"{column + 1} columns, got shape {dataset.shape}"
        )
    return shape, column
