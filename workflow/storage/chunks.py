"""Arrays in and out of checksummed HDF5 chunks, at nearly the speed of the file system.

Chunks are contiguous pieces of a C-ordered array, so they can be handed to HDF5 ready-made, with
the checksum that its own filter would have computed (`checksum`), and be checked as they
are read back.
"""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
from argand.device import available_cores

from workflow.storage.checksum import fletcher32

Bytes = npt.NDArray[np.uint8]
CHUNK_BYTES = 1 << 20
_CHECKSUM_BYTES = 4
_AHEAD = 6
_SYNC_EVERY = 64


class ChecksumError(OSError):
    """A chunk's bytes are not the ones that were written."""


def chunk_shape(data: npt.NDArray[Any]) -> tuple[int, ...]:
    """Whole trailing axes as long as they fit in a chunk, then a piece of the next one."""
    room = max(1, CHUNK_BYTES // data.dtype.itemsize)
    shape: list[int] = []
    for length in reversed(data.shape):
        shape.insert(0, max(1, min(length, room)))
        room = max(1, room // length)
    return tuple(shape)


def write_chunked(group: h5py.Group, name: str, data: npt.NDArray[Any]) -> h5py.Dataset:
    """A new dataset with a Fletcher-32 checksum on every chunk; numeric or compound types only."""
    data = np.ascontiguousarray(data)
    shape = chunk_shape(data)
    dataset = group.create_dataset(
        name, shape=data.shape, dtype=data.dtype, chunks=shape, fletcher32=True
    )
    size = int(np.prod(shape)) * data.dtype.itemsize
    buffers = [np.empty(size + _CHECKSUM_BYTES, np.uint8) for _ in range(_AHEAD + 1)]

    def fill(index: int, offset: tuple[int, ...]) -> tuple[tuple[int, ...], Bytes]:
        buffer = buffers[index % len(buffers)]
        piece = _piece(data, shape, offset)
        buffer[: piece.size] = piece
        buffer[piece.size : size] = 0
        buffer[size:].view(np.uint32)[0] = fletcher32(buffer[:size])
        return offset, buffer

    # One thread copies and sums ahead while this one, the only one that may, calls HDF5; another
    # lets the disk begin with what is written, so that the file's last sync does not wait for all.
    descriptor = dataset.file.id.get_vfd_handle()
    with ThreadPoolExecutor(1) as filler, ThreadPoolExecutor(1) as syncer:
        ahead: deque[Future[tuple[tuple[int, ...], Bytes]]] = deque()
        syncs: list[Future[None]] = []
        for index, offset in enumerate(_offsets(data.shape, shape)):
            if len(ahead) == _AHEAD:
                dataset.id.write_direct_chunk(*ahead.popleft().result())
            ahead.append(filler.submit(fill, index, offset))
            if index % _SYNC_EVERY == _SYNC_EVERY - 1:
                syncs.append(syncer.submit(os.fsync, descriptor))
        while ahead:
            dataset.id.write_direct_chunk(*ahead.popleft().result())
        for sync in syncs:
            sync.result()  # an error of the disk is told only once
    return dataset


def read_chunked(dataset: h5py.Dataset) -> npt.NDArray[Any]:
    """The whole of a dataset that `write_chunked` wrote.

    Raises ChecksumError where a chunk differs from what was written, KeyError where one is missing.
    """
    # Threads must not touch HDF5: a caller that iterates over a group holds h5py's lock.
    data = np.empty(dataset.shape, dataset.dtype)
    shape, name = dataset.chunks, dataset.name
    size = int(np.prod(shape)) * data.dtype.itemsize

    def take(offset: tuple[int, ...], stored: bytes) -> None:
        raw = np.frombuffer(stored, np.uint8)
        if raw.size != size + _CHECKSUM_BYTES:
            raise ChecksumError(f"{name}: chunk at {offset} has {raw.size} bytes")
        if fletcher32(raw[:size]) != int.from_bytes(stored[size:], "little"):
            raise ChecksumError(f"{name}: chunk at {offset} fails its checksum")
        piece = _piece(data, shape, offset)
        piece[...] = raw[: piece.size]

    with ThreadPoolExecutor(available_cores()) as pool:
        ahead: deque[Future[None]] = deque()
        for offset in _offsets(data.shape, shape):
            if dataset.id.get_chunk_info_by_coord(offset).byte_offset is None:
                raise KeyError(f"{dataset.name} has no chunk at {offset}")
            if len(ahead) == _AHEAD:
                ahead.popleft().result()
            _, stored = dataset.id.read_direct_chunk(offset)
            ahead.append(pool.submit(take, offset, stored))
        for future in ahead:
            future.result()
    return data


def _offsets(shape: tuple[int, ...], chunk: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    steps = (range(0, length, step) for length, step in zip(shape, chunk, strict=True))
    return itertools.product(*steps)


def _piece(data: npt.NDArray[Any], chunk: tuple[int, ...], offset: tuple[int, ...]) -> Bytes:
    """The bytes of one chunk inside a C-contiguous array (fewer than a chunk at the edge)."""
    where = tuple(slice(start, start + length) for start, length in zip(offset, chunk, strict=True))
    piece = data[where]
    assert piece.flags.c_contiguous, "chunk_shape makes chunks contiguous in memory"
    return piece.reshape(-1).view(np.uint8)
