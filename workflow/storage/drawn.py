"""Datasets of arrays that are made piece by piece (`workflow.drawn`) while they are written."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import numpy.typing as npt
from argand.device import available_cores

from workflow.drawn import Drawn, Stretched
from workflow.storage.chunks import write_pieces
from workflow.storage.failures import writing
from workflow.storage.slabs import SlabWriter


def write_drawn(group: h5py.Group, name: str, array: Drawn | Stretched) -> h5py.Dataset:
    """Return a new dataset with checksums, a few pieces or one stretch in memory at a time."""
    if isinstance(array, Stretched):
        return _write_stretched(group, name, array)

    def raw(offset: tuple[int, ...]) -> npt.NDArray[np.uint8]:
        return np.ascontiguousarray(array.piece(offset)).reshape(-1).view(np.uint8)

    with writing(Path(group.file.filename)):
        return write_pieces(group, name, array.shape, array.dtype, raw, available_cores())


def _write_stretched(group: h5py.Group, name: str, array: Stretched) -> h5py.Dataset:
    shape, dtype, axis = array.shape, array.dtype, array.axis
    with SlabWriter(group, name, shape, dtype, axis, array.entries) as writer:
        for start, values in array.read():
            writer.write(start, values)
        writer.finish()
    return group[name]
