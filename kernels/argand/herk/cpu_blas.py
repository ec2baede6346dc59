"""BLAS's herk by its address: SciPy's, which leaves the interpreter to other threads, and NumPy's.

The wheels of NumPy mostly have a newer OpenBLAS than SciPy's, whose herk takes less time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from argand.gemm.operands import Op
from argand.runtime.complex_types import ITEM, PREFIX
from argand.runtime.cpu.numpy_blas import lapack_address
from argand.runtime.cpu.scipy_routines import address_of

Array = npt.NDArray[Any]
ALONE_PRODUCTS = 59_296
"""n (n + 1) k up to which OpenBLAS's herk takes one core by itself."""
EDGE_OF_HERK = 11
"""SciPy's BLAS computes a lower triangle in n (n / 2 + this) multiplications for each k."""
_MIN_ALONE = 1 << 15
"""Such multiplications from which NumPy's herk takes less time for one product than SciPy's
function, whose call takes 0.4 us less."""


def has_address(dtype: str) -> bool:
    """Return whether `herk_by_address` computes results of a type by SciPy's BLAS."""
    return _routine(dtype) is not None


def herk_by_address(trans: bytes, a: Array, out: Array) -> None:
    """Compute the lower triangles of contiguous ``out`` by a call of herk for each matrix.

    herk reads a column-major matrix. It is given A^T and computes C^T, whose upper triangle is the
    lower one of C. ``trans`` is C of A A^H and N of A^H A. Its arguments are addresses.
    """
    routine = _routine(str(out.dtype))
    assert routine is not None
    a, n, columns = np.ascontiguousarray(a), out.shape[-1], a.shape[-1]
    k = columns if trans == b"C" else a.shape[-2]
    sizes = np.array([n, k, columns], np.intc)
    scalars = np.array([1, 0], out.real.dtype)
    n_at, k_at, columns_at = (sizes[i:].ctypes.data for i in range(3))
    alpha_at, beta_at = (scalars[i:].ctypes.data for i in range(2))
    matrix, product = a.itemsize * n * k, out.itemsize * n * n
    a_at, out_at = a.ctypes.data, out.ctypes.data
    for _ in range(out.size // (n * n)):
        routine(b"U", trans, n_at, k_at, alpha_at, a_at, columns_at, beta_at, out_at, n_at)
        a_at, out_at = a_at + matrix, out_at + product


@lru_cache(maxsize=4)
def _routine(dtype: str) -> Callable[..., None] | None:
    """Return herk of SciPy's BLAS for a type, None where its integers have another size."""
    address = address_of("blas", f"{PREFIX[dtype]}herk")
    if address is None:
        return None
    arguments = ctypes.c_char_p, ctypes.c_char_p, *[ctypes.c_void_p] * 8
    found: Callable[..., None] = ctypes.CFUNCTYPE(None, *arguments)(address)
    return found


def has_numpy_herk(dtype: str) -> bool:
    """Return whether NumPy's BLAS has an address of herk (`lapack_address`)."""
    return lapack_address(f"{PREFIX[dtype]}herk") is not None


def is_for_numpy_herk(n: int, k: int) -> bool:
    """Return whether NumPy's herk takes less time for one product than SciPy's function."""
    return n * (n + 2 * EDGE_OF_HERK) * k >= 2 * _MIN_ALONE


def numpy_herk(op: Op, n: int, k: int, dtype: str) -> Callable[[Array, list[Any]], None]:
    """Return a function that computes the lower triangles of op(A) op(A)^H by NumPy's BLAS.

    It takes the operands of some matrices, of k columns after their op, which it reads in place,
    and the `places_of` as many products.
    """
    address = lapack_address(f"{PREFIX[dtype]}herk")
    assert address is not None
    herk, at, integer = ctypes.PYFUNCTYPE(None)(address), ctypes.byref, ctypes.c_int64
    real = ctypes.c_float if dtype == "complex64" else ctypes.c_double
    rows, columns, alpha, beta = at(integer(n)), at(integer(k)), at(real(1)), at(real(0))
    uplo, trans = at(ctypes.c_char(b"U")), at(ctypes.c_char(b"C" if op == "N" else b"N"))
    leading = columns if op == "N" else rows
    matrix = max(1, n * k * ITEM[dtype])  # an empty one has no place

    def run(a: Array, places: list[Any]) -> None:
        if a.flags.carray:  # contiguous, aligned and writable
            operands = _memory_of(a)
        else:
            a = np.require(a, requirements=["C", "A"])
            operands = ctypes.c_char.from_address(a.ctypes.data)
        # Names take less time than a tuple that each call unpacks.
        for x, place in zip(range(0, a.nbytes, matrix), places, strict=False):
            herk(uplo, trans, rows, columns, alpha, at(operands, x), leading, beta, place, rows)

    return run


def places_of(products: Array) -> list[Any]:
    """Return where each of some contiguous and writable products is, as `numpy_herk` takes it."""
    memory, n = _memory_of(products), products.shape[-1]
    product = n * n * products.itemsize
    return [ctypes.byref(memory, place) for place in range(0, products.nbytes, product)]


_memory_of: Callable[[Any], Any] = ctypes.c_char.from_buffer
