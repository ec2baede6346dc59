"""HDF5 files that reach for other files, for memory, or hold what is no array of numbers."""

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

from workflow.config.file_input import DatasetRef, FileInput
from workflow.storage.axes import Operand
from workflow.storage.inputs import (
    InputError,
    describe_operand,
    files_beside,
    read_operand,
    source_checksum,
)
from workflow.storage.memory import machine_memory
from workflow.storage.operands import provenance

AXES = ("a", "b", "c")


class OneInput(FileInput):
    x: DatasetRef


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.h5"


def read(path: Path, name: str = "/x", **keys: Any) -> npt.NDArray[Any]:
    return read_operand(OneInput(file=path, x=name, **keys), Operand("x", AXES))


def refused(path: Path, name: str = "/x", **keys: Any) -> str:
    """What both the look at the headers and the reading say."""
    source = OneInput(file=path, x=name, **keys)
    with pytest.raises(InputError) as described:
        describe_operand(source, Operand("x", AXES))
    with pytest.raises(InputError) as told:
        read_operand(source, Operand("x", AXES))
    assert str(described.value) == str(told.value)
    return str(told.value)


def not_read(path: Path, **keys: Any) -> str:
    """What reading says of a file whose headers are right."""
    with pytest.raises(InputError) as told:
        read(path, **keys)
    return str(told.value)


class TestOtherFiles:
    VALUES = np.arange(3, dtype=np.complex64)

    @pytest.fixture
    def other(self, tmp_path: Path) -> Path:
        with h5py.File(tmp_path / "other.h5", "w") as file:
            file["x"] = self.VALUES
            file["g/x"] = self.VALUES
        (tmp_path / "raw.bin").write_bytes(self.VALUES.tobytes())
        return tmp_path / "other.h5"

    @pytest.fixture
    def linking(self, path: Path, other: Path) -> Path:
        with h5py.File(path, "w") as file:
            file["x"] = h5py.ExternalLink(other.name, "/x")
            file["alias"] = h5py.SoftLink("/x")
            file["group"] = h5py.ExternalLink(other.name, "/g")
            layout = h5py.VirtualLayout((3,), "c8")
            layout[:] = h5py.VirtualSource(other.name, "x", (3,))
            file.create_virtual_dataset("virtual", layout)
            file.create_dataset("raw", (3,), "c8", external=[(other.parent / "raw.bin", 0, 24)])
        return path

    @pytest.mark.parametrize("name", ["/x", "/alias", "/group/x", "/virtual", "/raw"])
    def test_are_read_with_the_switch_alone(self, linking: Path, other: Path, name: str) -> None:
        told = refused(linking, name)
        assert "lie in other files" in told or "is a link to other.h5" in told
        assert told.endswith("allow it with input.external: true")
        np.testing.assert_array_equal(read(linking, name, external=True).ravel(), self.VALUES)
        source = OneInput(file=linking, x=name, external=True)
        held = other.parent / ("raw.bin" if name == "/raw" else "other.h5")
        found = provenance(source, {})["external_sha256"]
        assert found == {str(held): source_checksum(held)}

    @pytest.mark.parametrize("name", ["/x", "/alias", "/group/x", "/virtual", "/raw"])
    def test_that_are_gone_are_errors_and_not_fill_values(
        self, linking: Path, other: Path, name: str
    ) -> None:
        other.unlink()
        (other.parent / "raw.bin").unlink()
        told = refused(linking, name, external=True)
        assert ("raw.bin" if name == "/raw" else "other.h5") in told

    def test_all_on_the_way_are_known(self, linking: Path, other: Path, tmp_path: Path) -> None:
        """A link to a link: what the second file says decides as much as the third's values."""
        first = tmp_path / "first.h5"
        with h5py.File(first, "w") as file:
            file["x"] = h5py.ExternalLink(linking.name, "/x")
            file["virtual"] = h5py.ExternalLink(linking.name, "/virtual")
        for name in ("/x", "/virtual"):
            source = OneInput(file=first, x=name, external=True)
            assert files_beside(source) == [linking, other]

    def test_that_are_too_short(self, linking: Path, other: Path) -> None:
        with h5py.File(other, "w") as file:
            file["x"] = self.VALUES[:2]
        (other.parent / "raw.bin").write_bytes(b"x" * 20)
        assert "must have 3 elements, got shape (2,)" in refused(linking, "/virtual", external=True)
        assert "at least 24 bytes, got 20 bytes" in refused(linking, "/raw", external=True)

    def test_are_not_even_opened(self, path: Path, tmp_path: Path) -> None:
        """Opening a pipe waits for its other end, so this test would not end."""
        os.mkfifo(tmp_path / "pipe")
        with h5py.File(path, "w") as file:
            file["x"] = h5py.ExternalLink("pipe", "/x")
            file["alias"] = h5py.SoftLink("/x")
            file["group"] = h5py.ExternalLink("pipe", "/")
        for name in ("/x", "/alias", "/group/x", "/group", "/missing"):
            assert refused(path, name)


class TestLinks:
    def test_within_the_file_are_followed(self, path: Path) -> None:
        with h5py.File(path, "w") as file:
            file["g/h/x"] = np.ones(3, np.complex64)
            file["a"] = h5py.SoftLink("/g")
            file["g/b"] = h5py.SoftLink("h/x")
        for name in ("/a/h/x", "a/b", "//g/./b"):
            assert read(path, name).sum() == 3

    def test_in_a_circle_or_to_nowhere(self, path: Path) -> None:
        with h5py.File(path, "w") as file:
            file["x"] = h5py.SoftLink("/y")
            file["y"] = h5py.SoftLink("/x")
            file["up"] = h5py.SoftLink("../x")
            file["g/self"] = h5py.SoftLink("/g/self/self")
            group = file["g"]
            group["round"] = group
        assert "leads through links in a circle" in refused(path)
        assert "leads through links in a circle" in refused(path, "/g/self")
        assert "has no dataset" in refused(path, "/up")
        assert "is a group" in refused(path, "/g/round/round/round")

    def test_names_that_are_no_names(self, path: Path) -> None:
        with h5py.File(path, "w") as file:
            file["x"] = np.ones(3)
        for name in ("/", ".", "x\0y", "x/y", "é"):
            assert refused(path, name).startswith("input.x: ")


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
        (np.dtype([("r", "f4"), ("i", "f4"), ("j", "f4")]), "a compound {r: float32, i: float32,"),
        (np.dtype([("i", "f4"), ("r", "f4")]), "a compound {i: float32, r: float32}"),
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
    assert f"got {found}" in refused(path)
    if np.dtype(dtype).names is None:
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
    assert "input.x must have elements" in refused(path, "/zero")
    assert "must have at least 1 and at most 3 axes" in refused(path, "/rank")


class TestMemory:
    def test_a_shape_beyond_the_machine(self, path: Path) -> None:
        with h5py.File(path, "w") as file:
            file.create_dataset("x", (1 << 30, 1 << 20), "c8", chunks=(1, 1024))
        told = not_read(path)
        assert "needs 2.62e+04 TiB of memory" in told or "PiB of memory, this machine has" in told
        assert "input.select.x takes a part" in told
        assert read(path, select={"x": [0, "0:4"]}).shape == (1, 1, 4)

    def test_a_chunk_beyond_the_machine(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("workflow.storage.inputs.machine_memory", lambda: 4 << 30)
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


def test_attributes_are_not_looked_at(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["x"] = np.ones(3, np.complex64)
        file["x"].attrs["units"] = np.nan
        file["x"].attrs["axes"] = np.array([file["x"].ref], dtype=h5py.ref_dtype)
        file["x"].attrs["x"] = "m" * 60000
    assert read(path).sum() == 3


def test_a_file_that_is_being_written(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["x"] = np.ones(3, np.complex64)
    code = "import h5py, sys; f = h5py.File(sys.argv[1], 'r+'); print('open', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as writer:  # fmt: skip
        assert writer.stdout is not None
        assert writer.stdout.readline() == "open\n"
        assert "another program is writing" in refused(path)
        writer.communicate("\n")
    assert read(path).sum() == 3


def test_a_file_that_changes_while_it_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with h5py.File(path, "w") as file:
        file["x"] = np.ones(3, np.complex64)
    take = h5py.Dataset.__getitem__

    def take_late(dataset: h5py.Dataset, *arguments: Any) -> Any:
        os.utime(path, ns=(1, 1))
        return take(dataset, *arguments)

    monkeypatch.setattr(h5py.Dataset, "__getitem__", take_late)
    assert "was changed by another program while it was read" in not_read(path)


def test_a_read_only_file(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["x"] = np.ones(3, np.complex64)
    before = path.read_bytes()
    path.chmod(0o444)
    assert read(path).sum() == 3
    assert path.read_bytes() == before
