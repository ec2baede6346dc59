"""Columns of a table: the fields of a compound dataset, such as names and places of antennas."""

from __future__ import annotations

import h5py
import numpy as np

from workflow.config.mistakes import nearest
from workflow.data import Array
from workflow.files.chunk_filters import ChunkError
from workflow.files.chunk_sizes import check_chunks
from workflow.files.input_error import InputError
from workflow.files.names import LONGEST
from workflow.files.stored_types import is_coordinate, type_in_words, widened
from workflow.files.text_attributes import plain_text
from workflow.storage.memory import limited_memory

MAX_ROWS = 1 << 20
"""Rows of a table that is read."""
_MAX_BYTES = 1 << 30
"""Bytes of all of its columns, which HDF5 decodes for one of them: a small file may have many."""


def column_of_table(dataset: h5py.Dataset, name: str, key: str) -> Array:
    """Return (rows,) numbers or names of a field of a compound dataset.

    Raises InputError, which begins with ``key``, for another dataset, one too large, a field that
    there is not, and one of anything but numbers and short text of one length.
    """
    kind = dataset.dtype
    is_table = kind.names is not None and dataset.ndim == 1 and 0 < dataset.size <= MAX_ROWS
    if not is_table or dataset.size * kind.itemsize > _MAX_BYTES:
        raise InputError(
            f"{key}.column: of a name, {dataset.name} must be a table, a compound of 1 to "
            f"{MAX_ROWS} rows and up to 1 GiB, got {type_in_words(kind)} of shape {dataset.shape}"
        )
    if name not in kind.names:
        hint = nearest(name, kind.names)
        raise InputError(f"{key}.column: {dataset.name} has {list(kind.names)}, got {name!r}{hint}")
    part = kind[name]
    if part.kind == "S" and part.itemsize > LONGEST:
        raise InputError(
            f"{key}: {name!r} of {dataset.name} must have names of at most {LONGEST} bytes, got "
            f"text of {part.itemsize}"
        )
    if part.kind != "S" and not is_coordinate(part):
        raise InputError(
            f"{key}: {name!r} of {dataset.name} must be numbers or text of one length, got "
            f"{type_in_words(part)}"
        )
    try:
        with limited_memory(4 * dataset.size * kind.itemsize):
            check_chunks(dataset, [range(dataset.size)])
            found = np.asarray(dataset.fields(name)[...])
    except (ChunkError, MemoryError) as error:
        raise InputError(f"{key}: {dataset.name} cannot be read ({error})") from error
    if part.kind == "S":
        return np.array([plain_text(one.decode("utf-8", "replace")) for one in found.tolist()], str)
    return widened(found)
