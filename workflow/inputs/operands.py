"""The operands of a workload: their sizes, reading them from the user's file, letting them in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from argand import Precision
from pydantic import BaseModel

from workflow.config.axis_names import SYNONYMS
from workflow.config.case import Case
from workflow.config.file_input import FileInput
from workflow.config.formats import HDF5
from workflow.data import SELECTED, TUNED, Coordinate, Product, Staged, blank
from workflow.inputs.agreement import check_agrees, differ, in_names, names_beside_count
from workflow.inputs.axes import AxisError
from workflow.inputs.axes import Operand as Operand
from workflow.inputs.coordinates import number_selected
from workflow.inputs.dimension_names import check_exchanged
from workflow.inputs.given_axes import of_lacking, with_given
from workflow.inputs.inputs import (
    InputError,
    Mistakes,
    OperandHeader,
    describe_coordinates,
    describe_operand,
    never_written,
    read_operand,
    source_checksum,
)
from workflow.inputs.lacking import lacking
from workflow.inputs.operand_values import (
    count_all,
    count_stretches,
    make_zero,
    refuse_nonfinite,
)
from workflow.inputs.product_operand import ProductArray, ProductOperand
from workflow.inputs.provenance import of_products, provenance
from workflow.readers import FileArray, reader_of
from workflow.storage.products import read_outline

Array = npt.NDArray[Any]
NOTHING: Mapping[str, Any] = {}
"""No products of other workloads."""
_Headers = dict[str, tuple[OperandHeader, ProductOperand | None]]
"""By operand its header, and what makes it where another product or a reader does."""


def sizes_or_input(case: Case, sizes: Sequence[str], drawn: Sequence[str] = ()) -> None:
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
    if from_file:
        case.omit_synthetic((*sizes, *drawn))


def axis_of_input(case: BaseModel, file_input: type[FileInput]) -> None:
    """Raise ValueError for an ``axis`` where no data of the user's have several."""
    if getattr(case, "axis", None) is not None and not isinstance(
        getattr(case, "input", None), file_input
    ):
        raise ValueError("axis must be given beside an input's operands: others have their own")


def present(source: FileInput, operands: Sequence[Operand]) -> list[Operand]:
    """Return the operands that an input names."""
    return [operand for operand in operands if getattr(source, operand.name) is not None]


def headers(
    source: FileInput, operands: Sequence[Operand], upstream: Mapping[str, Product] = NOTHING
) -> dict[str, OperandHeader]:
    """Return the header of each operand of the input; raises InputError.

    Looks for mistakes in its coordinates too. ``upstream`` are the outlines of the products that
    the input reads.
    """
    return {name: one for name, (one, _) in _described(source, operands, upstream, True)[0].items()}


def outline(
    source: FileInput, operands: Sequence[Operand], upstream: Mapping[str, Product] = NOTHING
) -> Staged:
    """Return `staged` without the values (`blank`); raises InputError."""
    found, coordinates, _ = _described(source, operands, upstream, True)
    return Staged(
        {name: blank(header.shape, header.dtype) for name, (header, _) in found.items()},
        {name: header.map.axes for name, (header, _) in found.items()},
        coordinates,
        units={name: header.units for name, (header, _) in found.items() if header.units},
    )


def staged(
    source: FileInput,
    operands: Sequence[Operand],
    upstream: Mapping[str, Path] = NOTHING,
    *,
    allow_nonfinite: bool,
) -> Staged:
    """Return an input's operands, their axes and what stands along them, and their sources.

    Those of other workloads' product files (``upstream``) are read as they are written. Raises
    InputError, also for NaN and Inf unless they are let through.
    """
    outlines = {name: read_outline(path) for name, path in upstream.items()}
    found, coordinates, left_out = _described(source, operands, outlines, False)
    products = source.products()
    attributes = provenance(source)  # which forks this process, while it is small
    plain = [one for one in present(source, operands) if found[one.name][1] is None]
    data = {operand.name: read_operand(source, operand) for operand in plain}
    nan = {name: make_zero(one) for name, one in data.items()} if source.flagged == "zero" else {}
    others = {name: one for name, (_, one) in found.items() if one is not None}
    readers = {name: reader_of(source, name) for name in others if name not in products}
    drawn = {
        name: one.stretched(
            ProductArray(upstream[products[name]])
            if name in products
            else FileArray(readers[name], getattr(source, name))
        )
        for name, one in others.items()
    }
    attributes["nonfinite"] = count_all(data)
    attributes["nonfinite"] |= {name: count_stretches(one) for name, one in drawn.items()}
    never = {one.name: never_written(source, one) for one in plain}
    attributes |= lacking(readers, never, left_out, nan)
    if upstream:
        attributes["products"] = {name: source_checksum(path) for name, path in upstream.items()}
        attributes |= of_products({name: upstream[of] for name, of in products.items()})
    if not allow_nonfinite:
        axes = {name: header.map.axes for name, (header, _) in found.items()}
        refuse_nonfinite({**data, **drawn}, attributes, axes)
    attributes["axes"] = {name: str(header.map) for name, (header, _) in found.items()}
    return Staged(
        data,
        {name: header.map.axes for name, (header, _) in found.items()},
        coordinates,
        attributes,
        drawn,
        {name: header.units for name, (header, _) in found.items() if header.units},
    )


def _described(
    source: FileInput, operands: Sequence[Operand], upstream: Mapping[str, Product], check: bool
) -> tuple[_Headers, dict[str, Coordinate], dict[str, str]]:
    """Return each operand's header, what products and readers give, and `coordinates_of` them."""
    products, there = source.products(), present(source, operands)
    found: _Headers = {}
    plain = [one for one in there if one.name not in products and source.format == HDF5]
    mistakes = Mistakes()
    for operand in there:
        with mistakes.kept():
            if operand in plain:
                found[operand.name] = describe_operand(source, operand), None
            else:
                one = _read_otherwise(source, operand, upstream, check)
                found[operand.name] = one.header, one
    right = [one for one in plain if one.name in found]
    coordinates: dict[str, Coordinate] = {}
    left_out: dict[str, str] = {}
    with mistakes.kept():
        if source.format != HDF5:
            coordinates = _of_lacking(source, there, found, check)
        elif plain:
            wrong = [one for one in plain if one not in right]
            coordinates, left_out = describe_coordinates(source, right, check=check, wrong=wrong)
    mistakes.raise_all()
    said = {each for one in source.coordinates for each in (one, SYNONYMS.get(one))}
    for operand in there:
        whole = found[operand.name][1]
        own = whole.coordinates() if whole else {}
        for name, carried in own.items():
            known = coordinates.setdefault(name, carried)
            if name.startswith(SELECTED):  # of two operands, numbers may take different entries
                if known is not carried and differ(known, carried):
                    del coordinates[name]
                continue
            if known is not carried:
                alike = in_names(name, (known, coordinates), (carried, own))
                if name in said or (names := names_beside_count(*alike)) is None:
                    check_agrees(operand.name, name, *alike)
                else:
                    coordinates[name] = names
    headers = {name: header for name, (header, _) in found.items()}
    number_selected(coordinates, there, headers)
    _place_tuned(coordinates, headers)
    return found, coordinates, left_out


def _place_tuned(coordinates: dict[str, Coordinate], headers: Mapping[str, OperandHeader]) -> None:
    """Let what complex samples were tuned to be their frequency, where an axis of it is missing."""
    tuned = coordinates.get(f"{SELECTED}frequency")
    lengths = {
        dict(zip(one.map.axes, one.map.shape, strict=True)).get("frequency")
        for one in headers.values()
    } - {None}
    if tuned is not None and tuned.long_name == TUNED and lengths == {1}:
        coordinates.setdefault("frequency", replace(tuned, axes=()))
        del coordinates[f"{SELECTED}frequency"]


def _read_otherwise(
    source: FileInput, operand: Operand, upstream: Mapping[str, Product], check: bool
) -> ProductOperand:
    """Return an operand that is another workload's product, or an array of a reader's."""
    if operand.name in (products := source.products()):
        of = products[operand.name]
        return ProductOperand(operand, upstream[of], source, f"the product of {of}")
    reader = reader_of(source, operand.name, check=check)
    name = reader.known(getattr(source, operand.name), f"input.{operand.name}")
    what, found = f"{name} of {source.path}", reader.outline(name)
    try:
        check_exchanged(what, operand.name, found.axes, source.axes_of(operand.name) or (), "")
    except AxisError as error:
        raise InputError(str(error)) from None
    outlined = with_given(found, source, operand.name, reader.faults, check=check)
    return ProductOperand(operand, outlined, source, what, source.coordinates)


def _of_lacking(
    source: FileInput, operands: Sequence[Operand], found: _Headers, check: bool
) -> dict[str, Coordinate]:
    """Return what the study says of axes that no array of a reader's has, but an operand.

    Raises InputError for a coordinate of an axis that none has.
    """
    if not source.coordinates:
        return {}
    axes: dict[str, None] = {}
    lacking: dict[str, None] = {}
    tuned: Coordinate | None = None
    for operand in operands:
        header, one = found.get(operand.name, (None, None))
        if operand.name in source.products() or header is None or one is None:
            continue
        axes |= dict.fromkeys(source.axes_of(operand.name) or one.product.axes)
        lacking |= dict.fromkeys(() if operand.free else header.map.missing)
        tuned = tuned or one.product.coordinates.get(f"{SELECTED}frequency")
    lacking = {axis: None for axis in lacking if axis not in {SYNONYMS.get(n, n) for n in axes}}
    for name, of in source.coordinates.items():
        along = getattr(of, "axis", None) or name
        if along not in axes and SYNONYMS.get(along, along) not in lacking:
            raise InputError(
                f"input.coordinates.{name}: must be of an axis of the operands, {list(axes)}, got "
                f"{along!r}"
            )
    return of_lacking(source, lacking, tuned, check=check)


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
