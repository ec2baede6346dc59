"""Numbers of a dataset that is read whole, such as coordinates."""

from __future__ import annotations

import h5py
import numpy as np

from workflow.data import MAX_CHECKED, Array, blank
from workflow.files.chunk_filters import ChunkError
from workflow.files.chunk_sizes import check_chunks
from workflow.files.input_error import InputError
from workflow.files.stored_types import is_coordinate, type_in_words, widened
from workflow.storage.memory import limited_memory


def read_numbers(dataset: h5py.Dataset, key: str, *, check: bool) -> Array:
    """Return the numbers of a dataset; integers stay integers, as int64 where they fit.

    Raises InputError.
    """
    kind = dataset.dtype
    if not is_coordinate(kind):
        raise InputError(f"{key}: {dataset.name} must hold numbers, got {type_in_words(kind)}")
    if check and dataset.size > MAX_CHECKED:
        return blank(dataset.shape, widened(np.empty(0, kind)).dtype)
    try:
        with limited_memory(4 * dataset.size * 8):
            check_chunks(dataset, [range(n) for n in dataset.shape])
            return widened(np.asarray(dataset[...]))
    except ChunkError as error:
        raise InputError(f"{key}: {error}") from error
    except MemoryError as error:
        raise InputError(f"{key}: {dataset.name} takes more memory than its shape says") from error
