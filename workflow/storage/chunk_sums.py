"""The CRC-32 of every chunk that we write, kept in the file by the chunk's place.

Beside a dataset ``/a/b`` stands ``/argand_crc32/a/b``: `zlib.crc32` of the stored bytes of each of
its chunks, in an array that has one element for each chunk along each axis. The seal covers these
arrays, and which bytes of the file each chunk is, so that chunks which changed places are seen too.

CRC-32 sees every change within 32 bits in a row, of any two bits, and of a run of zeros to ones of
any length; of all others it misses one in 2^32. HDF5's own Fletcher-32 takes a word of 16 zeros for
one of 16 ones. SHA-256 would miss nothing, at a third of the speed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

SUMS = "argand_crc32"
_WHAT = "zlib.crc32 of the stored bytes of each chunk of the dataset at this path from the root"
Sums = npt.NDArray[np.uint32]


class ChecksumError(OSError):
    """A chunk's bytes are not the ones that were written."""


def write_sums(dataset: h5py.Dataset, sums: Mapping[tuple[int, ...], int]) -> None:
    """Keep the CRC-32 of a dataset's chunks, each by the index at which it begins."""
    table = np.zeros(_grid(dataset), np.uint32)
    for offset, found in sums.items():
        table[place_of(offset, dataset.chunks)] = found
    held = dataset.file.require_group(SUMS)
    held.attrs["what"] = _WHAT
    name = dataset.name.lstrip("/")
    if name in held:  # of a dataset that was deleted
        del held[name]
    held.create_dataset(name, data=table)


def read_sums(dataset: h5py.Dataset) -> Sums:
    """Return the checksums that `write_sums` kept.

    Raises KeyError where there is none, ChecksumError where it belongs to other chunks.
    """
    table = dataset.file[f"{SUMS}{dataset.name}"]
    if table.shape != _grid(dataset) or table.dtype != np.uint32:
        raise ChecksumError(f"{dataset.name}: its checksums are not those of its chunks")
    return np.asarray(table[...])


def summed(file: h5py.File) -> Iterator[h5py.Dataset]:
    """Yield the datasets of a file whose chunks have a CRC-32 in it."""
    names: list[str] = []

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and name in file:
            names.append(name)

    if SUMS in file:
        file[SUMS].visititems(visit)
    for name in names:
        yield file[name]


def place_of(offset: tuple[int, ...], chunk: tuple[int, ...]) -> tuple[int, ...]:
    """Return which of the chunks along each axis begins at an index."""
    return tuple(start // length for start, length in zip(offset, chunk, strict=True))


def _grid(dataset: h5py.Dataset) -> tuple[int, ...]:
    return tuple(-(-n // length) for n, length in zip(dataset.shape, dataset.chunks, strict=True))
