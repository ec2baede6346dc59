"""HDF5 files that reach for memory, or hold what is not an array of numbers."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
import pytest
from input_files import put

from tests.workflow.inputs.one_input import OneInput, not_read, read, refused
from workflow.files.input_error import InputError
from workflow.inputs.axes import Operand
from workflow.inputs.hdf5_operands import describe_operand
from workflow.storage.memory import machine_memory


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.h5"


@pytest.mark.parametrize(
    ("dtype", "found"),
    [
        (h5py.string_dtype(), "text or objects"),
        (h5py.vlen_dtype(np.float32), "text or objects"),
        (h5py.ref_dtype, "text or objects"),
        (h5py.regionref_dtype, "text or objects"),
        (h5py.enum_dtype({"A": 0}, np.int16), "an enumeration in int16"),
        (np.dtype("V8"), "void64"),
        (np.dtype("S4"), "bytes32"),
        (np.dtype("f4"), "float32"),
        (np.dtype("u2"), "uint16"),
        (np.dtype([("r", "u8"), ("i", "u8")]), "a compound {r: uint64, i: uint64}"),
        (np.dtype([("r", "f4"), ("i", "f8")]), "a compound {r: float32, i: float64}"),
        (np.dtype([("r", "f4"), ("i", "f4"), ("j", "f4")]), "a compound {r: float32, i: float32,"),
        (np.dtype([("i", "f4"), ("re", "f4")]), "a compound {i: float32, re: float32}"),
        (np.dtype([("r", "f4", (2,)), ("i", "f4", (2,))]), "a compound {r: void64, i: void64}"),
        (np.dtype([("r", h5py.string_dtype()), ("i", "f4")]), "a compound {r: object, i: float32}"),
        (
            np.dtype([(name, h5py.enum_dtype({"A": 0}, "i2")) for name in "ri"]),
            "a compound {r: int16, i: int16}",
        ),
    ],
    ids=str,
)  # fmt: skip
def test_types_that_are_no_numbers(path: Path, dtype: npt.DTypeLike, found: str) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (3,), dtype)
        file.create_dataset("y", (3,), np.float32)
    message = refused(path)
    assert "input.x: /x must be complex64, complex128 or a compound {r, i}" in message
    assert f"got {found}" in message
    if np.dtype(dtype).names is None and np.dtype(dtype).kind not in "fu":
        source = OneInput(file=path, x={"real": "/x", "imag": "/y"})
        with pytest.raises(InputError, match="/x must be real, one of"):
            describe_operand(source, Operand("x", ("a",)))


def test_bit_fields_and_times(path: Path) -> None:
    with h5py.File(path, "w") as file:
        space = h5py.h5s.create_simple((3,))
        h5py.h5d.create(file.id, b"x", h5py.h5t.STD_B8LE, space)
        h5py.h5d.create(file.id, b"y", h5py.h5t.UNIX_D32LE, space)
        file["type"] = np.dtype("f4")
    for name in ("/x", "/y"):
        assert "must be complex64, complex128 or a compound" in refused(path, name)
    assert "is a named type, not a dataset" in refused(path, "/type")


def test_shapes_that_are_no_arrays(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["null"] = h5py.Empty(np.complex64)
        file.create_dataset("zero", (0, 1 << 40), "c8", chunks=(1, 1024), maxshape=(None, None))
        file.create_dataset("rank", (1,) * 32, "c8")
    assert "a null dataspace" in refused(path, "/null")
    assert "input.x must have elements along each of its axes" in refused(path, "/zero")
    found = refused(path, "/rank")
    assert "must have at least 1 and at most 3 axes" in found
    assert found.endswith("; an index in input.select.x drops an axis")


class TestMemory:
    def test_a_shape_beyond_the_machine(self, path: Path) -> None:
        with h5py.File(path, "w") as file:
            file.create_dataset("x", (1 << 30, 1 << 20), "c8", chunks=(1, 1024))
        message = not_read(path)
        assert (
            "needs 2.62e+04 TiB of memory" in message
            or "PiB of memory, this machine has" in message
        )
        assert "input.select.x takes a part" in message
        assert read(path, select={"x": [0, "0:4"]}).shape == (1, 1, 4)

    def test_a_chunk_beyond_the_machine(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("workflow.inputs.hdf5_operands.machine_memory", lambda: 4 << 30)
        with h5py.File(path, "w") as file:
            file.create_dataset("x", (3,), "c8", chunks=((1 << 28) - 1,), maxshape=(None,))
        assert "of memory, this machine has 4 GiB" in not_read(path)

    def test_a_chunk_that_inflates_beyond_its_shape(self, path: Path) -> None:
        """Eight gibibytes of zeros are eight mebibytes in the file, for a chunk of eight bytes."""
        packer = zlib.compressobj(9)
        begin, again = (
            packer.compress(bytes(1 << 24)) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2)
        )
        bomb = begin + 511 * again + packer.flush()
        with h5py.File(path, "w") as file:
            dataset = file.create_dataset("x", (1,), "c8", chunks=(1,), compression="gzip")
            dataset.id.write_direct_chunk((0,), bomb)
        assert "/x of " in not_read(path)
        assert _peak_bytes() < 3 << 30

    def test_the_machine_has_some(self) -> None:
        assert 1 << 28 < machine_memory() < 1 << 50


def _peak_bytes() -> int:
    """The most memory that this process had at once since it started."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) << 10


def test_an_unknown_filter(path: Path) -> None:
    with h5py.File(path, "w") as file:
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((4,))
        properties.set_filter(32767, h5py.h5z.FLAG_OPTIONAL)
        kind = h5py.h5t.py_create(np.dtype("c8"))
        dataset = h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create_simple((4,)), properties)
        dataset.write_direct_chunk((0,), struct.pack("8f", *range(8)))
    assert f"/x of {path} has the filter 32767" in refused(path)


def test_attributes_are_not_read(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["x"] = np.ones(3, np.complex64)
        file["x"].attrs["units"] = np.nan
        file["x"].attrs["axes"] = np.array([file["x"].ref], dtype=h5py.ref_dtype)
        file["x"].attrs["x"] = "m" * 60000
    assert read(path).sum() == 3


def test_a_file_that_is_being_written(path: Path) -> None:
    """Also one that may be read meanwhile (SWMR), by programs that ask for it."""
    shared = path.with_name("shared.h5")
    for one in (path, shared):
        with h5py.File(one, "w", libver="latest") as file:
            file["x"] = np.ones(3, np.complex64)
    code = (
        "import h5py, sys; f = h5py.File(sys.argv[1], 'r+'); g = h5py.File(sys.argv[2], 'r+', "
        "libver='latest'); g.swmr_mode = True; print('open', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path), str(shared)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as writer:  # fmt: skip
        assert writer.stdout is not None
        assert writer.stdout.readline() == "open\n"
        assert "another program is writing" in refused(path)
        assert "another program is writing it, or was ended while it did; " in refused(shared)
        writer.communicate("\n")
    assert read(path).sum() == 3


def test_a_file_that_changes_while_it_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(path, x=np.ones(3, np.complex64))
    take = h5py.Dataset.__getitem__

    def take_late(dataset: h5py.Dataset, *arguments: Any) -> Any:
        os.utime(path, ns=(1, 1))
        return take(dataset, *arguments)

    monkeypatch.setattr(h5py.Dataset, "__getitem__", take_late)
    assert "was changed by another program while it was read" in not_read(path)


def test_a_read_only_file(path: Path) -> None:
    put(path, x=np.ones(3, np.complex64))
    before = path.read_bytes()
    path.chmod(0o444)
    assert read(path).sum() == 3
    assert path.read_bytes() == before
