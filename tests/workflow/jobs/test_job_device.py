"""The device of a job is the leased one, and the logs say so."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
from argand import Device, DeviceError
from argand.runtime.files.plain_files import NotPlainError
from planted import PLANTED, planted

from workflow.jobs import gpu_devices, job_device
from workflow.jobs.gpu_devices import Gpu
from workflow.jobs.gpu_lease import lease
from workflow.jobs.lease_log import lease_log, leases

UUIDS = ("GPU-00112233-4455-6677-8899-aabbccddeeff", "GPU-ffeeddcc-bbaa-9988-7766-554433221100")
freed: list[str] = []
"""Devices that were visible when the memory of one was freed."""
OF_CUDA = {"__module__": "cupy_backends.cuda.api.runtime"}
Lost = type("CUDARuntimeError", (RuntimeError,), OF_CUDA)
LOG = logging.getLogger("argand.test_job_device")


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two GPUs, which CUDA counts as CUDA_VISIBLE_DEVICES names them."""
    gpus = [Gpu(index, uuid, "card") for index, uuid in enumerate(UUIDS)]

    def resolve(name: str) -> Device:
        if name == "cpu":
            return Device("cpu", "processor")
        first = os.environ["CUDA_VISIBLE_DEVICES"].partition(",")[0]
        return Device("cuda", "card", uuid=first.removeprefix("GPU-").replace("-", ""))

    pool = SimpleNamespace(free_all_blocks=lambda: freed.append(os.environ["CUDA_VISIBLE_DEVICES"]))
    runtime = SimpleNamespace(deviceSynchronize=lambda: None)
    cupy = SimpleNamespace(
        cuda=SimpleNamespace(Device=lambda index: contextlib.nullcontext(), runtime=runtime),
        get_default_memory_pool=lambda: pool,
    )
    freed.clear()
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(gpu_devices, "machine_gpus", lambda: gpus)
    monkeypatch.setattr(job_device, "resolve", resolve)
    monkeypatch.setenv("ARGAND_LOCK_FOLDER", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.chdir(tmp_path)


def test_the_device_is_the_leased_one_and_both_logs_say_which(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger=LOG.name)
    with lease(1, environ={}), job_device.job_device("auto", 1, "run a", LOG) as device:
        assert device.backend == "cuda"
        assert os.environ["CUDA_VISIBLE_DEVICES"] == UUIDS[1]
        assert not freed
    assert freed == [UUIDS[1]], "freed while it was still leased"
    lines = [json.loads(line) for line in lease_log().read_text().splitlines()]
    assert [line["event"] for line in lines] == ["taken", "given back"]
    for line in lines:
        assert line["job"] == "run a"
        assert line["gpus"] == [{"index": 1, "uuid": UUIDS[1]}]
        assert line["pid"] == os.getpid()
        assert line["given_by"] == "lock"
    assert lines[0]["time"] <= lines[1]["time"]
    taken, given_back = caplog.messages
    when, which = re.escape(lines[0]["time"]), re.escape(f"GPU 1 ({UUIDS[1]}, card)")
    assert re.fullmatch(rf"{when}: taken {which} by lock, waited \d+\.\d s", taken)
    assert re.fullmatch(
        rf"{re.escape(lines[1]['time'])}: given back; the job had .* [MG]iB of memory at most",
        given_back,
    )
    assert 20 << 20 < lines[1]["host_peak_bytes"] < 16 << 30


def test_a_failure_is_noted_as_given_back() -> None:
    with pytest.raises(MemoryError), job_device.job_device("cuda", 2, "run a", LOG):
        raise MemoryError
    last = json.loads(lease_log().read_text().splitlines()[-1])
    assert last["event"] == "given back"
    assert [gpu["index"] for gpu in last["gpus"]] == [0, 1]


def test_a_device_that_is_lost_is_named() -> None:
    """CuPy reports a card that fell off the bus so; errors of its own are left as they are."""
    full = type("OutOfMemoryError", (MemoryError,), {"__module__": "cupy.cuda.memory"})
    with (
        pytest.raises(DeviceError, match=rf"GPU 0 \({UUIDS[0]}, card\) of \S+ failed: CUDARuntime"),
        job_device.job_device("cuda", 1, "run a", LOG),
    ):
        raise Lost("cudaErrorDevicesUnavailable")
    for error in (full("full"), ValueError("shape")):
        with (
            pytest.raises(type(error), match=str(error)),
            job_device.job_device("cuda", 1, "run a", LOG),
        ):
            raise error
    with job_device.job_device("cuda", 1, "run b", LOG) as device:
        assert device.backend == "cuda"


@pytest.mark.parametrize("error", [RuntimeError("does not fit"), None])
def test_a_device_that_is_lost_behind_another_error_is_named(
    error: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel's failure shows at any later call, in an error of that call's, or at the end."""

    def fails() -> None:
        raise Lost("cudaErrorLaunchFailure: unspecified launch failure")

    def job() -> None:
        with job_device.job_device("cuda", 1, "run a", LOG):
            monkeypatch.setattr(sys.modules["cupy"].cuda.runtime, "deviceSynchronize", fails)
            if error:
                raise error

    named = rf"GPU 0 \({UUIDS[0]}, card\) of \S+ failed: CUDARuntimeError: cudaErrorLaunchFailure"
    with pytest.raises(DeviceError, match=named):
        job()


def test_without_a_gpu_it_is_the_cpu_and_nothing_is_leased() -> None:
    for name, gpus in (("auto", 0), ("cpu", 0), ("cpu", 1)):
        with job_device.job_device(name, gpus, "run a", LOG) as device:
            assert device.backend == "cpu"
    assert not lease_log().exists()
    with (
        pytest.raises(DeviceError, match=r"device: cuda was asked for.*no GPU \(gpu=0\)"),
        job_device.job_device("cuda", 0, "run a", LOG),
    ):
        pass


def test_cuda_that_was_started_before_the_lease_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CUDA goes on with the devices that it saw when it was started."""
    started = Device("cuda", "card", uuid=UUIDS[0].removeprefix("GPU-").replace("-", ""))
    monkeypatch.setattr(job_device, "resolve", lambda name: started)
    with job_device.job_device("cuda", 1, "run a", LOG):
        pass
    message = rf"GPU 1 \({UUIDS[1]}, card\) is leased, but CUDA answers with card"
    with (
        lease(1, environ={}),
        pytest.raises(DeviceError, match=message),
        job_device.job_device("cuda", 1, "run b", LOG),
    ):
        pass


def test_who_waits_says_so_in_the_log_and_to_who_watches(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with ExitStack() as held:
        held.enter_context(lease(2, "run first", environ={}))
        timer = threading.Timer(3.0, held.pop_all().close)
        timer.start()
        with job_device.job_device("auto", 1, "run second", LOG):
            pass
        timer.join()
    line = caplog.messages[0]
    assert re.match(r"waiting for 1 of 2 GPUs, \d s so far; held: GPU 0", line)
    assert ", run first, since " in line
    assert capsys.readouterr().err == f"run second: {line}\n"


@pytest.mark.parametrize(
    ("resources", "gpus"),
    [
        ({"gpu": 1}, 1), ({"gpu": 0}, 0), ({}, 0), ({"gpu": 0, "gres": "gpu"}, 1),
        ({"gpu": 0, "gres": "gpu:1"}, 1), ({"gpu": 0, "gres": "gpu:a100"}, 1),
        ({"gpu": 0, "gres": "gpu:1g.5gb:2"}, 2), ({"gpu": 1, "gres": "scratch:100G"}, 1),
    ],
)  # fmt: skip
def test_gpus_are_asked_for_in_either_way(resources: dict[str, object], gpus: int) -> None:
    assert job_device.asked_gpus(resources) == gpus


def test_a_request_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ValueError, match="gres must be gpu, gpu:COUNT or gpu:TYPE:COUNT, got 'gpu"):
        job_device.asked_gpus({"gres": "gpu:a:b:c"})


@pytest.mark.parametrize("what", PLANTED)
def test_a_lease_log_that_is_no_file_is_refused_and_nothing_is_written(what: str) -> None:
    precious = planted(lease_log().absolute(), what)
    with (
        pytest.raises(NotPlainError, match=rf"leases\.jsonl: found {PLANTED[what]}.*remove it"),
        job_device.job_device("auto", 1, "run x", LOG),
    ):
        raise AssertionError("begun")
    assert precious.read_text() == "mine"
    with pytest.raises(NotPlainError):
        leases(lease_log())
