"""The datasets of a user's file that a study names for an operand."""

from __future__ import annotations

from collections.abc import Sequence

import h5py

from workflow.config.file_input import DatasetSource, FileInput, PackedSource, WorkloadInput
from workflow.files.chunk_filters import ChunkError
from workflow.files.chunk_sizes import check_filters
from workflow.files.input_error import InputError
from workflow.files.links import DatasetError, find_dataset
from workflow.files.other_files import better_format


def open_datasets(
    file: h5py.File, source: FileInput, paths: Sequence[str], key: str
) -> list[h5py.Dataset]:
    """Return the datasets of the user's file whose values may be read; raises InputError."""
    try:
        datasets = [find_dataset(file, path, external=source.external) for path in paths]
        for dataset in datasets:
            check_filters(dataset)
    except (DatasetError, ChunkError) as error:
        raise InputError(f"{key}: {error}{better_format(file, source.format)}") from error
    return datasets


def dataset_paths(where: str | DatasetSource | PackedSource | WorkloadInput | None) -> list[str]:
    """Return the one dataset of an operand, or those of its real and its imaginary part, if any."""
    if where is None or isinstance(where, WorkloadInput):
        return []
    if isinstance(where, str | PackedSource):
        return [where if isinstance(where, str) else where.int4x2]
    return [where.real] if where.imag is None else [where.real, where.imag]
