"""Coordinates of a user's operands: read or made, and fitted to what is selected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import h5py
import numpy as np

from workflow.config.axis_names import SYNONYMS, among, operand_axis
from workflow.config.coordinate import DatasetCoordinate, RegularCoordinate, axis_of
from workflow.config.file_input import FileInput
from workflow.config.mistakes import nearest
from workflow.counted import listed
from workflow.data import MAX_CHECKED, SELECTED, Coordinate
from workflow.files.input_error import InputError, Mistakes
from workflow.inputs.agreement import check_agrees, differ, names_beside_count
from workflow.inputs.axes import Operand
from workflow.inputs.coordinate_units import (
    WITH_UNITS,
    as_selected,
    value_of_lacking,
    values_with_unit,
)
from workflow.inputs.dimension_names import OF_VISIBILITIES
from workflow.inputs.equal_steps import whole_axis
from workflow.inputs.input_operand import InputOperand, OperandHeader
from workflow.inputs.own_coordinates import own_coordinates, selected_before
from workflow.inputs.selected_offsets import above_selected
from workflow.inputs.selections import PickedAxis

NUMBERED = "number of the {} in the input"
"""Long name of the numbers of selected entries, along which nothing else stands."""


def coordinates_of(
    file: h5py.File, source: FileInput, found: Sequence[InputOperand], *, check: bool,
    wrong: Sequence[Operand] = (),
) -> tuple[dict[str, Coordinate], dict[str, str]]:  # fmt: skip
    """Return the coordinates of an input whose operands are in an open file, and what is left out.

    The latter is why something that the file has along an axis is no coordinate, by its path. With
    ``check`` long ones are without their values (`blank`). ``wrong`` are the operands in which
    something is wrong, beside those ``found``: coordinates of axes that the latter lack are then
    held to nothing of an axis, and left out. Raises InputError for an axis that no operand
    has, another number of values than the file's axis has entries, values that are not finite
    numbers, that differ between operands, or that have no unit where there must be one.
    """
    makers: dict[str, tuple[str, Any]] = {}
    made: dict[str, Coordinate] = {}
    mistakes = Mistakes()
    for given, of in source.coordinates.items():
        with mistakes.kept():
            if (other := makers.setdefault(_named_as(given, found), (given, of)))[0] != given:
                raise InputError(
                    f"input.coordinates.{given}: input.coordinates.{other[0]} is of the same axis; "
                    "give one of them"
                )
    for name, (given, of) in makers.items():
        with mistakes.kept():
            key = f"input.coordinates.{given}"
            if wrong and not _having(found, _axis_of(name, of, found)):
                values_with_unit(file, source, key, name, of, None, None, check=check)
            else:
                kept_as, one = _of_axis(file, source, found, key, name, of, check)
                made[kept_as] = one
    if source.sample_rate_hz is not None:
        with mistakes.kept():
            axis = _sampled(found, wrong)
            if axis in makers:
                raise InputError(
                    f"input.sample_rate_hz: input.coordinates.{axis} says it already; "
                    "give one of them"
                )
            if axis is not None and (not wrong or _having(found, axis)):
                step = RegularCoordinate(step_s=1 / source.sample_rate_hz)
                key = "input.sample_rate_hz"
                made[axis] = _of_axis(file, source, found, key, axis, step, check)[1]
    left_out: dict[str, str] = {}
    for operand in found:
        with mistakes.kept():
            _add_own(file, source, found, operand, made, left_out, check)
    mistakes.raise_all()
    return made, left_out


def _add_own(
    file: h5py.File, source: FileInput, found: Sequence[InputOperand], operand: InputOperand,
    made: dict[str, Coordinate], left_out: dict[str, str], check: bool,
) -> None:  # fmt: skip
    """Add what the file itself has along an operand's axes where the study says nothing.

    A dataset that cannot be a coordinate is put into ``left_out``, such as times without a unit.
    Names along an axis that is transformed, and numbers that only count entries, are left out.
    Names replace numbers that only count, and several entries replace a single one, which stands
    for all of them. Raises InputError where a coordinate differs from the one ``made`` for another
    operand, also where ``input.select`` takes other entries of the same dataset, except along axes
    of which a number takes one entry: where two operands differ there, nothing stays.
    """
    said = {_named_as(name, found) for name in source.coordinates}
    before = dict(made)
    mine: set[str] = set()
    selected = _selected_before(file, source, operand, check)
    own, none = own_coordinates(file, operand, external=source.external)
    left_out.update(none)
    for given, number, path, axis in own:
        name = _named_as(given, found)
        of = DatasetCoordinate(dataset=path, axis=axis, units=None, column=None) if axis else path
        if name in said or (source.sample_rate_hz is not None and name in before):
            continue
        try:
            kept_as, one = _of_axis(file, source, [operand], path, name, of, check)
        except InputError as error:
            left_out[path] = str(error)
            continue
        is_along = operand.operand.named and name == operand.mapped().axes[-1]
        taken = whole_axis(1) if number is None else operand.picked.axes[number]
        if _tells_nothing(one, taken) or (is_along and one.values.dtype.kind == "U"):
            continue
        if kept_as in mine:
            names = names_beside_count(made[kept_as], one)
            if names is None:
                left_out[path] = f"{path}: the file has another {name} along the same axis"
            else:
                made[kept_as] = names
            continue
        mine.add(kept_as)
        one = above_selected(selected.pop(kept_as, None), one)
        known = before.get(kept_as)
        if known is not None and known.values.size == 1 < one.values.size:
            check_agrees(operand.operand.name, name, known, one)
            known = None
        if known is None:
            made[kept_as] = one
        elif (names := names_beside_count(known, one)) is not None:
            made[kept_as] = names
        elif not kept_as.startswith(SELECTED):
            check_agrees(operand.operand.name, name, known, one)
        elif differ(known, one):
            del made[kept_as]
    for kept_as, one in selected.items():
        if kept_as in before and kept_as.removeprefix(SELECTED) in said:
            continue
        if differ(made.setdefault(kept_as, one), one):
            del made[kept_as]


def _selected_before(
    file: h5py.File, source: FileInput, operand: InputOperand, check: bool
) -> dict[str, Coordinate]:
    """Return what stands beside a product of Argand's along axes that were dropped, by its name.

    An entry that this study selects under the same name takes its place (`above_selected`).
    """
    found = {}
    for name, (path, axis) in selected_before(file, operand.datasets[0]).items():
        key = f"input.{operand.operand.name}: {path}"
        one = values_with_unit(file, source, key, name, path, 1, whole_axis(1), check=check)
        found[name] = replace(one, axes=(axis or name,))
    return found


def _tells_nothing(one: Coordinate, taken: PickedAxis) -> bool:
    """Return whether a coordinate only counts its entries, or has too many to tell."""
    if one.units or one.values.dtype.kind not in "iuf":
        return False
    return one.values.size > MAX_CHECKED or np.array_equal(one.values, taken.indices)


def _sampled(found: Sequence[InputOperand], wrong: Sequence[Operand]) -> str | None:
    """Return the axis along which samples are taken at the sample rate.

    It is None where only an operand that is wrong would tell.
    """
    maps = [one.mapped() for one in found]
    along = [m.axes[-1] for one, m in zip(found, maps, strict=True) if one.operand.named]
    if along:
        return along[0]
    axes = list(dict.fromkeys(axis for m in maps for axis in m.axes if axis not in m.missing))
    if any(one.free for one in wrong):
        return None
    axes += [axis for one in wrong for axis in one.axes if axis not in axes]
    if "time" not in axes:
        raise InputError(f"input.sample_rate_hz: there is no axis time, the axes are {axes}")
    return "time"


def _of_axis(
    file: h5py.File, source: FileInput, found: Sequence[InputOperand], key: str, name: str, of: Any,
    check: bool,
) -> tuple[str, Coordinate]:  # fmt: skip
    """Return a coordinate and its name, `SELECTED` before it where a number took one entry."""
    axis = _axis_of(name, of, found)
    having = _having(found, axis)
    dropped = not having
    having = having or _dropping(found, axis)
    lacking = {axis for one in found for axis in one.operand.lacking(one.mapped())}
    if not having and axis in lacking:
        has_axis = any(axis in one.mapped().missing for one in found)
        return value_of_lacking(file, source, key, name, axis, of, has_axis=has_axis, check=check)
    if not having:
        axes = list(dict.fromkeys(axis for one in found for axis in one.mapped().given))
        hint = nearest(axis, [*axes, *sorted(lacking)])
        if isinstance(of, str) and axes and not hint:
            hint = f"; {{dataset: {of}, axis: NAME}} stands along the one of that name"
        raise InputError(f"{key}: must be of an axis of the operands, {axes}, got {axis!r}{hint}")
    lengths = {one.datasets[0].shape[number] for one, number in having}
    broadcast = lengths - {1} or lengths
    if len(broadcast) > 1:
        raise InputError(f"{key}: the operands have {axis} of lengths {sorted(broadcast)}")
    length = broadcast.pop()
    picked = [
        one.picked.axes[number] for one, number in having if one.datasets[0].shape[number] == length
    ]
    if any(not one.takes_as(picked[0]) for one in picked):
        raise InputError(f"{key}: input.select takes different parts of {axis} for two operands")
    made = values_with_unit(file, source, key, name, of, length, picked[0], check=check)
    axes = [each for one in found for each in one.mapped().axes]
    if axis != name and name in axes:
        raise InputError(
            f"{key}: {name!r} is an axis of its own; it stands along {axis} by no name"
        )
    if dropped:
        return as_selected(name, axis, made)
    rank = made.values.ndim
    own = () if axis == name and rank == 1 else (axis, f"{name}_component")[:rank]
    return name, replace(made, long_name=made.long_name or name, axes=own)


def _named_as(name: str, found: Sequence[InputOperand]) -> str:
    """Return a coordinate's name: of an axis of an operand, where another name of it is given.

    An axis of a transform's samples keeps the name ``channel``, of others it is ``frequency``, as
    it is where both call it ``freq``. Visibilities' keep theirs also where a number drops them.
    """
    axes = [axis for one in found for axis in one.mapped().axes]
    others = [axis for axis in axes if SYNONYMS.get(axis) == name]
    free = {each for one in found if one.operand.free for each in one.axis_names() or ()}
    if name in axes or name in free & {*OF_VISIBILITIES}:
        return name
    return others[0] if others else among(operand_axis(name), axes)


def _axis_of(name: str, of: Any, found: Sequence[InputOperand]) -> str:
    """Return the axis along which a coordinate stands."""
    return _named_as(axis_of(name, of), found)


def _having(found: Sequence[InputOperand], axis: str) -> list[tuple[InputOperand, int]]:
    """Return the operands that have an axis, each with the axis's place in its dataset."""
    places = [(one, one.dataset_axis(axis)) for one in found]
    return [(one, number) for one, number in places if number is not None]


def _dropping(found: Sequence[InputOperand], axis: str) -> list[tuple[InputOperand, int]]:
    """Return the operands with an axis of which a number selects one entry, and its place there."""
    return [
        (one, number)
        for one in found
        for number, name in enumerate(one.axis_names() or ())
        if axis in (name, SYNONYMS.get(name)) and not one.picked.axes[number].kept
    ]


def number_selected(
    coordinates: dict[str, Coordinate], there: Sequence[Operand],
    headers: Mapping[str, OperandHeader],
) -> None:  # fmt: skip
    """Add the numbers of selected entries where nothing else stands along an axis.

    None are added where operands have other entries of it, nor along axes whose values need a unit,
    nor along the one that is worked along, whose entries are one sample apart. Raises InputError
    where one that is transformed is selected in steps that are not equal.
    """
    for operand in there:
        mapped = headers[operand.name].map
        for axis, taken in headers[operand.name].numbers.items():
            along = operand.free and axis == mapped.axes[-1]
            if along and operand.named and axis not in coordinates:
                _check_even(f"input.select.{operand.name}", axis, taken)
            if along or axis in (*coordinates, *WITH_UNITS):
                continue
            numbers = taken.indices
            others = [one.numbers.get(axis) for one in headers.values() if axis in one.map.axes]
            if all(one is not None and np.array_equal(one.indices, numbers) for one in others):
                made = axis, Coordinate(numbers, "", NUMBERED.format(axis))
                coordinates.setdefault(*(made if axis in mapped.axes else as_selected(axis, *made)))


def _check_even(key: str, axis: str, taken: PickedAxis) -> None:
    """Raise InputError for a list of entries of an axis that are not equal steps apart."""
    entries = np.asarray(taken.within) if isinstance(taken.within, list) else np.arange(2)
    uneven = np.diff(entries, 2) != 0
    if uneven.any() or (len(entries) > 1 and entries[0] == entries[1]):
        raise InputError(
            f"{key}: must take entries at equal steps along {axis}, which is transformed, got "
            f"{listed(taken.entries, 6)}"
        )
