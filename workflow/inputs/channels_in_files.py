"""Channels within coarse ones in a user's file: two axes of a dataset, one of an operand's.

A file has them as it would a filter bank's of Argand, whose products may be such files: an axis of
coarse channels, ``frequency``, and ``fine_frequency`` of those within each, whose frequencies are
added to these (`merged_channels`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from workflow.config.axis_names import operand_axis
from workflow.config.file_input import FileInput
from workflow.data import SELECTED, Coordinate, Product, blank
from workflow.files.hdf5_file import opened
from workflow.files.input_error import InputError
from workflow.files.units import FACTORS, OF_REAL, OF_SAMPLES, OF_UPPER, OFFSETS
from workflow.inputs.axes import AxisMap, Operand
from workflow.inputs.input_operand import OperandHeader
from workflow.inputs.merged_channels import Merged, joined
from workflow.inputs.operand_axes import OperandAxes

COARSE, FINE = "frequency", "fine_frequency"


def as_in_file(source: FileInput, operand: Operand) -> Operand:
    """Return an operand with an axis of channels within coarse ones where its datasets name one.

    Else, also where a number drops it, the operand is returned as it is. A number may take one of
    the coarse channels.
    """
    if operand.free or COARSE not in operand.axes:
        return operand
    behind = operand.axes.index(COARSE) + 1
    both = replace(operand, axes=(*operand.axes[:behind], FINE, *operand.axes[behind:]))
    try:
        with opened(source.path) as file:
            there = OperandAxes(file, source, both)
    except InputError:  # which is said of the operand again
        return operand
    names = zip(there.names or (), there.picked.axes, strict=bool(there.names))
    kept = {operand_axis(name) for name, axis in names if axis.kept}
    return both if FINE in kept else operand


def counted_within(coordinates: Mapping[str, Coordinate]) -> dict[str, Coordinate]:
    """Return a file's coordinates with offsets within coarse channels said to be such.

    A filter bank's say it of themselves. Where a number takes one of them it is added as theirs is.
    """
    found = dict(coordinates)
    for name in (FINE, f"{SELECTED}{FINE}"):
        one = found.get(name)
        coarse = found.get(COARSE, found.get(f"{SELECTED}{COARSE}"))
        if one is None or coarse is None or one.units not in FACTORS["Hz"]:
            continue
        if not any(text in one.long_name for text in OFFSETS):
            found[name] = replace(one, long_name=f"{one.long_name}, {OF_SAMPLES}")
    return found


def with_joint(
    headers: Mapping[str, OperandHeader],
    coordinates: Mapping[str, Coordinate],
    in_file: Sequence[Operand],
    *,
    check: bool,
) -> tuple[dict[str, OperandHeader], dict[str, Coordinate]]:
    """Return headers and coordinates of operands ``in_file`` with both axes as one.

    With ``check`` many values are not made. Raises InputError where one of the axes has no
    frequencies, and where another operand has both axes with other lengths and is not of one
    frequency.
    """
    joint = [one.name for one in in_file if FINE in one.axes]
    if not joint:
        return dict(headers), dict(coordinates)
    made, first = dict(headers), headers[joint[0]]
    coarse, fine = (_length(first.map, axis) for axis in (COARSE, FINE))
    for one in in_file:
        mapped = headers[one.name].map
        if (_length(mapped, COARSE), _length(mapped, FINE)) not in ((coarse, fine), (1, 1)):
            raise InputError(
                f"input.{one.name}: must have {COARSE} {coarse} and {FINE} {fine}, as "
                f"input.{joint[0]} has, or be of one frequency, got {mapped}"
            )
    for axis in (COARSE, FINE):
        _check_frequencies(axis, coordinates.get(axis))
    taken = first.numbers.get(FINE)
    entries = np.arange(fine) if taken is None else taken.indices
    place = first.map.axes.index(COARSE)
    outline = Product("", blank(first.shape, np.complex64), first.map.axes, coordinates, "")
    found = joined(
        outline, Merged(place, place + 1, range(coarse), range(fine)),
        apart=not np.any(np.abs(np.diff(entries)) == 1), check=check,
    )  # fmt: skip
    for name in joint:
        numbers = {
            axis: one for axis, one in headers[name].numbers.items() if axis not in (COARSE, FINE)
        }
        made[name] = replace(headers[name], map=_joint_map(headers[name].map), numbers=numbers)
    return made, dict(found.coordinates)


def _length(mapped: AxisMap, axis: str) -> int:
    """Return the length of an axis, 1 where there is none."""
    return dict(zip(mapped.axes, mapped.shape, strict=True)).get(axis, 1)


def _joint_map(mapped: AxisMap) -> AxisMap:
    """Return the map of the dataset with both axes as one in the place of the coarse one."""
    both = _length(mapped, COARSE) * _length(mapped, FINE)
    place = COARSE if COARSE in mapped.given else FINE
    left = [axis for axis in mapped.given if axis == place or axis not in (COARSE, FINE)]
    given = tuple(COARSE if axis == place else axis for axis in left)
    missing = tuple(axis for axis in mapped.missing if axis != COARSE)
    axes = tuple(axis for axis in mapped.axes if axis != FINE)
    lengths = {axis: both if axis == COARSE else _length(mapped, axis) for axis in axes}
    return AxisMap(
        given, tuple(lengths[axis] for axis in given),
        tuple(given.index(axis) for axis in axes if axis in given),
        axes, tuple(lengths.values()), missing,
    )  # fmt: skip


def _check_frequencies(axis: str, one: Coordinate | None) -> None:
    """Raise InputError where what stands along an axis is no frequency that can be added."""
    known = list(FACTORS["Hz"])
    if one is None or one.units not in known or one.of(axis) != (axis,):
        got = "nothing" if one is None else f"{one.units or 'no unit'} along {list(one.of(axis))}"
        raise InputError(
            f"input.coordinates.{axis}: must be given, in one of {known}, got {got}: the sums of "
            f"{COARSE} and {FINE} are the frequencies of channels within channels"
        )
    if any(text in one.long_name for text in (OF_REAL, OF_UPPER)):
        raise InputError(
            f"input.coordinates.{axis}: {one.long_name}, which is no frequency of one channel, so "
            f"the sums of {COARSE} and {FINE} are none; an index in input.select drops an axis"
        )
