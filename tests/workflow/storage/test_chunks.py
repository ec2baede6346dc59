"""Checksummed chunks: what is written is what HDF5's own filter writes, and damage is seen."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from workflow.chunk_places import CHUNK_BYTES, chunk_shape
from workflow.storage import checksum
from workflow.storage.checksum import fletcher32, fletcher32_by_numpy
from workflow.storage.chunks import read_chunked, write_chunked


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


SHAPES = [(1,), (7,), (3, 5, 7), (1000, 1000), (3, 300_001), (2, 3, 100_003)]


@pytest.mark.each_value
@pytest.mark.parametrize("shape", SHAPES)
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
