"""The operands of a workload: their sizes, reading them from the user's file, letting them in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from argand import Precision
from pydantic import BaseModel

from workflow.config.file_input import FileInput
from workflow.data import blank
from workflow.storage.inputs import (
    InputError,
    OperandHeader,
    count_nonfinite,
    describe_operand,
    files_beside,
    read_operand,
    source_checksum,
)

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Operand:
    """An operand that a file may hold: its name, its axes, and whether it is real."""

    name: str
    axes: tuple[str, ...]
    real: bool = False


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


def present(source: FileInput, operands: Sequence[Operand]) -> list[Operand]:
    """The operands that an input names."""
    return [operand for operand in operands if getattr(source, operand.name) is not None]


def headers(source: FileInput, operands: Sequence[Operand]) -> dict[str, OperandHeader]:
    """What the file holds for each operand of the input; raises InputError."""
    return {
        operand.name: describe_operand(
            source, operand.name, rank=len(operand.axes), axes=operand.axes, real=operand.real
        )
        for operand in present(source, operands)
    }


def outline(source: FileInput, operands: Sequence[Operand]) -> dict[str, Array]:
    """`read_operands` without the values (`blank`); raises InputError."""
    found = headers(source, operands)
    return {name: blank(header.shape, header.dtype) for name, header in found.items()}


def read_operands(source: FileInput, operands: Sequence[Operand]) -> dict[str, Array]:
    """Each operand of the input with all its axes; raises InputError."""
    return {
        operand.name: read_operand(
            source, operand.name, rank=len(operand.axes), axes=operand.axes, real=operand.real
        )
        for operand in present(source, operands)
    }


def without_leading_ones(data: Array) -> Array:
    """Data of at least two axes without the leading axes of length 1, such as a file lacked."""
    keep = next((axis for axis, n in enumerate(data.shape[:-2]) if n > 1), data.ndim - 2)
    return data.reshape(data.shape[keep:])


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
