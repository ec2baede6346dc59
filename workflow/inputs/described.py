"""The operands of an input by their headers, and what stands along their axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from workflow.config.axis_names import SYNONYMS, operand_axis
from workflow.config.coordinate import axis_of
from workflow.config.file_input import FileInput
from workflow.config.formats import HDF5
from workflow.config.mistakes import nearest
from workflow.data import ONLY, SELECTED, TAKEN, TUNED, Coordinate, Product
from workflow.files.input_error import InputError, Mistakes
from workflow.inputs.agreement import (
    check_agrees,
    check_numbers,
    differ,
    hold_to_one,
    in_names,
    names_beside_count,
)
from workflow.inputs.antennas_of_inputs import tells_feeds, with_antennas
from workflow.inputs.axes import AxisError, Operand
from workflow.inputs.channels_in_files import as_in_file, counted_within, with_joint
from workflow.inputs.coordinates import NUMBERED, number_selected
from workflow.inputs.dimension_names import check_exchanged
from workflow.inputs.given_axes import of_lacking, with_given
from workflow.inputs.hdf5_operands import describe_coordinates, describe_operand
from workflow.inputs.input_operand import OperandHeader
from workflow.inputs.merged_channels import Merged, with_merged
from workflow.inputs.product_operand import ProductOperand
from workflow.inputs.selected_offsets import ADDED, of_waves
from workflow.readers import reader_of

_NUMBERED_ALIKE = ("antenna", "polarization")
"""Axes along which the same number of a product and of a dataset means the same entry."""


@dataclass(frozen=True)
class Described:
    """An input's operands: their ``headers``, and the ``coordinates`` along their axes.

    ``plain`` has by name the operands that are datasets of an HDF5 file, with the axes that these
    have (`as_in_file`), and ``made`` what makes the others: another workload's product, or a
    reader. ``merged`` has for each of these the product's axes that are one, or None. ``left_out``
    says of a file's path why something along an axis is no coordinate.
    """

    headers: dict[str, OperandHeader]
    plain: dict[str, Operand]
    made: dict[str, ProductOperand]
    merged: dict[str, Merged | None]
    coordinates: dict[str, Coordinate]
    left_out: dict[str, str]

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        """Axes by operand."""
        return {name: header.map.axes for name, header in self.headers.items()}

    @property
    def units(self) -> dict[str, str]:
        """Units of the operands that have one."""
        return {name: header.units for name, header in self.headers.items() if header.units}


def describe(
    source: FileInput, operands: Sequence[Operand], upstream: Mapping[str, Product], *, check: bool
) -> Described:
    """Return the operands that an input names, by headers alone; raises InputError.

    ``upstream`` are the outlines of the products that it reads. With ``check`` coordinates are
    looked through for mistakes, and long ones are without their values.
    """
    products = source.products()
    there = [operand for operand in operands if getattr(source, operand.name) is not None]
    plain = {
        one.name: as_in_file(source, one)
        for one in there
        if one.name not in products and source.format == HDF5
    }
    headers: dict[str, OperandHeader] = {}
    made: dict[str, ProductOperand] = {}
    merged: dict[str, Merged | None] = {}
    mistakes = Mistakes()
    for operand in there:
        with mistakes.kept():
            if operand.name in plain:
                headers[operand.name] = describe_operand(source, plain[operand.name])
            else:
                one, merged[operand.name] = _read_otherwise(source, operand, upstream, check)
                headers[operand.name], made[operand.name] = one.header, one
    coordinates: dict[str, Coordinate] = {}
    left_out: dict[str, str] = {}
    with mistakes.kept():
        if source.format != HDF5 or not plain:
            coordinates = _of_lacking(source, there, made, upstream, check)
        else:
            right = [one for name, one in plain.items() if name in headers]
            wrong = [one for name, one in plain.items() if name not in headers]
            coordinates, left_out = describe_coordinates(source, right, check=check, wrong=wrong)
            coordinates = counted_within(coordinates)
    mistakes.raise_all()
    headers, coordinates = with_joint(headers, coordinates, list(plain.values()), check=check)
    work_along_any = any(one.free for one in there)
    carried = {name: with_antennas(one.coordinates()) for name, one in made.items()}
    placed = any("east" in known for known in (coordinates, *carried.values()))
    for name, own in carried.items():
        placed_too = placed and "antenna_position" in made[name].product.coordinates
        for axis in _NUMBERED_ALIKE:
            if axis in own and not (axis in coordinates or f"{axis}_name" in own):
                others = [
                    key for key in headers if axis not in carried.get(key, {}) and key != name
                ]
                whole = axis != "antenna" or not placed_too  # places tell which antennas they are
                check_numbers(name, axis, own[axis], [headers[key] for key in others], whole=whole)
        if not work_along_any:
            own = _as_another(coordinates.get("frequency"), own)
        _carry(coordinates, source, name, own)
    coordinates = coordinates if work_along_any else of_waves(coordinates)
    _place_selected(coordinates, source, headers)
    coordinates = coordinates if work_along_any else of_waves(coordinates)  # of what was placed
    _place_feed(coordinates, headers, carried)
    hold_to_one(coordinates, headers)
    number_selected(coordinates, there, headers)
    return Described(headers, plain, made, merged, coordinates, left_out)


def _as_another(known: Coordinate | None, own: Mapping[str, Coordinate]) -> dict[str, Coordinate]:
    """Return an operand's coordinates with frequencies of waves, or of channels as another's are.

    Weights may be for one channel within each of the samples' channels, or for all of these.
    """
    waves, frequency = of_waves(own), own.get("frequency")
    if known is None or frequency is None or differ(known, frequency):
        return waves
    return dict(own) if differ(known, waves["frequency"]) else waves


def _carry(
    coordinates: dict[str, Coordinate], source: FileInput, operand: str,
    own: Mapping[str, Coordinate],
) -> None:  # fmt: skip
    """Add what an operand brings along its axes; raises InputError where others have it otherwise.

    Names take the place of numbers that only count, unless the study says what stands there.
    """
    said = {each for one in source.coordinates for each in (one, SYNONYMS.get(one))}
    for name, carried in own.items():
        known = coordinates.setdefault(name, carried)
        if known is carried:
            continue
        if name.startswith(SELECTED):  # of two operands, numbers may take different entries
            if differ(known, carried):
                del coordinates[name]
            continue
        alike = in_names(name, (known, coordinates), (carried, own))
        if name in said or (names := names_beside_count(*alike)) is None:
            check_agrees(operand, name, *alike)
            if known.values.size == 1 < carried.values.size:
                coordinates[name] = carried  # one that is for all
        else:
            coordinates[name] = names


def _place_selected(
    coordinates: dict[str, Coordinate], source: FileInput, headers: Mapping[str, OperandHeader]
) -> None:
    """Let an entry that was selected before be that of an axis which an operand lacks.

    A workload whose samples are of one feed, antenna or channel has a product without that axis,
    and its voltages are of this one. So are complex samples at what they were tuned to. Where other
    operands have several entries of the axis it stays beside them. Raises InputError where they
    have another one.
    """
    said = {operand_axis(name) for name in source.coordinates}
    for selected in [name for name in coordinates if name.startswith(SELECTED)]:
        one = coordinates[selected]
        (of, *others), name = one.of(selected), selected.removeprefix(SELECTED)
        axis = operand_axis(of.removeprefix(SELECTED))
        having = {key: each.map for key, each in headers.items() if axis in each.map.axes}
        lacking = [key for key, each in having.items() if axis in each.missing]
        several = any(each.shape[each.axes.index(axis)] > 1 for each in having.values())
        known = TAKEN in one.long_name or one.long_name == TUNED
        known = known and ADDED not in one.long_name
        if others or not lacking or several or not known:
            continue
        del coordinates[selected]
        if of == f"{SELECTED}{name}":
            name = axis
        if one.long_name == TUNED and name in said:
            continue  # the study replaces it
        long_name = one.long_name.replace(f" {TAKEN}", "")
        own = replace(one, long_name=long_name, axes=() if name == axis else (axis,))
        _carry(coordinates, source, lacking[0], {name: own})


def _place_feed(
    coordinates: dict[str, Coordinate], headers: Mapping[str, OperandHeader],
    carried: Mapping[str, Mapping[str, Coordinate]],
) -> None:  # fmt: skip
    """Let the one feed of visibilities' inputs be the polarization, an axis that they lack.

    Raises InputError where another operand has another feed, by its name or its number.
    """
    having = [key for key, one in headers.items() if "antenna" in one.map.axes]
    for name in [name for name, one in coordinates.items() if tells_feeds(name, one)]:
        of = next((key for key, own in carried.items() if name in own), having[0])
        feeds = coordinates[name]
        several = len(np.unique(feeds.values)) != 1  # which are refused
        if several or ONLY in feeds.long_name or "polarization" not in headers[of].map.missing:
            continue
        named = feeds.values.dtype.kind == "U"
        said = "polarization of the inputs" if named else NUMBERED.format("polarization")
        one = Coordinate(feeds.values[:1], "", said)
        check_numbers(of, "polarization", one, [headers[key] for key in headers if key != of])
        known = coordinates.setdefault("polarization", one)
        if (known.values.dtype.kind == "U") == named:
            check_agrees(of, "polarization", known, one)


def _read_otherwise(
    source: FileInput, operand: Operand, upstream: Mapping[str, Product], check: bool
) -> tuple[ProductOperand, Merged | None]:
    """Return an operand that is another workload's product, or an array of a reader's.

    Beside it stands which axes of the product are one of the operand's (`with_merged`).
    """
    if operand.name in (products := source.products()):
        of = products[operand.name]
        what = f"the product of {of}"
        product, given = upstream[of], tuple(source.coordinates) * (source.file is None)
        if source.file is None:  # else coordinates are those of its datasets or arrays
            others = {key: upstream[one] for key, one in products.items() if key != operand.name}
            of_others = [
                name for name, one in source.coordinates.items()
                if any(axis_of(name, one) in (source.axes_of(key) or other.axes)
                       and name not in other.coordinates for key, other in others.items())
            ]  # fmt: skip
            product = with_given(product, source, operand.name, {}, of_others, check=check)
        product, source, merged = with_merged(product, operand, source, check=check)
        return ProductOperand(operand, product, source, what, given), merged
    reader = reader_of(source, operand.name, check=check)
    name = reader.known(getattr(source, operand.name), f"input.{operand.name}")
    what, found = f"{name} of {source.path}", reader.outline(name)
    try:
        check_exchanged(what, operand.name, found.axes, source.axes_of(operand.name) or (), "")
    except AxisError as error:
        raise InputError(str(error)) from None
    outlined = with_given(found, source, operand.name, reader.faults, check=check)
    return ProductOperand(operand, outlined, source, what, source.coordinates), None


def _of_lacking(
    source: FileInput, operands: Sequence[Operand], made: Mapping[str, ProductOperand],
    upstream: Mapping[str, Product], check: bool,
) -> dict[str, Coordinate]:  # fmt: skip
    """Return what the study says of axes that no array of a reader's, or no product, has.

    Raises InputError for a coordinate of an axis that none has.
    """
    if not source.coordinates:
        return {}
    axes: dict[str, None] = {}
    lacking: dict[str, bool] = {}
    tuned: Coordinate | None = None
    for operand in operands:
        if operand.name in source.products() and source.file is not None:
            continue
        one = made.get(operand.name)
        if one is None:
            return {}  # its own mistake is said
        whole = upstream.get(source.products().get(operand.name, ""), one.product)  # not merged
        axes |= dict.fromkeys(source.axes_of(operand.name) or whole.axes)
        tuned = tuned or one.product.coordinates.get(f"{SELECTED}frequency")
        said = ("frequency",) if operand.free and tuned is not None else ()
        missing = one.header.map.missing
        of_one = operand.lacking(one.header.map)
        lacking |= {axis: axis in missing for axis in of_one if axis not in said}
    named = {operand_axis(name) for name in axes}
    lacking = {axis: has_axis for axis, has_axis in lacking.items() if axis not in named}
    for name, of in source.coordinates.items():
        along = axis_of(name, of)
        if along not in axes and operand_axis(along) not in lacking:
            raise InputError(
                f"input.coordinates.{name}: must be of an axis of the operands, {list(axes)}, got "
                f"{along!r}{nearest(along, [*axes, *lacking])}"
            )
    return of_lacking(source, lacking, tuned, check=check)
