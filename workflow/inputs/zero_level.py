"""Unsigned numbers: a study or attributes say which of them stands for 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import h5py
import numpy as np

from workflow.data import Array
from workflow.files.input_error import InputError
from workflow.files.stored_types import UNSIGNED_TYPES, Stored


def check_level(
    operand: str, level: float | None, dataset: h5py.Dataset, part: np.dtype[Any], stored: Stored
) -> None:
    """Raise InputError for unsigned parts where nothing says which number stands for 0.

    It is raised too where that is said of other types than integers, or beside a scale or an
    offset.
    """
    what, key = f"input.{operand}: {dataset.name}", f"input.zero_level.{operand}"
    kind = np.dtype(stored.kind) if stored.bits else part
    if level is not None and stored.packed:
        stands = level * stored.scale + stored.offset
        raise InputError(
            f"{what} has a scale or an offset, by which a stored {level:g} stands for {stands:g}, "
            f"and {key} is of integers without scale_factor and add_offset; leave it out where the "
            f"file is right, else write add_offset {0.0 - level * stored.scale:g} into a copy of it"
        )
    if level is not None and kind.kind not in "iu":
        raise InputError(
            f"{what} holds {kind.name}, and {key} is of integers without scale_factor and "
            "add_offset; leave it out"
        )
    if kind.name in UNSIGNED_TYPES and level is None and not stored.packed:
        middle = 1 << 8 * kind.itemsize - 1
        raise InputError(
            f"{what} holds unsigned numbers, {kind.name}; say which stands for 0 by {key}: "
            f"{middle} in offset binary, 0 where none is below 0"
        )


def levelled(parts: Sequence[Array], level: float | None) -> list[Array]:
    """Return real and imaginary parts, less the number that stands for 0 where one does."""
    if level is None:
        return list(parts)
    made = [one.astype(np.result_type(one, np.float32)) for one in parts]
    for one in made:
        one -= level
    return made
