"""Names of the entries along an axis of an operand: those that a study or the file gives."""

from __future__ import annotations

import h5py

from workflow.config.axis_names import among, operand_axis
from workflow.config.coordinate import axis_of
from workflow.config.file_input import FileInput
from workflow.data import Coordinate
from workflow.files.input_error import InputError
from workflow.inputs.coordinate_units import values_with_unit
from workflow.inputs.equal_steps import whole_axis
from workflow.inputs.named_entries import are_names
from workflow.inputs.operand_axes import OperandAxes
from workflow.inputs.own_coordinates import own_coordinates


def names_along(
    file: h5py.File, source: FileInput, operand: OperandAxes, number: int
) -> list[Coordinate]:
    """Return the names along an axis of an operand's dataset: of the study, then the file's own.

    Raises InputError where the study names a coordinate there that cannot be read.
    """
    words = {operand.names[number]} if operand.names else set()
    words |= {axis for axis in operand.mapped().axes if operand.dataset_axis(axis) == number}
    words = {operand_axis(word) for word in words}
    # A covariance has the same antennas along its columns.
    words |= {"antenna"} if "column" in words else set()
    length = operand.datasets[0].shape[number]

    def read(key: str, name: str, of: object) -> Coordinate:
        return values_with_unit(
            file, source, key, name, of, length, whole_axis(length), check=False
        )

    found = {
        name: read(f"input.coordinates.{name}", name, of)
        for name, of in source.coordinates.items()
        if among(operand_axis(axis_of(name, of)), words) in words
    }
    for one in own_coordinates(file, operand, external=source.external)[0]:
        if one.number == number and one.name not in found:
            try:
                found[one.name] = read(one.path, one.name, one.path)
            except InputError:
                continue  # it is no coordinate, and the stage step says why
    return [one for one in found.values() if are_names(one.values)]
