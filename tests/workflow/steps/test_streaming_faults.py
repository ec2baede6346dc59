"""A stream whose device or disk is full, whose data are damaged, or that is ended."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import Device
from streamed_runs import (
    CASES,
    LOG,
    Ran,
    full_device,
    run_python,
    workload_of,
)

from workflow.data import Staged
from workflow.steps.execute import execute
from workflow.steps.staging import stage
from workflow.storage.datasets import DataError
from workflow.storage.staged import open_staged, write_staged


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


FULL = """
import logging, resource, sys
from pathlib import Path
from argand.device import cpu
from workflow.steps.execute import execute
from workflow.preflight.loading import load_study
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
