"""BLAS's and LAPACK's routines as functions of SciPy, and by their addresses.

SciPy has the addresses for callers in Cython. To check and copy arguments takes its functions
longer than the arithmetic of a small matrix, and they hold the interpreter.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from importlib import import_module
from typing import Any, Literal

import numpy as np

from argand.runtime.complex_types import PREFIX

Library = Literal["blas", "lapack"]


@lru_cache(maxsize=16)
def address_of(library: Library, routine: str) -> int | None:
    """Return the address of a routine, such as zherk; None where its integers are not C's int."""
    functions: dict[str, Any] = vars(import_module(f"scipy.linalg.cython_{library}"))[
        "__pyx_capi__"
    ]  # what callers in Cython read
    capsule, python = functions[routine], ctypes.pythonapi
    python.PyCapsule_GetName.restype, python.PyCapsule_GetName.argtypes = (
        ctypes.c_char_p, [ctypes.py_object],
    )  # fmt: skip
    python.PyCapsule_GetPointer.restype, python.PyCapsule_GetPointer.argtypes = (
        ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p],
    )  # fmt: skip
    signature: bytes = python.PyCapsule_GetName(capsule)
    if b"int *" not in signature:
        return None
    found: int = python.PyCapsule_GetPointer(capsule, signature)
    return found


@lru_cache(maxsize=32)
def routine_of(library: Library, routine: str) -> Any:
    """Return SciPy's own function of a routine, such as zherk."""
    return getattr(import_module(f"scipy.linalg.{library}"), routine)


@lru_cache(maxsize=8)
def blas(routine: str, dtype: str | np.dtype[Any]) -> Any:
    """Return SciPy's own function of a routine of BLAS, such as herk, for a type."""
    return routine_of("blas", PREFIX[str(dtype)] + routine)


@lru_cache(maxsize=16)
def lapack(routine: str, dtype: str | np.dtype[Any]) -> Any:
    """Return SciPy's own function of a routine of LAPACK, such as posv, for a type."""
    return routine_of("lapack", PREFIX[str(dtype)] + routine)
