"""The operands of a workload: their sizes, reading them from the user's file, letting them in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from argand import Precision

from workflow.config.file_input import FileInput
from workflow.config.formats import HDF5
from workflow.data import Product, Staged, blank
from workflow.inputs.axes import Operand as Operand
from workflow.inputs.described import describe
from workflow.inputs.file_array import FileArray
from workflow.inputs.hdf5_operands import never_written, read_operand, source_checksum
from workflow.inputs.input_operand import OperandHeader
from workflow.inputs.lacking import lacking
from workflow.inputs.merged_channels import array_of
from workflow.inputs.operand_values import (
    count_all,
    count_stretches,
    make_zero,
    refuse_nonfinite,
)
from workflow.inputs.provenance import of_products, provenance
from workflow.inputs.unnamed import taken_in_order
from workflow.readers import reader_of
from workflow.storage.products import read_outline

Array = npt.NDArray[Any]
NOTHING: Mapping[str, Any] = {}
"""No products of other workloads."""


def headers(
    source: FileInput, operands: Sequence[Operand], upstream: Mapping[str, Product] = NOTHING
) -> dict[str, OperandHeader]:
    """Return the header of each operand of the input; raises InputError.

    Looks for mistakes in its coordinates too. ``upstream`` are the outlines of the products that
    the input reads.
    """
    return describe(source, operands, upstream, check=True).headers


def outline(
    source: FileInput, operands: Sequence[Operand], upstream: Mapping[str, Product] = NOTHING
) -> Staged:
    """Return `staged` without the values (`blank`); raises InputError."""
    found = describe(source, operands, upstream, check=True)
    blanks = {name: blank(header.shape, header.dtype) for name, header in found.headers.items()}
    return Staged(blanks, found.axes, found.coordinates, units=found.units)


def staged(
    source: FileInput,
    operands: Sequence[Operand],
    upstream: Mapping[str, Path] = NOTHING,
    *,
    allow_nonfinite: bool | None,
) -> Staged:
    """Return an input's operands, their axes and what stands along them, and their sources.

    Arrays of other workloads' product files (``upstream``) are read as they are written. Raises
    InputError, also for NaN and Inf unless they are let through; with None they never are.
    """
    outlines = {name: read_outline(path) for name, path in upstream.items()}
    found = describe(source, operands, outlines, check=False)
    products = source.products()
    attributes = provenance(source)  # which forks this process, while it is small
    data = {
        name: read_operand(source, one).reshape(found.headers[name].shape)
        for name, one in found.plain.items()
    }
    nan = {name: make_zero(one) for name, one in data.items()} if source.flagged == "zero" else {}
    readers = {name: reader_of(source, name) for name in found.made if name not in products}
    drawn = {
        name: one.stretched(
            array_of(upstream[products[name]], found.merged[name])
            if name in products
            else FileArray(readers[name], getattr(source, name))
        )
        for name, one in found.made.items()
    }
    attributes["nonfinite"] = count_all(data)
    attributes["nonfinite"] |= {name: count_stretches(one) for name, one in drawn.items()}
    never = {name: never_written(source, one) for name, one in found.plain.items()}
    attributes |= lacking(readers, never, found.left_out, nan, taken_in_order(source, found))
    if upstream:
        attributes["products"] = {name: source_checksum(path) for name, path in upstream.items()}
        attributes |= of_products({name: upstream[of] for name, of in products.items()})
    if not allow_nonfinite:
        never_in = allow_nonfinite is None
        refuse_nonfinite({**data, **drawn}, attributes, found.axes, never_in=never_in)
    attributes["axes"] = {name: str(header.map) for name, header in found.headers.items()}
    return Staged(data, found.axes, found.coordinates, attributes, drawn, found.units)


def few(source: FileInput, operand: Operand) -> Array | None:
    """Return the few values of an operand that says how others are read, before any job starts.

    None where it is left out, or another workload's product or a reader makes it. Errors as of
    `read_operand`.
    """
    given = getattr(source, operand.name) is not None and operand.name not in source.products()
    return read_operand(source, operand) if given and source.format == HDF5 else None


def cast(operands: Mapping[str, Array], precision: Precision) -> dict[str, Array]:
    """Return the operands in the type that they have in memory at a precision, complex or real."""
    return {
        name: data.astype(
            precision.output if data.dtype.kind == "c" else precision.real_output, copy=False
        )
        for name, data in operands.items()
    }


def complex_bytes(precision: Precision) -> int:
    """Return the bytes of a complex number in device memory at a precision."""
    return np.dtype(precision.output).itemsize
