"""Attributes of a user's file, of its datasets and of its header, for certificates."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import h5py
import numpy as np

from workflow.config.file_input import FileInput
from workflow.config.formats import HDF5
from workflow.files.hdf5_file import DAMAGE, opened
from workflow.files.links import DatasetError, find_dataset
from workflow.files.text_attributes import guarded, plain_text
from workflow.inputs.operand_datasets import dataset_paths
from workflow.readers import reader_of

Value = str | float | int | bool
ATTRIBUTES = "source_attributes"
"""Key of a certificate: what a user's file says of itself and of each operand's dataset."""
MAX_NAMES = 128
"""Attributes that are kept of one object."""
MAX_TEXT = 4096
"""Characters of text that are kept; the rest is said to be left out."""
MAX_NUMBERS = 16
"""Numbers of a list that is kept."""
DAMAGED = "the attributes of the file are damaged, and were not read"
"""Stands in the place of all attributes where one is damaged."""
_MAX_BYTES = 1 << 20
"""Bytes of one value that is read."""
_UVH5 = "uvh5"
_STRUCTURE = frozenset(
    ("CLASS", "NAME", "DIMENSION_LIST", "DIMENSION_LABELS", "REFERENCE_LIST", "NX_class",
     "_Netcdf4Dimid", "_Netcdf4Coordinates", "_NCProperties", ".", ".."),
)  # fmt: skip
"""Attributes that say how a file is built, and names that HDF5 has for itself."""


def source_attributes(source: FileInput) -> dict[str, dict[str, Value]]:
    """Return attributes of a user's HDF5 file, under ``file``, and of each operand's dataset.

    UVH5 has them as datasets: the scalars of its header stand under ``header``, as does what the
    readers of other formats return (`Reader.header`). Those that are neither text nor numbers, and
    lists of more than `MAX_NUMBERS`, are left out.
    """
    if source.file is None:
        return {}
    if source.format not in (HDF5, _UVH5):
        header = reader_of(source, next(iter(datasets_of(source)))).header()
        said = {_name(key): _value(value) for key, value in header.items() if _is_scalar(value)}
        kept = {key: value for key, value in said.items() if value is not None}
        return {"header": dict(islice(kept.items(), MAX_NAMES))} if kept else {}
    with opened(source.path) as file:
        found = guarded(lambda: _said_in(file, source))
    return {"file": {"argand_note": DAMAGED}} if found is None else found


def _said_in(file: h5py.File, source: FileInput) -> dict[str, dict[str, Value]]:
    found = {"file": _attributes(file)}
    if source.format == _UVH5:
        found["header"] = dict(islice(_scalars(file), MAX_NAMES))
    else:
        for name, paths in datasets_of(source).items():
            try:
                dataset = find_dataset(file, paths[0], external=source.external)
            except DatasetError:  # its operand is read before, and said what is wrong
                continue
            found[name] = _attributes(dataset)
    return {name: values for name, values in found.items() if values}


def datasets_of(source: FileInput) -> dict[str, list[str]]:
    """Return the datasets, or the arrays of another format, of each operand that has some."""
    found = {name: dataset_paths(getattr(source, name)) for name in source.operand_names()}
    return {name: paths for name, paths in found.items() if paths}


def _attributes(found: h5py.HLObject) -> dict[str, Value]:
    kept: dict[str, Value] = {}
    for name in islice(found.attrs, MAX_NAMES):
        try:
            attribute = found.attrs.get_id(name)
            if name in _STRUCTURE or not _is_short(attribute.shape, attribute.dtype):
                continue
            value = _value(found.attrs[name])
        except DAMAGE:  # what is damaged beside the data does not keep them from being read
            continue
        if value is not None:
            kept[_name(name)] = value
    return kept


def _scalars(file: h5py.File) -> Iterator[tuple[str, Value]]:
    """Yield the scalars of a UVH5 header, which links and other files do not lead to."""
    header = file["Header"]
    for name in islice(header, 8 * MAX_NAMES):
        try:
            dataset = find_dataset(file, f"Header/{name}")
            if dataset.size == 1 and _is_short(dataset.shape, dataset.dtype):
                value = _value(dataset[()])
            else:
                continue
        except (DatasetError, *DAMAGE):
            continue
        if value is not None:
            yield _name(name), value


def _is_short(shape: tuple[int, ...] | None, dtype: np.dtype[Any]) -> bool:
    """Return whether an attribute is one text or truth value, or at most `MAX_NUMBERS` numbers."""
    if shape is None or len(shape) > 1 or dtype.itemsize > _MAX_BYTES:
        return False
    most = MAX_NUMBERS if dtype.kind in "biuf" else 1
    is_text = dtype.kind in "SU" or h5py.check_string_dtype(dtype) is not None
    return (is_text or dtype.kind in "biuf") and int(np.prod(shape)) <= most


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | int | float)


def _value(stored: Any) -> Value | None:
    """Return a stored value as what JSON and HDF5 have, lists as text; None for what is neither."""
    values = np.ravel(np.asarray(stored)).tolist()
    if len(values) != 1:
        return str(values) if values else None
    one = values[0]
    if isinstance(one, bytes):
        one = one.decode("utf-8", "replace")
    if isinstance(one, int) and not -(1 << 63) <= one < 1 << 63:
        return None
    if not isinstance(one, str):
        return one if isinstance(one, bool | int | float) else None
    return kept_text(one)


def kept_text(text: str) -> str:
    """Return text that HDF5 and JSON hold; what is cut to `MAX_TEXT` characters says so."""
    text = plain_text(text)
    rest = f" ... ({len(text)} characters in all)" if len(text) > MAX_TEXT else ""
    return text[:MAX_TEXT] + rest


def _name(text: str) -> str:
    """Return a name that HDF5 takes for one of an attribute and of a dataset."""
    return plain_text(text).replace("/", "_") if text.strip("./") else "_"
