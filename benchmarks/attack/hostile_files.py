"""HDF5 files that mean harm: an array that is theirs, or an InputError, within limits."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from benchmarks.attack.campaign import Attempt, require
from benchmarks.attack.isolation import isolated
from workflow.config.file_input import DatasetRef, FileInput
from workflow.inputs.axes import Operand
from workflow.inputs.hdf5_operands import read_operand

_SHAPE = (64, 128)
"""Shape of the one dataset, a single chunk of complex64: 64 KiB."""
_DATA = (np.arange(64 * 128, dtype="f4") + 1).reshape(_SHAPE).astype("c8")
Builder = Callable[[Path, np.random.Generator], bool]


class _Input(FileInput):
    x: DatasetRef


def _chunk(path: Path, data: bytes, mask: int = 0, **filters: Any) -> bool:
    """Return a file whose one chunk holds these bytes as they are."""
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("x", _SHAPE, "c8", chunks=_SHAPE, **filters)
        dataset.id.write_direct_chunk((0, 0), data, mask)
    return True


def _shuffled(data: bytes) -> bytes:
    return np.frombuffer(data, np.uint8).reshape(-1, 8).T.tobytes()


def _short(path: Path, rng: np.random.Generator) -> bool:
    return _chunk(path, _DATA.tobytes()[: int(rng.integers(1, _DATA.nbytes))])


def _short_checked(path: Path, rng: np.random.Generator) -> bool:
    data = _DATA.tobytes()[: 4 * int(rng.integers(1, 1000))]
    return _chunk(path, data + _fletcher(data), fletcher32=True)


def _fletcher(data: bytes) -> bytes:
    """Return HDF5's checksum of an even number of bytes."""
    low = high = 0
    for word in struct.unpack(f">{len(data) // 2}H", data):
        low = (low + word) % 65535
        high = (high + low) % 65535
    return struct.pack("<I", high << 16 | low)


def _inflates_short(path: Path, rng: np.random.Generator) -> bool:
    size = int(rng.choice([0, 4, 8, 1000, _DATA.nbytes - 8]))
    return _chunk(path, zlib.compress(_DATA.tobytes()[:size]), compression="gzip")


def _inflates_long(path: Path, rng: np.random.Generator) -> bool:
    more = bytes(int(rng.choice([1, 8, 1 << 16, 1 << 24])))
    return _chunk(path, zlib.compress(_DATA.tobytes() + more), compression="gzip")


def _bomb(path: Path, _: np.random.Generator) -> bool:
    """Write four gibibytes of zeros in four mebibytes."""
    packer = zlib.compressobj(9)
    begin, again = (packer.compress(bytes(1 << 24)) + packer.flush(zlib.Z_FULL_FLUSH) for _ in "12")
    return _chunk(path, begin + 255 * again + packer.flush(), compression="gzip")


def _shuffle_short(path: Path, rng: np.random.Generator) -> bool:
    data = _shuffled(_DATA.tobytes()[: 8 * int(rng.integers(1, 4000))])
    return _chunk(path, zlib.compress(data), compression="gzip", shuffle=True)


def _filter_skipped(path: Path, rng: np.random.Generator) -> bool:
    """Write a short chunk that says that its filter was not applied."""
    return _chunk(path, bytes(int(rng.integers(1, 1000))), mask=1, compression="gzip")


def _elsewhere(path: Path, rng: np.random.Generator) -> bool:
    """Write links and sources in other files, which were not allowed."""
    other = path.with_name("other.h5")
    with h5py.File(other, "w") as file:
        file["x"] = _DATA
    os.mkfifo(path.with_name("pipe"))
    with h5py.File(path, "w") as file:
        how = int(rng.integers(4))
        if how < 2:
            file["x"] = h5py.ExternalLink(("other.h5", "pipe")[how], "/x")
        elif how == 2:
            layout = h5py.VirtualLayout(_SHAPE, "c8")
            layout[:] = h5py.VirtualSource("other.h5", "x", _SHAPE)
            file.create_virtual_dataset("x", layout)
        else:
            file.create_dataset("x", _SHAPE, "c8", external=[(str(other), 0, _DATA.nbytes)])
    return True


def _circle(path: Path, _: np.random.Generator) -> bool:
    with h5py.File(path, "w") as file:
        file["x"], file["y"] = h5py.SoftLink("/y"), h5py.SoftLink("/x")
    return True


def _huge(path: Path, rng: np.random.Generator) -> bool:
    with h5py.File(path, "w") as file:
        rows = 1 << int(rng.integers(32, 50))
        file.create_dataset("x", (rows, 1 << 20), "c8", chunks=(1, 1024))
    return True


def _no_numbers(path: Path, rng: np.random.Generator) -> bool:
    kinds = [h5py.string_dtype(), h5py.vlen_dtype("f4"), h5py.ref_dtype, "S3", "V5"]
    with h5py.File(path, "w") as file:
        file.create_dataset("x", _SHAPE, kinds[int(rng.integers(len(kinds)))])
    return True


def _damaged(path: Path, rng: np.random.Generator) -> bool:
    """Return one to three bytes of a right file, mostly in its headers; or its end is missing."""
    layouts: list[dict[str, Any]] = [
        {}, {"chunks": (16, 32), "compression": "gzip", "shuffle": True},
        {"chunks": (16, 32), "fletcher32": True, "maxshape": (None, 128)},
    ]  # fmt: skip
    libver = str(rng.choice(["earliest", "latest"]))
    with h5py.File(path, "w", libver=libver) as file:
        file.create_dataset("x", data=_DATA, **layouts[int(rng.integers(3))])
    data = bytearray(path.read_bytes())
    used = [place for place, byte in enumerate(data[:4096]) if byte]
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.choice(used)) if rng.random() < 0.8 else int(rng.integers(len(data)))
        data[place] = int(rng.integers(256))
    if rng.random() < 0.1:
        del data[int(rng.integers(len(data))) :]
    path.write_bytes(data)
    return False


BUILDERS: tuple[Builder, ...] = (
    _short, _short_checked, _inflates_short, _inflates_long, _bomb, _shuffle_short, _filter_skipped,
    _elsewhere, _circle, _huge, _no_numbers, *[_damaged] * 5,
)  # fmt: skip
"""Each writes a file and says whether it must be refused."""


def files(attempt: Attempt) -> None:
    """Read a file in two processes whose memory holds other rubbish: equal, or refused."""
    path = attempt.folder / "x.h5"
    build = BUILDERS[attempt.number % len(BUILDERS)]
    must_be_refused = build(path, attempt.rng)
    what = build.__name__.strip("_")
    found = [isolated(partial(_read, path, byte), memory=1 << 30) for byte in (0x55, 0xAA)]
    for one in found:
        require(one.how != "ended", f"{what}: reading {one}")
        if one.how == "raised":
            require(one.error.endswith("InputError"), f"{what}: {one}")
    if must_be_refused:
        require(found[0].how == "raised", f"{what}: it is read")
    else:
        # Freed memory differs between the two: what is not the file's shows.
        require(found[0] == found[1], f"{what}: two readings differ")


def _read(path: Path, byte: int) -> bytes:
    """Return the data, after memory of many sizes was filled with a byte and freed."""
    rubbish = [np.full(1 << size, byte, np.uint8) for size in range(6, 23) for _ in range(4)]
    del rubbish
    return read_operand(_Input(file=path, x="/x"), Operand("x", ("a", "b"))).tobytes()
