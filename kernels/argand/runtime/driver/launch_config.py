"""The driver's launch of a kernel with an attribute, by ctypes.

CuPy does not bind it. The bindings of CUDA do, but to import them takes 40 ms, which the first call
of a compiled kernel would wait for, and each of their calls makes new objects.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

COOPERATIVE = 2
"""CU_LAUNCH_ATTRIBUTE_COOPERATIVE: blocks wait for each other, so all must be resident."""
DEPENDENT = 6
"""CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: the kernel itself waits for the one before
(`runtime.compile.dependent_launch`). The driver knows it on sm_90 and later."""


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute: its value is a union of 64 bytes; these attributes are its int."""

    _fields_ = (
        ("id", ctypes.c_uint), ("padding", ctypes.c_uint),
        ("value", ctypes.c_int), ("rest", ctypes.c_byte * 60),
    )  # fmt: skip


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig of a grid and a block of three sizes each, bytes of dynamic shared memory.

    Its ``stream`` may be set before each launch.
    """

    _fields_ = (
        ("sizes", ctypes.c_uint * 6), ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)), ("count", ctypes.c_uint),
    )  # fmt: skip

    def __init__(self, sizes: Sequence[int], shared_bytes: int, attribute: int | None) -> None:
        super().__init__((ctypes.c_uint * 6)(*sizes), shared_bytes)
        if attribute is not None:
            self.attributes, self.count = ctypes.pointer(_Attribute(attribute, 0, 1)), 1

    def arguments(self, function: int, parameters: int) -> tuple[Any, ...]:
        """Return the arguments of ``cuLaunchKernelEx`` that launch the function at an address.

        ``parameters`` is the address of the arguments' addresses. The objects are kept from launch
        to launch, so that ctypes converts nothing.
        """
        return ctypes.byref(self), pointer(function), pointer(parameters), None


pointer: Callable[[int], Any] = ctypes.c_void_p.from_param
"""An address as the driver's functions take it; ctypes converts it once."""


@cache
def driver_function(name: str) -> Callable[..., int]:
    """Return a function of the driver, which returns an error's number, 0 for none."""
    found: Callable[..., int] = getattr(ctypes.CDLL("libcuda.so.1"), name)
    return found
