"""The loop of a stream, in bounded host memory, and streams whose device, disk or data fail."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import Device
from argand.device import cpu
from streamed_runs import CASES, LOG, Ran, full_device, workload_of

from workflow.data import Staged
from workflow.steps.chunk_loop import ChunkTooLargeError, Stream, Streamed
from workflow.steps.execute import execute
from workflow.steps.staging import stage
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


@pytest.mark.parametrize("after", [0, 5])
def test_a_full_device_halves_the_chunks_and_says_so(
    after: int,
    device: Device,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """At once, and in the middle, when other programs took the memory."""
    case = {"kind": "softmax", "rows": 4099, "columns": 40, "device_memory": "512 KiB"}
    workload = workload_of(case | {"baselines": "none"}, "fp32")
    calls = full_device(monkeypatch, workload, 100, after)
    ran = Ran(tmp_path / "w", workload, device)
    first = calls[0]
    assert first > 200
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert said[0].startswith(
        f"out of memory on the device with chunks of {first} along axis row: going on with "
    )
    assert max(calls[after + len(said) :]) <= max(100, first)
    assert calls[-1] <= 100
    (record,) = ran.records()
    assert record.verified
    assert record.chunks > 4099 // 101


def test_a_device_that_stays_full_is_a_reason(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = {"kind": "softmax", "rows": 4099, "columns": 40, "device_memory": "512 KiB"}
    workload = workload_of(case | {"baselines": "none"}, "fp32")
    full_device(monkeypatch, workload, 0)
    ran = Ran(tmp_path / "w", workload, device)
    assert ran.result().data is None
    assert "not even a chunk of 1 along axis row fits" in ran.result().reason


def test_damage_to_a_staged_chunk_ends_the_run(device: Device, tmp_path: Path) -> None:
    case, _ = CASES["logits"]
    workload = workload_of(case | {"baselines": "none"}, "fp32")
    staged, run = tmp_path / "staged.h5", tmp_path / "run.h5"
    stage(workload, [], staged, LOG)
    with open_staged(staged) as file:
        at = file.dataset("x").id.get_chunk_info(0).byte_offset
    raw = bytearray(staged.read_bytes())
    raw[at + 1000] ^= 1
    staged.write_bytes(raw)
    with pytest.raises(DataError, match=r"staged\.h5: .*fails its checksum"):
        execute(workload, staged, run, device, LOG)
    assert not run.exists()


def test_a_disk_that_fails_ends_the_run(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("workflow.storage.slabs.SlabWriter.write", full)
    case, _ = CASES["logits"]
    with pytest.raises((OSError, DataError), match="No space left"):
        Ran(tmp_path / "w", workload_of(case | {"baselines": "none"}, "fp32"), device)
    assert not list((tmp_path / "w").glob("*run*"))


ENDED = """
import sys
from pathlib import Path
from argand.device import cpu
from workflow.steps.execute import execute
from workflow.jobs.joblog import job_log
from workflow.preflight.loading import load_study
case = {"kind": "softmax", "rows": 20000, "columns": 1000, "device_memory": "100 KiB"}
study = {"precisions": ["3xfp16"], "baselines": "none", "workloads": {"w": case}}
with job_log("job.log") as log:
    execute(load_study(study).workload("w"), Path("staged.h5"), Path("run.h5"), cpu(), log)
"""


def test_a_stream_that_is_ended_leaves_no_file(tmp_path: Path, root: Path) -> None:
    """SIGTERM, as schedulers send it, with chunks on their way."""
    x = np.zeros((20_000, 1000), np.float32)
    staged = Staged({"x": x}, {"x": ("row", "column")})
    write_staged(tmp_path / "staged.h5", staged, workload="w", kind="softmax")
    environ = os.environ | {"PYTHONPATH": f"{root}:{root / 'kernels'}"}
    with subprocess.Popen([sys.executable, "-c", ENDED], cwd=tmp_path, env=environ) as process:
        deadline = time.monotonic() + 60
        while not any(path.stat().st_size > 1 << 20 for path in tmp_path.glob(".run.h5.*.part")):
            assert time.monotonic() < deadline, "nothing was written within a minute"
            assert process.poll() is None, "it was over too soon"
            time.sleep(0.01)
        process.terminate()
        assert process.wait(timeout=60) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.log", "staged.h5"]
    assert "asked to end (SIGTERM)" in (tmp_path / "job.log").read_text().splitlines()[-1]
