"""The device of a job: the CPU, or a GPU that it has to itself, with a line in the lease log."""

from __future__ import annotations

import contextlib
import re
import socket
import sys
from collections.abc import Iterator, Mapping
from logging import Logger
from typing import Any

from argand import Device, DeviceError
from argand.device import resolve

from workflow.jobs.gpu_lease import Lease, lease
from workflow.jobs.lease_log import logged

_GRES = re.compile(r"gpu(?::[A-Za-z0-9_.]+?)??(?::(\d+))?")
"""Slurm's generic resource: a name, a type if it matters, a number if it is not 1."""


def asked_gpus(resources: Mapping[str, Any]) -> int:
    """Return how many GPUs a job asks for: by ``gpu=1``, or by ``gres="gpu:1"`` beside gpu=0.

    The second is for clusters of Slurm that take no other request. Raises ValueError for a request
    of GPUs that cannot be read.
    """
    gres = str(resources.get("gres") or "")
    if not gres.startswith("gpu"):
        return int(resources.get("gpu") or 0)
    match = _GRES.fullmatch(gres)
    if match is None:
        raise ValueError(f"gres must be gpu, gpu:COUNT or gpu:TYPE:COUNT, got {gres!r}")
    return int(match[1] or 1)


@contextlib.contextmanager
def job_device(name: str, gpus: int, job: str, log: Logger) -> Iterator[Device]:
    """Yield the device for a study's ``device`` (auto, cpu or cuda) and a job's resource ``gpu``.

    With ``gpus`` above 0 the job waits for as many, and has them to itself inside the block; the
    device is the first of them. Else it is the CPU. Memory of the device that CuPy keeps is freed
    before another job has it.

    Raises DeviceError for ``cuda`` without a GPU, where fewer than ``gpus`` may be used, where CUDA
    answers with another device than the leased one, and, with the device's name, where it stops
    answering.
    """
    if not gpus or name == "cpu":
        if name == "cuda":
            raise DeviceError("device: cuda was asked for, but the job was given no GPU (gpu=0)")
        yield resolve("cpu")
        return

    def say(line: str) -> None:
        log.warning("%s", line)
        sys.stderr.write(f"{job}: {line}\n")  # for a person who watches: the log is read afterwards
        sys.stderr.flush()

    with lease(gpus, job, say=say) as held, logged(held, job, log):
        device = resolve("cuda")
        _check(device, held)
        try:
            yield device
            _free(device)
        except Exception as error:
            lost = error if _of_cuda(error) else _failure(device)
            if lost is None:
                raise
            where = f"{', '.join(map(str, held.gpus))} of {socket.gethostname()}"
            raise DeviceError(f"{where} failed: {type(lost).__name__}: {lost}") from error


def _of_cuda(error: Exception) -> bool:
    """Return whether CUDA or one of its libraries failed.

    Full memory is no such failure.
    """
    module = type(error).__module__.partition(".")[0]
    return module in ("cupy", "cupy_backends") and not isinstance(error, MemoryError)


def _free(device: Device) -> None:
    """Free what CuPy keeps. Raises CUDA's error where the device has failed meanwhile."""
    if device.backend == "cuda":
        import cupy

        with cupy.cuda.Device(device.index):
            cupy.cuda.runtime.deviceSynchronize()
            cupy.get_default_memory_pool().free_all_blocks()


def _failure(device: Device) -> Exception | None:
    """Return CUDA's error of a device that no longer answers, which led to some other error."""
    try:
        _free(device)
    except Exception as error:
        return error
    return None


def _check(device: Device, held: Lease) -> None:
    """Raise where CUDA was started before the lease, when other devices were visible."""
    leased = held.gpus[0].uuid
    answering = device.uuid.replace("-", "")
    if not leased.startswith("GPU-") or not answering:
        return
    if not leased.removeprefix("GPU-").replace("-", "").startswith(answering):
        raise DeviceError(f"{held.gpus[0]} is leased, but CUDA answers with {device} ({answering})")
