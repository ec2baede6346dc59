"""UVH5: the visibilities of an interferometer, as pyuvdata writes them (UVH5 memo, version 1.2).

It is HDF5 with its meaning in ``/Header``, so it needs no package. Baselines and times are one axis
there; where each baseline has each time once they become two, the one that is slower in the file
first. Where all pairs of antennas are there they are the covariance of the antennas, too. A
visibility is the product of the second antenna's voltage and the conjugate of the first's: so say
pyuvdata's conventions, and the memo nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import h5py
import numpy as np

from workflow.data import Array, Coordinate, Product, blank
from workflow.files.chunk_filters import ChunkError
from workflow.files.chunk_sizes import check_chunks, check_filters
from workflow.files.hdf5_file import opened
from workflow.files.input_error import InputError
from workflow.files.links import DatasetError, find_dataset
from workflow.files.numbers import read_numbers
from workflow.files.stored_types import COMPONENT_TYPES, complex_fields
from workflow.files.units import FACTORS
from workflow.readers.antenna_header import names_of, places_of
from workflow.readers.base import Reader
from workflow.readers.covariance import AntennaPairs, pairs_of
from workflow.readers.phasing import text_of, turned_metres, unturned
from workflow.readers.polarizations import in_turn, named_codes
from workflow.storage.memory import limited_memory, machine_memory

DATA, FLAGS = "Data/visdata", "Data/flags"
_MAX_ANTENNAS = 1 << 16
_COPIES = 16
"""Copies of a header's values while rows are sorted by times and baselines."""


class Uvh5(Reader):
    """Two arrays of the same visibilities, conj(x_1) x_2 of a baseline's antennas.

    ``visibilities`` are (time, baseline, frequency, polarization), or the first two turned;
    ``covariance`` is (time, frequency, polarization, antenna, column), the product of an antenna's
    voltage and the conjugate of the column's, with the antennas' places in metres where the file
    has them. The phase of visibilities that are phased to a source is undone in it.
    """

    names: ClassVar[tuple[str, ...]] = ("visibilities", "covariance")

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with opened(path) as file:
            data = self._dataset(file, DATA)
            if data.ndim not in (3, 4) or (data.ndim == 4 and data.shape[1] != 1):
                raise InputError(
                    f"input.file: {path}: {DATA} must be (baseline-time, frequency, polarization), "
                    f"with an axis of 1 after the first or not, got shape {data.shape}"
                )
            self.shape, self.dtype = (data.shape[0], *data.shape[-2:]), _complex(data)
            read = {name: self._header(file, name) for name in ("ant_1_array", "ant_2_array",
                    "time_array", "freq_array", "polarization_array")}  # fmt: skip
            self.units = text_of(file, "Header/vis_units")
        self.first, self.second, self.time = (
            self._fitting(read, name, self.shape[0])
            for name in ("ant_1_array", "ant_2_array", "time_array")
        )
        self.frequency = self._fitting(read, "freq_array", self.shape[1])
        self.polarization = self._fitting(read, "polarization_array", self.shape[2])

    @cached_property
    def pairs(self) -> AntennaPairs:
        """Where the elements of the covariance are among the baselines."""
        what, complete = f"input.file: {self.path}", self.flagged != "zero"
        return pairs_of(self._baselines[0], what, complete=complete)

    @cached_property
    def _baselines(self) -> tuple[Array, Array]:
        """The pairs of antennas, sorted, and which of them each row is."""
        ends = np.stack([self.first, self.second], 1)
        pairs, baseline = np.unique(ends, axis=0, return_inverse=True)
        return pairs, baseline.reshape(-1)

    @cached_property
    def rows(self) -> Array:
        """Rows of the file, (times, baselines) or its transpose, the slower axis first.

        Raises InputError where a baseline lacks a time, or has one twice.
        """
        pairs, baseline = self._baselines
        times, time = np.unique(self.time, return_inverse=True)
        count = len(self.time)
        place = time * len(pairs) + baseline
        if len(times) * len(pairs) != count or len(np.unique(place)) != count:
            raise InputError(
                f"input.file: {self.path}: each baseline must have each time once, but {count} "
                f"rows have {len(times)} times and {len(pairs)} baselines; without format: uvh5 "
                f"they are the dataset {DATA}"
            )
        rows = np.argsort(place).reshape(len(times), len(pairs))
        return rows if self.by_time else rows.T

    @property
    def by_time(self) -> bool:
        """Whether the baselines of a time lie beside each other, not the times of a baseline."""
        return len(self.time) < 2 or bool(self.time[0] == self.time[1])

    def outline(self, name: str) -> Product:
        """See `Reader.outline`."""
        slow = ("time", "baseline") if self.by_time else ("baseline", "time")
        rows = self.rows
        at = rows if self.by_time else rows.T
        times, one = self.time[at[:, 0]], at[0]
        named = named_codes(self.polarization, self.path)
        since = f"time since the Julian date {times[0]:.9f}"
        coordinates = {
            "time": Coordinate(FACTORS["s"]["d"] * (times - times[0]), "s", since),
            "frequency": Coordinate(self.frequency, "Hz", "frequency"),
            "polarization": Coordinate(named, "", "polarization"),
        }
        if name == "covariance":
            numbers = self.pairs.antennas
            found = {axis: coordinates[axis] for axis in ("time", "frequency", "polarization")}
            found["antenna"] = Coordinate(numbers, "", "number of the antenna")
            found["antenna_2"] = Coordinate(numbers, "", "number of the antenna", ("column",))
            found |= self._places(numbers) | self._named(numbers, "antenna")
            shape = (len(times), *self.shape[1:], len(numbers), len(numbers))
            square = ("time", "frequency", "polarization", "antenna", "column")
            return Product(name, blank(shape, self.dtype), square, found, name, self.units)
        for key, ends in (("antenna_1", self.first), ("antenna_2", self.second)):
            number = Coordinate(ends[one], "", "number of the antenna", ("baseline",))
            coordinates |= {key: number, **self._named(ends[one], "baseline", key)}
        data = blank((*rows.shape, *self.shape[1:]), self.dtype)
        axes = (*slow, "frequency", "polarization")
        return Product(name, data, axes, coordinates, name, self.units)

    def _places(self, antennas: Array) -> dict[str, Coordinate]:
        """Return where antennas stand; nothing where the file does not say."""
        needed = ("antenna_numbers", "antenna_positions", "latitude", "longitude")
        with opened(self.path) as file:
            if not all(f"Header/{name}" in file for name in needed):
                return {}
            found = {name: self._header(file, name, _MAX_ANTENNAS * 3) for name in needed}
        return places_of(f"input.file: {self.path}", found, antennas)

    @cached_property
    def _names(self) -> dict[int, str]:
        with opened(self.path) as file:
            there = "Header/antenna_numbers" in file
            numbers = self._header(file, "antenna_numbers", 3 * _MAX_ANTENNAS) if there else None
            return {} if numbers is None else names_of(file, numbers)

    def _named(self, antennas: Array, along: str, key: str = "antenna") -> dict[str, Coordinate]:
        """Return the names of antennas, beside their numbers; nothing where one has none."""
        names = [self._names.get(int(number)) for number in antennas]
        if not names or None in names:
            return {}
        return {f"{key}_name": Coordinate(np.array(names), "", "name of the antenna", (along,))}

    def read(self, name: str, part: Sequence[slice]) -> Array:
        """See `Reader.read`."""
        if name == "covariance":
            return self._squares(part, self._unturned, np.conj)
        return self._visibilities(part)

    @cached_property
    def has_flags(self) -> bool:
        """See `Reader.has_flags`."""
        with opened(self.path) as file:
            return FLAGS in file

    def flags(self, name: str, part: Sequence[slice]) -> Array:
        """See `Reader.flags`."""

        def read(rows: Sequence[slice]) -> Array:
            return np.asarray(self._rows_of(FLAGS, rows) != 0)

        return self._squares(part, read, np.asarray) if name == "covariance" else read(part)

    @cached_property
    def _turned_metres(self) -> Array | None:
        """The metres in the phase of each row of the file that a covariance is without."""
        with opened(self.path) as file:
            return turned_metres(file, f"input.file: {self.path}", self.shape[0], self._header)

    def _unturned(self, part: Sequence[slice]) -> Array:
        """Return a part of the visibilities without the phase toward a source."""
        values = self._visibilities(part)
        if (metres := self._turned_metres) is not None:
            rows = self.rows[part[0], part[1]]
            values = unturned(values, metres[rows], self.frequency[part[2]])
        return values

    def _squares(
        self,
        part: Sequence[slice],
        read: Callable[[Sequence[slice]], Array],
        turn: Callable[[Array], Array],
    ) -> Array:
        """Return a part of the covariance, of what ``read`` returns of a part of visibilities.

        An element whose baseline is turned is ``turn`` of it, and of the feeds in turn: x of the
        row and y of the column are those of xy from row to column, and of yx the other way.
        """
        time, frequency, polarization, row, column = part
        place, turned = self.pairs.baseline[row, column], self.pairs.turned[row, column]
        baseline = np.maximum(place, 0)
        first = int(baseline.min())
        span = slice(first, int(baseline.max()) + 1)
        own = np.arange(*polarization.indices(self.shape[2]))
        other = in_turn([int(code) for code in self.polarization])[own]
        if other.min() < 0:
            raise InputError(
                f"input.file: {self.path}: a covariance of crossed feeds needs those in turn too, "
                "as xy needs yx, which the file lacks; take others by input.select"
            )
        least, most = min(own.min(), other.min()), max(own.max(), other.max())
        slow = (time, span) if self.by_time else (span, time)
        found = read((*slow, frequency, slice(least, most + 1)))
        ordered = found if self.by_time else found.swapaxes(0, 1)
        found = np.moveaxis(ordered[:, baseline - first], (1, 2), (3, 4))
        found = np.where(turned, turn(found[:, :, own - least]), found[:, :, other - least])
        found[..., place < 0] = found.dtype.kind == "b"  # a pair that is missing is 0, and flagged
        return found

    def _visibilities(self, part: Sequence[slice]) -> Array:
        raw = self._rows_of(DATA, part)
        fields = complex_fields(raw.dtype)
        values = np.empty(raw.shape, self.dtype)
        values.real = raw.real if fields is None else raw[fields[0]]
        values.imag = raw.imag if fields is None else raw[fields[1]]
        return values

    def _rows_of(self, path: str, part: Sequence[slice]) -> Array:
        """Return a part of visibilities or of their flags, as they are stored."""
        rows = self.rows[part[0], part[1]]
        first, last = int(rows.min()), int(rows.max()) + 1
        with opened(self.path) as file:
            data = self._dataset(file, path)
            windowed = data.ndim == 4 and data.shape[1] == 1
            whole = (data.shape[0], *data.shape[2:]) if windowed else data.shape
            if whole != self.shape or (path == FLAGS and data.dtype.kind not in "biu"):
                raise InputError(
                    f"input.file: {self.path}: {path} must be truth values of the shape of {DATA}, "
                    f"got {data.dtype} of shape {data.shape}"
                )
            inner = [slice(0, 1)] * (data.ndim - 3)
            box = [range(first, last), *(range(one.start, one.stop) for one in inner)]
            box += [range(n)[one] for n, one in zip(self.shape[1:], part[2:], strict=True)]
            size = int(np.prod([len(span) for span in box], dtype=object))
            try:
                with limited_memory(4 * size * 16):
                    check_chunks(data, box)
                    raw = data[tuple(slice(span.start, span.stop) for span in box)]
            except (ChunkError, MemoryError) as error:
                raise InputError(f"input.file: {self.path}: {path}: {error}") from error
        raw = raw.reshape(last - first, *raw.shape[-2:])
        return np.asarray(raw[rows - first])

    def _dataset(self, file: h5py.File, path: str) -> h5py.Dataset:
        try:
            found = find_dataset(file, path)
            check_filters(found)
        except (DatasetError, ChunkError) as error:
            raise InputError(f"input.file: {self.path} is not UVH5: {error}") from error
        return found

    def _header(self, file: h5py.File, name: str, most: int = 0) -> Array:
        dataset = self._dataset(file, f"Header/{name}")
        if dataset.size > max(*self.shape, most) or _COPIES * 8 * dataset.size > machine_memory():
            raise InputError(
                f"input.file: {self.path}: Header/{name} of shape {dataset.shape} is longer than "
                "the data or than memory"
            )
        return read_numbers(dataset, f"input.file: {self.path}", check=False).reshape(-1)

    def _fitting(self, read: dict[str, Array], name: str, length: int) -> Array:
        values = read[name]
        if len(values) != length or not np.all(np.isfinite(values)):
            raise InputError(
                f"input.file: {self.path}: Header/{name} must have {length} finite values for data "
                f"of shape {self.shape}, got {len(values)}"
            )
        return values


def _complex(dataset: h5py.Dataset) -> np.dtype[Any]:
    """Return the type that visibilities are read as.

    Raises InputError where they are not complex.
    """
    dtype, fields = dataset.dtype, complex_fields(dataset.dtype)
    part = dtype[fields[0]].name if fields else ""
    if fields and part in COMPONENT_TYPES and dtype[fields[1]] == dtype[fields[0]]:
        return np.dtype(np.complex128 if part in ("float64", "int32") else np.complex64)
    if dtype.kind == "c" and dtype.itemsize in (8, 16):
        return np.dtype(f"c{dtype.itemsize}")
    raise InputError(f"input.file: {dataset.name} must be complex, got {dtype}")
