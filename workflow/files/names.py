"""Names in a dataset of text: of antennas, receivers, polarizations.

Text of any length lies elsewhere in the file, in a heap (`text_attributes.guarded`).
"""

from __future__ import annotations

import h5py
import numpy as np

from workflow.data import Array
from workflow.files.chunk_filters import ChunkError
from workflow.files.chunk_sizes import check_chunks
from workflow.files.input_error import InputError
from workflow.files.text_attributes import guarded, in_a_heap, plain_text, text_attribute
from workflow.storage.memory import limited_memory

LONGEST = 64
"""Bytes of a name."""
_MAX_NAMES = 1 << 16
"""Names of an axis."""


def is_text(dataset: h5py.Dataset) -> bool:
    """Return whether a dataset holds text, of one length or any."""
    try:
        return h5py.check_string_dtype(dataset.dtype) is not None
    except (TypeError, ValueError):  # a type that NumPy has not
        return False


def is_of_letters(dataset: h5py.Dataset, length: int | None) -> bool:
    """Return whether a dataset has names letter by letter, as netCDF's and MATLAB's char arrays.

    Rows of netCDF's are as many as the axis has entries (``length``, None for any): one row may be
    the names of single letters.
    """
    try:
        if dataset.ndim != 2:
            return False
        return _by_matlab(dataset) or bool(
            dataset.dtype == "S1" and length in (None, dataset.shape[0])
        )
    except (TypeError, ValueError):  # a type that NumPy has not
        return False


def _by_matlab(dataset: h5py.Dataset) -> bool:
    is_letters = dataset.dtype.kind == "u" and dataset.dtype.itemsize <= 2
    return is_letters and text_attribute(dataset, "MATLAB_class") == "char"


def read_letters(dataset: h5py.Dataset, key: str) -> Array:
    """Return the names in a dataset `is_of_letters`: its rows, of MATLAB's its columns.

    Raises InputError as `read_names`.
    """
    length = dataset.shape[0 if _by_matlab(dataset) else 1]
    if dataset.size > _MAX_NAMES * LONGEST:
        raise InputError(
            f"{key}: {dataset.name} must have at most {_MAX_NAMES} names, got {dataset.shape}"
        )
    if length > LONGEST:
        raise _too_long(dataset, key, length)
    try:
        with limited_memory(64 * dataset.size):
            check_chunks(dataset, [range(n) for n in dataset.shape])
            found = dataset[...]
    except (ChunkError, MemoryError) as error:
        raise InputError(f"{key}: the names in {dataset.name} cannot be read ({error})") from error
    if _by_matlab(dataset):
        lines = found.astype("<u2").T
        texts = [line.tobytes().decode("utf-16-le", "replace") for line in lines]
    else:
        texts = [line.tobytes().decode("utf-8", "replace") for line in found]
    return np.array([plain_text(one.rstrip("\0 ")) for one in texts], str)


def read_names(dataset: h5py.Dataset, key: str) -> Array:
    """Return the names in a dataset of text, of its shape.

    Raises InputError, which begins with ``key``, for too many, too long ones, and damage.
    """
    if dataset.size > _MAX_NAMES:
        raise InputError(
            f"{key}: {dataset.name} must have at most {_MAX_NAMES} names, got {dataset.shape}"
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
