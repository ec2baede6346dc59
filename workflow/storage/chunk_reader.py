"""Chunks of our files, read past HDF5 and checked against their checksums.

HDF5 lets in one thread at a time. So it tells once where each chunk lies, and threads read there.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from workflow.chunk_places import inside_of, overlap
from workflow.storage.chunk_sums import ChecksumError, place_of, read_sums

CHECKSUM_BYTES = 4
"""HDF5's Fletcher-32 behind a chunk, which other readers check; the CRC-32 covers it too."""


class ChunkReader:
    """The chunks of a dataset that `write_chunked` or `SlabWriter` wrote, in an open file.

    Raises KeyError where the dataset has no checksums.
    """

    def __init__(self, dataset: h5py.Dataset) -> None:
        self.name, self.dtype = str(dataset.name), dataset.dtype
        self.shape, self.chunk = dataset.shape, dataset.chunks
        self._size = int(np.prod(self.chunk)) * self.dtype.itemsize
        self._descriptor = dataset.file.id.get_vfd_handle()
        self._sums = read_sums(dataset)
        self._places: dict[tuple[int, ...], tuple[int, int]] = {}
        dataset.id.chunk_iter(
            lambda info: self._places.update({info.chunk_offset: (info.byte_offset, info.size)})
        )

    def take(
        self, ranges: Sequence[range], offset: tuple[int, ...], into: npt.NDArray[Any]
    ) -> None:
        """Put what the chunk at an offset has of a part into an array of the part's shape.

        Threads may call it at the same time. Raises ChecksumError where the chunk differs from what
        was written, KeyError where it is missing.
        """
        if offset not in self._places:
            raise KeyError(f"{self.name} has no chunk at {offset}")
        at, stored = self._places[offset]
        if stored != self._size + CHECKSUM_BYTES:
            raise ChecksumError(f"{self.name}: chunk at {offset} has {stored} bytes")
        to, of = overlap(ranges, offset, inside_of(self.shape, self.chunk, offset))
        place = into[to]
        # A whole chunk is read where it belongs; others are copied, and changed in type, from here.
        direct = place.flags.c_contiguous and place.nbytes == self._size
        direct = direct and place.dtype == self.dtype and place.shape == self.chunk
        raw: Any = place.reshape(-1).view(np.uint8) if direct else np.empty(self._size, np.uint8)
        behind = bytearray(CHECKSUM_BYTES)
        done = os.preadv(self._descriptor, [raw, behind], at)
        if done != stored:
            raise ChecksumError(f"{self.name}: chunk at {offset} ends after {done} bytes")
        if zlib.crc32(behind, zlib.crc32(raw)) != self._sums[place_of(offset, self.chunk)]:
            raise ChecksumError(f"{self.name}: chunk at {offset} fails its checksum")
        if not direct:
            place[...] = raw.view(self.dtype).reshape(self.chunk)[of]
