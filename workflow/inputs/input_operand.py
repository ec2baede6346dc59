"""One operand in a user's open HDF5 file: its datasets, checked one by one, and their values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from workflow.config.axis_names import PAIR
from workflow.config.file_input import DatasetSource, FileInput, PackedSource
from workflow.files.chunk_filters import ChunkError
from workflow.files.chunk_sizes import check_chunks
from workflow.files.input_error import InputError
from workflow.files.stored_types import (
    COMPONENT_TYPES,
    UNSIGNED_TYPES,
    Stored,
    StoredError,
    complex_fields,
    is_number,
    stored_in,
    type_in_words,
)
from workflow.files.text_attributes import unit_of_parts
from workflow.inputs.axes import AxisMap, Operand
from workflow.inputs.axis_entry_names import names_along
from workflow.inputs.named_entries import has_names, numbered
from workflow.inputs.operand_axes import OperandAxes
from workflow.inputs.packed_integers import PACKED_TYPES, unpacked
from workflow.inputs.selections import Picked, PickedAxis
from workflow.inputs.zero_level import check_level, levelled

Array = npt.NDArray[Any]

_WIDE = ("float64", "int32", "uint32", "complex128")
"""Stored types that single precision cannot hold: they are read as double."""


@dataclass(frozen=True)
class OperandHeader:
    """The arrays of a file for an operand, by their headers.

    ``map`` has its axes and shape, as selected and with missing axes as 1; ``dtype`` is what
    `read_operand` returns; ``units`` is the unit, and ``numbers`` says which entries of an axis are
    selected, if not all; their list may be a long one.
    """

    map: AxisMap
    dtype: str
    units: str
    numbers: Mapping[str, PickedAxis]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the operand, as `map` has it."""
        return self.map.shape


class InputOperand(OperandAxes):
    """The datasets of one operand in an open file, checked one by one."""

    def __init__(self, file: h5py.File, source: FileInput, operand: Operand) -> None:
        super().__init__(file, source, operand)
        name, self.real = operand.name, operand.real
        where = getattr(source, name)
        parts = len(self.datasets)
        self.only_real = isinstance(where, DatasetSource) and parts == 1
        self.separate = parts > 1 or self.only_real
        self.packed = isinstance(where, PackedSource)
        if self.real and self.packed:
            raise InputError(f"{self.key} is real: it must be one dataset of numbers, got int4x2")
        self.units, self.zero_level = source.units_of(name), source.zero_level_of(name)
        entries = source.select.get(name)
        if entries is not None and has_names(entries):
            along = partial(names_along, file, source, self)
            self.select(lambda names: numbered(entries, names, along))
        if self.pair is not None and (self.real or self.separate or self.packed):
            raise InputError(
                f"input.axes.{name}: an axis {PAIR!r} holds both parts of a complex operand in one "
                f"dataset, but {self.key} {'is real' if self.real else 'names its parts'}"
            )

    def header(self) -> OperandHeader:
        """Check type, axes and shape."""
        types = [self._component(dataset) for dataset in self.datasets]
        kinds = [self._stored(dataset).kind for dataset in self.datasets]
        wide = any(name in _WIDE for name in (*kinds, *types))
        kind, bits = ("float", 32) if self.real else ("complex", 64)
        units, mapped = self.units, self.mapped()
        if units is None:
            units = unit_of_parts(self.datasets, self.key)
        shape, dtype = self.datasets[0].shape, f"{kind}{bits << wide}"
        numbers = self.picked.numbers(shape, self.operand, mapped, self.axis_names())
        return OperandHeader(mapped, dtype, units, numbers)

    def _component(self, dataset: h5py.Dataset) -> str:
        """Return the type of a dataset's numbers, or of their parts."""
        try:
            dtype = dataset.dtype
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{self.key}: {dataset.name} must be {self._allowed()}, got a type that NumPy has "
                f"not ({error})"
            ) from error
        if self.packed and dtype.name in PACKED_TYPES and h5py.check_enum_dtype(dtype) is None:
            return "int8"
        one_real = self.packed or self.real or self.separate or self.pair is not None
        if dtype.kind == "c" and not one_real and dtype.itemsize in (8, 16):
            check_level(self.operand.name, self.zero_level, dataset, dtype, self._stored(dataset))
            return str(dtype.name)
        if (fields := complex_fields(dtype)) and not one_real:
            part = dtype[fields[0]]
            if is_number(part) and dtype[fields[1]] == part:
                check_level(
                    self.operand.name, self.zero_level, dataset, part, self._stored(dataset)
                )
                return str(part.name)
        if dtype.names is None and one_real and not self.packed and is_number(dtype):
            check_level(self.operand.name, self.zero_level, dataset, dtype, self._stored(dataset))
            return str(dtype.name)
        raise InputError(
            f"{self.key}: {dataset.name} must be {self._allowed()}, got {type_in_words(dtype)}"
        )

    def _allowed(self) -> str:
        if self.packed:
            return f"bytes, one of {list(PACKED_TYPES)}"
        types = f"one of {[*COMPONENT_TYPES, *UNSIGNED_TYPES]}"
        if self.real or self.separate or self.pair is not None:
            return f"real, {types}"
        return (
            f"complex64, complex128 or a compound {{r, i}} of {types} "
            "(for separate parts give {real: path, imag: path}, for real data {real: path}, for "
            f"4-bit integers {{int4x2: path}}, for an axis of both parts its name {PAIR!r} in "
            "input.axes)"
        )

    def memory(self, header: OperandHeader) -> int:
        """Return the bytes that reading takes: HDF5's data and chunks, and the result twice."""
        result = 2 * math.prod(header.shape) * np.dtype(header.dtype).itemsize
        return self._hdf5_memory(self.picked.elements) + result

    def piece_memory(self, elements: int, header: OperandHeader) -> int:
        """Return the bytes that reading a piece of ``elements`` takes."""
        result = 2 * elements * np.dtype(header.dtype).itemsize
        return self._hdf5_memory(elements) + result

    def _hdf5_memory(self, elements: int) -> int:
        changed = self.zero_level is not None
        return sum(
            elements * (dataset.dtype.itemsize + 9 * (changed or self._stored(dataset).changes))
            + 3 * math.prod(dataset.chunks or ()) * dataset.dtype.itemsize
            for dataset in self.datasets
        )

    def check_chunks(self) -> None:
        """Raise InputError where a chunk that is read is not as long as its shape says."""
        box = [range(axis.span.start, axis.span.stop) for axis in self.picked.axes]
        for dataset in self.datasets:
            try:
                check_chunks(dataset, box)
            except ChunkError as error:
                raise InputError(f"{self.key}: {error}") from error

    def _stored(self, dataset: h5py.Dataset) -> Stored:
        """Return the numbers that a dataset's stand for; raises InputError."""
        try:
            found = stored_in(dataset)
            if self._in_parts(dataset) and found.changes and not found.scales:
                raise StoredError(
                    "is complex, and may have a scale_factor alone of the attributes of packed and "
                    "missing numbers; write two real datasets, {real: path, imag: path}"
                )
        except StoredError as error:
            raise InputError(f"{self.key}: {dataset.name} {error}") from None
        return found

    def _in_parts(self, dataset: h5py.Dataset) -> bool:
        """Return whether both parts of complex numbers are in one stored value."""
        return self.packed or not is_number(dataset.dtype)

    def _read(self, picked: Picked, number: int) -> Array:
        """Return the selected part of one of the datasets, real numbers as what they stand for."""
        dataset = self.datasets[number]
        data = picked.read(dataset)
        return data if self._in_parts(dataset) else self._stored(dataset).values(data)

    def read(self, dtype: str, picked: Picked) -> Array:
        """Return the selected data as ``dtype``, its axes those of the selection."""
        data = self._read(picked, 0)
        parts: Sequence[Array] = [data]
        if self.packed:
            parts = unpacked(data, unsigned=self.zero_level is not None)
        elif self.pair is not None:
            parts = [data[..., 0], data[..., 1]]
        elif fields := complex_fields(data.dtype):
            parts = [data[field] for field in fields]
        elif self.separate and not self.only_real:
            parts = [data, self._read(picked, 1)]
        parts = levelled(parts, self.zero_level)
        if self._in_parts(self.datasets[0]):
            parts = [self._stored(self.datasets[0]).values(one) for one in parts]
        if len(parts) == 1 and not self.only_real:
            return np.asarray(parts[0].astype(dtype, copy=False))
        result = np.zeros(picked.shape, dtype)
        result.real = parts[0]
        if len(parts) > 1:
            result.imag = parts[1]
        return result
