"""Staging: operands that do not fit are an error and not a machine that swaps."""

from __future__ import annotations

import logging
from collections import namedtuple
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from streamed_runs import run_python

from tests.workflow.whole_files import read_staged
from workflow.chunk_places import chunk_shape
from workflow.data import Coordinate, Staged
from workflow.preflight.loading import load_study
from workflow.steps.staging import stage, understood

LOG = logging.getLogger("test")


def workload_of(case: dict[str, Any]) -> Any:
    return load_study({"workloads": {"x": case}}).workload("x")


def test_operands_beyond_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workflow.steps.staging.machine_memory", lambda: 1 << 20)
    one = workload_of({"kind": "gemm", "m": 4, "n": 8, "k": 16})
    monkeypatch.setattr(one, "staging", lambda upstream: np.ones(1 << 27))
    with pytest.raises(MemoryError, match=r"x: its operands do not fit into the 1 MiB of this"):
        stage(one, [], tmp_path / "x.h5", LOG)
    assert not list(tmp_path.iterdir())


DRAWN: dict[str, dict[str, Any]] = {
    "product": {"kind": "gemm", "batch": 2, "m": 30, "n": 20, "k": 17, "beta": 1.0},
    "spread": {"kind": "gemm", "m": 30, "n": 20, "k": 17, "init": "lognormal"},
    "beams": {
        "kind": "beamforming", "channels": 3, "polarizations": 2, "beams": 6, "antennas": 9,
        "samples": 40, "sources": [{"l": 0.1, "m": 0.2}, {"l": 0.3, "m": 0.0}],
    },
    "spectra": {"kind": "dft", "length": 50, "batch": 7, "window": "hann"},
    "long": {"kind": "dft", "length": 3000, "batch": 2},
    "logits": {"kind": "softmax", "rows": 40, "columns": 33},
    "zero": {"kind": "statevector", "circuit": {"name": "qft", "qubits": 10}},
    "random": {
        "kind": "statevector", "circuit": {"name": "qft", "qubits": 10}, "initial": "random",
    },
}  # fmt: skip


@pytest.mark.parametrize("chunk", [1000, 1 << 20])
@pytest.mark.parametrize("name", DRAWN)
def test_what_is_drawn_piece_by_piece_is_what_is_drawn_at_once(
    name: str, chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file has the numbers of `Workload.stage`, and each piece is the same made by itself."""
    monkeypatch.setattr(chunk_shape, "__defaults__", (None, chunk))
    one = workload_of(DRAWN[name])
    stage(one, [], tmp_path / "x.h5", LOG)
    found, expected = read_staged(tmp_path / "x.h5"), one.stage()
    assert found.axes == expected.axes
    assert found.attributes == expected.attributes
    assert found.operands.keys() == expected.operands.keys()
    for operand, data in expected.operands.items():
        np.testing.assert_array_equal(found.operands[operand], data)
    drawn = one.staging().drawn
    assert drawn
    for operand, source in drawn.items():
        data = expected.operands[operand]
        assert (source.shape, source.dtype) == (data.shape, data.dtype)
        last = tuple(
            (n - 1) // step * step for n, step in zip(data.shape, source.chunks, strict=True)
        )
        piece = source.piece(last)
        np.testing.assert_array_equal(piece, data[tuple(slice(start, None) for start in last)])


def test_pieces_of_different_places_differ() -> None:
    """Else one stream of random numbers would repeat itself within an operand, or in another."""
    operands = workload_of({"kind": "gemm", "m": 400, "n": 400, "k": 700}).stage().operands
    drawn = np.concatenate([data.reshape(-1) for data in operands.values()])
    assert len(np.unique(drawn)) > 0.999 * drawn.size


def test_a_source_is_one_wave_at_all_antennas(monkeypatch: pytest.MonkeyPatch) -> None:
    """However antennas and times are shared out to pieces."""
    monkeypatch.setattr(chunk_shape, "__defaults__", (None, 800))
    case = {"beams": 2, "antennas": 9, "samples": 250, "channels": 2, "noise": 0}
    samples = workload_of({"kind": "beamforming", **case}).stage().operands["samples"]
    turned = samples / samples[:, :, :1]
    assert np.abs(turned - turned[..., :1]).max() < 1e-5
    assert len(np.unique(samples[:, :, 0])) == samples[:, :, 0].size


PEAKS = """
import logging, sys
from pathlib import Path
from workflow.preflight.loading import load_study
from workflow.data import Coordinate, Staged
from workflow.steps.staging import stage, understood
from workflow.storage.memory import peak_bytes
case = {"kind": "beamforming", "beams": 16, "antennas": 32, "samples": 8192}
for channels in sys.argv[1:]:
    study = load_study({"workloads": {"w": {**case, "channels": int(channels)}}})
    stage(study.workload("w"), [], Path(f"{channels}.h5"), logging.getLogger())
    print(peak_bytes() / 2**20)
"""


def test_host_memory_does_not_grow_with_what_is_drawn(tmp_path: Path, root: Path) -> None:
    said = run_python(PEAKS, tmp_path, root, "16", "64").stdout  # 32 and 128 MiB of samples
    small, large = map(float, said.split())
    assert large - small < 24


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logits of 8 MB, in chunks of rows."""
    path = tmp_path_factory.mktemp("logits") / "in.h5"
    with h5py.File(path, "w") as held:
        data = np.random.default_rng(12).standard_normal((2000, 1000), dtype=np.float32)
        held.create_dataset("x", data=data, chunks=(7, 1000), compression="gzip")
    return path


def logits(file: Path, **more: Any) -> Any:
    return workload_of({"kind": "softmax", "input": {"file": str(file), "x": "x", **more}})


@pytest.mark.parametrize("select", [None, [[1500, 3, 700, 701], "::2"], ["3:1999", "0:600"]])
def test_a_file_beyond_the_memory_goes_through_the_disk(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, select: Any
) -> None:
    """The same staged file, and nothing is left of the scratch file."""
    more = {"select": {"x": select}} if select else {}
    out = tmp_path / "staged"
    stage(logits(file, **more), [], out / "whole.h5", LOG)
    monkeypatch.setattr("workflow.inputs.hdf5_operands.machine_memory", lambda: 120_000)
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


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        (120_000, r"needs .* MiB of memory, this machine has 117 KiB, and 15.3 MiB of disk, "
         r"of which 14.3 MiB are free; input.select.x takes a part"),
        (50_000, r"and 91\.2 KiB for its chunks, of memory, this machine has 48\.8 KiB"),
    ],
)  # fmt: skip
def test_a_file_beyond_memory_and_disk(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: int, said: str
) -> None:
    usage = namedtuple("usage", "free")(15_000_000)
    monkeypatch.setattr("workflow.inputs.hdf5_operands.machine_memory", lambda: memory)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage)
    with pytest.raises(ValueError, match=said):
        stage(logits(file), [], tmp_path / "x.h5", LOG)


def test_ends_of_a_coordinate_are_told_apart() -> None:
    """Days of a Modified Julian Date have five digits before the point."""
    days = Coordinate(61372.75 + np.arange(256) / 8640, "d", "time")
    same = Coordinate(np.array([61372.75]), "d", "selected_time")
    names = Coordinate(np.array(["X", "Y"]), "", "polarization")
    found = understood(Staged({}, {}, {"time": days, "selected_time": same, "feed": names}))
    assert found == "time 61372.75 to 61372.78 d; selected_time 61372.75 d; feed X to Y"
