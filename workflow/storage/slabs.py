"""Stretches of checksummed datasets, in and out, while other threads compute.

A slab is a range of entries of one axis, with all of the others. Reading goes past HDF5, which
would keep a writer waiting. Each chunk's checksum is checked as everywhere.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Self

import h5py
import numpy as np
import numpy.typing as npt
from argand.device import available_cores

from workflow.chunk_places import chunk_offsets, chunk_shape, inside_of, overlap
from workflow.storage.checksum import fletcher32
from workflow.storage.chunk_reader import CHECKSUM_BYTES, ChunkReader
from workflow.storage.chunk_sums import write_sums
from workflow.storage.failures import synced

Array = npt.NDArray[Any]
_MAX_THREADS = 8
"""Reading or summing up at once; memory is as fast as a few of them."""
_CHUNK_BYTES = 4 << 20
"""Bytes of a chunk that is written. Each is a call of HDF5, for which the writing thread waits in
turn with all others that read and sum: with fewer it waits less."""
_AHEAD = 8
"""Chunks that are summed up before the one that is written."""
_SYNC_EVERY = 16
"""Chunks between syncs of the file."""


class SlabReader:
    """Reads slabs of a dataset that `write_chunked` or `SlabWriter` wrote, in an open file.

    Args:
        dataset: what is read.
        part: the range of each axis that counts; entries of the slabs' axis are counted from its
            beginning there.
        axis: the axis of the slabs.
    """

    def __init__(self, dataset: h5py.Dataset, part: Sequence[range], axis: int) -> None:
        self.name, self.dtype, self.axis = str(dataset.name), dataset.dtype, axis
        self._part, self._chunks = list(part), ChunkReader(dataset)
        self._pool = ThreadPoolExecutor(min(_MAX_THREADS, available_cores()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def shape(self, entries: int) -> tuple[int, ...]:
        """Return the shape of a slab of ``entries`` entries."""
        shape = [len(span) for span in self._part]
        shape[self.axis] = entries
        return tuple(shape)

    def read(self, start: int, into: Array) -> None:
        """Fill an array of `shape`, of any type that holds the values, from entry ``start``.

        Raises ChecksumError where a chunk differs from what was written, KeyError where one is
        missing.
        """
        ranges = list(self._part)
        begin = ranges[self.axis].start + start
        ranges[self.axis] = range(begin, begin + into.shape[self.axis])
        offsets = list(chunk_offsets(ranges, self._chunks.chunk))
        for future in [
            self._pool.submit(self._take_all, ranges, offsets[first::_MAX_THREADS], into)
            for first in range(min(_MAX_THREADS, len(offsets)))
        ]:
            future.result()

    def _take_all(
        self, ranges: list[range], offsets: Sequence[tuple[int, ...]], into: Array
    ) -> None:
        for offset in offsets:
            self._chunks.take(ranges, offset, into)


class SlabWriter:
    """Writes a new dataset slab by slab, each with a checksum on every chunk.

    Args:
        group, name: where it goes.
        shape, dtype: the shape and the type of the whole.
        axis: the axis of the slabs.
        most: the most entries of a chunk along it: slabs begin at multiples of `grain`, the largest
            power of two that is allowed.
    """

    def __init__(
        self, group: h5py.Group, name: str, shape: Sequence[int], dtype: npt.DTypeLike, axis: int,
        most: int,
    ) -> None:  # fmt: skip
        self.shape, self.dtype, self.axis = tuple(shape), np.dtype(dtype), axis
        longest = chunk_shape(shape, self.dtype.itemsize, {axis: most}, _CHUNK_BYTES)[axis]
        # A power of two, so that half of a slab is again a multiple of it.
        most = 1 << (longest.bit_length() - 1)
        self._chunk = chunk_shape(shape, self.dtype.itemsize, {axis: most}, _CHUNK_BYTES)
        self._dataset = group.create_dataset(
            name, shape=self.shape, dtype=self.dtype, chunks=self._chunk, fletcher32=True
        )
        self._descriptor = self._dataset.file.id.get_vfd_handle()
        self._path = Path(self._dataset.file.filename)
        self._size = int(np.prod(self._chunk)) * self.dtype.itemsize
        self._fillers = ThreadPoolExecutor(min(_MAX_THREADS, available_cores()))
        self._buffers: SimpleQueue[Array] = SimpleQueue()
        for _ in range(_AHEAD + 1):
            self._buffers.put(np.empty(self._size + CHECKSUM_BYTES, np.uint8))
        self._ahead: deque[tuple[tuple[int, ...], Future[Array]]] = deque()
        self._sums: dict[tuple[int, ...], int] = {}
        self._syncer = ThreadPoolExecutor(1)
        self._syncs: deque[Future[None]] = deque()
        self._written = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._fillers.shutdown(cancel_futures=True)
        self._syncer.shutdown(cancel_futures=True)

    @property
    def grain(self) -> int:
        """Entries of a chunk along the axis of the slabs."""
        return self._chunk[self.axis]

    def write(self, start: int, slab: Array) -> None:
        """Write a slab from entry ``start``, a multiple of `grain`, as its length but the last's.

        The slab is the caller's again afterwards: its last chunks are summed up by then, and
        written by the next call or by `finish`, so that the file never waits for a slab's first
        sum. Raises OSError where the disk is full or fails; a later call may raise it.
        """
        ranges = [range(length) for length in self.shape]
        ranges[self.axis] = range(start, start + slab.shape[self.axis])
        for offset in chunk_offsets(ranges, self._chunk):
            if len(self._ahead) == _AHEAD:
                self._put(*self._ahead.popleft())
            self._ahead.append((offset, self._fillers.submit(self._fill, ranges, offset, slab)))
        while not all(filled.done() for _, filled in self._ahead):
            self._put(*self._ahead.popleft())

    def finish(self) -> None:
        """Write what is left and the checksums, wait for the disk's syncs; raises OSError.

        Without its checksums the dataset is not read again.
        """
        while self._ahead:
            self._put(*self._ahead.popleft())
        write_sums(self._dataset, self._sums)
        while self._syncs:
            self._syncs.popleft().result()

    def _fill(self, ranges: list[range], offset: tuple[int, ...], slab: Array) -> Array:
        inside = inside_of(self.shape, self._chunk, offset)
        to, _ = overlap(ranges, offset, inside)
        buffer = self._buffers.get()
        if inside != self._chunk:
            buffer[: self._size] = 0
        chunk = buffer[: self._size].view(self.dtype).reshape(self._chunk)
        chunk[tuple(slice(length) for length in inside)] = slab[to]
        buffer[self._size :].view(np.uint32)[0] = fletcher32(buffer[: self._size])
        self._sums[offset] = zlib.crc32(buffer.data)
        return buffer

    def _put(self, offset: tuple[int, ...], filled: Future[Array]) -> None:
        buffer = filled.result()
        try:
            self._dataset.id.write_direct_chunk(offset, buffer)
        finally:
            self._buffers.put(buffer)
        self._written += 1
        if self._written % _SYNC_EVERY == 0:
            # The disk begins with what is written, so that the file's last sync is not for all.
            self._syncs.append(self._syncer.submit(synced, self._descriptor, self._path))
            if self._syncs[0].done():
                self._syncs.popleft().result()
