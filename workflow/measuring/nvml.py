"""NVML beside CUDA: a GPU's handle, and the energy that it has taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from argand import Device


class NvmlAbsentError(RuntimeError):
    """NVML is not installed or does not know the device."""


@contextmanager
def energy(cupy: Any, device: Device) -> Iterator[list[float]]:
    """Yield a list that holds the joules of the block after it; empty where NVML cannot tell."""
    found: list[float] = []
    read = energy_counter(cupy, device)
    before = read() if read else None
    yield found
    if read and before is not None:
        found.append(1e-3 * (read() - before))


def energy_counter(cupy: Any, device: Device) -> Callable[[], int] | None:
    """Return millijoules since the driver was loaded; None where NVML cannot tell."""
    try:
        pynvml, handle = nvml_device(cupy, device)
    except NvmlAbsentError:
        return None
    try:
        pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
    except pynvml.NVMLError:
        return None
    return lambda: int(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle))


def nvml_device(cupy: Any, device: Device) -> tuple[Any, Any]:
    """Return the module pynvml, initialised, and its handle of the GPU at the same PCI address.

    Raises NvmlAbsentError with the reason where there is none.
    """
    try:
        import pynvml
    except ImportError:
        raise NvmlAbsentError("pynvml (nvidia-ml-py) is not installed") from None
    try:
        pynvml.nvmlInit()
        address = cupy.cuda.Device(device.index).pci_bus_id
        return pynvml, pynvml.nvmlDeviceGetHandleByPciBusId(address.encode())
    except pynvml.NVMLError as error:
        raise NvmlAbsentError(f"NVML does not know the device: {error}") from None
