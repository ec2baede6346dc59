"""Arrays in and out of checksummed HDF5 chunks, at nearly the speed of the file system.

Chunks are contiguous pieces of a C-ordered array, so they can be handed to HDF5 ready-made, with
the checksum that its own filter would have computed (`checksum`), and be checked as they
are read back.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
from argand.device import available_cores

from workflow.storage.checksum import fletcher32
from workflow.threads import thread_count

Bytes = npt.NDArray[np.uint8]
CHUNK_BYTES = 1 << 20
CHECKSUM_BYTES = 4
_AHEAD = 6
_SYNC_EVERY = 64
_FILLERS = 3
"""Threads that copy and sum up: with one, what takes the chunks waits for it."""


class ChecksumError(OSError):
    """A chunk's bytes are not the ones that were written."""


def chunk_shape(
    shape: Sequence[int],
    itemsize: int,
    most: Mapping[int, int] | None = None,
    size: int = CHUNK_BYTES,
) -> tuple[int, ...]:
    """Whole trailing axes as long as they fit in a chunk, then a piece of the next one.

    A chunk has at most ``size`` bytes, or one element. ``most`` bounds its length along some axes;
    it is then not contiguous in the array.
    """
    room = max(1, size // itemsize)
    lengths: list[int] = []
    for axis in reversed(range(len(shape))):
        allowed = min(shape[axis], (most or {}).get(axis, shape[axis]))
        lengths.insert(0, max(1, min(allowed, room)))
        room = max(1, room // max(allowed, 1))
    return tuple(lengths)


def write_chunked(group: h5py.Group, name: str, data: npt.NDArray[Any]) -> h5py.Dataset:
    """A new dataset with a Fletcher-32 checksum on every chunk; numeric or compound types only."""
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
    """A new dataset of shape ``whole`` as `write_chunked` makes it, from its chunks.

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

    def fill(index: int, offset: tuple[int, ...]) -> tuple[tuple[int, ...], Bytes]:
        buffer = buffers[index % len(buffers)]
        made = piece(offset)
        buffer[: made.size] = made
        buffer[made.size : size] = 0
        buffer[size:].view(np.uint32)[0] = fletcher32(buffer[:size])
        return offset, buffer

    # Others copy and sum ahead while this thread, the only one that may, calls HDF5; one more lets
    # the disk begin with what is written, so that the file's last sync does not wait for all.
    descriptor = dataset.file.id.get_vfd_handle()
    with ThreadPoolExecutor(threads) as filler, ThreadPoolExecutor(1) as syncer:
        ahead: deque[Future[tuple[tuple[int, ...], Bytes]]] = deque()
        syncs: list[Future[None]] = []
        for index, offset in enumerate(chunk_offsets(_ranges(whole, None), shape)):
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


def read_chunked(dataset: h5py.Dataset, part: Sequence[slice] | None = None) -> npt.NDArray[Any]:
    """A dataset that `write_chunked` wrote, or a part of it: one range for each axis.

    A part takes the chunks that it meets, each whole. Raises ChecksumError where a chunk differs
    from what was written, KeyError where one is missing.
    """
    # Threads must not touch HDF5: a caller that iterates over a group holds h5py's lock.
    ranges = _ranges(dataset.shape, part)
    data = np.empty([len(span) for span in ranges], dataset.dtype)
    whole, shape, name = dataset.shape, dataset.chunks, dataset.name
    size = int(np.prod(shape)) * data.dtype.itemsize

    def take(offset: tuple[int, ...], stored: bytes) -> None:
        raw = np.frombuffer(stored, np.uint8)
        if raw.size != size + CHECKSUM_BYTES:
            raise ChecksumError(f"{name}: chunk at {offset} has {raw.size} bytes")
        if fletcher32(raw[:size]) != int.from_bytes(stored[size:], "little"):
            raise ChecksumError(f"{name}: chunk at {offset} fails its checksum")
        inside = inside_of(whole, shape, offset)
        chunk = raw[:size].view(data.dtype).reshape(shape)
        to, of = overlap(ranges, offset, inside)
        data[to] = chunk[of]

    with ThreadPoolExecutor(thread_count(available_cores())) as pool:
        ahead: deque[Future[None]] = deque()
        for offset in chunk_offsets(ranges, shape):
            if dataset.id.get_chunk_info_by_coord(offset).byte_offset is None:
                raise KeyError(f"{dataset.name} has no chunk at {offset}")
            if len(ahead) == _AHEAD:
                ahead.popleft().result()
            _, stored = dataset.id.read_direct_chunk(offset)
            ahead.append(pool.submit(take, offset, stored))
        for future in ahead:
            future.result()
    return data


def _ranges(shape: Sequence[int], part: Sequence[slice] | None) -> list[range]:
    """The indices of a part along each axis; steps other than 1 have no chunks of their own."""
    whole = [range(length) for length in shape]
    if part is None:
        return whole
    found = [axis[where] for axis, where in zip(whole, part, strict=True)]
    if any(span.step != 1 for span in found):
        raise ValueError(f"a part must have steps of 1, got {list(part)}")
    return found


def chunk_offsets(ranges: Sequence[range], chunk: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Where the chunks begin that a part meets, in the order of the array."""
    steps = [
        range(span.start // step * step, span.stop, step)
        for span, step in zip(ranges, chunk, strict=True)
    ]
    return _every(steps)


def _every(steps: Sequence[range]) -> Iterator[tuple[int, ...]]:
    """The product of ranges, the last one fastest; `itertools.product` would make each whole."""
    if not steps:
        yield ()
        return
    for outer in _every(steps[:-1]):
        for last in steps[-1]:
            yield (*outer, last)


Place = tuple[slice, ...]


def overlap(
    ranges: Sequence[range], offset: Sequence[int], inside: Sequence[int]
) -> tuple[Place, Place]:
    """Where a chunk's values go in a part, and which of the chunk's values those are."""
    to, of = [], []
    for span, start, length in zip(ranges, offset, inside, strict=True):
        first, last = max(span.start, start), min(span.stop, start + length)
        to.append(slice(first - span.start, last - span.start))
        of.append(slice(first - start, last - start))
    return tuple(to), tuple(of)


def inside_of(shape: Sequence[int], chunk: Sequence[int], offset: Sequence[int]) -> tuple[int, ...]:
    """The part of a chunk that lies within the array: all of it but at the edges."""
    return tuple(
        min(step, length - start) for length, step, start in zip(shape, chunk, offset, strict=True)
    )


def _piece(data: npt.NDArray[Any], chunk: tuple[int, ...], offset: tuple[int, ...]) -> Bytes:
    """The bytes of one chunk inside a C-contiguous array (fewer than a chunk at the edge)."""
    where = tuple(slice(start, start + length) for start, length in zip(offset, chunk, strict=True))
    piece = data[where]
    assert piece.flags.c_contiguous, "chunk_shape makes chunks contiguous in memory"
    return piece.reshape(-1).view(np.uint8)
