"""The part of a dataset that a config selects, axis by axis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from workflow.config.axis_names import among, operand_axis
from workflow.config.mistakes import nearest
from workflow.inputs.axes import AxisMap, Operand

Array = npt.NDArray[Any]


class SelectionError(ValueError):
    """A selection that does not fit the dataset; the text continues after the dataset's name."""


@dataclass(frozen=True)
class PickedAxis:
    """The selection along one axis: a range, then of it some indices or the only one.

    ``pair`` marks the axis of real and imaginary part, which is always read whole.
    """

    span: slice
    within: list[int] | int | None = None
    pair: bool = False

    @property
    def kept(self) -> bool:
        """Whether the result has the axis."""
        return not self.pair and not isinstance(self.within, int)

    @property
    def length(self) -> int:
        """Number of entries taken, 1 for an axis that the result lacks."""
        return len(self.entries) if self.kept else 1

    @property
    def entries(self) -> Sequence[int]:
        """The entries of the dataset's axis, in the order of the result; a range where it is one.

        An index is a range of one, so that a range of any length takes no memory.
        """
        taken = range(self.span.start, self.span.stop, self.span.step)
        if isinstance(self.within, list):
            return [taken[index] for index in self.within]
        return taken

    @property
    def indices(self) -> Array:
        """The `entries` as an array."""
        return np.array(self.entries) if isinstance(self.within, list) else np.arange(
            self.span.start, self.span.stop, self.span.step
        )  # fmt: skip

    def apart(self, step: float | None) -> float | None:
        """Return the step of what is taken along an axis of a step; None where there is none."""
        if step is None or isinstance(self.within, list):
            return None
        return step * int(self.span.step)

    def takes_as(self, other: PickedAxis) -> bool:
        """Return whether another takes the same entries in the same order."""
        if isinstance(self.within, list) or isinstance(other.within, list):
            return self.length == other.length and list(self.entries) == list(other.entries)
        return self.entries == other.entries


@dataclass(frozen=True)
class Picked:
    """A selection that fits a dataset; ``shape`` is that of the result."""

    axes: tuple[PickedAxis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The axes that an index did not drop."""
        return tuple(axis.length for axis in self.axes if axis.kept)

    @property
    def elements(self) -> int:
        """Number of elements that HDF5 reads: an index list takes the range that it spans."""
        return math.prod(
            len(range(axis.span.start, axis.span.stop, axis.span.step)) for axis in self.axes
        )

    def numbers(
        self, shape: Sequence[int], operand: Operand, mapped: AxisMap, names: Sequence[str] | None
    ) -> dict[str, PickedAxis]:
        """Return the selections along a dataset's axes, by the axes that these become.

        Axes that are taken whole are left out. One that a number drops, by its name, is there where
        the operand has it all the same, of the one entry, or has axes of any names.
        """
        lacking = operand.lacking(mapped)
        dropped = {
            own: one
            for name, one in zip(names or (), self.axes, strict=bool(names))
            if not (one.kept or one.pair)
            and (
                (own := operand_axis(name)) in lacking or (operand.free and own not in mapped.axes)
            )
        }
        kept = [(one, n) for one, n in zip(self.axes, shape, strict=True) if one.kept]
        places = {axis: mapped.place(axis) for axis in mapped.axes}
        found = {axis: kept[place] for axis, place in places.items() if place is not None}
        return dropped | {
            axis: one
            for axis, (one, n) in found.items()
            if one.length != n or (isinstance(one.within, list) and one.within != list(range(n)))
        }

    def pieces(
        self, most: int, chunks: Sequence[int] | None
    ) -> Iterator[tuple[tuple[slice, ...], Picked]]:
        """Yield parts of at most ``most`` elements that are this together, and each one's place.

        The axis of most chunks is halved first, so that few chunks are read for two parts. One
        element is a part, however small ``most`` is.
        """
        yield from self._pieces(most, chunks or (1,) * len(self.axes), (0,) * len(self.axes))

    def _pieces(
        self, most: int, chunks: Sequence[int], starts: tuple[int, ...]
    ) -> Iterator[tuple[tuple[slice, ...], Picked]]:
        lengths = [axis.length for axis in self.axes]
        if self.elements <= most or max(lengths) == 1:
            places = zip(self.axes, starts, strict=True)
            yield (
                tuple(slice(start, start + axis.length) for axis, start in places if axis.kept),
                self,
            )
            return
        counts = [-(-n // c) if n > 1 else 0 for n, c in zip(lengths, chunks, strict=True)]
        number = counts.index(max(counts))
        begin = starts[number]
        middle = lengths[number] // 2
        for start, stop in ((0, middle), (middle, lengths[number])):
            there = (*starts[:number], begin + start, *starts[number + 1 :])
            yield from self.stretch(number, start, stop)._pieces(most, chunks, there)

    def read(self, dataset: h5py.Dataset) -> Array:
        """Return the selected values in the stored type.

        HDF5 reads one range an axis; indices are then taken from it, since h5py takes only one
        increasing list of them. Real and imaginary part of a pair are the last axis.
        """
        data: Array = np.asarray(dataset[tuple(axis.span for axis in self.axes)])
        for number, axis in enumerate(self.axes):
            if isinstance(axis.within, list):
                data = data[(slice(None),) * number + (axis.within,)]
        pairs = [number for number, axis in enumerate(self.axes) if axis.pair]
        if pairs:
            return np.moveaxis(data, pairs[0], -1).reshape(*self.shape, 2)
        return data.reshape(self.shape)

    def stretch(self, number: int, start: int, stop: int) -> Picked:
        """Return entries ``start`` to ``stop`` of what is taken along an axis of the dataset."""
        axis = self.axes[number]
        if isinstance(axis.within, list):
            chosen = axis.within[start:stop]
            first = axis.span.start + min(chosen)
            span = slice(first, axis.span.start + max(chosen) + 1, 1)
            part = PickedAxis(span, [index - min(chosen) for index in chosen])
        else:
            taken = range(axis.span.start, axis.span.stop, axis.span.step)[start:stop]
            part = PickedAxis(slice(taken.start, taken.stop, taken.step))
        return Picked((*self.axes[:number], part, *self.axes[number + 1 :]))


Entries = Sequence[int | str | list[int]] | Mapping[str, int | str | list[int]]


def pick(
    entries: Entries | None,
    shape: tuple[int, ...],
    names: Sequence[str] | None = None,
    pair: int | None = None,
) -> Picked:
    """Fit a selection to a shape: one entry for each axis, or None for all of it.

    Args:
        entries: an entry for each axis, or by name where the axes have ``names``; an axis that is
            not named there is taken whole.
        shape: the shape of the dataset.
        names: names of its axes.
        pair: the axis of real and imaginary part, which must be taken whole.

    Raises SelectionError for another number of entries, an unknown name, an index or range that is
    not within the axis (nothing is clipped), a step below 1, an empty range or list, and a part of
    a pair.
    """
    if isinstance(entries, Mapping):
        entries = _by_axis(entries, len(shape), names)
    if pair is not None:
        if entries is not None and len(entries) == len(shape) and entries[pair] != ":":
            raise SelectionError(
                f"has real and imaginary part along axis {pair}, which is taken whole (':'), "
                f"got {entries[pair]!r}"
            )
        found = pick(entries, shape).axes
        return Picked((*found[:pair], PickedAxis(found[pair].span, pair=True), *found[pair + 1 :]))
    if entries is None:
        return Picked(tuple(PickedAxis(slice(0, length, 1)) for length in shape))
    if len(entries) != len(shape):
        raise SelectionError(
            f"has {len(shape)} axes of shape {shape}, so {len(shape)} entries are needed, "
            f"got {len(entries)}"
        )
    return Picked(
        tuple(
            _axis(entry, number, length)
            for number, (entry, length) in enumerate(zip(entries, shape, strict=True))
        )
    )


def _by_axis(
    entries: Mapping[str, int | str | list[int]], rank: int, names: Sequence[str] | None
) -> list[int | str | list[int]]:
    if names is None or len(names) != rank:
        raise SelectionError(
            "has axes without names; select by a list with an entry for each, or name them by axes"
        )
    own = [among(name, names) for name in entries]
    unknown = [name for name in own if name not in names]
    if unknown:
        hint = nearest(unknown[0], names)
        raise SelectionError(f"has the axes {list(names)}, got {unknown[0]!r}{hint}")
    if len(set(own)) < len(own):
        raise SelectionError(f"has the axes {list(names)}, and two entries are of one: {own}")
    found = dict(zip(own, entries.values(), strict=True))
    return [found.get(name, ":") for name in names]


def _axis(entry: int | str | list[int], number: int, length: int) -> PickedAxis:
    if isinstance(entry, str):
        return PickedAxis(_range(entry, number, length))
    if isinstance(entry, int):
        index = _index(entry, number, length)
        return PickedAxis(slice(index, index + 1, 1), 0)
    if not entry:
        raise SelectionError(f"axis {number}: the list of indices is empty")
    indices = [_index(value, number, length) for value in entry]
    first = min(indices)
    return PickedAxis(slice(first, max(indices) + 1, 1), [index - first for index in indices])


def _index(value: int, number: int, length: int) -> int:
    if not -length <= value < length:
        raise SelectionError(
            f"axis {number} has length {length}: an index must be within {-length} to "
            f"{length - 1}, got {value}"
        )
    return value % length


def _range(text: str, number: int, length: int) -> slice:
    """Return the slice ``a:b:c`` as in Python, but bounds beyond the axis are errors."""
    numbers = [int(part) if part.strip() else None for part in text.split(":")]
    start, stop, step = (*numbers, None)[:3]
    for bound in (start, stop):
        if bound is not None and not -length <= bound <= length:
            raise SelectionError(
                f"axis {number} has length {length}: a bound must be within {-length} to "
                f"{length}, got {bound} in {text!r}"
            )
    if step is not None and step < 1:
        raise SelectionError(f"axis {number}: the step must be at least 1, got {text!r}")
    span = slice(*slice(start, stop, step).indices(length))
    if not range(span.start, span.stop, span.step):
        raise SelectionError(f"axis {number} has length {length}: {text!r} takes nothing of it")
    return span
