"""Operands that a user brings: where they lie in an HDF5 file, what is allowed, reading them.

Everything that follows from a file's headers is checked by `describe_operand`, before any job
starts; `read_operand` makes the same checks and then reads. Both raise InputError with what was
found and what is allowed, its text starting with the key of the config that it is about.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from workflow.config.file_input import FileInput
from workflow.data import Coordinate
from workflow.files.hdf5_file import opened
from workflow.files.input_error import InputError
from workflow.files.links import DatasetError, files_of
from workflow.files.unwritten import unwritten
from workflow.inputs.axes import Operand
from workflow.inputs.coordinates import coordinates_of
from workflow.inputs.input_operand import InputOperand, OperandHeader
from workflow.inputs.operand_datasets import dataset_paths
from workflow.storage.failures import WriteError, cause_of, writing
from workflow.storage.files import sha256_of
from workflow.storage.memory import in_words, limited_memory, machine_memory, scratch_folder

Array = npt.NDArray[Any]

_PIECES = 16
"""Part of the memory that a piece takes of data that do not fit into it."""


def describe_operand(source: FileInput, operand: Operand) -> OperandHeader:
    """Check an operand by the file's headers, without reading its data.

    Args:
        source: the input of a case.
        operand: the field that holds the `DatasetRef`, and its axes. The leading ones may be
            missing, or any where the config names the axes: they have length 1.

    Raises:
        InputError: no such file or dataset, a file that is not HDF5, data that lie in other files,
            an unreadable type, real data for a complex operand or the reverse, real and imaginary
            parts of different shape, a selection that does not fit, too many or unknown axes, none
            to work along, no elements.
    """
    with opened(source.path) as file:
        return InputOperand(file, source, operand).header()


def read_operand(source: FileInput, operand: Operand) -> Array:
    """Read an operand; arguments and errors as in `describe_operand`.

    Returns:
        A contiguous array with the operand's axes: complex64 or, from float64, complex128 and int32
        parts, complex128; for a real operand float32 or float64 alike.

    Raises:
        InputError: also where the data cannot be decoded (a damaged chunk, an unknown filter) or
            take more memory than the machine has, or more than the headers say.
    """
    with opened(source.path) as file:
        found = InputOperand(file, source, operand)
        header = found.header()
        needed, there = found.memory(header), machine_memory()
        try:
            if needed > there:
                return _on_disk(found, header, needed, there)
            # A compressed chunk may hold far more than it should: HDF5 itself has no limit.
            with limited_memory(needed):
                found.check_chunks()
                return header.map.arranged(found.read(header.dtype, found.picked))
        except MemoryError as error:
            raise InputError(
                f"{found.key}: {found.name} of {source.path} takes more memory than the "
                f"{in_words(needed)} of its shape ({error})"
            ) from error
        except WriteError:
            raise
        except OSError as error:
            raise InputError(
                f"{found.key}: {found.name} of {source.path} cannot be read ({cause_of(error)})"
            ) from error


def never_written(source: FileInput, operand: Operand) -> str:
    """Return which selected parts of an operand's datasets were never written; "" if none."""
    with opened(source.path) as file:
        found = InputOperand(file, source, operand)
        box = [range(axis.span.start, axis.span.stop) for axis in found.picked.axes]
        said = {str(one.name): text for one in found.datasets if (text := unwritten(one, box))}
    return "; ".join(f"{text} ({name})" for name, text in said.items())


def describe_coordinates(
    source: FileInput, operands: Sequence[Operand], *, check: bool = False,
    wrong: Sequence[Operand] = (),
) -> tuple[dict[str, Coordinate], dict[str, str]]:  # fmt: skip
    """Return `coordinates_of` operands in their file, with its arguments and errors.

    ``operands`` are those in which nothing is wrong.
    """
    with opened(source.path) as file:
        found = [InputOperand(file, source, operand) for operand in operands]
        return coordinates_of(file, source, found, check=check, wrong=wrong)


def _on_disk(found: InputOperand, header: OperandHeader, needed: int, there: int) -> Array:
    """Return operands beyond the machine's memory, in a scratch file without a name.

    Raises InputError where there is no `scratch_folder`, its disk has not twice the room (the
    staged file is as large), or a single chunk is too large.
    """
    key, folder = found.key, scratch_folder()
    size = math.prod(header.shape) * np.dtype(header.dtype).itemsize
    free = shutil.disk_usage(folder).free if folder else 0
    most = there // (_PIECES * np.dtype(header.dtype).itemsize)
    pieces = found.picked.pieces(most, found.datasets[0].chunks)
    room = found.piece_memory(most, header)
    if 2 * size > free or room > there:
        disk = f", and {in_words(2 * size)} of disk, of which {in_words(free)} are free"
        chunks = f", and {in_words(room)} for its chunks," if room > there else ""
        raise InputError(
            f"{key}: {found.name} of shape {header.shape} needs {in_words(needed)}{chunks} of "
            f"memory, this machine has {in_words(there)}{disk if folder else ''}; "
            f"input.select.{key.removeprefix('input.')} takes a part"
        )
    with limited_memory(room):
        found.check_chunks()
    scratch = Path(folder or tempfile.gettempdir()) / "scratch file"
    with writing(scratch, size), tempfile.TemporaryFile(dir=folder) as file:
        os.posix_fallocate(file.fileno(), 0, size)  # a full disk is an error now, no signal later
        data = np.memmap(file, header.dtype, "r+", shape=header.shape)
    as_in_file = header.map.as_in_file(data)
    for place, picked in pieces:
        with limited_memory(room):
            as_in_file[place] = found.read(header.dtype, picked)
    return data


def source_checksum(path: Path) -> str:
    """Return SHA-256 of a file in hexadecimal; raises InputError where it cannot be read."""
    try:
        return sha256_of(path)
    except OSError as error:
        raise InputError(f"input.file: {path} cannot be read ({error})") from error


def files_beside(source: FileInput) -> list[Path]:
    """Return the other files on which an input's operands depend, in their order.

    Raises InputError.
    """
    if not source.external:
        return []
    with opened(source.path) as file:
        names = [getattr(source, name) for name in source.operand_names()]
        paths = [path for where in names for path in dataset_paths(where)]
        try:
            files = [found for path in paths for found in files_of(file, path)]
        except DatasetError as error:
            raise InputError(f"input.file: {error}") from error
    return list(dict.fromkeys(files))
