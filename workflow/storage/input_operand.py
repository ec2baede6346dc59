"""One operand in a user's open HDF5 file: its datasets, checked one by one, and their values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from workflow.config.file_input import DatasetSource, FileInput
from workflow.storage.chunk_filters import ChunkError
from workflow.storage.chunk_sizes import check_chunks, check_filters
from workflow.storage.links import DatasetError, find_dataset
from workflow.storage.selections import Picked, SelectionError, pick

Array = npt.NDArray[Any]

COMPONENT_TYPES = ("float16", "float32", "float64", "int8", "int16", "int32")
"""Types of a real or imaginary part that are read."""
_WIDE = ("float64", "int32", "complex128")
"""Stored types that single precision cannot hold: they are read as double."""


class InputError(ValueError):
    """The user's file is not there, or does not hold what the config says."""


@dataclass(frozen=True)
class OperandHeader:
    """What a file holds for an operand.

    ``shape`` is the canonical one, after the selection and with missing leading axes as 1;
    ``dtype`` is what `read_operand` returns; ``stored`` says how it lies in the file.
    """

    shape: tuple[int, ...]
    dtype: str
    stored: str


class InputOperand:
    """The datasets of one operand in an open file, checked one by one."""

    def __init__(
        self, file: h5py.File, source: FileInput, operand: str, axes: tuple[str, ...], real: bool
    ) -> None:
        self.key, self.axes, self.real = f"input.{operand}", axes, real
        where = getattr(source, operand)
        paths = dataset_paths(where)
        if real and len(paths) > 1:
            raise InputError(f"{self.key} is real: it must be one dataset, got {paths}")
        self.separate = len(paths) > 1
        try:
            self.datasets = [find_dataset(file, path, external=source.external) for path in paths]
            for dataset in self.datasets:
                check_filters(dataset)
        except (DatasetError, ChunkError) as error:
            raise InputError(f"{self.key}: {error}") from error
        self.name = " and ".join(str(dataset.name) for dataset in self.datasets)
        shapes = [dataset.shape for dataset in self.datasets]
        if shapes[0] != shapes[-1]:
            raise InputError(
                f"{self.key}: real and imaginary part must have the same shape, "
                f"got {shapes[0]} and {shapes[1]}"
            )
        try:
            self.picked: Picked = pick(source.select.get(operand), shapes[0])
        except SelectionError as error:
            raise InputError(f"input.select.{operand}: {self.name} {error}") from None

    def header(self, rank: int) -> OperandHeader:
        """Check type and shape."""
        stored = [self._component(dataset) for dataset in self.datasets]
        wide = any(name in _WIDE for _, name in stored)
        shape = self.picked.shape
        allowed = f"at most {rank} axes ({', '.join(self.axes)})"
        found = f"{self.name} has {len(shape)} of shape {shape}"
        if not 1 <= len(shape) <= rank:
            raise InputError(f"{self.key} must have at least 1 and {allowed}, but {found}")
        if 0 in shape:
            raise InputError(f"{self.key} must have elements, but {found}")
        kind = "float" if self.real else "complex"
        bits = (64 if wide else 32) * (1 if self.real else 2)
        return OperandHeader(
            (1,) * (rank - len(shape)) + shape,
            f"{kind}{bits}",
            " and ".join(text for text, _ in stored),
        )

    def _component(self, dataset: h5py.Dataset) -> tuple[str, str]:
        """How a dataset is stored, and the type of its numbers."""
        try:
            dtype = dataset.dtype
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{self.key}: {dataset.name} must be {self._allowed()}, got a type that NumPy has "
                f"not ({error})"
            ) from error
        one_real = self.real or self.separate
        if dtype.kind == "c" and not one_real and dtype.itemsize in (8, 16):
            return dtype.name, dtype.name
        if dtype.names == ("r", "i") and not one_real:
            part = dtype["r"]
            if _is_number(part) and dtype["i"] == part:
                return f"{{r, i}} of {part.name}", part.name
        if dtype.names is None and one_real and _is_number(dtype):
            return dtype.name, dtype.name
        raise InputError(
            f"{self.key}: {dataset.name} must be {self._allowed()}, got {_said(dtype)}"
        )

    def _allowed(self) -> str:
        types = f"one of {list(COMPONENT_TYPES)}"
        if self.real or self.separate:
            return f"real, {types}"
        return (
            f"complex64, complex128 or a compound {{r, i}} of {types} "
            "(for separate parts give {real: path, imag: path})"
        )

    def memory(self, header: OperandHeader) -> int:
        """Bytes that reading takes: what HDF5 reads, its chunks at work, and the result twice."""
        result = 2 * math.prod(header.shape) * np.dtype(header.dtype).itemsize
        return self._hdf5_memory(self.picked.elements) + result

    def piece_memory(self, elements: int, header: OperandHeader) -> int:
        """The same for a piece of so many elements."""
        result = 2 * elements * np.dtype(header.dtype).itemsize
        return self._hdf5_memory(elements) + result

    def _hdf5_memory(self, elements: int) -> int:
        return sum(
            elements * dataset.dtype.itemsize
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

    def read(self, dtype: str, picked: Picked) -> Array:
        """Selected data as ``dtype``, its axes those of the selection."""
        parts: list[Array] = []
        if not self.separate:
            data = picked.read(self.datasets[0])
            if data.dtype.names is None:
                return np.asarray(data.astype(dtype, copy=False))
            parts = [data["r"], data["i"]]
        result = np.empty(picked.shape, dtype)
        result.real = parts[0] if parts else picked.read(self.datasets[0])
        result.imag = parts[1] if parts else picked.read(self.datasets[1])
        return result


def dataset_paths(where: str | DatasetSource) -> list[str]:
    """The one dataset of an operand, or those of its real and its imaginary part."""
    return [where] if isinstance(where, str) else [where.real, where.imag]


def _is_number(dtype: np.dtype[Any]) -> bool:
    """Whether a part is of a type that is read; an enumeration's numbers stand for names."""
    return dtype.name in COMPONENT_TYPES and h5py.check_enum_dtype(dtype) is None


def _said(dtype: np.dtype[Any]) -> str:
    if h5py.check_enum_dtype(dtype) is not None:
        return f"an enumeration in {dtype.name}"
    if dtype.names is None:
        return "text or objects" if dtype.kind == "O" else dtype.name
    fields = ", ".join(f"{name}: {dtype[name].name}" for name in dtype.names)
    return f"a compound {{{fields}}}"
