"""Bounds of the parts of virtual datasets, also of those that grow with their sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import h5py

Box = Sequence[range]


def is_unlimited(space: Any) -> bool:
    """Return whether a selection has no end, as in a dataset that grows with its source."""
    if space.get_select_type() != h5py.h5s.SEL_HYPERSLABS or not space.is_regular_hyperslab():
        return False
    _, _, count, block = space.get_regular_hyperslab()
    return h5py.h5s.UNLIMITED in (*count, *block)


def bounds_of(space: Any, shape: Sequence[int]) -> list[range]:
    """Return the box around a selection in an array; one without an end goes to the array's."""
    if space.get_select_type() == h5py.h5s.SEL_ALL:
        return [range(length) for length in shape]
    if is_unlimited(space):
        found = zip(*space.get_regular_hyperslab(), shape, strict=True)
        return [
            range(
                start,
                length if h5py.h5s.UNLIMITED in (n, block) else start + (n - 1) * step + block,
            )
            for start, step, n, block, length in found
        ]
    first, last = space.get_select_bounds()
    return [range(int(a), int(b) + 1) for a, b in zip(first, last, strict=True)]
