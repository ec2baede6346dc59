"""Operands whose antennas or feeds nothing names, beside one whose entries have names."""

from __future__ import annotations

from workflow.config.axis_names import in_own_words
from workflow.config.file_input import FileInput
from workflow.files.hdf5_file import opened
from workflow.files.links import DatasetError, find_dataset
from workflow.inputs.described import Described
from workflow.inputs.input_operand import InputOperand
from workflow.inputs.own_coordinates import own_coordinates

_NAMED = ("antenna", "polarization")
"""Axes whose entries have names."""


def taken_in_order(source: FileInput, found: Described) -> dict[str, str]:
    """Return why entries are taken to be those of another operand, by operand and axis.

    Of an axis that a file or a product names for one operand alone, nothing tells whether the
    other has the same antennas in the same order, and no check can refuse it. A study that gives
    `coordinates` of the axis says so for both.
    """
    said = {in_own_words(name) for name in source.coordinates}
    assumed = {}
    for axis in (axis for axis in _NAMED if axis not in said):
        having = [
            name for name, one in found.headers.items()
            if axis in one.map.axes and one.shape[one.map.axes.index(axis)] > 1
        ]  # fmt: skip
        named = [name for name in having if _is_named(source, found, name, axis)]
        for name in having if named else ():
            if name not in named:
                assumed[f"{name}.{axis}"] = (
                    f"nothing names the entries of {name} along {axis}, which are taken to be "
                    f"those of {named[0]} in the same order"
                )
    return assumed


def _is_named(source: FileInput, found: Described, name: str, axis: str) -> bool:
    """Return whether the entries of an operand along an axis have names of its own."""
    if name in found.made:
        own = found.made[name].coordinates()
        return any(one.of(key) == (axis,) and one.values.dtype.kind == "U"
                   for key, one in own.items())  # fmt: skip
    with opened(source.path) as file:
        operand = InputOperand(file, source, found.plain[name])
        place = operand.dataset_axis(axis)
        paths = [
            one.path for one in own_coordinates(file, operand, external=source.external)[0]
            if one.number == place
        ]  # fmt: skip
        try:
            return any(
                find_dataset(file, path, external=source.external).dtype.kind in "SO"
                for path in paths
            )
        except DatasetError:  # of a coordinate that was left out
            return False
