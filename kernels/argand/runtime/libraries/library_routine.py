"""Functions of NVIDIA's libraries that CuPy loads and does not bind."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any


@cache
def library_routine(library: str, name: str, *types: Any) -> Callable[..., None]:
    """Return a function of a library ("cublas", "cufft"), of arguments of ctypes' types.

    It raises RuntimeError where the library reports a status. The library is the one that the
    process has loaded, so CuPy loads its own first. Raises RuntimeError where none is found.
    """
    from cuda.pathfinder import load_nvidia_dynamic_lib

    found = getattr(ctypes.CDLL(load_nvidia_dynamic_lib(library).abs_path), name)
    found.argtypes, found.restype = types, ctypes.c_int

    def call(*given: Any) -> None:
        status = found(*given)
        if status:
            raise RuntimeError(f"{name} returned status {status}")

    return call
