"""The check that the user's chunks hold what their shape says, before HDF5 reads them.

HDF5 compares neither the stored size of a chunk nor what it decodes to with the chunk's shape
(`chunk_filters` says what it does instead), nor the storage of a dataset without chunks.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
from argand.device import available_cores

from workflow.chunk_places import is_in_box
from workflow.files.chunk_filters import NAMES, ChunkError, Filter, allowed, decoded_size
from workflow.files.links import find_dataset
from workflow.files.virtual_spaces import Box, bounds_of

_HEADERS = 1 << 16
"""Bytes that a filter may add to a chunk that it makes no smaller."""
_MAX_THREADS = 8
"""Decoding at once; the stack of each counts as memory of the process."""


def check_filters(dataset: h5py.Dataset) -> None:
    """Raise ChunkError where a dataset, or one that a virtual one is made of, has another filter.

    The text continues after "input.x: ".
    """
    for held, _ in stored_in_box(dataset, [range(length) for length in dataset.shape]):
        properties = held.id.get_create_plist()
        for index in range(properties.get_nfilters()):
            code, _, _, name = properties.get_filter(index)
            if not allowed(code):
                said = name.decode(errors="replace")[:40] or "without a name"
                raise ChunkError(
                    f"{_named(held)} has the filter {code} ({said}), whose chunks may decode to "
                    f"less than their shape unseen; it must be one of {NAMES}: "
                    "h5repack -f GZIP=1 makes such a copy"
                )


def check_chunks(dataset: h5py.Dataset, box: Box) -> None:
    """Raise ChunkError where a chunk that meets a box decodes to other than its shape's size.

    Chunks that were never written are none: their values are the fill value. A virtual dataset's
    are those of its sources.
    """
    for held, inner in stored_in_box(dataset, box):
        _check(held, inner)


def _check(dataset: h5py.Dataset, box: Box) -> None:
    size = dataset.id.get_type().get_size()
    if dataset.chunks is None:
        stored, needed = dataset.id.get_storage_size(), math.prod(dataset.shape) * size
        unwritten = stored == 0 and dataset.id.get_offset() is None
        if not dataset.external and not unwritten and stored != needed:
            raise ChunkError(
                f"{_named(dataset)} has {stored} bytes in the file, its shape {needed}"
            )
        return
    needed = math.prod(dataset.chunks) * size
    properties = dataset.id.get_create_plist()
    found = [properties.get_filter(index) for index in range(properties.get_nfilters())]
    filters = [Filter(code, tuple(values)) for code, _, values, _ in found]
    every = (1 << len(filters)) - 1
    packed: list[tuple[tuple[int, ...], int]] = []

    def check(chunk: Any) -> None:
        if not is_in_box(chunk.chunk_offset, dataset.chunks, box):
            return
        if chunk.filter_mask & every == every or chunk.size > 2 * needed + _HEADERS:
            _compare(dataset, chunk.chunk_offset, chunk.size, needed)
        else:
            packed.append((chunk.chunk_offset, chunk.filter_mask))

    dataset.id.chunk_iter(check)

    def decode(offset: tuple[int, ...], mask: int, stored: bytes) -> None:
        try:
            decoded = decoded_size(stored, filters, mask, needed + 4 * len(filters))
        except ChunkError as error:
            raise ChunkError(f"{_named(dataset)}: the chunk at {offset} {error}") from error
        _compare(dataset, offset, decoded, needed)

    threads = min(_MAX_THREADS, available_cores())
    with ThreadPoolExecutor(threads) as pool:
        ahead: deque[Future[None]] = deque()
        for offset, mask in packed:
            if len(ahead) == threads:
                ahead.popleft().result()
            _, stored = dataset.id.read_direct_chunk(offset)
            ahead.append(pool.submit(decode, offset, mask, stored))
        for future in ahead:
            future.result()


def _compare(dataset: h5py.Dataset, offset: tuple[int, ...], found: int, needed: int) -> None:
    if found != needed:
        raise ChunkError(
            f"{_named(dataset)}: the chunk at {offset} has {found} bytes where its shape "
            f"{dataset.chunks} of {dataset.dtype} has {needed}"
        )


def _named(dataset: h5py.Dataset) -> str:
    return f"{dataset.name} of {dataset.file.filename}"


def stored_in_box(dataset: h5py.Dataset, box: Box) -> Iterator[tuple[h5py.Dataset, list[range]]]:
    """Yield the datasets with a dataset's values in a box: itself, or a virtual one's sources."""
    if not dataset.is_virtual:
        yield dataset, list(box)
        return
    for source in dataset.virtual_sources():
        if not _meet(bounds_of(source.vspace, dataset.shape), box):
            continue
        with _source(dataset, source.file_name) as file:
            held = find_dataset(file, source.dset_name)
            yield held, bounds_of(source.src_space, held.shape)


@contextmanager
def _source(dataset: h5py.Dataset, name: str) -> Iterator[h5py.File]:
    if name == ".":
        yield dataset.file
        return
    with h5py.File(Path(dataset.file.filename).parent / name, "r") as file:
        yield file


def _meet(a: Box, b: Box) -> bool:
    return all(p.start < q.stop and q.start < p.stop for p, q in zip(a, b, strict=True))
