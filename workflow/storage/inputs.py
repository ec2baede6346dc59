"""Operands that a user brings: where they lie in an HDF5 file, what is allowed, reading them.

Everything that can be told from a file's headers is told by `describe_operand`, before any job
starts; `read_operand` makes the same checks and then reads. Both raise InputError with what was
found and what is allowed, its text starting with the key of the config that it is about.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from workflow.config.file_input import DatasetSource, FileInput
from workflow.storage.files import is_file, sha256_of
from workflow.storage.links import DatasetError, find_dataset, other_files
from workflow.storage.memory import in_words, limited_memory, machine_memory, scratch_folder
from workflow.storage.selections import Picked, SelectionError, pick

Array = npt.NDArray[Any]

COMPONENT_TYPES = ("float16", "float32", "float64", "int8", "int16", "int32")
"""Types of a real or imaginary part that are read."""
_WIDE = ("float64", "int32", "complex128")
"""Stored types that single precision cannot hold: they are read as double."""
_PIECE = 1 << 20
"""Elements looked at together, so that the masks stay small beside the data."""
_PIECES = 16
"""What does not fit into memory is read in pieces of so small a part of it."""
_DAMAGE = (OSError, KeyError, RuntimeError, ValueError, TypeError, OverflowError, MemoryError)
"""What h5py raises for a damaged file, depending on where HDF5 or NumPy stumbles."""


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


def describe_operand(
    source: FileInput, operand: str, *, rank: int, axes: tuple[str, ...], real: bool = False
) -> OperandHeader:
    """Check an operand by the file's headers, without reading its data.

    Args:
        source: the input of a case.
        operand: the name of its field that holds the `DatasetRef`.
        rank: the most axes that the operand may have; missing leading ones count as length 1.
        axes: their names, ``rank`` of them, for messages.
        real: whether the operand is real; otherwise it must be complex.

    Raises:
        InputError: no such file or dataset, a file that is not HDF5, data that lie in other files,
            an unreadable type, real data for a complex operand or the reverse, real and imaginary
            parts of different shape, a selection that does not fit, too many axes, no elements.
    """
    with _opened(source.file) as file:
        return _Operand(file, source, operand, axes, real).header(rank)


def read_operand(
    source: FileInput, operand: str, *, rank: int, axes: tuple[str, ...], real: bool = False
) -> Array:
    """Read an operand; arguments and errors as in `describe_operand`.

    Returns:
        A contiguous array of ``rank`` axes: complex64 or, from float64, complex128 and int32 parts,
        complex128; for a real operand float32 or float64 alike.

    Raises:
        InputError: also where the data cannot be decoded (a damaged chunk, an unknown filter) or
            take more memory than the machine has, or more than the headers say.
    """
    with _opened(source.file) as file:
        found = _Operand(file, source, operand, axes, real)
        header = found.header(rank)
        needed, there = found.memory(header), machine_memory()
        try:
            if needed > there:
                data = _on_disk(found, header, needed, there)
            else:
                # A compressed chunk may hold far more than it should: HDF5 itself has no limit.
                with limited_memory(needed):
                    data = found.read(header.dtype, found.picked)
        except MemoryError as error:
            raise InputError(
                f"input.{operand}: {found.name} of {source.file} takes more memory than the "
                f"{in_words(needed)} of its shape ({error})"
            ) from error
        except OSError as error:
            raise InputError(
                f"input.{operand}: {found.name} of {source.file} cannot be read ({error})"
            ) from error
    return np.ascontiguousarray(data).reshape(header.shape)


def _on_disk(found: _Operand, header: OperandHeader, needed: int, there: int) -> Array:
    """Operands beyond the machine's memory, read in pieces into a scratch file without a name.

    Raises InputError where there is no `scratch_folder`, its disk has not twice the room (the
    staged file is as large), or a single chunk is too large.
    """
    key, folder = found.key, scratch_folder()
    size = math.prod(header.shape) * np.dtype(header.dtype).itemsize
    free = shutil.disk_usage(folder).free if folder else 0
    most = there // (_PIECES * np.dtype(header.dtype).itemsize)
    pieces = found.picked.pieces(most, found.datasets[0].chunks)
    room = found.piece_memory(most, header)
    if 2 * size > free or room > there:
        disk = f", and {in_words(2 * size)} of disk, of which {in_words(free)} are free"
        chunks = f", and {in_words(room)} for its chunks," if room > there else ""
        raise InputError(
            f"{key}: {found.name} of shape {header.shape} needs {in_words(needed)}{chunks} of "
            f"memory, this machine has {in_words(there)}{disk if folder else ''}; "
            f"input.select.{key.removeprefix('input.')} takes a part"
        )
    with tempfile.TemporaryFile(dir=folder) as file:
        os.posix_fallocate(file.fileno(), 0, size)  # a full disk is an error now, no signal later
        data = np.memmap(file, header.dtype, "r+", shape=found.picked.shape)
    for place, picked in pieces:
        with limited_memory(room):
            data[place] = found.read(header.dtype, picked)
    return data


def count_nonfinite(array: Array) -> tuple[int, int]:
    """How many elements are NaN, and how many infinite and not NaN, as (nan, inf).

    A complex element is NaN where either part is, infinite where either part is.
    """
    nan = inf = 0
    flat = array.reshape(-1)
    for start in range(0, flat.size, _PIECE):
        piece = flat[start : start + _PIECE]
        is_nan = np.isnan(piece)
        nan += int(np.count_nonzero(is_nan))
        inf += int(np.count_nonzero(np.isinf(piece) & ~is_nan))
    return nan, inf


def source_checksum(path: Path) -> str:
    """SHA-256 of a file in hexadecimal; raises InputError where it cannot be read."""
    try:
        return sha256_of(path)
    except OSError as error:
        raise InputError(f"input.file: {path} cannot be read ({error})") from error


class _Operand:
    """The datasets of one operand in an open file, checked one by one."""

    def __init__(
        self, file: h5py.File, source: FileInput, operand: str, axes: tuple[str, ...], real: bool
    ) -> None:
        self.key, self.axes, self.real = f"input.{operand}", axes, real
        where = getattr(source, operand)
        paths = _paths(where)
        if real and len(paths) > 1:
            raise InputError(f"{self.key} is real: it must be one dataset, got {paths}")
        self.separate = len(paths) > 1
        try:
            self.datasets = [find_dataset(file, path, external=source.external) for path in paths]
        except DatasetError as error:
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


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[h5py.File]:
    """The user's file, with the compression filters of hdf5plugin at hand."""
    import hdf5plugin  # noqa: F401

    if not is_file(path):
        raise InputError(f"input.file: there is no file {path} (looked in {Path.cwd()})")
    try:
        before = _state(path)
        with h5py.File(path, "r") as file:
            yield file
        if _state(path) != before:
            raise InputError(f"input.file: {path} was changed by another program while it was read")
    except InputError:
        raise
    except BlockingIOError as error:
        raise InputError(f"input.file: another program is writing {path} ({error})") from error
    except _DAMAGE as error:
        raise InputError(f"input.file: {path} is not a readable HDF5 file ({error})") from error


def _state(path: Path) -> tuple[int, int, int]:
    """What changes when a file is written or replaced."""
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def files_beside(source: FileInput) -> list[Path]:
    """The other files that hold values of an input's operands, in their order."""
    if not source.external:
        return []
    with _opened(source.file) as file:
        names = [getattr(source, name) for name in source.operand_names()]
        paths = [path for where in names if where is not None for path in _paths(where)]
        found = [find_dataset(file, path, external=True) for path in paths]
        held = [Path(dataset.file.filename) for dataset in found]
        files = [path for one in found for path in other_files(one)]
    return [path for path in dict.fromkeys([*held, *files]) if path != source.file]


def _paths(where: str | DatasetSource) -> list[str]:
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
