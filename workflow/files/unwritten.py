"""Parts of a user's dataset that nobody wrote, which HDF5 reads as its fill value."""

from __future__ import annotations

import math
from typing import Any

import h5py

from workflow.chunk_places import is_in_box
from workflow.files.chunk_sizes import stored_in_box
from workflow.files.virtual_spaces import Box, bounds_of, is_unlimited


def unwritten(dataset: h5py.Dataset, box: Box) -> str:
    """Return how much of a box of a dataset was never written, and what stands there; "" if none.

    A recorder that stopped, or an array that was made and never filled, reads as zeros. A virtual
    dataset lacks what its sources lack, and what is in none of them.
    """
    counts = [_chunks(one, inner) for one, inner in stored_in_box(dataset, box)]
    lacking, every = (sum(numbers) for numbers in zip((0, 0), *counts, strict=True))
    fill = f"have the fill value {dataset.fillvalue!s:.40}"
    if lacking == every > 0:
        return f"nothing was ever written, and all values {fill}"
    if lacking:
        return f"{lacking} of {every} chunks were never written, and {fill}"
    if dataset.is_virtual:
        lacking = math.prod(one.stop - one.start for one in box) - _mapped(dataset, box)
        if lacking > 0:
            return f"{lacking} values lie in no source, and {fill}"
    return ""


def _mapped(dataset: h5py.Dataset, box: Box) -> int:
    """Return how many values of a box of a virtual dataset have a source.

    It may be too many where sources overlap, or have some entries of what they span.
    """
    mapped = 0
    for source in dataset.virtual_sources():
        spans = zip(bounds_of(source.vspace, dataset.shape), box, strict=True)
        inside = (max(0, min(a.stop, b.stop) - max(a.start, b.start)) for a, b in spans)
        most = math.inf if is_unlimited(source.vspace) else source.vspace.get_select_npoints()
        mapped += int(min(math.prod(inside), most))
    return mapped


def _chunks(dataset: h5py.Dataset, box: Box) -> tuple[int, int]:
    """Return how many chunks that meet a box were never written, and how many there are."""
    if dataset.chunks is None:
        never = dataset.id.get_storage_size() == 0
        return int(never and dataset.size > 0), 1
    spans = zip(box, dataset.chunks, strict=True)
    every = math.prod(-(-one.stop // n) - one.start // n for one, n in spans)
    written = 0

    def count(chunk: Any) -> None:
        nonlocal written
        written += is_in_box(chunk.chunk_offset, dataset.chunks, box)

    dataset.id.chunk_iter(count)
    return every - written, every
