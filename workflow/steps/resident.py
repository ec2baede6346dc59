"""Operands in the memory of the device that computes, and results back in the host's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from argand import Device

from workflow.data import Array


def moves(value: Any) -> bool:
    """Return whether an operand is data.

    Integers describe the computation and stay with the host.
    """
    return isinstance(value, np.ndarray) and value.dtype.kind in "fc"


def upload(
    operands: Mapping[str, Array], device: Device, *, copy: bool = False
) -> Mapping[str, Any]:
    """Return the operands in the device's memory; a copy of them where ``copy`` is set."""
    if device.backend == "cpu":
        return {k: v.copy() if copy and moves(v) else v for k, v in operands.items()}
    import cupy

    with cupy.cuda.Device(device.index):
        moved = {k: cupy.array(v) if moves(v) else v for k, v in operands.items()}
        cupy.cuda.get_current_stream().synchronize()
    return moved


def download(result: Any) -> Array:
    """Return a result in the host's memory, once the device has computed it."""
    return np.asarray(result.get() if hasattr(result, "get") else result)


def free(device: Device) -> None:
    """Give back what CuPy keeps of a GPU's memory."""
    if device.backend == "cuda":
        import cupy

        cupy.get_default_memory_pool().free_all_blocks()
