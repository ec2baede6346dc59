"""Slabs of checksummed datasets: any stretch, any axis, any type, and damage is seen."""

from __future__ import annotations

import errno
import threading
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from workflow.storage import chunk_sums, slabs
from workflow.storage.chunks import read_chunked, write_chunked
from workflow.storage.slabs import SlabReader, SlabWriter

SHAPES = [((7, 3, 50), 0), ((7, 3, 50), 1), ((7, 3, 50), 2), ((2, 3, 400_000), 2), ((300, 2000), 0)]


def parts_of(shape: tuple[int, ...]) -> list[range]:
    return [range(length) for length in shape]


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("into", ["complex64", "complex128"])
def test_slabs_are_the_dataset(
    shape: tuple[int, ...], axis: int, into: str, rng: np.random.Generator, tmp_path: Path
) -> None:
    data = rng.standard_normal((*shape, 2), dtype=np.float32).view(np.complex64)[..., 0]
    with h5py.File(tmp_path / "x.h5", "w") as file:
        write_chunked(file, "x", data)
    step = max(1, shape[axis] // 3)
    with (
        h5py.File(tmp_path / "x.h5") as file,
        SlabReader(file["x"], parts_of(shape), axis) as reader,
    ):
        for start in range(0, shape[axis], step):
            entries = min(step, shape[axis] - start)
            slab = np.empty(reader.shape(entries), into)
            reader.read(start, slab)
            np.testing.assert_array_equal(slab, data.take(range(start, start + entries), axis))


def test_slabs_of_a_part(rng: np.random.Generator, tmp_path: Path) -> None:
    data = rng.standard_normal((6, 5, 40_000))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        write_chunked(file, "x", data)
        file.flush()
        part = [range(2, 4), range(5), range(1000, 30_000)]
        with SlabReader(file["x"], part, 2) as reader:
            slab = np.empty(reader.shape(700))
            reader.read(20_000, slab)
    np.testing.assert_array_equal(slab, data[2:4, :, 21_000:21_700])


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("most", [1, 4, 64])
def test_written_slabs_are_read_by_us_and_hdf5(
    shape: tuple[int, ...], axis: int, most: int, rng: np.random.Generator, tmp_path: Path
) -> None:
    if shape[axis] > 1000:
        most *= 1024  # chunks of a few bytes would be too many
    data = rng.standard_normal(shape, dtype=np.float32)
    with (
        h5py.File(tmp_path / "x.h5", "w", rdcc_nbytes=0) as file,
        SlabWriter(file, "x", shape, "float32", axis, most) as writer,
    ):
        assert writer.grain & (writer.grain - 1) == 0
        step = 2 * writer.grain
        for start in range(0, shape[axis], step):
            place = range(start, min(start + step, shape[axis]))
            writer.write(start, data.take(place, axis))
        writer.finish()
    with h5py.File(tmp_path / "x.h5") as file:
        assert file["x"].fletcher32
        np.testing.assert_array_equal(file["x"][...], data)
        np.testing.assert_array_equal(read_chunked(file["x"]), data)


def test_beyond_the_edge_a_chunk_is_zero(tmp_path: Path) -> None:
    """The last chunk holds nothing of the one that had its buffer before: files are the same."""
    with h5py.File(tmp_path / "x.h5", "w", rdcc_nbytes=0) as file:
        with SlabWriter(file, "x", (4 * slabs._AHEAD + 5, 8), "float32", 0, 4) as writer:
            writer.write(0, np.ones((4 * slabs._AHEAD + 4, 8), np.float32))
            writer.write(4 * slabs._AHEAD + 4, np.ones((1, 8), np.float32))
            writer.finish()
        assert file["x"].chunks == (4, 8)
        _, edge = file["x"].id.read_direct_chunk((4 * slabs._AHEAD + 4, 0))
    stored = np.frombuffer(edge[: 4 * 32], np.float32).reshape(4, 8)
    assert (stored[0] == 1).all()
    assert not stored[1:].any()


def test_a_sync_that_fails_last_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sync fails when nothing more is written that could tell of it."""
    finishing = threading.Event()

    def synced(descriptor: int, path: Path) -> None:
        assert finishing.wait(60)
        raise OSError(errno.EIO, "planted")

    def write_sums(*given: Any) -> None:
        chunk_sums.write_sums(*given)
        finishing.set()

    monkeypatch.setattr(slabs, "synced", synced)
    monkeypatch.setattr(slabs, "write_sums", write_sums)
    monkeypatch.setattr(slabs, "_SYNC_EVERY", 1)
    with (
        h5py.File(tmp_path / "x.h5", "w", rdcc_nbytes=0) as file,
        SlabWriter(file, "x", (4, 8), "float32", 0, 4) as writer,
    ):
        writer.write(0, np.ones((4, 8), np.float32))
        with pytest.raises(OSError, match="planted"):
            writer.finish()


def test_a_chunk_that_was_never_written(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w", rdcc_nbytes=0) as file:
        with SlabWriter(file, "x", (10, 4), "float32", 0, 2) as writer:
            writer.write(0, np.ones((4, 4), np.float32))
            writer.finish()
        with (
            SlabReader(file["x"], parts_of((10, 4)), 0) as reader,
            pytest.raises(KeyError, match=r"no chunk at \(4, 0\)"),
        ):
            reader.read(0, np.empty(reader.shape(6), np.float32))
