"""Checksummed chunks as HDF5's own filter writes them, any slab of them, damage that is seen."""

from __future__ import annotations

import errno
import threading
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from workflow.chunk_places import CHUNK_BYTES, chunk_shape
from workflow.storage import checksum, chunk_sums, slabs
from workflow.storage.checksum import fletcher32, fletcher32_by_numpy
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


def _textbook(data: bytes) -> int:
    """Fletcher-32 word by word, as the definition has it."""
    padded = data + b"\0" * (len(data) % 2)
    sum1 = sum2 = 0
    for high, low in zip(padded[::2], padded[1::2], strict=True):
        sum1 += high << 8 | low
        sum2 += sum1

    def fold(total: int) -> int:
        return 0 if total == 0 else total % 65535 or 65535

    return fold(sum2) << 16 | fold(sum1)


@given(st.binary(max_size=2000))
def test_checksum_is_the_definition(data: bytes) -> None:
    assert fletcher32(np.frombuffer(data, np.uint8)) == _textbook(data)
    assert fletcher32_by_numpy(np.frombuffer(data, np.uint8)) == _textbook(data)


@pytest.mark.each_value
@pytest.mark.parametrize("size", [1, 4095, 4096, 262144, 262145, 1 << 20, (1 << 20) + 12345])
@pytest.mark.parametrize("fill", ["random", "ones", "zeros"])
def test_checksum_is_the_one_hdf5_stores(
    size: int, fill: str, rng: np.random.Generator, tmp_path: Path
) -> None:
    data = {
        "random": rng.integers(0, 256, size, dtype=np.uint8),
        "ones": np.full(size, 255, np.uint8),
        "zeros": np.zeros(size, np.uint8),
    }[fill]
    with h5py.File(tmp_path / "x.h5", "w") as file:
        dataset = file.create_dataset("x", data=data, chunks=(size,), fletcher32=True)
        file.flush()
        _, stored = dataset.id.read_direct_chunk((0,))
    assert int.from_bytes(stored[-4:], "little") == fletcher32(data) == fletcher32_by_numpy(data)


def test_the_locked_hdf5_exports_its_function() -> None:
    """Threads that read and write then do not wait for each other in NumPy."""
    assert checksum._CHOSEN is not fletcher32_by_numpy


def test_bytes_that_are_not_contiguous_are_refused() -> None:
    with pytest.raises(ValueError, match="must be contiguous"):
        fletcher32(np.zeros(10, np.uint8)[::2])


CHUNKED = [(1,), (7,), (3, 5, 7), (1000, 1000), (3, 300_001), (2, 3, 100_003)]


@pytest.mark.each_value
@pytest.mark.parametrize("shape", CHUNKED)
@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float32", "int64", "uint8"])
def test_round_trip_through_ours_and_hdf5(
    shape: tuple[int, ...], dtype: str, rng: np.random.Generator, tmp_path: Path
) -> None:
    data = rng.integers(0, 100, shape).astype(dtype)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        write_chunked(file, "x", data)
    with h5py.File(tmp_path / "x.h5") as file:
        assert file["x"].fletcher32
        np.testing.assert_array_equal(file["x"][...], data)
        np.testing.assert_array_equal(read_chunked(file["x"]), data)


@settings(deadline=None, max_examples=50)
@given(hnp.array_shapes(max_dims=4, max_side=2000), st.sampled_from([1, 4, 8, 16]))
def test_chunks_are_contiguous_and_not_too_large(shape: tuple[int, ...], itemsize: int) -> None:
    chunk = chunk_shape(shape, itemsize)
    assert int(np.prod(chunk)) * itemsize <= CHUNK_BYTES
    partial = [i for i, (c, n) in enumerate(zip(chunk, shape, strict=True)) if c < n]
    assert all(c == 1 for i, c in enumerate(chunk) if partial and i < partial[-1])
