"""Text files written atomically, and files that a config names."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from workflow.storage.failures import writing
from workflow.storage.run_folder import result_path


def atomic_text(path: Path, text: str) -> None:
    """Write a text file atomically, in UTF-8."""
    with result_path(path) as temporary, writing(temporary, len(text)):
        temporary.write_text(text, encoding="utf-8")


def sha256_of(path: Path) -> str:
    """Return SHA-256 of a file in hexadecimal; raises OSError where it cannot be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


CLOCK_SKEW_S = 60.0
"""How far the clock of a file server or of another machine may be ahead of this one's."""

FileState = tuple[int, int, int]
"""The inode, size and time of modification of a file."""


def file_state(path: Path) -> FileState:
    """Return the numbers of a file that change when it is written or replaced; raises OSError."""
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


_FOLDERS = {
    ("zarr.json", ".zgroup", ".zarray", ".zmetadata"): "Zarr; h5py.File('x.h5', 'w')['x'] = "
    "zarr.open(name)[array][...] makes HDF5 of an array, xarray.open_zarr(name).to_netcdf('x.nc', "
    "engine='h5netcdf', invalid_netcdf=True) of all of them with their axes",
    (
        "table.dat",
    ): "CASA's tables; pyuvdata.UVData.from_file(name).write_uvh5('x.uvh5') makes UVH5 "
    "of a measurement set",
}
"""Formats whose files are folders, by the files in them."""


def _made_of(folder: Path) -> str:
    """Return how to make a file of a folder; empty where it is of no format that is known."""
    for names, words in _FOLDERS.items():
        if any((folder / name).is_file() for name in names):
            return f": it is {words}"
    return ""


def absent(path: Path) -> str:
    """Return an error's text: a folder, or nothing, stands where a config names a file."""
    with contextlib.suppress(OSError):  # of a name that is too long, or a folder that is closed
        if path.is_dir():
            return f"{path} is a folder, not a file{_made_of(path)}"
        if path.exists():
            return f"{path} is a pipe or a device, not a file"
        if path.is_symlink():
            return f"{path} is a link to {path.readlink()}, where there is no file"
    hint = "; ~ and $NAME stand for themselves in a study" if {"~", "$"} & {*str(path)[:1]} else ""
    return f"there is no file {path} (looked in {Path.cwd()}){hint}"


def is_file(path: Path) -> bool:
    """Return whether a path from a config is a regular file; False where nobody can look.

    `Path.is_file` raises OSError for a name that is too long and a folder that is closed to us.
    """
    try:
        return path.is_file()
    except OSError:
        return False
