"""The loop of a stream: reading, computing and writing at once, in bounded host memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import Device
from argand.device import cpu

from workflow.data import Staged
from workflow.steps.chunk_loop import ChunkTooLargeError, Stream, Streamed
from workflow.steps.transfer import transfer_to
from workflow.storage.datasets import DataError
from workflow.storage.slabs import SlabReader
from workflow.storage.staged import open_staged, write_staged


class Slow:
    """A reader, a computation and a writer that take a while, and note who was at work when."""

    SECONDS = 0.03

    def __init__(self, path: Path, rows: int) -> None:
        x = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)
        write_staged(path, Staged({"x": x}, {"x": ("row", "column")}), workload="w", kind="softmax")
        self.path, self.rows, self.found = path, rows, np.zeros_like(x)
        self.most_read = self.most_written = 0
        self.together: set[frozenset[str]] = set()
        self._at_work: set[str] = set()

    def work(self, what: str) -> None:
        """Take a while, and note who else is at work."""
        self._at_work.add(what)
        time.sleep(self.SECONDS)
        self.together.add(frozenset(self._at_work))
        self._at_work.remove(what)

    def compute(self, given: Mapping[str, Any]) -> Any:
        self.work("compute")
        return given["x"] * 2

    def write(self, start: int, result: Any) -> None:
        self.work("write")
        self.found[start : start + len(result)] = result
        self.most_written = max(self.most_written, start + len(result))

    def stream(self, device: Device, step: int) -> Stream:
        with (
            open_staged(self.path) as file,
            SlabReader(file.dataset("x"), file.ranges_of("x"), 0) as reader,
        ):
            read = reader.read

            def slow(start: int, into: Any) -> None:
                self.work("read")
                # What has not been written yet is somewhere in host memory: it has a bound.
                self.most_read = max(self.most_read, start + len(into) - self.most_written)
                read(start, into)

            reader.read = slow  # type: ignore[method-assign]
            operands = {"x": Streamed(reader, np.dtype(np.float32))}
            progress: list[int] = []
            stream = Stream(
                operands, transfer_to(device), self.compute, self.write, progress.append
            )
            stream.run(0, self.rows, step)
            assert progress == [*range(step, self.rows, step), self.rows]
        return stream


def test_reading_computing_and_writing_overlap(device: Device, tmp_path: Path) -> None:
    slow = Slow(tmp_path / "x.h5", 40)
    busy = slow.stream(device, 1).busy
    expected = 2 * np.arange(160, dtype=np.float32).reshape(40, 4)
    np.testing.assert_array_equal(slow.found, expected)
    assert busy.chunks == 40
    parts = 40 * Slow.SECONDS
    assert busy.read >= parts
    assert busy.written >= parts
    assert frozenset(("read", "compute", "write")) in slow.together


def test_host_memory_holds_a_fixed_number_of_chunks(device: Device, tmp_path: Path) -> None:
    slow = Slow(tmp_path / "x.h5", 30)
    original = slow.write
    slow.write = lambda start, result: (time.sleep(0.05), original(start, result))[1]  # type: ignore
    slow.stream(device, 1)
    assert slow.most_read <= 10


def test_what_was_written_before_a_full_device_stays(tmp_path: Path) -> None:
    """Chunks still to be written count too: the writer is slower than all else."""
    slow = Slow(tmp_path / "x.h5", 12)
    computed, written = slow.compute, slow.write

    def compute(given: Mapping[str, Any]) -> Any:
        if given["x"][0, 0] == 4 * 8:
            raise MemoryError("full")
        return computed(given)

    def write(start: int, result: Any) -> None:
        time.sleep(10 * Slow.SECONDS)
        written(start, result)

    slow.compute = compute  # type: ignore[method-assign]
    slow.write = write  # type: ignore[method-assign]
    with pytest.raises(ChunkTooLargeError, match="full") as caught:
        slow.stream(cpu(), 2)
    assert caught.value.position == 8
    assert slow.most_written == 8


def test_threads_end_with_an_error(tmp_path: Path) -> None:
    before = threading.active_count()
    slow = Slow(tmp_path / "x.h5", 12)

    def write(start: int, result: Any) -> None:
        raise OSError("gone")

    slow.write = write  # type: ignore[method-assign]
    with pytest.raises(DataError, match="gone"):
        slow.stream(cpu(), 2)
    assert threading.active_count() == before
