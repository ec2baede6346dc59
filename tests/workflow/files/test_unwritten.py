"""Values that nobody wrote, which HDF5 reads as its fill value, are said to be none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.workflow.one_case import staged, study_of
from workflow.steps.staging import understood

ONES = np.ones((4, 6), np.complex64)


def lost(path: Path, **more: Any) -> dict[str, str]:
    """The words of the stage step on lost samples (antenna, time), which certificates repeat."""
    source = {"file": str(path), "samples": "v", "axes": ["antenna", "time"], **more}
    one = study_of({"kind": "dft", "axis": "time", "input": source}).workload("w").stage()
    found: dict[str, str] = one.attributes.get("lost", {})
    for text in found.values():
        assert understood(one).endswith(f"of samples, {text}")
    return found


def test_chunks_that_were_never_written(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    with h5py.File(path, "w") as file:
        data = file.create_dataset("v", (4, 6), "c8", chunks=(4, 2))
        data[:, :2] = 1
    text = "{} chunks were never written, and have the fill value 0j (/v)"
    assert lost(path) == {"samples": text.format("2 of 3")}
    assert lost(path, select={"samples": {"time": "1:4"}}) == {"samples": text.format("1 of 2")}
    assert lost(path, select={"samples": {"time": "0:2"}}) == {}
    text = "nothing was ever written, and all values have the fill value 0j (/v)"
    assert lost(path, select={"samples": {"time": "2:6"}}) == {"samples": text}


@pytest.mark.parametrize("chunks", [None, (2, 3)])
def test_an_array_that_was_never_filled(tmp_path: Path, chunks: tuple[int, int] | None) -> None:
    path = tmp_path / "v.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("v", (4, 6), "c8", chunks=chunks, fillvalue=np.complex64(2))
    text = "nothing was ever written, and all values have the fill value (2+0j) (/v)"
    assert lost(path) == {"samples": text}
    with h5py.File(path, "r+") as file:
        file["v"][...] = ONES
    assert lost(path) == {}


def test_what_no_source_of_a_virtual_dataset_has(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    layout = h5py.VirtualLayout((4, 6), "c8")
    layout[:, :2] = h5py.VirtualSource(".", "first", (4, 2))
    with h5py.File(path, "w") as file:
        file["first"] = ONES[:, :2]
        file.create_dataset("second", (4, 4), "c8", chunks=(4, 1))[:, 0] = 1
        file.create_virtual_dataset("v", layout)
    text = "16 values lie in no source, and have the fill value 0j (/v)"
    assert lost(path, external=True) == {"samples": text}
    assert lost(path, external=True, select={"samples": {"time": "0:2"}}) == {}
    text = "4 values lie in no source, and have the fill value 0j (/v)"
    assert lost(path, external=True, select={"samples": {"time": "1:3"}}) == {"samples": text}
    layout[:, 2:] = h5py.VirtualSource(".", "second", (4, 4))
    with h5py.File(path, "r+") as file:
        del file["v"]
        file.create_virtual_dataset("v", layout)
    text = "3 of 5 chunks were never written, and have the fill value 0j (/v)"
    assert lost(path, external=True) == {"samples": text}
    layout = h5py.VirtualLayout((4, 6), "c8")
    layout[:, ::3] = h5py.VirtualSource(".", "first", (4, 2))  # which spans more than it has
    with h5py.File(path, "r+") as file:
        del file["v"]
        file.create_virtual_dataset("v", layout)
    text = "16 values lie in no source, and have the fill value 0j (/v)"
    assert lost(path, external=True) == {"samples": text}


def test_a_virtual_dataset_that_grows_with_its_source(tmp_path: Path) -> None:
    """A recorder may write the source meanwhile, so the selection has no end."""
    path, source = tmp_path / "v.h5", tmp_path / "s.h5"
    layout = h5py.VirtualLayout((4, 6), "c8", maxshape=(4, None))
    part = h5py.VirtualSource("s.h5", "held", (4, 6), maxshape=(4, None))
    layout[:, 0 : h5py.h5s.UNLIMITED] = part[:, 0 : h5py.h5s.UNLIMITED]
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("v", layout)
    for samples in (6, 9):
        with h5py.File(source, "w") as file:
            held = file.create_dataset(
                "held", (4, samples), "c8", maxshape=(4, None), chunks=(4, 3)
            )
            held[:, :3] = 1
        given = {"file": str(path), "external": True, "samples": "v", "axes": ["antenna", "time"]}
        found = staged({"kind": "dft", "axis": "time", "input": given}).operands["samples"]
        assert (found.shape, found.sum()) == ((4, samples), 12)
        text = f"{samples // 3 - 1} of {samples // 3} chunks were never written, and have the fill"
        assert lost(path, external=True)["samples"].startswith(text)
