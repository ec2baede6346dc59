"""Leases of GPUs by real processes: each to one, all or none, and back when a process dies."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from argand import DeviceError

from workflow.jobs.gpu_devices import Gpu
from workflow.jobs.gpu_lease import Lease, lease, lock_folder
from workflow.storage.shared_lock import LockRefusedError

MACHINE = [Gpu(index, f"GPU-{index}{index}{index}{index}") for index in range(4)]

GIVEN = ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID")

HOLD = """
import os, signal, sys, time, types
from pathlib import Path
# A lease needs an error and a module of argand's, whose own import takes half a second.
argand = sys.modules["argand"] = types.ModuleType("argand")
argand.__path__, argand.DeviceError = [str(Path("kernels", "argand").absolute())], RuntimeError
from workflow.jobs import gpu_lease
from workflow.jobs.gpu_devices import Gpu
from workflow.jobs.gpu_lease import lease
gpu_lease._FIRST_WORD_S = 0.2
# What a shell starts with & ignores it, and so would its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
folder, devices, count, seconds, job = sys.argv[1:]
machine = [Gpu(index, f"GPU-{index}{index}{index}{index}") for index in range(int(devices))]
with lease(int(count), job, machine=machine, folder=Path(folder)) as held:
    print(time.monotonic(), os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
    time.sleep(float(seconds))
    print(time.monotonic(), flush=True)
"""


class Processes:
    """Processes that take a lease from one folder of locks and print what they have."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder, self.root = folder, root
        self.started: list[subprocess.Popen[str]] = []

    def start(
        self, count: int, *, devices: int = 4, seconds: float = 60, job: str = "job"
    ) -> subprocess.Popen[str]:
        arguments = [str(self.folder), str(devices), str(count), str(seconds), job]
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.root,
            env={name: value for name, value in os.environ.items() if name not in GIVEN},
        )
        self.started.append(process)
        return process


@pytest.fixture
def processes(tmp_path: Path, root: Path) -> Iterator[Processes]:
    found = Processes(tmp_path, root)
    yield found
    for process in found.started:
        process.kill()
        process.communicate()


def taken(process: subprocess.Popen[str]) -> tuple[float, list[str]]:
    """When a process got which devices; waits for it."""
    assert process.stdout is not None
    time_s, devices = process.stdout.readline().split()
    return float(time_s), devices.split(",")


def waits(process: subprocess.Popen[str]) -> str:
    """A process's words when it waits for the first time; here it says so at once."""
    assert process.stderr is not None
    line = process.stderr.readline()
    assert line.startswith("waiting for"), line + process.stderr.read()
    return line


def has_nothing(process: subprocess.Popen[str], seconds: float = 0.6) -> bool:
    """Whether a process that waits neither got a lease nor ended in a few of its looks."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], seconds)
    return not ready


def mine(
    count: int, folder: Path, environ: dict[str, str] | None = None, job: str = ""
) -> AbstractContextManager[Lease]:
    return lease(
        count, job, machine=MACHINE, folder=folder, environ={} if environ is None else environ
    )


def test_visible_devices_are_set_inside_and_as_before_after(tmp_path: Path) -> None:
    environ: dict[str, str] = {}
    with mine(2, tmp_path, environ) as held:
        assert [gpu.index for gpu in held.gpus] == [0, 1]
        assert environ == {"CUDA_VISIBLE_DEVICES": "GPU-0000,GPU-1111"}
        assert held.given_by == "lock"
    assert environ == {}
    environ = {"CUDA_VISIBLE_DEVICES": "3,GPU-1"}
    with pytest.raises(ValueError, match="GPU-3333"), mine(1, tmp_path, environ):
        raise ValueError(environ["CUDA_VISIBLE_DEVICES"])
    assert environ == {"CUDA_VISIBLE_DEVICES": "3,GPU-1"}


def test_by_default_it_is_this_process_s_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    monkeypatch.setenv("ARGAND_LOCK_FOLDER", str(tmp_path))
    with lease(1, machine=MACHINE):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-2222"
        assert (tmp_path / "argand-gpu-GPU-2222.lock").exists()
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "2"
    monkeypatch.delenv("ARGAND_LOCK_FOLDER")
    assert lock_folder() == Path("/tmp")


def test_each_has_its_own_device_and_who_is_killed_gives_it_back(processes: Processes) -> None:
    holders = [processes.start(1, job=f"run w{index}") for index in range(4)]
    devices = [taken(holder)[1] for holder in holders]
    assert sorted(devices) == [["GPU-0000"], ["GPU-1111"], ["GPU-2222"], ["GPU-3333"]]
    fifth = processes.start(1)
    waits(fifth)
    assert has_nothing(fifth)
    holders[2].kill()
    assert taken(fifth)[1] == devices[2]


def test_who_waits_says_for_what_and_who_has_it(processes: Processes) -> None:
    holder = processes.start(1, devices=1, job="run station-beams")
    taken(holder)
    waiter = processes.start(1, devices=1)
    line = waits(waiter)
    assert re.match(r"waiting for 1 of 1 GPU, \d s so far; held: GPU 0 \(GPU-0000\) by ", line)
    assert f"process {holder.pid} of " in line
    assert ", run station-beams, since " in line
    third = processes.start(1, devices=1)
    assert f"first in the queue: process {waiter.pid} of " in waits(third)


def test_all_or_none(processes: Processes) -> None:
    """A job of two waits for two at once, and meanwhile holds none."""
    single = processes.start(1, devices=2)
    taken(single)
    pair = processes.start(2, devices=2)
    waits(pair)
    # Of another queue, so it may go ahead: the device that the pair could not use is free.
    with lease(
        1, machine=MACHINE, folder=processes.folder, environ={"CUDA_VISIBLE_DEVICES": "1"}
    ) as held:
        assert held.gpus == (MACHINE[1],)
        single.kill()
        assert has_nothing(pair)
    assert taken(pair)[1] == ["GPU-0000", "GPU-1111"]


def test_a_job_of_several_is_not_overtaken(processes: Processes) -> None:
    first, second = (processes.start(1, devices=2) for _ in range(2))
    taken(first), taken(second)
    pair = processes.start(2, devices=2, seconds=0.5)
    waits(pair)
    late = processes.start(1, devices=2)
    waits(late)
    first.kill()
    assert has_nothing(late), "one device is free, but the job of two came first"
    second.kill()
    assert taken(pair)[0] < taken(late)[0]


def test_a_killed_waiter_is_not_waited_for(processes: Processes) -> None:
    holder = processes.start(1, devices=1)
    taken(holder)
    first = processes.start(1, devices=1)
    waits(first)
    second = processes.start(1, devices=1)
    waits(second)
    first.kill()
    holder.kill()
    assert taken(second)[1] == ["GPU-0000"]


def test_many_processes_never_share_a_device(processes: Processes) -> None:
    counts = [1, 2, 1, 3, 1, 4, 1]
    started = [processes.start(count, seconds=0.3) for count in counts]
    spans = []
    for process, count in zip(started, counts, strict=True):
        begun, devices = taken(process)
        assert len(set(devices)) == count
        assert process.stdout is not None
        ended = float(process.stdout.readline())
        spans += [(device, begun, ended) for device in devices]
        assert process.wait() == 0
    for index, (device, begun, ended) in enumerate(spans):
        for other, other_begun, other_ended in spans[:index]:
            assert device != other or ended <= other_begun or other_ended <= begun


def test_slurm_s_devices_are_used_as_they_are(tmp_path: Path) -> None:
    environ = {"SLURM_JOB_ID": "12", "CUDA_VISIBLE_DEVICES": "1"}
    with mine(1, tmp_path, environ) as held, mine(1, tmp_path, environ):
        assert held == Lease((Gpu(1),), 0.0, "Slurm job 12")
        assert environ["CUDA_VISIBLE_DEVICES"] == "1"
    assert not list(tmp_path.iterdir()), "no locks"


def test_jobs_inside_a_larger_allocation_of_slurm_s_share_it_out(tmp_path: Path) -> None:
    first = {"SLURM_JOB_ID": "12", "CUDA_VISIBLE_DEVICES": "0,1,2"}
    second, other_job = dict(first), first | {"SLURM_JOB_ID": "13"}
    with mine(1, tmp_path, first), mine(2, tmp_path, second), mine(1, tmp_path, other_job):
        assert first["CUDA_VISIBLE_DEVICES"] == "0"
        assert second["CUDA_VISIBLE_DEVICES"] == "1,2"
        assert other_job["CUDA_VISIBLE_DEVICES"] == "0", "indices of another job are other devices"


@pytest.mark.parametrize(
    ("count", "environ", "message"),
    [
        (5, {}, r"asks for 5 GPUs; this machine has 4: GPU 0 \(GPU-0000\), GPU 1"),
        (2, {"CUDA_VISIBLE_DEVICES": "3"}, r"2 GPUs; CUDA_VISIBLE_DEVICES='3' allows 1: GPU 3"),
        (
            1,
            {"CUDA_VISIBLE_DEVICES": ""},
            r"asks for 1 GPU; CUDA_VISIBLE_DEVICES='' allows 0: none",
        ),
        (1, {"CUDA_VISIBLE_DEVICES": "7"}, r"names device 7; the machine has 4"),
        (
            2,
            {"SLURM_JOB_ID": "9", "CUDA_VISIBLE_DEVICES": "1"},
            r"2 GPUs; Slurm job 9 was given 1: GPU 1",
        ),
    ],
)
def test_what_cannot_be_had_is_an_error_at_once(
    tmp_path: Path, count: int, environ: dict[str, str], message: str
) -> None:
    with pytest.raises(DeviceError, match=message), mine(count, tmp_path, environ):
        pass
    with pytest.raises(ValueError, match="at least 1, got 0"), mine(0, tmp_path):
        pass


def test_a_link_in_the_place_of_a_lock_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "argand-gpu-GPU-1111.lock").symlink_to(tmp_path / "precious")
    refused = pytest.raises(LockRefusedError, match=r"GPU-1111\.lock: found a symbolic link")
    with refused, mine(1, tmp_path):
        pass
    assert (tmp_path / "precious").read_text() == "mine"
    (tmp_path / "argand-gpu-GPU-1111.lock").unlink()
    with mine(4, tmp_path):
        pass


def test_a_name_with_odd_characters_stays_in_the_folder(tmp_path: Path) -> None:
    environ = {"SLURM_JOB_ID": "../1", "CUDA_VISIBLE_DEVICES": "../../x,1"}
    with mine(1, tmp_path / ".", environ):
        assert (tmp_path / "argand-gpu-slurm-.._1-.._.._x.lock").exists()


def test_a_waiter_that_is_interrupted_leaves_nothing_held(processes: Processes) -> None:
    holder = processes.start(4)
    taken(holder)
    waiter = processes.start(1)
    waits(waiter)
    waiter.send_signal(signal.SIGINT)
    waiter.wait()
    holder.kill()
    with mine(4, processes.folder) as held:
        assert len(held.gpus) == 4
