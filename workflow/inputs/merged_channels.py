"""Channels within channels of a product as one axis, for operands that have one of frequency.

A filter bank of coarse channels has an axis of these and one of the channels within each. Voltages
have all of them one after another: those within the first coarse channel, then within the second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from workflow.config.axis_names import operand_axis
from workflow.config.file_input import FileInput
from workflow.data import MOST_CHECKED, Array, Coordinate, Product, blank, is_blank
from workflow.inputs.axes import Operand
from workflow.inputs.product_operand import ProductArray
from workflow.inputs.selected_offsets import counts_from_samples, raised
from workflow.inputs.selections import Picked


@dataclass(frozen=True)
class Merged:
    """The places, in a product, of the axis of coarse channels and of the one within them.

    ``within`` is the length of the latter.
    """

    coarse: int
    fine: int
    within: int


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
        for channels, within in self._stretches(spans[coarse]):
            box = list(spans)
            box[coarse] = channels
            box.insert(fine, within)
            data = np.moveaxis(self.array[tuple(box)], fine, coarse + 1)
            parts.append(data.reshape(*data.shape[:coarse], -1, *data.shape[coarse + 2 :]))
        found = np.concatenate(parts, axis=coarse)
        return found[(slice(None),) * coarse + (slice(None, None, spans[coarse].step),)]

    def _stretches(self, span: slice) -> Iterator[tuple[slice, slice]]:
        """Yield ranges of both axes that are a range of merged entries together, in their order."""
        each, start = self.merged.within, span.start
        while start < span.stop:
            channel, first = divmod(start, each)
            whole = (span.stop - channel * each) // each if first == 0 else 0
            stop = min(span.stop, (channel + max(1, whole)) * each)
            last = each if whole else stop - channel * each
            yield slice(channel, channel + max(1, whole), 1), slice(first, last, 1)
            start = stop


def array_of(path: Path, product: Product, operand: Operand, source: FileInput) -> Any:
    """Return the array in a product file as an operand has it; ``product`` is its outline."""
    merged = merged_channels(product, operand, source)
    array = ProductArray(path)
    return array if merged is None else MergedArray(array, merged)


def merged_channels(product: Product, operand: Operand, source: FileInput) -> Merged | None:
    """Return the axes of a product that become the operand's frequencies together.

    None where a study names the axes, or selects of one of them: it then means each by itself.
    """
    entries = source.select.get(operand.name)
    if operand.free or "frequency" not in operand.axes or source.axes_of(operand.name) is not None:
        return None
    if entries is not None and not isinstance(entries, Mapping):
        return None
    axes = product.axes
    known = [product.coordinates.get(axis) for axis in axes]
    coarse = [place for place, axis in enumerate(axes) if operand_axis(axis) == "frequency"]
    fine = [
        place for place, one in enumerate(known)
        if one is not None and place not in coarse and counts_from_samples(one)
    ]  # fmt: skip
    if len(coarse) != 1 or len(fine) != 1 or fine[0] < coarse[0] or known[coarse[0]] is None:
        return None
    own = {axes[coarse[0]], axes[fine[0]], "frequency", "channel"}
    if entries is not None and own & {*entries}:
        return None
    return Merged(coarse[0], fine[0], product.data.shape[fine[0]])


def with_merged(
    product: Product, operand: Operand, source: FileInput, *, check: bool = False
) -> Product:
    """Return a product, or its outline, as an operand has it: both axes as one, or as it is.

    The one has the coarse one's name. Its frequencies are the sums of both; what else stands along
    either is there for each channel; with ``check`` many values are not made (`blank`).
    """
    if (merged := merged_channels(product, operand, source)) is None:
        return product
    names = product.axes
    coarse, fine = names[merged.coarse], names[merged.fine]
    shape = list(product.data.shape)
    shape[merged.coarse] *= shape.pop(merged.fine)
    found = {
        name: _along(product, merged, name, check=check)
        if {coarse, fine} & set(one.of(name))
        else one
        for name, one in product.coordinates.items()
        if name != fine and not {coarse, fine} <= set(one.of(name))
    }
    data = blank(tuple(shape), product.data.dtype)
    return replace(
        product, data=data, axes=tuple(axis for axis in names if axis != fine), coordinates=found
    )


def _along(product: Product, merged: Merged, name: str, *, check: bool) -> Coordinate:
    """Return a coordinate along one of both axes for each of the channels together."""
    coarse, fine = (product.axes[place] for place in (merged.coarse, merged.fine))
    one, offsets = product.coordinates[name], product.coordinates[fine]
    counts = {coarse: merged.within, fine: product.data.shape[merged.coarse]}
    values, along = one.values, one.of(name)
    for number, axis in enumerate(along):
        if axis in counts:
            values = _for_each(values, number, counts[axis], repeated=axis == coarse, check=check)
    axes = tuple(coarse if axis == fine else axis for axis in along)
    found = replace(one, values=values, axes=() if axes == (name,) else axes, step=None)
    if name != coarse:
        return found
    above = _for_each(offsets.values, 0, counts[fine], repeated=False, check=check)
    return replace(found, values=raised(found, replace(offsets, values=above)))


def _for_each(values: Array, axis: int, count: int, *, repeated: bool, check: bool) -> Array:
    """Return each entry of an axis ``count`` times, ``repeated`` one after another or all again."""
    if is_blank(values) or (check and values.size * count > MOST_CHECKED):
        shape = list(values.shape)
        shape[axis] *= count
        return blank(tuple(shape), values.dtype)
    if repeated:
        return np.repeat(values, count, axis)
    return np.concatenate([values] * count, axis)
