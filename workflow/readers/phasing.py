"""The phases that visibilities of a UVH5 file were given toward a source, which covariances lack.

Visibilities that are phased to a source are V exp(-2 pi i f w / c), where w is the third of a
baseline's ``uvw_array``: of a wave from the source all have one phase. As pyuvdata's
``unproject_phase``, w is undone, so that directions are again those of the horizon.
"""

from __future__ import annotations

from collections.abc import Callable

import h5py
import numpy as np
from argand.image.problem import SPEED_OF_LIGHT

from workflow.data import Array
from workflow.files.input_error import InputError
from workflow.files.links import DatasetError, find_dataset
from workflow.files.text_attributes import guarded, in_a_heap

CATALOG = "Header/phase_center_catalog"
_UNTURNED = ("unprojected", "drift")
"""Types of phase centres whose w is in no phase: of the catalog, and before there was one."""
_TURNED = ("sidereal", "ephem", "driftscan", "phased")
"""Types whose w is."""
_LONGEST, _MAX_BYTES = 64, 4096
"""Characters of a short text, and the bytes that may be kept for it."""


def turned_metres(
    file: h5py.File, what: str, rows: int, header: Callable[[h5py.File, str, int], Array]
) -> Array | None:
    """Return (rows,) the metres of w in the phase of each row of a UVH5 file; None if it has none.

    Args:
        file: the open file.
        what: the beginning of errors.
        rows: rows of the data.
        header: returns the values of a header by its name, up to a number of them.

    Raises InputError for a phase centre of another type, and where w or its type is not there.
    """
    if CATALOG in file:
        identifiers = header(file, "phase_center_id_array", rows)
        if len(identifiers) != rows or identifiers.dtype.kind == "f":
            raise InputError(
                f"{what}: Header/phase_center_id_array must have {rows} whole numbers, got "
                f"{len(identifiers)} of {identifiers.dtype}"
            )
        numbers, place = np.unique(identifiers, return_inverse=True)
        kinds = [_kind(file, f"{CATALOG}/{number}/cat_type", what) for number in numbers]
        turned = np.array([kind not in _UNTURNED for kind in kinds])[place]
    elif "Header/phase_type" in file:
        turned = np.full(rows, _kind(file, "Header/phase_type", what) not in _UNTURNED)
    else:
        return None
    if not turned.any():
        return None
    uvw = header(file, "uvw_array", 3 * rows)
    if uvw.size != 3 * rows or not np.isfinite(uvw).all():
        raise InputError(f"{what}: Header/uvw_array must have {rows} times three finite values")
    return np.where(turned, uvw.reshape(rows, 3)[:, 2], 0.0)


def unturned(values: Array, metres: Array, frequency: Array) -> Array:
    """Return visibilities (..., frequency, polarization) without the phases of (...) metres."""
    turns = metres[..., None] * (frequency / SPEED_OF_LIGHT)
    phase = np.exp(2j * np.pi * (turns % 1))  # of many turns no digits are lost
    return np.asarray(values * phase[..., None], values.dtype)


def text_of(file: h5py.File, path: str) -> str:
    """Return a header's short text; empty where there is none."""
    try:
        found = find_dataset(file, path)
    except DatasetError:
        return ""
    short = found.shape == () and found.dtype.kind in "OS" and found.dtype.itemsize <= _MAX_BYTES

    def read() -> str:
        value = found[()] if short else b""
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else ""
        return text if len(text) <= _LONGEST else ""

    if not in_a_heap(found.dtype):
        return read()
    text = guarded(read)
    if text is None:
        raise InputError(f"input.file: {file.filename}: {path} is damaged, and cannot be read")
    return str(text)


def _kind(file: h5py.File, path: str, what: str) -> str:
    """Return the type of a phase centre; raises InputError for one that is not known."""
    kind = text_of(file, path)
    if kind not in (*_UNTURNED, *_TURNED):
        raise InputError(
            f"{what}: {path} must be one of {[*_UNTURNED, *_TURNED]} for a covariance, got "
            f"{kind!r}; pyuvdata's UVData.unproject_phase makes visibilities of no phase centre"
        )
    return kind
