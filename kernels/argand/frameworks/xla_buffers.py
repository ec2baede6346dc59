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
    shape, nbytes, dtype = _extent(x.dims, x.kind)
    if not nbytes:
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, memoryview((ctypes.c_char * nbytes).from_address(x.address)))


@lru_cache(maxsize=512)
def cupy_array(x: Buffer, device: int) -> Any:
    """Return an array over a buffer on a device."""
    import cupy

    shape, nbytes, dtype = _extent(x.dims, x.kind)
    memory = cupy.cuda.UnownedMemory(x.address, nbytes, None, device)
    return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0))


def _extent(dims: bytes, kind: int) -> tuple[tuple[int, ...], int, np.dtype[Any]]:
    """Return the shape of an array, its bytes and its type."""
    shape, dtype = tuple(memoryview(dims).cast("q")), np.dtype(TYPES[kind])
    return shape, math.prod(shape) * dtype.itemsize, dtype
