"""Staging: operands that do not fit are an error and not a machine that swaps."""

from __future__ import annotations

import logging
from collections import namedtuple
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from workflow.config.loading import load_study
from workflow.steps.staging import stage
from workflow.storage.staged import read_staged

LOG = logging.getLogger("test")


def test_operands_beyond_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workflow.steps.staging.machine_memory", lambda: 1 << 20)
    study = load_study({"workloads": {"x": {"kind": "gemm", "m": 16384, "n": 8, "k": 16384}}})
    with pytest.raises(MemoryError, match=r"x: its operands do not fit into the 1 MiB of this"):
        stage(study.workload("x"), [], tmp_path / "x.h5", LOG)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def file(tmp_path: Path, rng: np.random.Generator) -> Path:
    """Logits of 8 MB, in chunks of rows."""
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as held:
        data = rng.standard_normal((2000, 1000), dtype=np.float32)
        held.create_dataset("x", data=data, chunks=(7, 1000), compression="gzip")
    return path


def logits(file: Path, **more: Any) -> Any:
    case = {"kind": "softmax", "input": {"file": str(file), "x": "x", **more}}
    return load_study({"workloads": {"x": case}}).workload("x")


@pytest.mark.parametrize("select", [None, [[1500, 3, 700, 701], "::2"], ["3:1999", "0:600"]])
def test_a_file_beyond_the_memory_goes_through_the_disk(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, select: Any
) -> None:
    """The same staged file, and nothing is left of the scratch file."""
    more = {"select": {"x": select}} if select else {}
    out = tmp_path / "staged"
    stage(logits(file, **more), [], out / "whole.h5", LOG)
    monkeypatch.setattr("workflow.storage.inputs.machine_memory", lambda: 120_000)
    read: list[int] = []
    original = h5py.Dataset.__getitem__

    def spy(self: Any, where: Any) -> Any:
        values = original(self, where)
        read.append(np.size(values))
        return values

    with monkeypatch.context() as patch:
        patch.setattr(h5py.Dataset, "__getitem__", spy)
        stage(logits(file, **more), [], out / "pieces.h5", LOG)
    assert len(read) >= 3
    assert max(read) <= 120_000 / 16
    whole, pieces = (read_staged(out / f"{name}.h5") for name in ("whole", "pieces"))
    np.testing.assert_array_equal(pieces.operands["x"], whole.operands["x"])
    assert pieces.attributes == whole.attributes
    assert sorted(path.name for path in out.iterdir()) == ["pieces.h5", "whole.h5"]


def test_a_file_beyond_memory_and_disk(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "free")(15_000_000)
    monkeypatch.setattr("workflow.storage.inputs.machine_memory", lambda: 120_000)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage)
    with pytest.raises(
        ValueError,
        match=r"needs .* MiB of memory, this machine has 117 KiB, and "
        r"15.3 MiB of disk, of which 14.3 MiB are free; input.select.x takes a part",
    ):
        stage(logits(file), [], tmp_path / "x.h5", LOG)


def test_chunks_beyond_the_memory(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workflow.storage.inputs.machine_memory", lambda: 50_000)
    with pytest.raises(
        ValueError, match=r"and 91\.2 KiB for its chunks, of memory, this machine has 48\.8 KiB"
    ):
        stage(logits(file), [], tmp_path / "x.h5", LOG)
