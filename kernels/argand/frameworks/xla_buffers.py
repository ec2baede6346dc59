"""Arrays of NumPy and CuPy over the buffers that XLA hands to a call."""

from __future__ import annotations

import ctypes
import math
from functools import lru_cache
from typing import Any

import numpy as np

from argand.frameworks.xla_ffi import TYPES, Buffer


@lru_cache(maxsize=512)
def numpy_array(x: Buffer) -> Any:
    """Return an array over a buffer, which XLA owns; a loop's buffers lie at a few addresses."""
    address, kind, shape = x
    nbytes, dtype = _extent(kind, shape)
    if not nbytes:
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, memoryview((ctypes.c_char * nbytes).from_address(address)))


@lru_cache(maxsize=512)
def cupy_array(x: Buffer, device: int) -> Any:
    """Return an array over a buffer on a device."""
    import cupy

    address, kind, shape = x
    nbytes, dtype = _extent(kind, shape)
    memory = cupy.cuda.UnownedMemory(address, nbytes, None, device)
    return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0))


def _extent(kind: int, shape: tuple[int, ...]) -> tuple[int, np.dtype[Any]]:
    """Return the bytes of an array and its type."""
    dtype = np.dtype(TYPES[kind])
    return math.prod(shape) * dtype.itemsize, dtype
