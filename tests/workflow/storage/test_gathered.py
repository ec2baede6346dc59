"""Products over several files: every source is there and the one that was gathered, or an error."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from workflow.data import Coordinate, Product
from workflow.preflight.loading import load_study
from workflow.records import Record
from workflow.storage.datasets import DataError
from workflow.storage.gathered import SourceFile, source_of
from workflow.storage.products import read_product, write_gathered, write_product

CERTIFICATE = Record(
    workload="w",
    kind="beamforming",
    implementation="argand",
    precision="fp32",
    algorithm="cgemm",
    device="d",
    rel_frobenius=1e-7,
    bound=1e-6,
    tolerance=1e-2,
    verified=True,
    verdict="verified",
    error_limit=1e-6,
    reference="full",
    kernel_digest="k",
    versions="v",
    timestamp="t",
).row()
SHAPE = (7, 2, 3, 50)
AXES = ("frequency", "polarization", "beam", "time")


def product_of(data: Any, first: int = 0) -> Product:
    channels = Coordinate(1e8 + np.arange(first, first + len(data)), "Hz", "channel")
    return Product("beams", data, AXES, {"frequency": channels}, "Beams", "V")


class Gathered:
    """Three product files of three, two and two channels, and one over them."""

    def __init__(self, folder: Path, data: np.ndarray) -> None:
        self.path, self.whole = folder / "products" / "w.h5", product_of(data)
        self.files, sources = [], []
        for number, (start, stop) in enumerate(((0, 3), (3, 5), (5, 7)), 1):
            path = folder / "products" / "w" / f"{number}-of-3.h5"
            path.parent.mkdir(parents=True, exist_ok=True)
            part = product_of(data[start:stop], start)
            write_product(path, part, CERTIFICATE, workload="w", kind="beamforming")
            self.files.append(path)
            sources.append(source_of(path, self.path.parent, start, stop))
        self.write(sources)

    def write(self, sources: list[SourceFile]) -> None:
        each = {str(index): asdict(source) for index, source in enumerate(sources)}
        certificate = CERTIFICATE | {"shards": {"axis": "frequency", "each": each}}
        outline = replace(self.whole, data=np.broadcast_to(self.whole.data.dtype.type(0), SHAPE))
        write_gathered(
            self.path, outline, certificate, sources, workload="w", kind="beamforming"
        )  # fmt: skip


@pytest.fixture
def gathered(tmp_path: Path, rng: np.random.Generator) -> Gathered:
    data = rng.standard_normal((*SHAPE, 2), dtype=np.float32).view(np.complex64)[..., 0]
    return Gathered(tmp_path, data)


def test_it_is_the_whole(gathered: Gathered) -> None:
    found = read_product(gathered.path)
    np.testing.assert_array_equal(found.data, gathered.whole.data)
    assert (found.axes, found.units, found.title) == (AXES, "V", "Beams")
    channels = found.coordinates["frequency"].values
    np.testing.assert_array_equal(channels, gathered.whole.coordinates["frequency"].values)


def test_others_read_one_dataset_from_any_folder_and_after_a_move(
    gathered: Gathered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = tmp_path / "elsewhere"
    gathered.path.parent.rename(moved)
    monkeypatch.chdir("/")
    xarray = pytest.importorskip("xarray")
    with xarray.open_dataset(moved / "w.h5") as dataset:
        assert dataset["beams"].dims == AXES
        np.testing.assert_array_equal(dataset["beams"].values, gathered.whole.data)
    np.testing.assert_array_equal(read_product(moved / "w.h5").data, gathered.whole.data)


def test_a_missing_source_is_an_error_and_nan_to_others(gathered: Gathered) -> None:
    gathered.files[1].unlink()
    with pytest.raises(DataError, match=r"w\.h5: its source .*2-of-3\.h5 is missing"):
        read_product(gathered.path)
    with h5py.File(gathered.path) as file:
        for name in ("entry/data/beams", "beams"):
            there = file[name][...]
            assert np.isnan(there[3:5]).all()
            assert not np.isnan(there[[0, 1, 2, 5, 6]]).any()


def test_a_source_that_was_changed(gathered: Gathered) -> None:
    """Even to a whole, sealed product of the same shape."""
    other = product_of(gathered.whole.data[3:5] * 2, 3)
    write_product(gathered.files[1], other, CERTIFICATE, workload="w", kind="beamforming")
    with pytest.raises(DataError, match=r"2-of-3\.h5 was changed after it was gathered"):
        read_product(gathered.path)


@pytest.mark.parametrize("at", [0.0, 0.5, 0.99])
def test_a_flipped_byte_of_a_source(gathered: Gathered, at: float) -> None:
    raw = bytearray(gathered.files[2].read_bytes())
    raw[int(at * len(raw))] ^= 1
    gathered.files[2].write_bytes(raw)
    with pytest.raises(DataError, match=r"3-of-3\.h5 was changed"):
        read_product(gathered.path)


def test_a_flip_of_any_byte_of_the_gathered_file(gathered: Gathered) -> None:
    whole = gathered.path.read_bytes()
    with h5py.File(gathered.path) as file:
        data = file["entry/data"]
        unread = [data[name].id.get_chunk_info(0) for name in ("polarization", "beam", "time")]
    for position in range(0, len(whole), 97):
        if any(c.byte_offset <= position < c.byte_offset + c.size for c in unread):
            continue
        flipped = bytearray(whole)
        flipped[position] ^= 0x10
        gathered.path.write_bytes(flipped)
        with pytest.raises(DataError, match=r"w\.h5"):
            read_product(gathered.path)


@pytest.mark.parametrize("file", ["/etc/hostname", "../products/w/1-of-3.h5"])
def test_a_source_that_lies_elsewhere(gathered: Gathered, file: str) -> None:
    first = source_of(gathered.files[0], gathered.path.parent, 0, 3)
    gathered.write([replace(first, file=file), replace(first, start=3, stop=7)])
    with pytest.raises(DataError, match="a source must lie beside it"):
        read_product(gathered.path)


@pytest.mark.parametrize("stretches", [[(0, 3), (4, 7)], [(0, 3), (3, 6)], [(0, 4), (3, 7)]])
def test_sources_that_do_not_cover_the_axis(
    gathered: Gathered, stretches: list[tuple[int, int]]
) -> None:
    first = source_of(gathered.files[0], gathered.path.parent, 0, 3)
    with pytest.raises(ValueError, match="must cover the 7 entries"):
        gathered.write([replace(first, start=a, stop=b) for a, b in stretches])


def test_as_the_input_of_another_workload(gathered: Gathered) -> None:
    """Its sources hold their own values, so that it may be read with the switch."""
    source = {
        "file": str(gathered.path),
        "weights": "/entry/data/beams",
        "samples": "/entry/data/beams",
    }
    case = {"kind": "beamforming", "input": source | {"external": True}}
    source["select"] = {"samples": [":", ":", "0:3", ":"], "weights": [":", ":", ":", "0:3"]}
    case["input"] = source | {"external": True}
    study = load_study({"workloads": {"again": case}})
    staged = study.workload("again").stage()
    np.testing.assert_array_equal(staged.operands["samples"], gathered.whole.data)
    assert len(staged.attributes["files_sha256"]) == 3
    gathered.files[0].unlink()
    with pytest.raises(ValueError, match=r"its source .*1-of-3\.h5 cannot be read"):
        study.workload("again").stage()


@pytest.mark.parametrize(("start", "stop"), [(1, 2), (2, 4), (1, 7), (4, 7), (3, 5)])
def test_a_part_of_it(gathered: Gathered, start: int, stop: int) -> None:
    """The part begins and ends within a source, or where one does."""
    part = [slice(start, stop), slice(2), slice(1, 3), slice(7, 40)]
    found = read_product(gathered.path, part=part)
    np.testing.assert_array_equal(found.data, gathered.whole.data[tuple(part)])


def test_sources_of_another_type(gathered: Gathered) -> None:
    stretches = zip(gathered.files, ((0, 3), (3, 5), (5, 7)), strict=True)
    sources = [source_of(file, gathered.path.parent, *at) for file, at in stretches]
    gathered.whole = product_of(gathered.whole.data.astype(complex))
    gathered.write(sources)
    with pytest.raises(DataError, match=r"must hold complex128 of shape .*, got complex64"):
        read_product(gathered.path)


@pytest.mark.parametrize("channels", [1, 3, 4, 6])
def test_the_beginning_of_it(gathered: Gathered, channels: int) -> None:
    """Pictures of large products take it; sources that it does not need may be gone."""
    for file in gathered.files[2 if channels > 3 else 1 :]:
        if channels < 6:
            file.unlink()
    most = channels * gathered.whole.data[0].nbytes
    found = read_product(gathered.path, most=most)
    np.testing.assert_array_equal(found.data, gathered.whole.data[:channels])
    assert len(found.coordinates["frequency"].values) == channels
    assert found.title == f"Beams (first {channels} of 7, frequency)"
