"""Staged files: a workload's operands, whole, a shard's part, or only their shapes."""

from __future__ import annotations

import contextlib
import copy
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import h5py

from workflow.data import Array, Coordinate, Staged, blank
from workflow.shards import Shard, choose_axis
from workflow.storage.datasets import (
    DataError,
    create,
    members,
    open_written,
    read_dataset,
    read_values,
    without_values,
    write_dataset,
    write_values,
)
from workflow.storage.drawn import write_drawn
from workflow.storage.room import check_room


def write_staged(path: Path, staged: Staged, *, workload: str, kind: str) -> None:
    """Write a staged file; raises NoRoomError before, where the disk has no room for it."""
    whole = [*staged.operands.values(), *staged.drawn.values()]
    check_room(path, sum(math.prod(one.shape) * one.dtype.itemsize for one in whole))
    attributes = {"workload": workload, "kind": kind, "attributes": json.dumps(staged.attributes)}
    with create(path, "staged", attributes) as file:
        operands = file.create_group("operands")
        for name, data in staged.operands.items():
            write_dataset(operands, name, data)
        for name, drawn in staged.drawn.items():
            write_drawn(operands, name, drawn)
        for name, dataset in members(operands).items():
            dataset.attrs["axes"] = list(staged.axes.get(name, ()))
            dataset.attrs["units"] = staged.units.get(name, "")
        coordinates = file.create_group("coordinates")
        for axis, coordinate in staged.coordinates.items():
            dataset = write_values(coordinates, axis, coordinate.values)
            dataset.attrs["axes"] = list(coordinate.of(axis))
            dataset.attrs["units"] = coordinate.units
            dataset.attrs["long_name"] = coordinate.long_name
            if coordinate.step is not None:
                dataset.attrs["step"] = coordinate.step


Splits = Callable[[Mapping[str, tuple[str, ...]]], Sequence[str]]
"""Returns the axes that may be split from the axes of operands."""


class StagedFile:
    """An open staged file, or one shard of it: `open_staged`.

    ``outline`` has its axes, coordinates and attributes, and operands of the right shapes and types
    whose values are all 0 and take no memory.
    """

    def __init__(self, file: h5py.File, splits: Splits | None, shard: Shard | None) -> None:
        self._stored = members(file["operands"])
        self._positions = members(file["coordinates"])
        self._axes = {
            name: tuple(str(axis) for axis in dataset.attrs["axes"])
            for name, dataset in self._stored.items()
        }
        units = {name: str(dataset.attrs["units"]) for name, dataset in self._stored.items()}
        self._units = {name: unit for name, unit in units.items() if unit}
        whole = {name: without_values(dataset) for name, dataset in self._stored.items()}
        self._lengths = Staged(whole, self._axes).axis_lengths()
        self._ranges: dict[str, range] = {}
        if shard is not None:
            try:
                axes = splits(self._axes) if splits is not None else ()
                axis = choose_axis(axes, self._lengths, shard.count)
            except ValueError as error:
                raise DataError(
                    f"{file.filename}: shards {error}; was its input changed?"
                ) from None
            self._ranges[axis] = range(self._lengths[axis])[shard.within(self._lengths[axis])]
        self._attributes = json.loads(file.attrs["attributes"])
        self.outline = self._outlined()

    def stretch(self, axis: str, start: int, stop: int) -> StagedFile:
        """Return the entries from ``start`` to ``stop`` of an axis, of the file or its shard."""
        found = copy.copy(self)
        span = self._ranges.get(axis, range(self._lengths[axis]))
        found._ranges = {**self._ranges, axis: span[start:stop]}
        found.outline = found._outlined()
        return found

    def read(self, known: Mapping[str, Array] | None = None) -> Staged:
        """Return all of it but the operands that are ``known``, every chunk's checksum checked."""
        known = known or {}
        operands = {
            name: known[name] if name in known else self.operand(name) for name in self._stored
        }
        return replace(self.outline, operands=operands)

    def operand(self, name: str) -> Array:
        """Return one operand."""
        part = [slice(span.start, span.stop) for span in self.ranges_of(name)]
        return read_dataset(self._stored[name], part)

    def dataset(self, name: str) -> h5py.Dataset:
        """Return where an operand is stored, whole."""
        return self._stored[name]

    def ranges_of(self, name: str) -> list[range]:
        """Return the range of each axis of an operand: where it has length 1 it is broadcast."""
        shape = self._stored[name].shape
        return [
            self._ranges[axis]
            if axis in self._ranges and length == self._lengths[axis]
            else range(length)
            for axis, length in zip(self._axes[name], shape, strict=True)
        ]

    def _outlined(self) -> Staged:
        coordinates = {
            axis: self._coordinate(axis, dataset) for axis, dataset in self._positions.items()
        }
        outlines = {name: self._outline(name) for name in self._stored}
        return Staged(outlines, self._axes, coordinates, self._attributes, units=self._units)

    def _outline(self, name: str) -> Array:
        return blank(tuple(len(span) for span in self.ranges_of(name)), self._stored[name].dtype)

    def _coordinate(self, axis: str, dataset: h5py.Dataset) -> Coordinate:
        axes = tuple(str(one) for one in dataset.attrs["axes"])
        spans = [
            self._ranges.get(one, range(length))
            for one, length in zip(axes, dataset.shape, strict=True)
        ]
        values = read_values(dataset, [slice(span.start, span.stop) for span in spans])
        own = () if axes == (axis,) else axes
        step = float(dataset.attrs["step"]) if "step" in dataset.attrs else None
        return Coordinate(values, dataset.attrs["units"], dataset.attrs["long_name"], own, step)


@contextlib.contextmanager
def open_staged(
    path: Path, splits: Splits | None = None, shard: Shard | None = None
) -> Iterator[StagedFile]:
    """Open a staged file, or the range that a shard takes of it.

    That is of the first axis of `Workload.split_axes` that is long enough (`choose_axis`), in the
    operands and the coordinates that have it. Raises DataError, also for damage that shows within
    the block.
    """
    with open_written(path, "staged") as file:
        yield StagedFile(file, splits, shard)


def read_staged_shape(path: Path) -> Staged:
    """Return the outline of a whole staged file (`StagedFile`). Raises DataError."""
    with open_staged(path) as staged:
        return staged.outline
