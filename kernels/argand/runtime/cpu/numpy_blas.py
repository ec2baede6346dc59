"""Which kernels NumPy's OpenBLAS has chosen for this CPU, its number of threads, its routines."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from argand.device import cpu
from argand.runtime.cpu.one_core import OPENBLAS_NAMES

_NUMPY = "numpy._core._multiarray_umath"
"""NumPy's extension module, which is linked with its BLAS."""
_WITHOUT_AVX512 = ("Haswell", "Zen", "Sandybridge", "Nehalem", "Katmai")
"""Kernels that a CPU with AVX-512 has where ``OPENBLAS_CORETYPE`` names them, or where OpenBLAS was
built without its own."""

clear_registers = np.ones(4).argmin
"""A function of NumPy's that ends with the upper halves of vector registers unused.

OpenBLAS's complex GEMM for AVX-512 leaves them in use. Some CPUs then wait at instructions of SSE,
in NumPy and the interpreter, until other code has cleared them: this takes 0.2 us. Those of AMD do
not (`is_of_amd`)."""


@lru_cache(maxsize=1)
def openblas_kernels() -> str | None:
    """Return the name of the kernels, such as SkylakeX; None for another BLAS."""
    kernels = _function("get_corename")
    if kernels is None:
        return None
    kernels.restype = ctypes.c_char_p
    found: bytes = kernels()
    return found.decode()


@lru_cache(maxsize=4)
def lapack_address(routine: str) -> int | None:
    """Return the address of a routine of the LAPACK in NumPy's wheels, such as zgesv.

    Its integers have 64 bits. None for another LAPACK, whose names do not say which it has.
    """
    found = _first_of([f"scipy_{routine}_64_"])
    return None if found is None else ctypes.cast(found, ctypes.c_void_p).value


@lru_cache(maxsize=2)
def _function(name: str) -> Any:
    """Return a function of NumPy's OpenBLAS without arguments; None for another BLAS."""
    return _first_of([openblas.format(name) for openblas in OPENBLAS_NAMES])


def _first_of(names: list[str]) -> Any:
    """Return the first function of NumPy's BLAS that has one of these names; None for another."""
    try:
        library = ctypes.PyDLL(import_module(_NUMPY).__file__)
    except (ImportError, OSError):
        return None
    for name in names:
        try:
            return library[name]
        except AttributeError:
            continue
    return None


@lru_cache(maxsize=1)
def is_of_amd() -> bool:
    """Return whether the processor's name has its maker's, as Linux or Windows writes it."""
    name = cpu().name
    return name.startswith("AMD ") or "AuthenticAMD" in name


def has_avx512_kernels() -> bool:
    """Return whether NumPy's OpenBLAS has chosen kernels for AVX-512, whatever their name."""
    kernels = openblas_kernels()
    if kernels is None or kernels in _WITHOUT_AVX512:
        return False
    features: dict[str, bool] = getattr(import_module(_NUMPY), "__cpu_features__", {})
    return features.get("AVX512_SKX", False)
