"""Chunks of users' files whose stored bytes decode to other than their shape: refused, all of them.

HDF5 itself reads the memory behind a chunk that is too short, and ends where there is none.
"""

from __future__ import annotations

import bz2
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
import pytest

from tests.workflow.inputs.one_input import OneInput
from workflow.files.chunk_filters import ChunkError, Filter, allowed, decoded_size
from workflow.files.input_error import InputError
from workflow.inputs.axes import Operand
from workflow.inputs.hdf5_operands import describe_operand, read_operand

hdf5plugin = pytest.importorskip("hdf5plugin", reason="hdf5plugin is not installed")
SHAPE, CHUNKS = (37, 50), (8, 20)
SIZE = 8 * 20 * 4
VALUES = np.arange(37 * 50).reshape(SHAPE)
X = Operand("x", ("a", "b"), real=True)

FILTERS: dict[str, dict[str, Any]] = {
    "none": {},
    "gzip": {"compression": "gzip"},
    "shuffle": {"shuffle": True},
    "gzip-shuffle": {"compression": "gzip", "shuffle": True},
    "fletcher32": {"fletcher32": True},
    "gzip-shuffle-fletcher32": {"compression": "gzip", "shuffle": True, "fletcher32": True},
    "lzf": {"compression": "lzf"},
    "lzf-shuffle": {"compression": "lzf", "shuffle": True},
    "scaleoffset": {"scaleoffset": 0},
    "bitshuffle": dict(hdf5plugin.Bitshuffle(cname="none")),
    "bitshuffle-lz4": dict(hdf5plugin.Bitshuffle(cname="lz4", nelems=64)),
    "bitshuffle-zstd": dict(hdf5plugin.Bitshuffle(cname="zstd")),
    "lz4": dict(hdf5plugin.LZ4(nbytes=256)),
    "zstd": dict(hdf5plugin.Zstd()),
    "zstd-shuffle": {"shuffle": True, **hdf5plugin.Zstd()},
    "blosc-lz4": dict(hdf5plugin.Blosc(cname="lz4")),
    "blosc-zlib": dict(hdf5plugin.Blosc(cname="zlib", shuffle=hdf5plugin.Blosc.BITSHUFFLE)),
    "blosc-blosclz": dict(hdf5plugin.Blosc(cname="blosclz", clevel=9)),
    "bzip2": dict(hdf5plugin.BZip2()),
}


def read(path: Path, **keys: Any) -> npt.NDArray[Any]:
    source = OneInput(file=path, x="/x", **keys)
    return read_operand(source, X)


def refused(path: Path, **keys: Any) -> str:
    with pytest.raises(InputError) as raised:
        read(path, **keys)
    return str(raised.value)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.h5"


def written(path: Path, keys: Mapping[str, Any], dtype: str = "i4") -> npt.NDArray[Any]:
    with h5py.File(path, "w") as file:
        data: npt.NDArray[Any] = VALUES.astype(dtype)
        file.create_dataset("x", data=data, chunks=CHUNKS, **keys)
    return data


def written_but_for(path: Path, keys: Mapping[str, Any], stored: bytes, mask: int = 0) -> None:
    """Write what `written` does, but for the chunk at (8, 20).

    HDF5 leaves a chunk without filters as long as it is, so it must be written once.
    """
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("x", SHAPE, "i4", chunks=CHUNKS, **keys)
        dataset.id.write_direct_chunk((8, 20), stored, mask)
        dataset[:8] = VALUES[:8]


@pytest.mark.parametrize("name", FILTERS)
def test_whole_chunks_are_read(name: str, path: Path) -> None:
    for dtype in ("i4", "f4", "i2", "f8") if name != "scaleoffset" else ("i4", "i2", "i1"):
        data = written(path, FILTERS[name], dtype)
        np.testing.assert_array_equal(read(path), data)
    rng = np.random.default_rng(1)
    with h5py.File(path, "w") as file:  # bytes that nothing makes smaller, in chunks of odd lengths
        data = rng.integers(-(1 << 31), 1 << 31, (301, 77), dtype=np.int32)
        file.create_dataset("x", data=data, chunks=(101, 13), **FILTERS[name])
    np.testing.assert_array_equal(read(path), data)


@pytest.mark.parametrize("name", FILTERS)
def test_a_chunk_that_was_cut_is_refused(name: str, path: Path) -> None:
    written(path, FILTERS[name])
    with h5py.File(path) as file:
        _, good = file["x"].id.read_direct_chunk((8, 20))
    for length in sorted({1, 4, 12, 16, 20, 21, len(good) // 2, len(good) - 5, len(good) - 1}):
        written_but_for(path, FILTERS[name], good[:length])
        message = refused(path)
        assert message.startswith("input.x: "), message
        assert "run.h5" in message
        # What does not meet that chunk is read.
        assert read(path, select={"x": ["0:8", ":"]}).shape == (8, 50)


@pytest.mark.each_value
@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("size", [4, SIZE - 4, SIZE + 4, 4 * SIZE])
def test_a_chunk_of_another_size_is_refused(
    name: str, size: int, path: Path, tmp_path: Path
) -> None:
    """Such a chunk is right in itself, for another shape."""
    with h5py.File(tmp_path / "other.h5", "w") as file:
        other = file.create_dataset("x", (size // 4,), "i4", chunks=True, **FILTERS[name])
        other = file.create_dataset("y", (size // 4,), "i4", chunks=other.shape, **FILTERS[name])
        other[...] = np.arange(size // 4)
        mask, stored = other.id.read_direct_chunk((0,))
    written_but_for(path, FILTERS[name], stored, mask)
    message = refused(path)
    assert f"/x of {path}: the chunk at (8, 20)" in message


def test_a_direct_chunk_of_4_bytes(path: Path) -> None:
    for keys in (FILTERS["none"], FILTERS["shuffle"]):
        with h5py.File(path, "w") as file:
            dataset = file.create_dataset("x", (512, 256), "f4", chunks=(512, 256), **keys)
            dataset.id.write_direct_chunk((0, 0), b"abcd")
        text = refused(path)
        assert f"/x of {path}: the chunk at (0, 0) has 4 bytes where its shape (512, 256)" in text
        assert "has 524288" in text


def test_a_large_chunk_that_inflates_to_4_bytes(path: Path) -> None:
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset(
            "x", (4096, 4096), "f4", chunks=(4096, 4096), compression="gzip"
        )
        dataset.id.write_direct_chunk((0, 0), zlib.compress(b"abcd"))
    assert "has 4 bytes where its shape (4096, 4096) of float32 has 67108864" in refused(path)


def test_a_chunk_beyond_the_memory_is_not_inflated(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To count what a terabyte inflates to takes an hour."""
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset(
            "x", (9,), "f4", chunks=(1 << 29,), maxshape=(None,), compression="gzip"
        )
        dataset.id.write_direct_chunk((0,), zlib.compress(bytes(1 << 20)))
    monkeypatch.setattr("workflow.inputs.hdf5_operands.machine_memory", lambda: 4 << 30)
    monkeypatch.setattr("workflow.inputs.input_operand.check_chunks", None)
    assert "for its chunks, of memory, this machine has 4 GiB" in refused(path)


@pytest.mark.parametrize("name", ["gzip-shuffle", "lzf-shuffle", "gzip-shuffle-fletcher32"])
def test_filters_that_a_chunk_left_out(name: str, path: Path) -> None:
    """Its mask says which; what is left must still come to its shape."""
    data = written(path, FILTERS[name])
    raw = np.ascontiguousarray(data[:8, :20]).tobytes()
    with h5py.File(path, "r+") as file:
        file["x"].id.write_direct_chunk((0, 0), raw, 0b111)
    np.testing.assert_array_equal(read(path), data)
    with h5py.File(path, "r+") as file:
        file["x"].id.write_direct_chunk((0, 0), raw[:-1], 0b111)
    assert f"has {SIZE - 1} bytes" in refused(path)


def test_chunks_that_were_never_written_are_fill_values(path: Path) -> None:
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset(
            "x", SHAPE, "f4", chunks=CHUNKS, compression="gzip", fillvalue=3
        )
        dataset[0, 0] = 1
    assert read(path).sum() == 3 * 37 * 50 - 2


def test_chunks_beyond_a_shrunk_shape_are_not_read(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=VALUES, dtype="f4", chunks=CHUNKS, maxshape=(None, None))
        file["x"].resize((9, 50))
    np.testing.assert_array_equal(read(path, select={"x": ["0:9", ":"]}), VALUES[:9])


@pytest.mark.parametrize("length", [0, 4, 3996, 4004])
def test_the_storage_of_a_dataset_without_chunks(length: int, path: Path) -> None:
    """Its length stands in the header; HDF5 reads what comes after it in the file."""
    with h5py.File(path, "w", libver="earliest") as file:
        file["x"] = np.arange(1000, dtype="f4")
        file.create_dataset("y", (5,), "f4")  # never written: fill values
    good = path.read_bytes()
    assert good.count(struct.pack("<Q", 4000)) == 1
    path.write_bytes(good.replace(struct.pack("<Q", 4000), struct.pack("<Q", length)))
    assert f"has {length} bytes in the file, its shape 4000" in refused(path)
    source = OneInput(file=path, x="/y")
    assert not read_operand(source, X).any()


def test_sources_of_a_virtual_dataset(path: Path, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as file:
        for name in "ab":
            held = file.create_dataset(name, (4, 8), "f4", chunks=(2, 8), compression="gzip")
            held[...] = 1
        held.id.write_direct_chunk((2, 0), zlib.compress(b"abcd"))
    with h5py.File(path, "w") as file:
        layout = h5py.VirtualLayout((4, 16), "f4")
        layout[:, :8] = h5py.VirtualSource("other.h5", "a", (4, 8))
        layout[:, 8:] = h5py.VirtualSource("other.h5", "b", (4, 8))
        file.create_virtual_dataset("x", layout)
    message = refused(path, external=True)
    assert "other.h5: the chunk at (2, 0) has 4 bytes" in message
    # All that a source gives is checked.
    assert read(path, external=True, select={"x": [":", "0:8"]}).sum() == 32


def test_a_filter_that_cannot_be_sized_up(path: Path) -> None:
    written(path, dict(hdf5plugin.Zfp(reversible=True)), "f4")
    source = OneInput(file=path, x="/x")
    with pytest.raises(
        InputError, match=r"has the filter 32013 .*must be one of gzip, shuffle"
    ) as a:
        describe_operand(source, X)
    assert str(a.value) == refused(path)


@pytest.mark.parametrize(
    ("code", "stored", "found"),
    [
        (32000, b"\x02abc", 3),
        (32000, b"\x02abc\x20\x00", 6),
        (32000, b"\x00a\xe0\x05\x00", 1 + 7 + 5 + 2),
        (32000, b"\x02ab", "cannot be decoded"),
        (32000, b"\x02abc\x20", "cannot be decoded"),
        (32000, b"\x02abc\xe0", "cannot be decoded"),
        (32000, b"\x02abc\x20\x03", "cannot be decoded"),
        (32000, b"\x02abc" + 4 * b"\xe0\xff\x00", "more than 1000"),
        (1, zlib.compress(bytes(1000)), 1000),
        (1, zlib.compress(bytes(1000)) + b"more", 1000),
        (1, zlib.compress(bytes(1001)), "more than 1000"),
        (1, zlib.compress(bytes(1 << 24)), "more than 1000"),
        (1, b"abcd", "cannot be decoded"),
        (307, bz2.compress(bytes(1000)), 1000),
        (307, bz2.compress(bytes(1 << 22)), "more than 1000"),
        (307, bz2.compress(bytes(1000))[:-4], "ends within"),
        (32004, struct.pack(">QIIII", 8, 4, 4, 0, 4) + bytes(4), 8),
        (32004, struct.pack(">QIIII", 8, 4, 4, 0, 4) + bytes(5), "has 29 bytes, its blocks 28"),
        (32004, struct.pack(">QIIII", 8, 4, 4, 0, 4) + bytes(3), "ends within"),
        (32004, struct.pack(">QI", 8, 0) + bytes(8), "blocks of 0 bytes"),
        (32004, struct.pack(">QI", 1 << 40, 4), "decodes to 1099511627776"),
        (32004, struct.pack(">QII", 900, 900, 6) + b"\xf0\xff\xff\xff\x00a", "cannot be decoded"),
        (32008, struct.pack(">QI", 8, 0), "has no size"),
        (32015, b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 1 << 40), "decodes to 1099511627776"),
    ],
)  # fmt: skip
def test_sizes_that_are_known(code: int, stored: bytes, found: int | str) -> None:
    def size() -> int:
        return decoded_size(stored, [Filter(code, ())], 0, 1000)

    if isinstance(found, int):
        assert size() == found
    else:
        with pytest.raises(ChunkError, match=found):
            size()


def test_parameters_of_bitshuffle_that_divide_by_zero() -> None:
    stored = struct.pack(">QI", 8, 64) + bytes(12)  # one element, bare
    for values, message in [
        ((0, 4, 0, 0, 2), "no size"),
        ((0, 4, 65, 0, 2), "to 8"),
        ((0, 4, 8, 0, 2), "its blocks 20"),
    ]:
        with pytest.raises(ChunkError, match=message):
            decoded_size(stored, [Filter(32008, values)], 0, 1000)


def test_the_locked_libraries_have_what_is_called() -> None:
    assert all(allowed(code) for code in (1, 2, 3, 6, 307, 32000, 32001, 32004, 32008, 32015))
    # Szip and n-bit say nothing that could be held to; what is lossy has formats of its own.
    assert not any(allowed(code) for code in (4, 5, 32013, 32017, 32024, 32026, 32028, 32767))


def test_filters_in_an_order_that_nobody_writes() -> None:
    for second in (1, 2):
        with pytest.raises(ChunkError, match="compressed twice, or shuffled after"):
            decoded_size(zlib.compress(bytes(9)), [Filter(1, ()), Filter(second, ())], 0, 100)
    summed = zlib.compress(bytes(12))
    assert decoded_size(summed, [Filter(3, ()), Filter(1, ())], 0, 100) == 8
    with pytest.raises(ChunkError, match="its checksum alone has 4"):
        decoded_size(b"abc", [Filter(3, ())], 0, 100)
