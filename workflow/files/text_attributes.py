"""Text in a user's file, of attributes and of headers.

Text of any length, as h5py writes it, lies in a heap that HDF5 searches for ever where it is
damaged, and nothing of Python ends that. So a fork of this process reads it, which is ended.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from workflow.files.input_error import InputError
from workflow.files.units import parted
from workflow.storage.files import file_state

LONGEST_UNIT = 64
"""Characters of an attribute that is taken for a unit."""
LONGEST_NAME = 256
"""Characters of one that is taken for what values mean, and the date that times count from."""
CPU_SECONDS = 2.0
"""Seconds of a core that reading text may take; it takes a millisecond."""
_MAX_KNOWN = 4096
"""Texts of attributes that are kept."""
_known: dict[tuple[Any, ...], Any] = {}


def unit_of(dataset: h5py.Dataset) -> str:
    """Return the unit of a dataset by its attributes; empty where it is not said."""
    return text_attribute(dataset, "units") or text_attribute(dataset, "unit")


def unit_of_parts(datasets: Sequence[h5py.Dataset], key: str) -> str:
    """Return the unit that a dataset says, or those of real and imaginary parts; "" if none.

    Raises InputError, which begins with ``key``, for parts of two units, and where one of two parts
    is in a unit of angles and the other is not, or one is in decibels: those are amplitudes and
    phases, and no parts. Two angles may be parts, as those of the Earth's pole are.
    """
    units = [unit_of(one) for one in datasets]
    said = {unit: one.name for unit, one in zip(units, datasets, strict=True) if unit}
    for unit, name in said.items() if len(datasets) > 1 else ():
        one_angle = parted(unit)[0] in ("deg", "rad") and units[0] != units[-1]
        if one_angle or unit.lower().startswith("db"):
            raise InputError(
                f"{key}: {name} is in {unit!r}, as amplitudes or phases are, and no real or "
                "imaginary part; write these, or where the file is wrong give input.units"
            )
    if len(said) > 1:
        each = " and ".join(f"{unit!r} of {name}" for unit, name in said.items())
        raise InputError(
            f"{key}: both parts must be in one unit, got {each}; write them in one, or where the "
            "file is wrong give input.units"
        )
    return next(iter(said), "")


def text_attribute(dataset: h5py.Dataset, name: str, longest: int = LONGEST_UNIT) -> str:
    """Return an attribute of a dataset that is short text; empty where it is something else.

    Raises InputError where it is damaged.
    """
    if name not in dataset.attrs:
        return ""
    attribute = dataset.attrs.get_id(name)
    if attribute.shape not in ((), (1,)):
        return ""

    def read() -> str:
        value = np.ravel(dataset.attrs[name])[0]
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        is_short = isinstance(value, str) and len(value) <= longest
        return plain_text(str(value)) if is_short else ""

    if not in_a_heap(attribute.dtype):
        return read()
    found = guarded_once(dataset, f"{name} {longest}", read)
    if found is None:
        raise InputError(
            f"input.file: {dataset.file.filename}: the attribute {name} of {dataset.name} is "
            "damaged, and cannot be read"
        )
    return str(found)


def plain_text(text: str) -> str:
    """Return text that HDF5 and JSON can hold: valid UTF-8 without NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", " ")


def in_a_heap(dtype: np.dtype[Any]) -> bool:
    """Return whether values of a type lie in a heap, as text of any length does."""
    return dtype.kind == "O"


def guarded(read: Callable[[], Any]) -> Any:
    """Return the result of ``read``, which JSON must hold; None where it fails or does not end."""
    mine, theirs = os.pipe()
    with warnings.catch_warnings():
        # It warns of threads, which the copy lacks; the copy reads a file and holds nothing that
        # belongs to them.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _serve(read, theirs)
    os.close(theirs)
    with os.fdopen(mine, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    return json.loads(said) if status == 0 else None


def guarded_once(dataset: h5py.Dataset, what: str, read: Callable[[], Any]) -> Any:
    """Return `guarded` of ``what`` a dataset says, read once while its file stays the same.

    A fork takes milliseconds, and a check of a sweep reads a file several times for each point.
    """
    path = Path(dataset.file.filename)
    key = path, file_state(path), dataset.name, what
    if key not in _known:
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        _known[key] = guarded(read)
    return _known[key]


def _serve(read: Callable[[], Any], to: int) -> None:
    """Write what is read as JSON, and end this process with status 0, or 1 where it failed."""
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGPROF, signal.SIG_DFL)  # ends a process, within HDF5 too
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        with os.fdopen(to, "wb") as pipe:
            pipe.write(json.dumps(read()).encode())
    except BaseException:  # nothing of it may go on as a second parent
        os._exit(1)
    os._exit(0)
