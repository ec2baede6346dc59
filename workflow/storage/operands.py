"""The operands of a workload: their sizes, reading them from the user's file, letting them in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from argand import Precision
from pydantic import BaseModel

from workflow.config.file_input import FileInput
from workflow.data import Staged, blank
from workflow.storage.axes import Operand as Operand
from workflow.storage.inputs import (
    InputError,
    OperandHeader,
    count_nonfinite,
    describe_coordinates,
    describe_operand,
    files_beside,
    read_operand,
    source_checksum,
)

Array = npt.NDArray[Any]


def sizes_or_input(case: BaseModel, sizes: Sequence[str], drawn: Sequence[str] = ()) -> None:
    """Check that sizes come from one place: the config, or the data that ``input`` names.

    Raises ValueError for a size that is missing without an input, and for a size, or a parameter of
    data that are ``drawn``, that is given beside one.
    """
    from_file = getattr(case, "input", None) is not None
    for name in (*sizes, *drawn):
        if from_file and name in case.model_fields_set:
            raise ValueError(f"{name} must not be given beside input: the data are there")
        if not from_file and name in sizes and getattr(case, name) is None:
            raise ValueError(f"{name} must be given where there is no input")


def axis_of_input(case: BaseModel, file_input: type[FileInput]) -> None:
    """Raise ValueError for an ``axis`` where no data of the user's have several."""
    if getattr(case, "axis", None) is not None and not isinstance(
        getattr(case, "input", None), file_input
    ):
        raise ValueError("axis must be given beside an input's operands: others have their own")


def present(source: FileInput, operands: Sequence[Operand]) -> list[Operand]:
    """The operands that an input names."""
    return [operand for operand in operands if getattr(source, operand.name) is not None]


def headers(source: FileInput, operands: Sequence[Operand]) -> dict[str, OperandHeader]:
    """What the file holds for each operand of the input; raises InputError.

    Looks for mistakes in its coordinates too.
    """
    there = present(source, operands)
    found = {operand.name: describe_operand(source, operand) for operand in there}
    describe_coordinates(source, there, check=True)
    return found


def outline(source: FileInput, operands: Sequence[Operand]) -> Staged:
    """`staged` without the values (`blank`); raises InputError."""
    there = present(source, operands)
    found = {operand.name: describe_operand(source, operand) for operand in there}
    return Staged(
        {name: blank(header.shape, header.dtype) for name, header in found.items()},
        {name: header.map.axes for name, header in found.items()},
        describe_coordinates(source, there, check=True),
        units={name: header.units for name, header in found.items() if header.units},
    )


def staged(source: FileInput, operands: Sequence[Operand], *, allow_nonfinite: bool) -> Staged:
    """The operands of an input, their axes and what stands along them, and where they come from.

    Raises InputError, also for NaN and Inf unless they are let through.
    """
    there = present(source, operands)
    found = {operand.name: describe_operand(source, operand) for operand in there}
    data = {operand.name: read_operand(source, operand) for operand in there}
    attributes = provenance(source, data)
    if not allow_nonfinite:
        refuse_nonfinite(data, attributes)
    attributes["axes"] = {name: str(header.map) for name, header in found.items()}
    return Staged(
        data,
        {name: header.map.axes for name, header in found.items()},
        describe_coordinates(source, there),
        attributes,
        units={name: header.units for name, header in found.items() if header.units},
    )


def provenance(source: FileInput, operands: Mapping[str, Array]) -> dict[str, Any]:
    """Where operands come from: path, SHA-256 of the file, and counts of NaN and Inf in each.

    Other files that hold some of the values (``external: true``) are listed with theirs.
    """
    beside = {str(path): source_checksum(path) for path in files_beside(source)}
    return {
        "source": str(source.file),
        "source_sha256": source_checksum(source.file),
        **({"external_sha256": beside} if beside else {}),
        "nonfinite": count_all(operands),
    }


def count_all(operands: Mapping[str, Array]) -> dict[str, dict[str, int]]:
    """Counts of NaN and Inf by operand."""
    counts = {name: count_nonfinite(data) for name, data in operands.items()}
    return {name: {"nan": nan, "inf": inf} for name, (nan, inf) in counts.items()}


def refuse_nonfinite(operands: Mapping[str, Array], attributes: Mapping[str, Any]) -> None:
    """Raise InputError with the counts and the first place where an operand is not finite."""
    found = []
    for name, counts in attributes["nonfinite"].items():
        if counts["nan"] or counts["inf"]:
            data = operands[name]
            first = tuple(map(int, np.unravel_index(np.argmin(np.isfinite(data)), data.shape)))
            found.append(
                f"input.{name} has {counts['nan']} NaN and {counts['inf']} Inf among "
                f"{data.size} values, the first at {first}"
            )
    if found:
        raise InputError("; ".join(found) + "; allow_nonfinite: true lets them through")


def cast(operands: Mapping[str, Array], precision: Precision) -> dict[str, Array]:
    """Operands in the type that they have in memory at a precision, complex or real."""
    return {
        name: data.astype(
            precision.output if data.dtype.kind == "c" else precision.real_output, copy=False
        )
        for name, data in operands.items()
    }


def complex_bytes(precision: Precision) -> int:
    """What a complex number takes in device memory at a precision."""
    return np.dtype(precision.output).itemsize
