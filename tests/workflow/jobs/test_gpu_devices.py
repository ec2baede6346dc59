"""The GPUs that a process may use, by the machine, CUDA_VISIBLE_DEVICES and Slurm."""

from __future__ import annotations

import importlib.machinery
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from argand import DeviceError

from workflow.jobs import gpu_devices
from workflow.jobs.gpu_devices import Gpu, list_gpus_for_jobs, machine_gpus, study_gpus, usable_gpus

MACHINE = [
    Gpu(0, "GPU-aaaa0000-1111", "NVIDIA H200"),
    Gpu(1, "GPU-aaaa2222-3333", "NVIDIA H200"),
    Gpu(2, "GPU-bbbb0000-1111", "NVIDIA H200"),
    Gpu(3, "GPU-cccc0000-1111", "NVIDIA H200"),
]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, [0, 1, 2, 3]), ("", []), ("-1", []), ("NoDevFiles", []), ("2", [2]), ("3,1", [3, 1]),
        (" 3 , 1 ", [3, 1]), ("0,-1,1", [0]), ("GPU-bbbb0000-1111", [2]),
        ("GPU-bb,GPU-aaaa2", [2, 1]), ("GPU-cccc0000-1111,0", [3, 0]),
    ],
)  # fmt: skip
def test_cuda_visible_devices_is_read_as_cuda_reads_it(
    value: str | None, expected: list[int]
) -> None:
    environ = {} if value is None else {"CUDA_VISIBLE_DEVICES": value}
    assert [gpu.index for gpu in usable_gpus(environ, MACHINE)] == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("7", r"CUDA_VISIBLE_DEVICES='7' names device 7; the machine has 4: GPU 0 \(GPU-aaaa0000"),
        ("0,GPU-dd", r"names device GPU-dd; the machine has 4: "),
        ("GPU-aaaa", r"names 2 devices as 'GPU-aaaa'"),
        ("1,GPU-aaaa2222-3333", r"names GPU 1 \(GPU-aaaa2222-3333, NVIDIA H200\) twice"),
        ("two", r"names device two"),
    ],
)
def test_a_device_that_is_not_there_is_an_error(value: str, message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        usable_gpus({"CUDA_VISIBLE_DEVICES": value}, MACHINE)


def test_a_part_of_a_gpu_is_taken_by_its_name() -> None:
    assert usable_gpus({"CUDA_VISIBLE_DEVICES": "MIG-1234"}, MACHINE) == [Gpu(None, "MIG-1234")]


def test_what_slurm_wrote_is_believed() -> None:
    environ = {"SLURM_JOB_ID": "12", "CUDA_VISIBLE_DEVICES": "7,GPU-ffff"}
    assert usable_gpus(environ, MACHINE) == [Gpu(7), Gpu(None, "GPU-ffff")]
    assert usable_gpus({"SLURM_JOB_ID": "12"}, MACHINE) == MACHINE


class FakeNvml(ModuleType):
    """Stand in for pynvml where it is used: three GPUs, the second closed to this process."""

    class NVMLError(Exception):
        """A stand-in for pynvml's error."""

    def __init__(self, *, answers: bool = True) -> None:
        super().__init__("pynvml")
        self.__spec__ = importlib.machinery.ModuleSpec("pynvml", None)
        self.answers, self.open = answers, 0

    def nvmlInit(self) -> None:  # noqa: N802
        if not self.answers:
            raise self.NVMLError("driver not loaded")
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 3

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        if index == 1:
            raise self.NVMLError("no permission")
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> bytes:  # noqa: N802
        return f"GPU-{handle}".encode()

    def nvmlDeviceGetName(self, handle: int) -> str:  # noqa: N802
        return "card"


def test_nvml_lists_what_is_open_to_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    assert machine_gpus() == [Gpu(0, "GPU-0", "card"), Gpu(1, "GPU-2", "card")]
    assert nvml.open == 0


def test_a_job_takes_the_list_of_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGAND_GPUS", '[[7, "GPU-7", "of an earlier run"]]')
    assert machine_gpus() == [Gpu(7, "GPU-7", "of an earlier run")]
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    list_gpus_for_jobs()
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(answers=False))
    assert machine_gpus() == [Gpu(0, "GPU-0", "card"), Gpu(1, "GPU-2", "card")]


def _cuda_says(monkeypatch: pytest.MonkeyPatch, **answer: Any) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(answers=False))
    monkeypatch.setattr(gpu_devices, "_has_cupy", lambda: True)
    monkeypatch.setattr(
        gpu_devices.subprocess,
        "run",
        lambda *_, **__: SimpleNamespace(**{"returncode": 0, "stdout": "", "stderr": ""} | answer),
    )


def test_without_nvml_cuda_is_asked_in_a_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    digits = "0123456789abcdef0123456789abcdef"
    _cuda_says(monkeypatch, stdout=f'[[0, "{digits}", "card"]]')
    assert machine_gpus() == [Gpu(0, "GPU-01234567-89ab-cdef-0123-456789abcdef", "card")]
    _cuda_says(monkeypatch, returncode=1, stderr="Traceback\nOSError: no driver\n")
    with pytest.raises(DeviceError, match="could not be listed: OSError: no driver"):
        machine_gpus()


def test_the_real_question_to_cuda_is_answered() -> None:
    """It is a list with CuPy or without, with a GPU or without."""
    assert isinstance(gpu_devices._from_cuda(), list)


def test_a_study_says_how_many_it_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(gpu_devices, "machine_gpus", lambda: MACHINE)
    monkeypatch.setattr(gpu_devices, "_has_cupy", lambda: True)
    assert [study_gpus(device) for device in ("cpu", "auto", "cuda")] == [0, 4, 4]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,2")
    assert study_gpus("auto") == 2
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert study_gpus("auto") == 0
    with pytest.raises(DeviceError, match="no GPU answers \\(CUDA_VISIBLE_DEVICES=''\\)"):
        study_gpus("cuda")
    monkeypatch.setattr(gpu_devices, "_has_cupy", lambda: False)
    assert study_gpus("auto") == 0
    with pytest.raises(DeviceError, match="CuPy is not installed"):
        study_gpus("cuda")
