"""The GPUs of this machine and those that this process may use, without starting CUDA here.

CUDA reads CUDA_VISIBLE_DEVICES once, when a process first uses it: code that chooses devices
must not have started it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

from argand import DeviceError

VISIBLE = "CUDA_VISIBLE_DEVICES"
_LISTED = "ARGAND_GPUS"
"""The variable by which a run tells its jobs what GPUs the machine has."""
_NONE = ("", "-1", "NoDevFiles")
"""CUDA takes no device from here on; the last is what Slurm writes for a job without GPUs."""


@dataclass(frozen=True)
class Gpu:
    """A GPU as the driver knows it.

    ``index`` counts by PCI address, as nvidia-smi does; ``uuid`` is NVML's (``GPU-...`` or
    ``MIG-...``). One of them may be unknown: None, empty.
    """

    index: int | None
    uuid: str = ""
    name: str = ""

    def __str__(self) -> str:
        index = "GPU" if self.index is None else f"GPU {self.index}"
        known = ", ".join(filter(None, (self.uuid, self.name)))
        return f"{index} ({known})" if known else index

    @property
    def identity(self) -> str:
        """The device's name in CUDA_VISIBLE_DEVICES: the UUID, whatever the order of counting."""
        return self.uuid or str(self.index)


def machine_gpus() -> list[Gpu]:
    """Return every GPU that the driver lets this process see: from NVML, else from CUDA by CuPy.

    A job takes the list of its run (`list_gpus_for_jobs`).
    """
    if listed := os.environ.get(_LISTED):
        return [Gpu(*fields) for fields in json.loads(listed)]
    found = _from_nvml()
    if found is None:
        return _from_cuda() if _has_cupy() else []
    return found


def list_gpus_for_jobs() -> None:
    """List the machine's GPUs for the jobs of this run.

    NVML asks each device, which takes a quarter of a second for eight H200s: as long as some jobs.
    """
    os.environ.pop(_LISTED, None)
    os.environ[_LISTED] = json.dumps([astuple(gpu) for gpu in machine_gpus()])


def _has_cupy() -> bool:
    return importlib.util.find_spec("cupy") is not None


def _from_nvml() -> list[Gpu] | None:
    """Return NVML's GPUs; none where NVML is not installed or does not answer."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        handles = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            try:
                handles.append(pynvml.nvmlDeviceGetHandleByIndex(index))
            except pynvml.NVMLError:
                continue  # counted, but closed to this process by its control group
        return [
            Gpu(
                index,
                _text(pynvml.nvmlDeviceGetUUID(handle)),
                _text(pynvml.nvmlDeviceGetName(handle)),
            )
            for index, handle in enumerate(handles)
        ]
    finally:
        pynvml.nvmlShutdown()


def _text(value: str | bytes) -> str:
    """Return text, also where an older pynvml gives bytes."""
    return value.decode() if isinstance(value, bytes) else value


_LIST = """
import json
from argand.device import gpus
print(json.dumps([(device.index, device.uuid, device.name) for device in gpus()]))
"""


def _from_cuda() -> list[Gpu]:
    """Return the devices that CUDA sees in a process of its own, in the order of PCI addresses."""
    environment = {name: value for name, value in os.environ.items() if name != VISIBLE}
    environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", _LIST], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise DeviceError(f"the GPUs of this machine could not be listed: {last}")
    return [
        Gpu(index, f"GPU-{uuid.UUID(hex=digits)}" if len(digits) == 32 else "", name)
        for index, digits, name in json.loads(done.stdout)
    ]


def usable_gpus(
    environ: Mapping[str, str] = os.environ, machine: Sequence[Gpu] | None = None
) -> list[Gpu]:
    """Return the GPUs that this process may use: CUDA_VISIBLE_DEVICES', or else the machine's.

    Raises DeviceError where it names what the machine does not have, or a device twice. Names that
    Slurm wrote there are believed.
    """
    value = environ.get(VISIBLE)
    if slurm_job(environ):
        return [_as_written(name) for name in _names(value or "")]
    found = machine_gpus() if machine is None else machine
    if value is None:
        return list(found)
    named = [_find(name, found, value) for name in _names(value)]
    for gpu in named:
        if named.count(gpu) > 1:
            raise DeviceError(f"{VISIBLE}={value!r} names {gpu} twice; name each device once")
    return named


def slurm_job(environ: Mapping[str, str] = os.environ) -> str:
    """Return the Slurm job that gave this process its devices; empty where none did."""
    return environ.get("SLURM_JOB_ID", "") if VISIBLE in environ else ""


def _names(value: str) -> list[str]:
    names = []
    for name in map(str.strip, value.split(",")):
        if name in _NONE:
            break
        names.append(name)
    return names


def _as_written(name: str) -> Gpu:
    return Gpu(int(name)) if name.isdecimal() else Gpu(None, name)


def _find(name: str, machine: Sequence[Gpu], value: str) -> Gpu:
    if name.startswith("MIG-"):
        return Gpu(None, name)  # a part of a GPU; NVML lists only whole ones
    if name.isdecimal():
        matching = [gpu for gpu in machine if gpu.index == int(name)]
    else:
        matching = [gpu for gpu in machine if gpu.uuid.startswith(name)]
    if len(matching) == 1:
        return matching[0]
    there = ", ".join(map(str, machine)) or "none"
    what = f"{len(matching)} devices as {name!r}" if matching else f"device {name}"
    raise DeviceError(f"{VISIBLE}={value!r} names {what}; the machine has {len(machine)}: {there}")


def study_gpus(device: str) -> int:
    """Return how many GPUs a study with this ``device`` (auto, cpu or cuda) may use here at once.

    0 means the CPU. Raises DeviceError for ``cuda`` where there is none, and where
    CUDA_VISIBLE_DEVICES cannot be met.
    """
    if device == "cpu":
        return 0
    installed = _has_cupy()
    count = len(usable_gpus()) if installed else 0
    if device == "cuda" and not count:
        visible = os.environ.get(VISIBLE)
        why = "CuPy is not installed"
        if installed:
            why = "no GPU answers" + (f" ({VISIBLE}={visible!r})" if visible is not None else "")
        raise DeviceError(f"device: cuda was asked for, but {why}")
    return count
