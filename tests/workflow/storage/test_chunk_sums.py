"""Damage that HDF5's own checksum does not see: ones for zeros, chunks that changed places.

Each kind of file that we write, by each way in which it is read.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
import pytest

from tests.workflow.whole_files import read_result, read_staged
from workflow import chunk_places
from workflow.data import Coordinate, Product, Staged
from workflow.storage.checksum import fletcher32
from workflow.storage.chunk_sums import SUMS, ChecksumError, read_sums, write_sums
from workflow.storage.chunks import read_chunked, write_chunked
from workflow.storage.datasets import DataError
from workflow.storage.products import read_product, write_product
from workflow.storage.runs import Result, write_run
from workflow.storage.seal import check_seal
from workflow.storage.slabs import SlabReader, SlabWriter
from workflow.storage.staged import open_staged, write_staged

CERTIFICATE: dict[str, Any] = {
    "workload": "w", "implementation": "argand", "precision": "fp32", "algorithm": "cgemm",
    "device": "cpu", "rel_frobenius": 1e-7, "error_limit": 1e-7, "bound": 1e-6, "tolerance": 1e-5,
    "verdict": "verified", "verified": True,
    "reference": "full", "kernel_digest": "", "versions": "", "timestamp": "", "seed": 7,
    "source": {"file": "/data/run42.h5", "checksum": "sha256:00ff"},
}  # fmt: skip
Array = npt.NDArray[Any]


def write_as_staged(path: Path, data: Array) -> None:
    along = {"n": Coordinate(np.arange(data.shape[1]), "s", "time")}
    content = Staged({"x": data}, {"x": ("m", "n")}, along, {"seed": 7, "source": "generated"})
    write_staged(path, content, workload="w", kind="gemm")


def write_as_run(path: Path, data: Array) -> None:
    result = Result(
        implementation="argand", precision="fp32", algorithm="", device="", backend="", data=None
    )
    with write_run(path, "w", {}) as run:
        run.add(result)
        with run.slabs(result, data.shape, data.dtype, 0, 64) as slabs:
            slabs.write(0, data)


def write_as_product(path: Path, data: Array) -> None:
    # Axes without coordinates would be numbered for others, and not be read by us.
    along = {
        axis: Coordinate(np.arange(n) / 2, "m", axis)
        for axis, n in zip("mn", data.shape, strict=True)
    }
    product = Product("x", data, ("m", "n"), along, "X", "")
    write_product(path, product, CERTIFICATE, workload="w", kind="gemm")


def read_slabs(path: Path) -> Array:
    with (
        open_staged(path) as staged,
        SlabReader(staged.dataset("x"), staged.ranges_of("x"), 0) as slabs,
    ):
        data = np.empty(slabs.shape(staged.dataset("x").shape[0]), staged.dataset("x").dtype)
        slabs.read(0, data)
        return data


KINDS: dict[str, tuple[Callable[[Path, Array], None], Callable[[Path], Array]]] = {
    "staged": (write_as_staged, lambda path: read_staged(path).operands["x"]),
    "slabs": (write_as_staged, read_slabs),
    "run": (write_as_run, lambda path: read_result(path, "argand", "fp32").data),  # type: ignore[dict-item,return-value]
    "product": (write_as_product, lambda path: read_product(path).data),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Any:
    return KINDS[request.param]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "w.h5"


def chunks_of(path: Path) -> list[tuple[int, int]]:
    """Place and size of the chunks of the largest dataset, in the order of the array."""
    found: list[h5py.Dataset] = []
    with h5py.File(path) as file:
        file.visititems(lambda _, x: found.append(x) if isinstance(x, h5py.Dataset) else None)
        largest = max(found, key=lambda dataset: dataset.nbytes)
        count = largest.id.get_num_chunks()
        infos = [largest.id.get_chunk_info(index) for index in range(count)]
    return [(info.byte_offset, info.size) for info in infos]


def refused(read: Callable[[Path], Array], path: Path) -> None:
    with pytest.raises(DataError, match=r"w\.h5: missing, truncated or damaged .* delete it"):
        read(path)


def test_words_of_ones_for_zeros(kind: Any, path: Path) -> None:
    """Fletcher-32 counts modulo 65535, for which 0xFFFF is 0."""
    write, read = kind
    data = np.eye(96, dtype=np.float32)
    write(path, data)
    np.testing.assert_array_equal(read(path), data)
    at, size = chunks_of(path)[0]
    good = path.read_bytes()
    stored = np.frombuffer(good[at : at + size - 4], np.uint8)
    for start, length in [(8, 2), (10, 2), (4 * 97 + 4, 2), (4096, 4096), (8, 376), (4096, 20000)]:
        damaged = bytearray(good)
        assert not any(damaged[at + start : at + start + length][:2])
        damaged[at + start : at + start + length] = b"\xff" * length
        zeros = not stored[start : start + length].any()
        if zeros:  # what HDF5 itself goes by does not change
            changed = np.frombuffer(bytes(damaged[at : at + size - 4]), np.uint8)
            assert fletcher32(changed) == fletcher32(stored)
        path.write_bytes(damaged)
        refused(read, path)


def test_chunks_that_changed_places(
    kind: Any, path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, read = kind
    data = rng.standard_normal((640, 1024))
    write(path, data)
    (first, size), (second, same) = chunks_of(path)[:2]
    assert size == same
    good = path.read_bytes()
    damaged = bytearray(good)
    damaged[first : first + size] = good[second : second + size]
    damaged[second : second + size] = good[first : first + size]
    path.write_bytes(damaged)
    with h5py.File(path) as file:  # HDF5 reads it without a word
        name = {"staged": "operands/x", "run": "results/argand/fp32/data"}.get(
            file.attrs["argand_content"], "entry/data/x"
        )
        assert not np.array_equal(file[name][...], data)
    refused(read, path)
    # One copied over the other, as a write that went to the wrong place.
    path.write_bytes(good[:second] + good[first : first + size] + good[second + size :])
    refused(read, path)


def test_flips_anywhere(kind: Any, path: Path, rng: np.random.Generator) -> None:
    """They are of data, headers, certificate, checksums and seal; HDF5 reads some silently."""
    write, read = kind
    write(path, rng.standard_normal((9, 8)))
    good = path.read_bytes()
    for position in range(0, len(good), 29):
        damaged = bytearray(good)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        refused(read, path)
    for length in range(0, len(good), 997):
        path.write_bytes(good[:length])
        refused(read, path)


def test_a_seal_is_checked_without_reading_what_has_sums(
    kind: Any, path: Path, rng: np.random.Generator
) -> None:
    """Every chunk damaged: the seal, which is checked at each opening, is none the worse."""
    write, read = kind
    write(path, rng.standard_normal((300, 700)))
    for at, size in chunks_of(path):
        with path.open("r+b") as raw:
            raw.seek(at)
            raw.write(bytes(size))
    check_seal(path)
    refused(read, path)


def test_a_part_is_held_to_its_chunks_alone(path: Path) -> None:
    with h5py.File(path, "w") as file:
        dataset = write_chunked(file, "x", np.ones((4, 1 << 18), np.float32))
        at = dataset.id.get_chunk_info(2).byte_offset
    with path.open("r+b") as raw:
        raw.seek(at + 4)
        raw.write(b"\xff\xff")
    with h5py.File(path) as file:
        assert file["x"][2, 1] == np.float32(1.0078124)  # by HDF5, which sees nothing
        assert (read_chunked(file["x"], [slice(0, 2), slice(None)]) == 1).all()
        with pytest.raises(ChecksumError, match=r"chunk at \(2, 0\) fails its checksum"):
            read_chunked(file["x"], [slice(1, 3), slice(0, 1)])


def test_sums_are_zlibs_of_the_stored_bytes(path: Path, rng: np.random.Generator) -> None:
    """Other programs may check the sums, those of slabs written out of order too."""
    data = rng.standard_normal((300, 70, 5))
    with h5py.File(path, "w") as file:
        write_chunked(file, "g/x", data)
        with SlabWriter(file, "y", data.shape, data.dtype, 1, 16) as slabs:
            for start in (32, 0, 64, 48, 16):
                slabs.write(start, data[:, start : start + 16])
            slabs.finish()
    with h5py.File(path) as file:
        for name in ("g/x", "y"):
            dataset, sums = file[name], file[f"{SUMS}/{name}"][...]
            assert sums.dtype == np.uint32
            chunks = list(dataset.iter_chunks())
            assert sums.size == len(chunks)
            for place in chunks:
                start = tuple(along.start for along in place)
                _, stored = dataset.id.read_direct_chunk(start)
                at = tuple(np.floor_divide(start, dataset.chunks))
                assert sums[at] == zlib.crc32(stored)
            np.testing.assert_array_equal(dataset[...], data)
            np.testing.assert_array_equal(read_chunked(dataset), data)


def test_datasets_without_sums_or_with_others(path: Path) -> None:
    with h5py.File(path, "w") as file:
        dataset = write_chunked(file, "x", np.ones((5, 7)))
        write_sums(dataset, {(0, 0): 1})  # as if "x" had been deleted and written again
        assert read_sums(dataset).tolist() == [[1]]
        del file[f"{SUMS}/x"]
        file[f"{SUMS}/x"] = np.zeros((2, 1), np.uint32)
        with pytest.raises(ChecksumError, match="not those of its chunks"):
            read_chunked(dataset)
        del file[f"{SUMS}/x"]
        with pytest.raises(KeyError):
            read_chunked(dataset)


def test_a_result_that_failed_while_it_was_written_may_be_written_again(path: Path) -> None:
    result = Result(
        implementation="argand", precision="fp32", algorithm="", device="", backend="", data=None
    )
    data = np.ones((8, 4))
    with write_run(path, "w", {}) as run:
        run.add(result)
        for last in (False, True):
            try:
                with run.slabs(result, data.shape, data.dtype, 0, 8) as slabs:
                    slabs.write(0, data * (1 + last))
                    slabs.finish()
                    if not last:
                        raise RuntimeError("planted")
            except RuntimeError:
                pass
    np.testing.assert_array_equal(read_result(path, "argand", "fp32").data, 2 * data)


def test_a_file_of_an_earlier_format(path: Path) -> None:
    write_as_staged(path, np.ones((2, 2)))
    from workflow.storage import datasets

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(datasets, "FORMAT", 1)
        write_as_staged(path, np.ones((2, 2)))
    with pytest.raises(
        DataError, match=r"w\.h5: format 1, this version reads 2; delete it and run"
    ):
        read_staged(path)


def test_what_crc32_promises() -> None:
    """Runs of ones for zeros of lengths up to 2 MiB, and all bursts of one word, are seen.

    A CRC is linear: what a change adds to it depends on the change alone. So that of no run of ones
    may be that of zeros, behind which there are any zeros (they only permute what is not zero).
    """
    state, zero = zlib.crc32(b""), zlib.crc32(b"")
    for _ in range(2 * chunk_places.CHUNK_BYTES // 1024):
        state, zero = zlib.crc32(b"\xff" * 1024, state), zlib.crc32(bytes(1024), zero)
        assert state != zero
    for word in range(1, 1 << 16):
        assert zlib.crc32(word.to_bytes(2, "little")) != zlib.crc32(bytes(2))
