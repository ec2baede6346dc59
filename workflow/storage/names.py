"""Names in a dataset of text: of antennas, receivers, polarizations.

Text of one length is read. Text of any length lies elsewhere in the file, in a heap that HDF5
searches for ever where it is damaged.
"""

from __future__ import annotations

import h5py
import numpy as np

from workflow.data import Array
from workflow.storage.chunk_filters import ChunkError
from workflow.storage.chunk_sizes import check_chunks
from workflow.storage.input_operand import InputError
from workflow.storage.memory import limited_memory

LONGEST = 64
"""Bytes of a name."""
_MOST = 1 << 16
"""Names of an axis."""


def is_text(dataset: h5py.Dataset) -> bool:
    """Return whether a dataset holds text, of one length or any."""
    try:
        return h5py.check_string_dtype(dataset.dtype) is not None
    except (TypeError, ValueError):  # a type that NumPy has not
        return False


def read_names(dataset: h5py.Dataset, key: str) -> Array:
    """Return the names in a dataset of text, of its shape.

    Raises InputError, which begins with ``key``, for too many, too long ones, and damage.
    """
    if dataset.dtype.kind != "S":
        raise InputError(
            f"{key}: {dataset.name} holds text of any length, and of one length is read; write it "
            "as numpy.array(names, 'S'), or give the names in the study: [first, second]"
        )
    if dataset.size > _MOST:
        raise InputError(
            f"{key}: {dataset.name} must have at most {_MOST} names, got {dataset.shape}"
        )
    if dataset.dtype.itemsize > LONGEST:
        raise InputError(
            f"{key}: {dataset.name} must have names of at most {LONGEST} bytes, got text of "
            f"{dataset.dtype.itemsize}"
        )
    try:
        with limited_memory(4 * dataset.size * LONGEST):
            check_chunks(dataset, [range(n) for n in dataset.shape])
            found = [one.decode("utf-8", "replace") for one in dataset[...].reshape(-1).tolist()]
    except (ChunkError, MemoryError) as error:
        raise InputError(f"{key}: the names in {dataset.name} cannot be read ({error})") from error
    return np.array(found or [""], str)[: len(found)].reshape(dataset.shape)
