"""Columns of a table: the fields of a compound dataset, such as names and places of antennas."""

from __future__ import annotations

import h5py
import numpy as np

from workflow.config.mistakes import nearest
from workflow.data import Array
from workflow.inputs.chunk_filters import ChunkError
from workflow.inputs.chunk_sizes import check_chunks
from workflow.inputs.input_error import InputError
from workflow.inputs.stored_types import in_words
from workflow.inputs.text_attributes import plain_text
from workflow.storage.memory import limited_memory

MOST_ROWS = 1 << 20
"""Rows of a table that is read."""


def column_of_table(dataset: h5py.Dataset, name: str, key: str) -> Array:
    """Return (rows,) numbers or names of a field of a compound dataset.

    Raises InputError, which begins with ``key``, for another dataset, a field that there is not,
    and one of anything but numbers and text of one length.
    """
    kind = dataset.dtype
    if kind.names is None or dataset.ndim != 1 or not 0 < dataset.size <= MOST_ROWS:
        raise InputError(
            f"{key}.column: of a name, {dataset.name} must be a table, a compound of 1 to "
            f"{MOST_ROWS} rows, got {in_words(kind)} of shape {dataset.shape}"
        )
    if name not in kind.names:
        hint = nearest(name, kind.names)
        raise InputError(f"{key}.column: {dataset.name} has {list(kind.names)}, got {name!r}{hint}")
    part = kind[name]
    is_number = part.kind in "fiu" and part.itemsize <= 8 and h5py.check_enum_dtype(part) is None
    if part.kind != "S" and not is_number:
        raise InputError(
            f"{key}: {name!r} of {dataset.name} must be numbers or text of one length, got "
            f"{in_words(part)}"
        )
    try:
        with limited_memory(4 * dataset.size * kind.itemsize):
            check_chunks(dataset, [range(dataset.size)])
            found = np.asarray(dataset.fields(name)[...])
    except (ChunkError, MemoryError) as error:
        raise InputError(f"{key}: {dataset.name} cannot be read ({error})") from error
    if part.kind == "S":
        return np.array([plain_text(one.decode("utf-8", "replace")) for one in found.tolist()], str)
    if part.kind == "f":
        return found.astype(np.float64)
    return found.astype(np.uint64 if int(found.max()) > np.iinfo(np.int64).max else np.int64)
