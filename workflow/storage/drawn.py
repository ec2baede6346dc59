"""Datasets of operands that are made piece by piece (`workflow.drawn`) while they are written."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import numpy.typing as npt
from argand.device import available_cores

from workflow.drawn import Drawn, Stretched
from workflow.storage.chunks import write_pieces
from workflow.storage.failures import writing
from workflow.storage.slabs import write_slabs


def write_drawn(group: h5py.Group, name: str, operand: Drawn | Stretched) -> h5py.Dataset:
    """Return a new dataset with checksums, a few pieces or one stretch in memory at a time."""
    if isinstance(operand, Stretched):
        return write_slabs(
            group, name, operand.shape, operand.dtype, operand.axis, operand.entries, operand.read()
        )

    def raw(offset: tuple[int, ...]) -> npt.NDArray[np.uint8]:
        return np.ascontiguousarray(operand.piece(offset)).reshape(-1).view(np.uint8)

    with writing(Path(group.file.filename)):
        return write_pieces(group, name, operand.shape, operand.dtype, raw, available_cores())
