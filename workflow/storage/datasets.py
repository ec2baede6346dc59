"""The HDF5 files between the steps, whatever they hold: creating, opening, arrays in them.

What they hold say `workflow.storage.staged`, `runs` and `products`. Every chunk has a CRC-32
(`chunk_sums`), and every file a seal over the rest, so a truncated, flipped or foreign one is an
error that names it. Files are written under a temporary name, synced and renamed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from workflow.data import Array, blank
from workflow.storage.chunks import read_chunked, write_chunked
from workflow.storage.failures import DataError as DataError
from workflow.storage.failures import reading, writing
from workflow.storage.run_folder import result_path
from workflow.storage.seal import check_seal, checksummed_ranges, seal

FORMAT = 2
"""Version of our files: from 2 on chunks have a CRC-32 beside the Fletcher-32 of HDF5."""


@contextlib.contextmanager
def open_written(path: Path, content: str) -> Iterator[h5py.File]:
    """Open a file of ours for reading.

    Raises DataError that names the file where it is missing, not HDF5, damaged anywhere that is
    read inside the block, or does not hold ``content`` (``staged``, ``run``, ``product``). Errors
    of other files inside the block do not name this one.
    """
    with reading(path):
        with reading(path, alone=True):
            check_seal(path)
            file = h5py.File(path, "r", rdcc_nbytes=0)
        with file:
            found = file.attrs.get("argand_content")
            if found != content:
                raise DataError(f"{path}: expected a {content} file of argand, found {found!r}")
            if file.attrs.get("argand_format") != FORMAT:
                raise DataError(
                    f"{path}: format {file.attrs.get('argand_format')}, this version reads {FORMAT}"
                    "; delete it and run again"
                )
            yield file


@contextlib.contextmanager
def create(path: Path, content: str, attributes: Mapping[str, Any]) -> Iterator[h5py.File]:
    """Yield a new file that appears under its name, sealed, when the block ends without error."""
    with result_path(path) as temporary:
        with writing(temporary, alone=False):
            file = h5py.File(temporary, "w", libver="v110", rdcc_nbytes=0)
            try:
                file.attrs["argand_content"] = content
                file.attrs["argand_format"] = FORMAT
                for key, value in attributes.items():
                    file.attrs[key] = value
                yield file
                ranges = checksummed_ranges(file)
                file.close()
            except BaseException:
                with contextlib.suppress(Exception):  # closing fails again where writing did
                    file.close()
                raise
        with writing(temporary):
            seal(temporary, ranges)


def write_dataset(group: h5py.Group, name: str, data: Array) -> h5py.Dataset:
    """Write an array; all but scalars, strings and empty ones are chunked and checksummed."""
    data = np.asarray(data)
    if data.ndim == 0 or data.size == 0 or data.dtype.kind not in "fiucV":
        return group.create_dataset(name, data=data)
    with writing(Path(group.file.filename), data.nbytes):
        return write_chunked(group, name, data)


def read_dataset(dataset: h5py.Dataset, part: Sequence[slice] | None = None) -> Array:
    """Read an array that `write_dataset` wrote, or a range of each axis, its checksums checked.

    Raises DataError that names the file.
    """
    with reading(Path(dataset.file.filename), alone=True):
        if dataset.chunks is None:
            return np.asarray(dataset[() if part is None else tuple(part)])
        return read_chunked(dataset, part)


def write_values(group: h5py.Group, name: str, values: Array) -> h5py.Dataset:
    """Write an array that may hold text: variable-length UTF-8, which HDF5 cannot checksum."""
    values = np.asarray(values)
    if values.dtype.kind not in "OSUT":
        return write_dataset(group, name, values)
    texts = [one.decode() if isinstance(one, bytes) else str(one) for one in values.tolist()]
    return group.create_dataset(name, data=np.array(texts, object), dtype=h5py.string_dtype())


def read_values(dataset: h5py.Dataset, part: Sequence[slice]) -> Array:
    """Read a range of each axis of what `write_values` wrote. Raises DataError."""
    if h5py.check_string_dtype(dataset.dtype) is None:
        return read_dataset(dataset, part)
    with reading(Path(dataset.file.filename), alone=True):
        return np.array(dataset.asstr()[tuple(part)], dtype=str)


def without_values(dataset: h5py.Dataset) -> Array:
    """Return an array of a dataset's shape and type that takes no memory: every value is 0."""
    return blank(dataset.shape, dataset.dtype)


def members(group: h5py.Group) -> dict[str, Any]:
    """Return the members of a group, in its order.

    h5py holds its lock as long as one iterates over a group itself, and `read_dataset` waits for
    threads: one of them might need the lock, if only to collect garbage.
    """
    return {name: group[name] for name in list(group)}
