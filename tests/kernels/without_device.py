"""Modules that need CuPy, imported on one that reaches no device, for what they do on errors."""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import argand


class DriverError(RuntimeError):
    """In the place of CUDADriverError."""


class RuntimeAPIError(RuntimeError):
    """In the place of CUDARuntimeError."""


class _Memory(bytearray):
    """Memory of the host, as CuPy allocates it."""

    @property
    def ptr(self) -> int:
        return ctypes.addressof(ctypes.c_char.from_buffer(self))


@contextmanager
def without_device(*names: str) -> Iterator[tuple[Any, ...]]:
    """Yield CuPy, whose functions return mocks, and these modules of argand, imported again.

    With what they import alone: the package itself would bring all of its calls.
    """
    cupy = MagicMock(ndarray=ModuleType)
    cupy.cuda.driver.CUDADriverError = DriverError
    cupy.cuda.runtime.CUDARuntimeError = RuntimeAPIError
    cupy.cuda.runtime.streamIsCapturing.return_value = False
    cupy.cuda.alloc_pinned_memory = _Memory
    own = {name: module for name, module in sys.modules.items() if _is_replaced(name)}
    for name in own:
        del sys.modules[name]
    sys.modules["cupy"], sys.modules["cupy.cuda"] = cupy, cupy.cuda
    sys.modules["argand"] = bare = ModuleType("argand")
    bare.__path__ = argand.__path__
    try:
        yield cupy, *(importlib.import_module(f"argand.{name}") for name in names)
    finally:
        for name in [name for name in sys.modules if _is_replaced(name)]:
            del sys.modules[name]
        sys.modules.update(own)


def _is_replaced(name: str) -> bool:
    return name.partition(".")[0] in ("argand", "cupy")


def driver(**functions: Any) -> Any:
    """Return bindings of the driver, whose functions succeed but for these."""
    found = MagicMock()
    found.cuThreadExchangeStreamCaptureMode.return_value = (0, 0)
    for name in (
        "cuGraphCreate", "cuGraphAddKernelNode", "cuGraphInstantiate", "cuGraphKernelNodeGetParams",
        "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    ):  # fmt: skip
        getattr(found, name).return_value = (0, MagicMock())
    for name in ("cuGraphAddDependencies_v2", "cuGraphExecKernelNodeSetParams"):
        getattr(found, name).return_value = (0,)
    for name, answer in functions.items():
        getattr(found, name).return_value = answer
    return found
