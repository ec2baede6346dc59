"""The only list of architectures, and what the device at hand is.

To add an architecture, add a row to ``ARCHITECTURES`` and, where its instructions are new, a kernel
file. Nothing else names one.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from argand.multiprocessor import RESERVED_BYTES

Backend = Literal["cpu", "cuda"]


class DeviceError(RuntimeError):
    """The device that was asked for is not there or cannot be used."""


_H200_MEMORY_RATE = 4.8143e12
"""Peak bytes a second of an H200's memory, on which estimates were fitted: as its driver gives it,
6016 bits at twice 3201 MHz."""


@dataclass(frozen=True)
class Arch:
    """One GPU architecture: what it is compiled for and what a thread block may use.

    ``sm`` is ten times the compute capability, ``target`` NVRTC's architecture, ``shared_bytes``
    the largest dynamic shared memory of a block.
    """

    sm: int
    target: str
    shared_bytes: int
    name: str

    def resident_blocks(self, shared_bytes: int) -> int:
        """Return how many blocks of so much dynamic shared memory a multiprocessor's memory holds.

        CUDA reserves memory of each, which the largest of one block leaves out.
        """
        return (self.shared_bytes + RESERVED_BYTES) // (shared_bytes + RESERVED_BYTES)


HOPPER = 90
"""``Arch.sm`` of Hopper, whose kernels are the measured ones: older and newer targets take more
registers for some plans."""

# CUDA C++ Programming Guide, technical specifications per compute capability.
ARCHITECTURES: tuple[Arch, ...] = (
    Arch(80, "sm_80", 163 * 1024, "Ampere (A100)"),
    Arch(86, "sm_86", 99 * 1024, "Ampere (A40, RTX 30)"),
    Arch(89, "sm_89", 99 * 1024, "Ada (L40S, RTX 40)"),
    Arch(90, "sm_90a", 227 * 1024, "Hopper (H100, H200)"),
    Arch(100, "sm_100", 227 * 1024, "Blackwell (B200)"),
    Arch(120, "sm_120", 99 * 1024, "Blackwell (RTX 50)"),
)


def arch_for(sm: int) -> Arch:
    """Return the newest row that a GPU of compute capability ``sm / 10`` runs.

    Raises DeviceError for a card older than the oldest row, or of a generation without a row.
    """
    rows = [row for row in ARCHITECTURES if row.sm <= sm and row.sm // 10 == sm // 10]
    if not rows:
        known = ", ".join(f"{row.sm / 10:.1f}" for row in ARCHITECTURES)
        raise DeviceError(f"no kernels for compute capability {sm / 10:.1f}; there are for {known}")
    return rows[-1]


@dataclass(frozen=True)
class Device:
    """A place to compute: the CPU, or one GPU.

    ``memory_bytes`` is what it has, ``cache_bytes`` its last-level cache, which a timing has to
    rotate its inputs past, and ``cores`` CPU cores or multiprocessors. ``driver`` is the CUDA
    version that a GPU's driver speaks, ``uuid`` its identity among the machine's, ``memory_rate``
    the bytes a second of its memory at their peak, 0 where the driver does not say.
    """

    backend: Backend
    name: str
    index: int = 0
    arch: Arch | None = None
    cores: int = 1
    memory_bytes: int = 0
    cache_bytes: int = 0
    driver: str = ""
    uuid: str = ""
    memory_rate: float = 0.0

    def __str__(self) -> str:
        return self.name

    @property
    def sm_count(self) -> int:
        """Multiprocessors of a GPU. Raises DeviceError for the CPU."""
        self.require_arch()
        return self.cores

    @property
    def relative_memory(self) -> float:
        """The memory's peak rate over an H200's; 1 where it is not known."""
        return self.memory_rate / _H200_MEMORY_RATE if self.memory_rate else 1.0

    @property
    def target(self) -> str:
        """NVRTC's architecture. Raises DeviceError for the CPU."""
        return self.require_arch().target

    def require_arch(self) -> Arch:
        """Return the architecture of a GPU. Raises DeviceError for the CPU."""
        if self.arch is None:
            raise DeviceError(f"{self.name} is no GPU")
        return self.arch


@lru_cache(maxsize=1)
def cpu() -> Device:
    """Return the processor of this machine, with the cores that this process may use."""
    name = platform.processor() or platform.machine()
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        if line.startswith("model name"):
            name = line.partition(":")[2].strip()
            break
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    cores = available_cores()
    return Device("cpu", f"{name}, {cores} cores", 0, None, cores, pages, _cpu_cache_bytes())


def available_cores() -> int:
    """Return how many cores this process may run on (its affinity, where the system reports it)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu_cache_bytes() -> int:
    """Return the largest cache of core 0; 32 MiB where the system does not say."""
    sizes = [32 << 20]
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = _read(path).strip()
        if text.endswith("K") and text[:-1].isdigit():
            sizes.append(int(text[:-1]) << 10)
    return max(sizes[1:] or sizes)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def gpus() -> list[Device]:
    """Return the GPUs that answer, in CUDA's order; empty without CuPy, a driver or a card."""
    try:
        import cupy
    except ImportError:
        return []
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        return []
    return [gpu(index) for index in range(count)]


@lru_cache(maxsize=64)
def gpu(index: int) -> Device:
    """Return one GPU by CUDA's index. Raises DeviceError without CuPy or kernels for it."""
    cupy = require_cupy()
    found = cupy.cuda.runtime.getDeviceProperties(index)
    version = cupy.cuda.runtime.driverGetVersion()
    return Device(
        backend="cuda", name=found["name"].decode(), index=index,
        arch=arch_for(10 * found["major"] + found["minor"]), cores=found["multiProcessorCount"],
        memory_bytes=found["totalGlobalMem"], cache_bytes=found["l2CacheSize"],
        driver=f"CUDA {version // 1000}.{version % 1000 // 10}",
        uuid=bytes(found["uuid"]).hex() if "uuid" in found else "", memory_rate=_memory_rate(index),
    )  # fmt: skip


_MEMORY_CLOCK_RATE, _MEMORY_BUS_WIDTH = 36, 37
"""cudaDevAttrMemoryClockRate, in kHz, and cudaDevAttrGlobalMemoryBusWidth, in bits."""


def _memory_rate(index: int) -> float:
    """Return a GPU's peak bytes a second, which move twice a clock; 0 where it does not say."""
    import cupy

    try:
        clock, width = (
            cupy.cuda.runtime.deviceGetAttribute(attribute, index)
            for attribute in (_MEMORY_CLOCK_RATE, _MEMORY_BUS_WIDTH)
        )
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0.0
    return float(2e3 * clock * width / 8)


HOW_TO_INSTALL = 'pip install "argand[cuda13]", or argand[cuda12] where the driver speaks CUDA 12'
"""The command that installs CuPy, for messages."""


def require_cupy() -> Any:
    """Return CuPy's module. Raises DeviceError, which says what to install, without it."""
    try:
        import cupy
    except ModuleNotFoundError as error:
        if error.name != "cupy":
            raise
        why = f"arrays on a GPU are computed by CuPy, which is not installed: {HOW_TO_INSTALL}"
        raise DeviceError(why) from None
    return cupy


def devices() -> list[Device]:
    """Return every device that can be used: the CPU first, then the GPUs.

    Example:
        >>> argand.devices()[0].backend
        'cpu'
    """
    return [cpu(), *gpus()]


def resolve(name: str = "auto") -> Device:
    """Return the device for ``auto`` (a GPU where one answers, else the CPU), ``cpu`` or ``cuda``.

    Raises DeviceError for ``cuda`` where none answers: there is no silent fallback; ValueError for
    another name.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise ValueError(f"device must be one of ['auto', 'cpu', 'cuda'], got {name!r}")
    if name == "cpu":
        return cpu()
    found = gpus()
    if found:
        return found[0]
    if name == "cuda":
        raise DeviceError(
            "device: cuda was asked for, but no GPU answers (python -m argand doctor says why); "
            "auto or cpu computes on the CPU"
        )
    return cpu()


def checked_device(device: Device | None) -> Device:
    """Return a device that is an argument, the CPU where it is None.

    Raises TypeError for what is none, such as a name.
    """
    if device is not None and not isinstance(device, Device):
        raise TypeError(f"device must be one of argand.devices() or None, got {device!r}")
    return cpu() if device is None else device


_OF_CUPY: dict[type, bool] = {}
"""Types that were seen, and whether they are CuPy's."""


def is_cupy_array(x: object) -> bool:
    """Return whether ``x`` is CuPy's, by its type, which takes a tenth of a microsecond."""
    kind = type(x)
    known = _OF_CUPY.get(kind)
    if known is None:
        known = str(kind.__module__).partition(".")[0] == "cupy"
        # Torch traces with types of its own, and compiles again where what it read here changes.
        if not str(kind.__module__).startswith("torch._"):
            _OF_CUPY[kind] = known
    return known


def is_cuda_array(x: object) -> bool:
    """Return whether ``x`` lives on a GPU (CuPy's arrays do), without importing CuPy."""
    return is_cupy_array(x) or hasattr(x, "__cuda_array_interface__")


def array_module(x: object) -> Any:
    """Return the module whose functions take ``x``: CuPy for an array on a GPU, else NumPy."""
    if is_cuda_array(x):
        import cupy

        return cupy
    import numpy as np

    return np
