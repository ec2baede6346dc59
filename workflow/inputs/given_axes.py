"""Coordinates that a study gives for axes of a reader's array or of another workload's product."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from workflow.config.axis_names import operand_axis
from workflow.config.coordinate import STEPS, ListedCoordinate, RegularCoordinate, axis_of
from workflow.config.file_input import FileInput
from workflow.data import REVERSED, Coordinate, Product, is_blank
from workflow.files.input_error import InputError
from workflow.files.units import BASES, check_quantity, is_same_quantity, parted
from workflow.inputs.agreement import ends_in_words
from workflow.inputs.coordinate_units import WITH_UNITS, as_selected, dates_as_times, of_one_entry
from workflow.inputs.dates import from_the_first
from workflow.inputs.equal_steps import given_coordinate, is_uneven, whole_axis
from workflow.inputs.selected_offsets import without_upper


def with_given(
    product: Product, source: FileInput, operand: str, faults: Mapping[str, str],
    of_others: Collection[str] = (), *, check: bool,
) -> Product:  # fmt: skip
    """Return a reader's array, or a product, with what the config says of axes that it does not.

    It may say the values of an axis too whose steps in the file are uneven, such as the clock of
    packets or subcarriers with a gap, because transforms need equal ones, and of any axis with
    ``replace``. The values are those of the file's axis, before any selection. For the names in
    ``of_others``, on which another operand says nothing, what this one says stays. Raises
    InputError for another number of values than the axis has entries, an axis that the file says as
    well, a unit that is missing, and an axis on which the config says nothing and the file
    something wrong, which ``faults`` has by the axis.
    """
    names = tuple(source.axes_of(operand) or product.axes)
    found, left = dict(product.coordinates), dict(faults)
    of_workload = operand in source.products()  # of several one may say an axis, and not another
    for name, of in source.coordinates.items():
        along = axis_of(name, of)
        if along not in names or len(names) != len(product.axes):
            continue
        axis, key = product.axes[names.index(along)], f"input.coordinates.{name}"
        length = product.data.shape[names.index(along)]
        if along != name:
            found[name] = _along(key, name, of, axis, length, names, check=check)
            continue
        replaces = isinstance(of, RegularCoordinate | ListedCoordinate) and of.replace
        if axis in found and not replaces and (of_workload or not is_uneven(found[axis])):
            if name in of_others:
                continue
            _check_equal(name, of, found[axis], "the product" if of_workload else "the file")
            continue
        if replaces and axis not in found and axis not in left and not of_workload:
            raise InputError(f"{key}.replace: the file says nothing of {name}; leave it out")
        left.pop(axis, None)
        found[axis] = _of_axis(key, name, of, found.get(axis), length, check=check)
    for axis, fault in left.items():
        name = names[product.axes.index(axis)] if len(names) == len(product.axes) else axis
        raise InputError(f"input.file: {source.path}: {fault}; or give input.coordinates.{name}")
    return replace(product, coordinates=found)


def of_lacking(
    source: FileInput, lacking: Mapping[str, bool], tuned: Coordinate | None, *, check: bool
) -> dict[str, Coordinate]:
    """Return what the config says of axes that a reader's array lacks: of one entry each.

    ``lacking`` says of each whether the operand has it all the same, in length 1. ``tuned`` is the
    frequency that the file says of all samples, if any. Raises InputError for several values, for
    no unit where there must be one, and for a frequency beside ``tuned``.
    """
    found: dict[str, Coordinate] = {}
    for name, of in source.coordinates.items():
        given = axis_of(name, of)
        along = operand_axis(given)
        if along not in lacking:
            continue
        key, kept_as = f"input.coordinates.{name}", operand_axis(name)
        replaces = isinstance(of, RegularCoordinate | ListedCoordinate) and of.replace
        if kept_as == "frequency" and tuned is not None and not replaces:
            _check_equal(name, of, tuned, "the file" if source.file else "the product")
        try:
            if given == name:
                own, made = kept_as, _of_axis(key, name, of, None, 1, check=check)
            else:
                own, made = name, _along(key, name, of, along, 1, (), check=check)
        except InputError as error:
            raise InputError(f"{error}; {of_one_entry(along)}") from error
        own, made = (own, made) if lacking[along] else as_selected(own, along, made)
        found[own] = made
    return found


def _check_equal(name: str, of: Any, said: Coordinate, who: str) -> None:
    """Raise InputError where the config says an axis that ``who`` says, other than its names."""
    values = said.values
    is_number = values.dtype.kind in "fiu"
    if isinstance(of, list) and not is_number and (
        [str(one).lower() for one in of] == [one.lower() for one in values.tolist()]
    ):  # fmt: skip
        return
    how = _equal_steps(name) if is_number else "values: [...]"
    ends = f", {ends_in_words(said)}" if values.size and not is_blank(values) else ""
    raise InputError(
        f"input.coordinates.{name}: {who} says it already{ends}; leave it out, or where {who} is "
        f"wrong give it as {{{how}, replace: true}}"
    )


def _equal_steps(name: str) -> str:
    """Return how a study gives equal steps of a coordinate, in its unit where that is known."""
    unit = BASES.get(operand_axis(name), "")
    return f"start: ..., {next(key for key, of in STEPS.items() if of == unit)}: ..."


def _of_axis(
    key: str, name: str, of: Any, said: Coordinate | None, length: int, *, check: bool
) -> Coordinate:
    """Return the coordinate that the config gives an axis, under the name that the file gives."""
    given = given_coordinate(key, of, length, whole_axis(length), check=check)
    given, first = dates_as_times(name, given)
    units, date = parted(given.units)
    date = first or date
    if operand_axis(name) in WITH_UNITS and not units:
        raise InputError(
            f"{key} has no unit; give it as {{{_equal_steps(name)}}}, or "
            f"{{values: [...], units: {BASES[operand_axis(name)]}}}"
        )
    check_quantity(key, name, units)
    long_name = name
    if said is not None and is_same_quantity(said.units, units):
        long_name = said.long_name
        if _first(of) != 0:  # frequencies of a transform's upper half count on from 0
            long_name = without_upper(long_name)
    if given.values.size > 1 and given.values[0] < given.values[-1]:  # other than the file says
        for end in REVERSED:
            long_name = long_name.removesuffix(f", {end}")
    given = replace(given, units=units, long_name=long_name)
    if not date:
        return given
    given, date = from_the_first(given, date)
    return replace(given, long_name=f"{name} since {date}")


def _first(of: Any) -> Any:
    """Return the first value of equal steps, or of a list of values."""
    if isinstance(of, RegularCoordinate):
        return of.start
    return (of.values if isinstance(of, ListedCoordinate) else of)[0]


def _along(
    key: str, name: str, of: Any, axis: str, length: int, names: Sequence[str], *, check: bool
) -> Coordinate:
    """Return another coordinate that the config gives along an axis. Raises InputError."""
    if name in names:
        raise InputError(
            f"{key}: {name!r} is an axis of its own; it stands along {of.axis} by no name"
        )
    given = given_coordinate(key, of, length, whole_axis(length), check=check)
    units = parted(given.units)[0]
    check_quantity(key, name, units)
    return replace(given, units=units, long_name=name, axes=(axis,))
