"""Arrays in and out of checksummed HDF5 chunks, at nearly the speed of the file system.

Chunks are contiguous pieces of a C-ordered array, so they can be handed to HDF5 ready-made, with
the checksum that its own filter would have computed (`checksum`), for other readers. We ourselves
check them against the CRC-32 that is kept beside (`chunk_sums`) as they are read back.
"""

from __future__ import annotations

import os
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
from argand.device import available_cores

from workflow.chunk_places import chunk_offsets, chunk_shape
from workflow.storage.checksum import fletcher32
from workflow.storage.chunk_reader import CHECKSUM_BYTES, ChunkReader
from workflow.storage.chunk_sums import write_sums
from workflow.threads import thread_count

Bytes = npt.NDArray[np.uint8]
_AHEAD = 6
_SYNC_EVERY = 64
_FILLERS = 3
"""Threads that copy and sum up: with one, what takes the chunks waits for it."""


def write_chunked(group: h5py.Group, name: str, data: npt.NDArray[Any]) -> h5py.Dataset:
    """Return a new dataset with checksums of every chunk; numeric or compound types only."""
    data = np.ascontiguousarray(data)
    chunk = chunk_shape(data.shape, data.dtype.itemsize)

    def piece(offset: tuple[int, ...]) -> Bytes:
        return _piece(data, chunk, offset)

    return write_pieces(group, name, data.shape, data.dtype, piece)


def write_pieces(
    group: h5py.Group,
    name: str,
    whole: Sequence[int],
    dtype: npt.DTypeLike,
    piece: Callable[[tuple[int, ...]], Bytes],
    threads: int = _FILLERS,
) -> h5py.Dataset:
    """Return a new dataset of shape ``whole`` as `write_chunked` makes it, from its chunks.

    Args:
        group, name, whole, dtype: where it goes and what it is.
        piece: the bytes of the chunk (`chunk_shape`) that begins at an index; fewer at an edge.
        threads: how many may ask for pieces at once.
    """
    dtype = np.dtype(dtype)
    shape = chunk_shape(whole, dtype.itemsize)
    dataset = group.create_dataset(
        name, shape=tuple(whole), dtype=dtype, chunks=shape, fletcher32=True
    )
    size = int(np.prod(shape)) * dtype.itemsize
    buffers = [np.empty(size + CHECKSUM_BYTES, np.uint8) for _ in range(_AHEAD + 1)]

    sums: dict[tuple[int, ...], int] = {}

    def fill(index: int, offset: tuple[int, ...]) -> tuple[tuple[int, ...], Bytes]:
        buffer = buffers[index % len(buffers)]
        made = piece(offset)
        buffer[: made.size] = made
        buffer[made.size : size] = 0
        buffer[size:].view(np.uint32)[0] = fletcher32(buffer[:size])
        sums[offset] = zlib.crc32(buffer.data)
        return offset, buffer

    offsets = chunk_offsets(_ranges(whole, None), shape)
    if all(length <= most for length, most in zip(whole, shape, strict=True)):
        for offset in offsets:  # one, or none: to start threads would take longer
            dataset.id.write_direct_chunk(*fill(0, offset))
    else:
        _write_ahead(dataset, offsets, fill, threads)
    write_sums(dataset, sums)
    return dataset


def _write_ahead(
    dataset: h5py.Dataset,
    offsets: Iterable[tuple[int, ...]],
    fill: Callable[[int, tuple[int, ...]], tuple[tuple[int, ...], Bytes]],
    threads: int,
) -> None:
    """Write the chunks that ``fill`` makes, `_AHEAD` of them ahead of the one that is written.

    Others copy and sum ahead while this thread, the only one that may, calls HDF5; one more lets
    the disk begin with what is written, so that the file's last sync does not wait for all.
    """
    descriptor = dataset.file.id.get_vfd_handle()
    with ThreadPoolExecutor(threads) as filler, ThreadPoolExecutor(1) as syncer:
        ahead: deque[Future[tuple[tuple[int, ...], Bytes]]] = deque()
        syncs: list[Future[None]] = []
        for index, offset in enumerate(offsets):
            if len(ahead) == _AHEAD:
                dataset.id.write_direct_chunk(*ahead.popleft().result())
            ahead.append(filler.submit(fill, index, offset))
            if index % _SYNC_EVERY == _SYNC_EVERY - 1:
                syncs.append(syncer.submit(os.fsync, descriptor))
        while ahead:
            dataset.id.write_direct_chunk(*ahead.popleft().result())
        for sync in syncs:
            sync.result()  # the system reports an error of the disk only once


def read_chunked(dataset: h5py.Dataset, part: Sequence[slice] | None = None) -> npt.NDArray[Any]:
    """Return a dataset that `write_chunked` wrote, or a part of it: one range for each axis.

    A part takes the chunks that it meets, each whole. Raises ChecksumError where a chunk differs
    from what was written, KeyError where one is missing.
    """
    ranges = _ranges(dataset.shape, part)
    data = np.empty([len(span) for span in ranges], dataset.dtype)
    # Threads must not touch HDF5: a caller that iterates over a group holds h5py's lock.
    reader = ChunkReader(dataset)
    threads = thread_count(available_cores())
    offsets = list(chunk_offsets(ranges, dataset.chunks))

    def take(first: int) -> None:
        for offset in offsets[first::threads]:
            reader.take(ranges, offset, data)

    if len(offsets) < 2:  # to start a thread would take longer
        take(0)
        return data
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(take, first) for first in range(min(threads, len(offsets)))]:
            done.result()
    return data


def _ranges(shape: Sequence[int], part: Sequence[slice] | None) -> list[range]:
    """Return the indices of a part along each axis.

    Steps other than 1 have no chunks of their own.
    """
    whole = [range(length) for length in shape]
    if part is None:
        return whole
    found = [axis[where] for axis, where in zip(whole, part, strict=True)]
    if any(span.step != 1 for span in found):
        raise ValueError(f"a part must have steps of 1, got {list(part)}")
    return found


def _piece(data: npt.NDArray[Any], chunk: tuple[int, ...], offset: tuple[int, ...]) -> Bytes:
    """Return the bytes of one chunk in a C-contiguous array (fewer than a chunk at the edge)."""
    where = tuple(slice(start, start + length) for start, length in zip(offset, chunk, strict=True))
    piece = data[where]
    assert piece.flags.c_contiguous, "chunk_shape makes chunks contiguous in memory"
    return piece.reshape(-1).view(np.uint8)
