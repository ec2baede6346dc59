"""Data larger than a device's memory: the same results in chunks, and what happens when it is full.

A backend is ``cpu``, or ``cuda`` where a GPU answers; everything but the copies is the same.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, Device
from argand.ceilings import Ceilings
from argand.device import cpu, devices

from workflow.methods.shards import Shard
from workflow.steps import streaming
from workflow.steps.execute import execute
from workflow.steps.staging import stage
from workflow.steps.stream import NoRoomError, Stream, Streamed
from workflow.steps.transfer import transfer_to
from workflow.steps.verification import verify
from workflow.storage.datasets import DataError, read_result
from workflow.storage.slabs import SlabReader
from workflow.storage.staged import open_staged, write_staged
from workflow.study import StudyError, load_study
from workflow.workloads.base import Staged, Workload

LOG = logging.getLogger("test")
BACKENDS = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "channels": (
        {"kind": "beamforming", "channels": 37, "beams": 5, "antennas": 6, "samples": 90,
         "device_memory": "40 KiB"},
        "frequency",
    ),
    "times": (
        {"kind": "beamforming", "channels": 1, "beams": 5, "antennas": 6, "samples": 4001,
         "polarizations": 2, "device_memory": "90 KiB"},
        "time",
    ),
    "batch": (
        {"kind": "gemm", "batch": 33, "m": 6, "n": 7, "k": 8, "op_a": "C", "beta": 2,
         "device_memory": "20 KiB"},
        "batch",
    ),
    "rows": (
        {"kind": "gemm", "m": 2011, "n": 7, "k": 8, "op_a": "T", "alpha": [0, 1],
         "device_memory": "40 KiB"},
        "m",
    ),
    "spectra": (
        {"kind": "dft", "length": 60, "batch": 211, "window": "hann", "device_memory": "60 KiB"},
        "batch",
    ),
    "logits": ({"kind": "softmax", "rows": 517, "columns": 33, "device_memory": "30 KiB"}, "row"),
}  # fmt: skip


@pytest.fixture(params=BACKENDS)
def device(request: pytest.FixtureRequest) -> Device:
    return next(device for device in devices() if device.backend == request.param)


def workload_of(case: Mapping[str, Any], *precisions: str) -> Workload:
    given = {"precisions": list(precisions or ("fp32", "3xfp16")), "baselines": "auto"}
    return load_study({**given, "workloads": {"w": dict(case)}}).workload("w")


class Ran:
    """A workload that was staged and run in a folder."""

    def __init__(
        self, folder: Path, workload: Workload, device: Device, shard: Shard | None = None
    ) -> None:
        folder.mkdir()
        self.workload, self.device, self.shard = workload, device, shard
        self.staged, self.run = folder / "staged.h5", folder / "run.h5"
        stage(workload, [], self.staged, LOG)
        execute(workload, self.staged, self.run, device, LOG, shard)

    def result(self, implementation: str = "argand", precision: str = "fp32") -> Any:
        return read_result(self.run, implementation, precision)

    def records(self) -> list[Any]:
        ceilings = Ceilings("another", 10.0, {})
        return verify(self.workload, self.staged, self.run, ceilings, LOG, self.shard)


def without_bound(case: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in case.items() if key != "device_memory"}


SCALE = 64
"""On a GPU all is larger: tables, and the pieces in which memory is given."""
LENGTHS = {"frequency": "channels", "time": "samples", "row": "rows"}


def sized(name: str, device: Device) -> dict[str, Any]:
    """A case for a device."""
    case, axis = CASES[name]
    if device.backend == "cpu":
        return case
    key, (size, unit) = LENGTHS.get(axis, axis), case["device_memory"].split()
    return case | {key: SCALE // 4 * case[key], "device_memory": f"{SCALE * int(size)} {unit}"}


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_whole_and_verify(
    name: str, device: Device, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    case, axis = sized(name, device), CASES[name][1]
    caplog.set_level("INFO")
    streamed = Ran(tmp_path / "streamed", workload_of(case), device)
    assert f" {axis} in " in caplog.text
    whole = Ran(tmp_path / "whole", workload_of(without_bound(case)), device)
    records, others = streamed.records(), whole.records()
    assert [(r.implementation, r.precision) for r in records] == [
        (r.implementation, r.precision) for r in others
    ]
    for record, other in zip(records, others, strict=True):
        who = record.implementation, record.precision
        assert record.verified, record.reason
        assert record.chunks >= 4
        assert other.chunks is None
        assert record.time_us_p50 > 0
        assert record.end_to_end_us > 0
        found, expected = streamed.result(*who), whole.result(*who)
        assert found.data.dtype == expected.data.dtype
        # A shorter product may be summed in another order, and a library round its operands.
        allowed = max(4e-6, 4 * PRECISIONS[record.precision].u) * abs(expected.data).max()
        np.testing.assert_allclose(found.data, expected.data, rtol=0, atol=allowed)


def test_a_shard_is_streamed(device: Device, tmp_path: Path) -> None:
    """Split along one axis and streamed along another."""
    case = CASES["times"][0] | {"channels": 3, "device_memory": "50 KiB"}
    whole = Ran(tmp_path / "whole", workload_of(without_bound(case), "fp32"), device)
    for index in range(3):
        ran = Ran(tmp_path / str(index), workload_of(case, "fp32"), device, Shard(index, 3))
        assert all(record.verified and record.chunks > 1 for record in ran.records())
        expected = whole.result().data[index : index + 1]
        np.testing.assert_allclose(ran.result().data, expected, rtol=0, atol=1e-4)


def test_not_even_one_entry_fits(device: Device, tmp_path: Path) -> None:
    case = {"kind": "softmax", "rows": 4, "columns": 1000, "device_memory": "1 KiB"}
    ran = Ran(tmp_path / "w", workload_of(case, "fp32"), device)
    found = ran.result()
    assert found.data is None
    assert "does not fit into 1 KiB of device memory: needs 23.4 KiB for one of axis row" in (
        found.reason
    )
    assert not any(record.verified for record in ran.records())


def test_a_state_cannot_be_streamed_and_is_computed_whole(tmp_path: Path) -> None:
    case = {
        "kind": "statevector",
        "circuit": {"name": "ghz", "qubits": 6},
        "device_memory": "1 KiB",
    }
    assert Ran(tmp_path / "w", workload_of(case, "fp32"), cpu()).records()[0].verified


@pytest.mark.parametrize("text", ["4", "4 GB", "4GiB", "0 MiB", "-1 MiB", "4 gib", "1e3 MiB"])
def test_other_sizes_are_refused(text: str) -> None:
    with pytest.raises(StudyError, match=r"w\.device_memory: must be text of the form"):
        workload_of(CASES["logits"][0] | {"device_memory": text})


def test_sizes_are_binary() -> None:
    sizes = [
        workload_of(CASES["logits"][0] | {"device_memory": text}).case.device_memory_bytes()
        for text in ("1 KiB", "1.5 MiB", "4 GiB")
    ]
    assert sizes == [1 << 10, 3 << 19, 4 << 30]


@pytest.fixture
def full_device(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """Let `Softmax` fail for more rows than it is told, from a call on."""

    def limit(workload: Workload, entries: int, after: int = 0) -> list[int]:
        calls: list[int] = []
        original = workload.argand

        def argand(*given: Any) -> Any:
            one = original(*given)

            def compute(operands: Mapping[str, Any]) -> Any:
                calls.append(operands["x"].shape[0])
                if len(calls) > after and calls[-1] > entries:
                    raise MemoryError("out of memory allocating 7 bytes")
                return one.compute(operands)

            return replace(one, compute=compute)

        monkeypatch.setattr(workload, "argand", argand)
        return calls

    return limit


@pytest.mark.parametrize("after", [0, 5])
def test_a_full_device_halves_the_chunks_and_says_so(
    after: int,
    device: Device,
    tmp_path: Path,
    full_device: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """At once, and in the middle, when other programs took the memory."""
    case = {"kind": "softmax", "rows": 4099, "columns": 40, "device_memory": "512 KiB"}
    workload = workload_of(case | {"baselines": "none"}, "fp32")
    calls = full_device(workload, 100, after)
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
    device: Device, tmp_path: Path, full_device: Any
) -> None:
    case = {"kind": "softmax", "rows": 4099, "columns": 40, "device_memory": "512 KiB"}
    workload = workload_of(case | {"baselines": "none"}, "fp32")
    full_device(workload, 0)
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


FULL = """
import logging, resource, sys
from pathlib import Path
from argand.device import cpu
from workflow.steps.execute import execute
from workflow.study import load_study
case = {"kind": "softmax", "rows": 20000, "columns": 1000, "device_memory": "6 MiB"}
study = {"precisions": ["fp32"], "baselines": "none", "workloads": {"w": case}}
workload = load_study(study).workload("w")
resource.setrlimit(resource.RLIMIT_FSIZE, (20 << 20, 20 << 20))
execute(workload, Path("staged.h5"), Path("run.h5"), cpu(), logging.getLogger())
"""


def test_a_full_disk_ends_a_stream_and_leaves_no_file(tmp_path: Path, root: Path) -> None:
    x = np.zeros((20_000, 1000), np.float32)
    staged = Staged({"x": x}, {"x": ("row", "column")})
    write_staged(tmp_path / "staged.h5", staged, workload="w", kind="softmax")
    done = run_python(FULL, tmp_path, root)
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["staged.h5"]


ENDED = """
import sys
from pathlib import Path
from argand.device import cpu
from workflow.steps.execute import execute
from workflow.steps.joblog import job_log
from workflow.study import load_study
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


def run_python(text: str, folder: Path, root: Path, *given: str) -> Any:
    """Run Python with the packages of the repository; an endless wait is an error."""
    return subprocess.run(
        [sys.executable, "-c", text, *given],
        cwd=folder, capture_output=True, text=True, check=False, timeout=120,
        env=os.environ | {"PYTHONPATH": f"{root}:{root / 'kernels'}"},
    )  # fmt: skip


class Slow:
    """A reader, a computation and a writer that take a while, and note who was at work when."""

    SECONDS = 0.03

    def __init__(self, path: Path, rows: int) -> None:
        x = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)
        write_staged(path, Staged({"x": x}, {"x": ("row", "column")}), workload="w", kind="softmax")
        self.path, self.rows, self.found = path, rows, np.zeros_like(x)
        self.most_read = self.most_written = 0
        self._lock = threading.Lock()

    def compute(self, given: Mapping[str, Any]) -> Any:
        time.sleep(self.SECONDS)
        return given["x"] * 2

    def write(self, start: int, result: Any) -> None:
        time.sleep(self.SECONDS)
        self.found[start : start + len(result)] = result
        self.most_written = max(self.most_written, start + len(result))

    def stream(self, device: Device, step: int) -> Stream:
        with (
            open_staged(self.path) as file,
            SlabReader(file.dataset("x"), file.part("x"), 0) as reader,
        ):
            read = reader.read

            def slow(start: int, into: Any) -> None:
                time.sleep(self.SECONDS)
                # What has not been written yet is somewhere in host memory: it has a bound.
                self.most_read = max(self.most_read, start + len(into) - self.most_written)
                read(start, into)

            reader.read = slow  # type: ignore[method-assign]
            operands = {"x": Streamed(reader, np.dtype(np.float32))}
            told: list[int] = []
            stream = Stream(operands, transfer_to(device), self.compute, self.write, told.append)
            stream.run(0, self.rows, step)
            assert told == [*range(step, self.rows, step), self.rows]
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
    assert busy.elapsed < 1.6 * parts, "one after another it takes three times as long"


def test_host_memory_holds_a_fixed_number_of_chunks(device: Device, tmp_path: Path) -> None:
    slow = Slow(tmp_path / "x.h5", 60)
    original = slow.write
    slow.write = lambda start, result: (time.sleep(0.1), original(start, result))[1]  # type: ignore
    slow.stream(device, 1)
    assert slow.most_read <= 10


def test_what_was_written_before_a_full_device_stays(tmp_path: Path) -> None:
    slow = Slow(tmp_path / "x.h5", 12)
    original = slow.compute

    def compute(given: Mapping[str, Any]) -> Any:
        if given["x"][0, 0] == 4 * 8:
            raise MemoryError("full")
        return original(given)

    slow.compute = compute  # type: ignore[method-assign]
    with pytest.raises(NoRoomError, match="full") as caught:
        slow.stream(cpu(), 2)
    assert caught.value.position == 8
    assert slow.most_written == 8


def test_what_turns_out_not_to_fit_whole_is_streamed(
    device: Device, tmp_path: Path, full_device: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The estimate let it on the device, which had less room than it said."""
    case = {"kind": "softmax", "rows": 4099, "columns": 40, "baselines": "none"}
    workload = workload_of(case, "fp32")
    full_device(workload, 4000)
    (record,) = Ran(tmp_path / "w", workload, device).records()
    assert record.verified
    assert record.chunks > 1
    assert "out of memory with all of it on the device: in chunks (out of" in caplog.text


PEAK = """
import logging, sys
from pathlib import Path
from argand.device import cpu
from workflow.steps.execute import execute
from workflow.study import load_study
case = {"kind": "softmax", "rows": int(sys.argv[1]), "columns": 1000, "device_memory": "6 MiB"}
study = {"precisions": ["fp32"], "baselines": "none", "workloads": {"w": case}}
workload = load_study(study).workload("w")
execute(workload, Path("staged.h5"), Path("run.h5"), cpu(), logging.getLogger())
status = Path("/proc/self/status").read_text()
print(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
"""


def test_host_memory_does_not_grow_with_the_data(tmp_path: Path, root: Path) -> None:
    peaks = []
    for rows in (5_000, 50_000):  # 20 and 200 MB
        x = np.zeros((rows, 1000), np.float32)
        staged = Staged({"x": x}, {"x": ("row", "column")})
        write_staged(tmp_path / "staged.h5", staged, workload="w", kind="softmax")
        done = run_python(PEAK, tmp_path, root, str(rows))
        peaks.append(int(done.stdout) / 1024)
    assert abs(peaks[1] - peaks[0]) < 20, peaks


def test_threads_end_with_an_error(tmp_path: Path) -> None:
    before = threading.active_count()
    slow = Slow(tmp_path / "x.h5", 12)

    def write(start: int, result: Any) -> None:
        raise OSError("gone")

    slow.write = write  # type: ignore[method-assign]
    with pytest.raises(DataError, match="gone"):
        slow.stream(cpu(), 2)
    assert threading.active_count() == before


def test_an_axis_whose_entries_fit_is_found() -> None:
    case = CASES["times"][0] | {"channels": 2}
    workload = workload_of(case, "fp32")
    outline = workload.stage()
    one = workload.argand(outline, PRECISIONS["fp32"], cpu())
    moved = workload.shape(outline, one.precision).bytes_moved
    assert streaming.plan_chunks(workload, outline, one, int(2 * moved)).axis == "frequency"
    assert streaming.plan_chunks(workload, outline, one, int(moved)).axis == "time"
