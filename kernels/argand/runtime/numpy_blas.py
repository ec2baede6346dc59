"""Which kernels NumPy's OpenBLAS has chosen for this CPU."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from importlib import import_module

from argand.runtime.scipy_blas import OPENBLAS_NAMES


@lru_cache(maxsize=1)
def openblas_kernels() -> str | None:
    """Return the name of the kernels, such as SkylakeX; None of another BLAS."""
    try:
        library = ctypes.PyDLL(import_module("numpy._core._multiarray_umath").__file__)
    except (ImportError, OSError):
        return None
    for name in OPENBLAS_NAMES:
        try:
            kernels = library[name.format("get_corename")]
        except AttributeError:
            continue
        kernels.restype = ctypes.c_char_p
        found: bytes = kernels()
        return found.decode()
    return None
