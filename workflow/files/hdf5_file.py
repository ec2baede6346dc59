"""A user's HDF5 file, opened with an error that says what is wrong with it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import h5py

from workflow.files.input_error import InputError
from workflow.files.other_files import found_instead, half_written
from workflow.storage.failures import WriteError, cause_of, is_of_system
from workflow.storage.files import absent, file_state, is_file

DAMAGE = (OSError, KeyError, RuntimeError, ValueError, TypeError, OverflowError, MemoryError)
"""Errors of h5py for a damaged file, depending on where HDF5 or NumPy stumbles."""


@contextlib.contextmanager
def opened(path: Path) -> Iterator[h5py.File]:
    """Yield the user's file, with the compression filters of hdf5plugin at hand.

    Raises InputError for a file that is missing, damaged, or changed while it is read.
    """
    import hdf5plugin  # noqa: F401

    if not is_file(path):
        raise InputError(f"input.file: {absent(path)}")
    try:
        before = file_state(path)
        with h5py.File(path, "r") as file:
            yield file
        if file_state(path) != before:
            raise InputError(f"input.file: {path} was changed by another program while it was read")
    except (InputError, WriteError):
        raise
    except BlockingIOError as error:
        raise InputError(f"input.file: another program is writing {path} ({error})") from error
    except DAMAGE as error:
        if is_of_system(error):
            raise InputError(f"input.file: {path} cannot be read ({cause_of(error)})") from error
        why = found_instead(path) or half_written(str(error)) or str(error)
        raise InputError(f"input.file: {path} is not a readable HDF5 file ({why})") from error
