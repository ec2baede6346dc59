"""Channels within channels of a product as one axis, for operands that have one of frequency.

A filter bank of coarse channels has an axis of these and one of the channels within each. Voltages
have all of them one after another: those within the first coarse channel, then within the second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from workflow.config.axis_names import operand_axis
from workflow.config.file_input import FileInput
from workflow.data import MAX_CHECKED, OVERLAPPING, Array, Coordinate, Product, blank, is_blank
from workflow.files.input_error import InputError
from workflow.files.units import FACTORS
from workflow.inputs.axes import Operand
from workflow.inputs.named_entries import has_names, without_names
from workflow.inputs.product_operand import ProductArray
from workflow.inputs.selected_offsets import APART, counts_from_samples, raised
from workflow.inputs.selections import Picked, SelectionError, pick


@dataclass(frozen=True)
class Merged:
    """The places, in a product, of the axis of coarse channels and of the one within them.

    ``channels`` and ``within`` are the entries of either that are selected.
    """

    coarse: int
    fine: int
    channels: Sequence[int]
    within: Sequence[int]

    @property
    def length(self) -> int:
        """Number of channels together."""
        return len(self.channels) * len(self.within)

    def stretches(self, start: int, stop: int) -> Iterator[tuple[slice, Sequence[int]]]:
        """Yield boxes of a range of the joint axis: coarse channels, and the entries within each.

        A box is a part of one coarse channel, or all that is selected of one or several.
        """
        each = len(self.within)
        while start < stop:
            channel, first = divmod(start, each)
            last, count = min(each, first + stop - start), 1
            while last - first == each and start + (count + 1) * each <= stop:
                if self.channels[channel + count] != self.channels[channel] + count:
                    break
                count += 1
            begin = self.channels[channel]
            yield slice(begin, begin + count, 1), self.within[first:last]
            start += count * (last - first)


@dataclass(frozen=True)
class MergedArray:
    """A product file's data with both axes as one, in the place of the coarse one."""

    array: ProductArray
    merged: Merged

    def taken(self, picked: Picked) -> Array:
        """Return the selected values."""
        return picked.read(self)

    def __getitem__(self, spans: tuple[slice, ...]) -> Array:
        """Return the entries of a range of each axis."""
        coarse, fine = self.merged.coarse, self.merged.fine
        parts = []
        for channels, within in self.merged.stretches(spans[coarse].start, spans[coarse].stop):
            least = min(within)
            box = list(spans)
            box[coarse] = channels
            box.insert(fine, slice(least, max(within) + 1, 1))
            data = np.moveaxis(self.array[tuple(box)], fine, coarse + 1)
            data = data.take([entry - least for entry in within], axis=coarse + 1)
            parts.append(data.reshape(*data.shape[:coarse], -1, *data.shape[coarse + 2 :]))
        found = np.concatenate(parts, axis=coarse)
        return found[(slice(None),) * coarse + (slice(None, None, spans[coarse].step),)]


def array_of(path: Path, merged: Merged | None) -> Any:
    """Return the array in a product file as an operand has it, with both axes as one or without."""
    array = ProductArray(path)
    return array if merged is None else MergedArray(array, merged)


def merged_channels(product: Product, operand: Operand, source: FileInput) -> Merged | None:
    """Return the axes of a product that become the operand's frequencies together.

    None where a study names the axes, or takes one channel within each coarse one.
    """
    entries = source.select.get(operand.name, {})
    if operand.free or "frequency" not in operand.axes or source.axes_of(operand.name) is not None:
        return None
    axes, shape = product.axes, product.data.shape
    known = [product.coordinates.get(axis) for axis in axes]
    coarse = [place for place, axis in enumerate(axes) if operand_axis(axis) == "frequency"]
    fine = [
        place for place, one in enumerate(known)
        if one is not None and place not in coarse and counts_from_samples(one)
    ]  # fmt: skip
    if len(coarse) != 1 or len(fine) != 1 or fine[0] < coarse[0] or known[coarse[0]] is None:
        return None
    if not isinstance(entries, Mapping):
        return None
    own = _own(entries, (axes[coarse[0]], axes[fine[0]]))
    try:
        picked = pick(without_names(entries), shape, axes).axes
    except SelectionError:  # the operand says what is wrong with it
        return None
    if not picked[fine[0]].kept or has_names({name: entries[name] for name in own}):
        return None
    return Merged(coarse[0], fine[0], picked[coarse[0]].entries, picked[fine[0]].entries)


def _own(entries: Mapping[str, Any], both: tuple[str, str]) -> list[str]:
    """Return the names, in a selection, of coarse channels and of those within them."""
    return [name for name in entries if name in both or operand_axis(name) == "frequency"]


def with_merged(
    product: Product, operand: Operand, source: FileInput, *, check: bool
) -> tuple[Product, FileInput, Merged | None]:
    """Return a product or its outline, and an input, with both axes as one where an operand has so.

    The last that is returned says which axes these are; None where there is no such axis.

    That axis has the name of the coarse one, and its frequencies are the sums of both. What else
    stands along either axis is there for each channel. With ``check`` many values are not made
    (`blank`). The input selects nothing along either axis, because the product has what it selects.
    Raises InputError where either axis has no frequencies in Hz or a multiple, as those within
    coarse channels of samples without times.
    """
    if (merged := merged_channels(product, operand, source)) is None:
        return product, source, None
    _check_hertz(product, merged, operand.name)
    apart = not np.any(np.abs(np.diff(merged.within)) == 1)
    coarse, fine = (product.axes[place] for place in (merged.coarse, merged.fine))
    entries: Any = source.select.get(operand.name, {})
    left = {name: entries[name] for name in entries if name not in _own(entries, (coarse, fine))}
    select = {**source.select, operand.name: left}
    made = joined(product, merged, apart=apart, check=check)
    return made, source.model_copy(update={"select": select}), merged


def _check_hertz(product: Product, merged: Merged, operand: str) -> None:
    for axis in (product.axes[place] for place in (merged.coarse, merged.fine)):
        units = product.coordinates[axis].units
        if units not in FACTORS["Hz"]:
            raise InputError(
                f"input.{operand}: its frequencies are the sums of two axes of the product, and "
                f"{axis} is in {units or 'no unit'}, not in one of {list(FACTORS['Hz'])}; give the "
                "workload that reads the file input.sample_rate_hz, or input.coordinates of time "
                "and frequency, or take one entry of an axis by input.select"
            )


def joined(product: Product, merged: Merged, *, apart: bool, check: bool) -> Product:
    """Return an outline with the axis of channels within coarse ones in that of these.

    ``apart`` says that no two neighbours within a channel are taken.
    """
    names = product.axes
    coarse, fine = names[merged.coarse], names[merged.fine]
    shape = list(product.data.shape)
    shape[merged.coarse] = merged.length
    del shape[merged.fine]
    found = {
        name: _along(product, merged, name, apart=apart, check=check)
        if {coarse, fine} & set(one.of(name))
        else one
        for name, one in product.coordinates.items()
        if name != fine and not {coarse, fine} <= set(one.of(name))
    }
    data = blank(tuple(shape), product.data.dtype)
    kept = tuple(axis for axis in names if axis != fine)
    return replace(product, data=data, axes=kept, coordinates=found)


def _along(product: Product, merged: Merged, name: str, *, apart: bool, check: bool) -> Coordinate:
    """Return a coordinate along either axis with a value for each channel of the joint one."""
    coarse, fine = (product.axes[place] for place in (merged.coarse, merged.fine))
    one, offsets = product.coordinates[name], product.coordinates[fine]
    values, along = one.values, one.of(name)
    for number, axis in enumerate(along):
        if axis in (coarse, fine):
            values = _for_each(values, number, merged, of_coarse=axis == coarse, check=check)
    axes = tuple(coarse if axis == fine else axis for axis in along)
    found = replace(one, values=values, axes=() if axes == (name,) else axes, step=None)
    if name != coarse:
        return found
    above = _for_each(offsets.values, 0, merged, of_coarse=False, check=check)
    if apart:
        found = replace(found, long_name=f"{one.long_name or name}, {APART}")
    elif _overlap(one, offsets, merged):
        found = replace(found, long_name=f"{one.long_name or name}, {OVERLAPPING}")
    return replace(found, values=raised(found, replace(offsets, values=above)))


def _overlap(coarse: Coordinate, offsets: Coordinate, merged: Merged) -> bool:
    """Return whether what is taken within a coarse channel reaches into its neighbour."""
    if is_blank(coarse.values) or is_blank(offsets.values) or len(merged.channels) < 2:
        return False
    within = np.sort(offsets.values.take(merged.within))
    width = np.diff(within).min() * FACTORS["Hz"][offsets.units]
    apart = np.diff(np.sort(coarse.values.take(merged.channels))).min()
    across = float(np.ptp(within)) * FACTORS["Hz"][offsets.units] + width
    return bool(across > (1 + 1e-6) * apart * FACTORS["Hz"][coarse.units])


def _for_each(values: Array, axis: int, merged: Merged, *, of_coarse: bool, check: bool) -> Array:
    """Return the entries along either axis with one for each channel of the joint axis."""
    if is_blank(values) or (check and merged.length > MAX_CHECKED):
        shape = list(values.shape)
        shape[axis] = merged.length
        return blank(tuple(shape), values.dtype)
    if of_coarse:
        return values.take(merged.channels, axis).repeat(len(merged.within), axis)
    return np.concatenate([values.take(merged.within, axis)] * len(merged.channels), axis)
