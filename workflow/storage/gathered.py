"""One array over the product files of several shards: an HDF5 virtual dataset, its sources checked.

HDF5 reads fill values, silently, where a source of a virtual dataset is missing or too short. So
our readers do not read through it: they take each source by itself, check it against the
certificate's SHA-256, and check every chunk. Other readers see one dataset, and NaN where a source
is missing. Sources are named relative to the file, so that a results folder may be moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import h5py
import numpy as np

from workflow.data import Array
from workflow.storage.datasets import DataError, open_written, read_dataset
from workflow.storage.files import sha256_of

SIGNALS = "entry/data"
"""The group of a product file that holds its arrays."""


@dataclass(frozen=True)
class SourceFile:
    """A product file that holds entries ``start`` to ``stop`` of the axis along which it was split.

    ``file`` is relative to the folder of the gathered file, ``sha256`` that of the whole file.
    """

    file: str
    sha256: str
    start: int
    stop: int


def source_of(path: Path, folder: Path, start: int, stop: int) -> SourceFile:
    """Return the source that a product file is for a gathered one in ``folder`` above it."""
    return SourceFile(path.relative_to(folder).as_posix(), sha256_of(path), start, stop)


def write_virtual(
    group: h5py.Group, name: str, dtype: np.dtype, shape: Sequence[int], axis: int,
    sources: Sequence[SourceFile],
) -> h5py.Dataset:  # fmt: skip
    """Return a virtual dataset of ``shape`` whose entries along ``axis`` are those of the sources.

    Each source has a dataset of the same name in its `SIGNALS`. Raises ValueError where the sources
    do not cover the axis one after another.
    """
    ends = [0, *(source.stop for source in sources)]
    if [source.start for source in sources] != ends[:-1] or ends[-1] != shape[axis]:
        raise ValueError(
            f"sources must cover the {shape[axis]} entries of axis {axis} one after another, got "
            f"{[(source.start, source.stop) for source in sources]}"
        )
    layout = h5py.VirtualLayout(tuple(shape), dtype)
    for source in sources:
        part = _along(axis, len(shape), source)
        inside = [len(range(n)[where]) for n, where in zip(shape, part, strict=True)]
        layout[part] = h5py.VirtualSource(source.file, f"{SIGNALS}/{name}", inside, dtype)
    return group.create_virtual_dataset(name, layout, fillvalue=_gap(dtype))


def read_virtual(
    dataset: h5py.Dataset, axis: int, sources: Sequence[SourceFile], part: Sequence[slice]
) -> Array:
    """Return a part of `write_virtual`'s array, a range for each axis, from sources that have it.

    Raises DataError that names the source which is missing, damaged, or not the one that was
    gathered.
    """
    path = Path(dataset.file.filename)
    spans = [range(n)[taken] for n, taken in zip(dataset.shape, part, strict=True)]
    data = np.empty([len(span) for span in spans], dataset.dtype)
    name = PurePosixPath(dataset.name).name
    for source in sources:
        first, last = max(source.start, spans[axis].start), min(source.stop, spans[axis].stop)
        if first >= last:
            continue
        where = _checked(path, source)
        shape = (*dataset.shape[:axis], source.stop - source.start, *dataset.shape[axis + 1 :])
        with open_written(where, "product") as held:
            found = held[f"{SIGNALS}/{name}"]
            if found.shape != shape or found.dtype != data.dtype:
                raise DataError(
                    f"{path}: its source {where} must hold {data.dtype} of shape {shape}, got "
                    f"{found.dtype} of {found.shape}"
                )
            inner, place = list(part), [slice(None)] * data.ndim
            inner[axis] = slice(first - source.start, last - source.start)
            place[axis] = slice(first - spans[axis].start, last - spans[axis].start)
            data[tuple(place)] = read_dataset(found, inner)
    return data


def _checked(path: Path, source: SourceFile) -> Path:
    """Return a source's path once it is known to be the one that was gathered."""
    relative = PurePosixPath(source.file)
    if relative.is_absolute() or ".." in relative.parts:
        raise DataError(f"{path}: a source must lie beside it, got {source.file!r}")
    where = path.parent / relative
    try:
        found = sha256_of(where)
    except OSError as error:
        raise DataError(
            f"{path}: its source {where} is missing or unreadable ({error}); run again"
        ) from error
    if found != source.sha256:
        raise DataError(
            f"{path}: its source {where} was changed after it was gathered (its SHA-256 is "
            f"{found}, the certificate has {source.sha256}); delete the source and run again"
        )
    return where


def sources_of(shards: Mapping[str, Mapping[str, object]]) -> list[SourceFile]:
    """Return the sources that a certificate lists, in the order of their entries."""
    found = [
        SourceFile(
            str(one["file"]), str(one["sha256"]), int(str(one["start"])), int(str(one["stop"]))
        )
        for one in shards.values()
    ]
    return sorted(found, key=lambda source: source.start)


def _along(axis: int, rank: int, source: SourceFile) -> tuple[slice, ...]:
    """Return a source's place in an array of ``rank`` axes."""
    places = [slice(None)] * rank
    places[axis] = slice(source.start, source.stop)
    return tuple(places)


def _gap(dtype: np.dtype) -> Array:
    """Fill value of a missing source: NaN, which no reader takes for a result."""
    return np.full((), np.nan * (1 + 1j) if dtype.kind == "c" else np.nan, dtype)
