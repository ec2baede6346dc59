"""HDF5 files that reach for other files, by links and by storage outside."""

from __future__ import annotations

import os
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.workflow.inputs.one_input import OneInput, read, refused
from workflow.inputs.hdf5_operands import files_beside, source_checksum
from workflow.inputs.provenance import provenance


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.h5"


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
        message = refused(linking, name)
        assert "lie in other files" in message or "is a link to other.h5" in message
        assert message.endswith("allow it with input.external: true")
        np.testing.assert_array_equal(read(linking, name, external=True).ravel(), self.VALUES)
        source = OneInput(file=linking, x=name, external=True)
        held = other.parent / ("raw.bin" if name == "/raw" else "other.h5")
        found = provenance(source)["files_sha256"]
        assert found == {str(held): source_checksum(held)}

    @pytest.mark.parametrize("name", ["/x", "/alias", "/group/x", "/virtual", "/raw"])
    def test_that_are_gone_are_errors_and_not_fill_values(
        self, linking: Path, other: Path, name: str
    ) -> None:
        other.unlink()
        (other.parent / "raw.bin").unlink()
        message = refused(linking, name, external=True)
        assert ("raw.bin" if name == "/raw" else "other.h5") in message

    def test_all_on_the_way_are_known(self, linking: Path, other: Path, tmp_path: Path) -> None:
        """A link to a link: what the second file says decides as much as the third's values."""
        first = tmp_path / "first.h5"
        with h5py.File(first, "w") as file:
            file["x"] = h5py.ExternalLink(linking.name, "/x")
            file["virtual"] = h5py.ExternalLink(linking.name, "/virtual")
        for name in ("/x", "/virtual"):
            source = OneInput(file=first, x=name, external=True)
            assert files_beside(source) == [linking, other]

    def test_that_have_their_values_elsewhere_again(self, path: Path) -> None:
        """Two virtual datasets may also be each other's source."""
        for one, other in ((path, "b.h5"), (path.with_name("b.h5"), path.name)):
            with h5py.File(one, "w") as file:
                layout = h5py.VirtualLayout((3,), "c8")
                layout[:] = h5py.VirtualSource(other, "x", (3,))
                file.create_virtual_dataset("x", layout)
        said = refused(path, "/x", external=True)
        assert said.endswith("must hold its values itself, they lie in other files; copy them")

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
            file["gone"] = h5py.SoftLink("/g/nothing")
            file["up"] = h5py.SoftLink("../x")
            file["g/self"] = h5py.SoftLink("/g/self/self")
            group = file["g"]
            group["round"] = group
        assert "leads through links in a circle" in refused(path)
        assert "leads through links in a circle" in refused(path, "/g/self")
        assert "has no dataset" in refused(path, "/up")
        assert "has no dataset /gone: it is a link to /g/nothing, where" in refused(path, "/gone")
        assert "is a group" in refused(path, "/g/round/round/round")

    def test_names_that_are_no_names(self, path: Path) -> None:
        with h5py.File(path, "w") as file:
            file["x"] = np.ones(3)
        for name in ("/", ".", "x\0y", "x/y", "é"):
            assert refused(path, name).startswith("input.x: ")
