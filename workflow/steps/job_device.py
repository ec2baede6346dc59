"""The device of a job: the CPU, or a GPU that it has to itself, with a line in the lease log."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import socket
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from logging import Logger
from pathlib import Path
from typing import Any

from argand import Device, DeviceError
from argand.device import resolve
from argand.runtime.plain_files import open_plain

from workflow.steps.gpu_lease import Lease, lease
from workflow.storage.memory import in_words, peak_bytes
from workflow.storage.run_folder import results_folder

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
    device is the first of them. Else it is the CPU. What CuPy keeps of the device's memory is freed
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


def lease_log() -> Path:
    """Return where leases are noted: with the logs of the study's jobs."""
    return results_folder() / "logs" / "gpu-leases.jsonl"


def _of_cuda(error: Exception) -> bool:
    """Return whether CUDA or one of its libraries failed.

    Full memory is not a failure of theirs.
    """
    module = type(error).__module__.partition(".")[0]
    return module in ("cupy", "cupy_backends") and not isinstance(error, MemoryError)


@contextlib.contextmanager
def logged(held: Lease, job: str, log: Logger, path: Path | None = None) -> Iterator[None]:
    """Note in the job's log which devices it has, and in the lease log when it took and gave them.

    The lease log has a line of JSON for either event; a job that was killed lacks the second, which
    also has the most memory of the host that the job has had, in bytes.
    """
    path = path or lease_log()
    what = f"{', '.join(map(str, held.gpus))} by {held.given_by}, waited {held.waited_s:.1f} s"
    log.info("%s: taken %s", _append(path, "taken", held, job), what)
    try:
        yield
    finally:
        peak = peak_bytes()
        at = _append(path, "given back", held, job, host_peak_bytes=peak)
        log.info("%s: given back; the job had %s of memory at most", at, in_words(peak))


def _append(path: Path, event: str, held: Lease, job: str, **more: int) -> str:
    """Write a line into the lease log and return its time; raises NotPlainError, OSError."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = {
        "time": now,
        "event": event,
        "job": job,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "gpus": [{"index": gpu.index, "uuid": gpu.uuid} for gpu in held.gpus],
        "waited_s": round(held.waited_s, 3),
        "given_by": held.given_by,
        **more,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    opened = open_plain(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with os.fdopen(opened, "a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # jobs of other hosts append to it too
        file.write(json.dumps(line) + "\n")
    return now


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
