"""Names in a dataset of text: of antennas, receivers, polarizations.

Text of any length lies elsewhere in the file, in a heap (`text_attributes.guarded`).
"""

from __future__ import annotations

import h5py
import numpy as np

from workflow.data import Array
from workflow.storage.chunk_filters import ChunkError
from workflow.storage.chunk_sizes import check_chunks
from workflow.storage.input_operand import InputError
from workflow.storage.memory import limited_memory
from workflow.storage.text_attributes import guarded, in_a_heap, plain_text

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
    if dataset.size > _MOST:
        raise InputError(
            f"{key}: {dataset.name} must have at most {_MOST} names, got {dataset.shape}"
        )
    if dataset.dtype.itemsize > LONGEST:
        raise _too_long(dataset, key, dataset.dtype.itemsize)

    def read() -> list[str]:
        with limited_memory(4 * dataset.size * LONGEST):
            every = dataset[...].reshape(-1).tolist()
            return [plain_text(one.decode("utf-8", "replace")) for one in every]

    try:
        if in_a_heap(
            dataset.dtype
        ):  # a chunk has places in the heap, whose size NumPy does not say
            found = guarded(read)
        else:
            check_chunks(dataset, [range(n) for n in dataset.shape])
            found = read()
    except (ChunkError, MemoryError) as error:
        raise InputError(f"{key}: the names in {dataset.name} cannot be read ({error})") from error
    if found is None:
        raise InputError(f"{key}: the names in {dataset.name} cannot be read (they are damaged)")
    if (longest := max((len(one.encode()) for one in found), default=0)) > LONGEST:
        raise _too_long(dataset, key, longest)
    return np.array(found or [""], str)[: len(found)].reshape(dataset.shape)


def _too_long(dataset: h5py.Dataset, key: str, length: int) -> InputError:
    return InputError(
        f"{key}: {dataset.name} must have names of at most {LONGEST} bytes, got text of {length}"
    )
