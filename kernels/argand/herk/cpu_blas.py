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
from argand.runtime.complex_types import PREFIX
from argand.runtime.cpu.numpy_blas import lapack_address
from argand.runtime.cpu.scipy_routines import address_of

Array = npt.NDArray[Any]
CALL_BYTES = 600
"""Bytes of the arguments of a call of `calls_of_numpy`, as objects of Python."""


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
    """Return herk of SciPy's BLAS for a type, None where its integers are of another size."""
    address = address_of("blas", f"{PREFIX[dtype]}herk")
    if address is None:
        return None
    arguments = ctypes.c_char_p, ctypes.c_char_p, *[ctypes.c_void_p] * 8
    found: Callable[..., None] = ctypes.CFUNCTYPE(None, *arguments)(address)
    return found


def has_numpy_herk(dtype: str) -> bool:
    """Return whether NumPy's BLAS has an address of herk (`lapack_address`)."""
    return lapack_address(f"{PREFIX[dtype]}herk") is not None


def calls_of_numpy(
    op: Op, operands: Array, products: Array
) -> tuple[Callable[..., None], list[tuple[Any, ...]]]:
    """Return herk of NumPy's BLAS, and its arguments for each of some matrices.

    They name contiguous memory of operands and of products, of which herk computes the lower
    triangles. It takes one core for products of few numbers alone.
    """
    k = operands.shape[-1 if op == "N" else -2]
    herk, first, leading, last = _arguments(op, k, products)
    places = zip(_places(operands), _places(products), strict=True)
    return herk, [(*first, a, *leading, c, last) for a, c in places]


def numpy_herk(k: int, op: Op, out: Array) -> Callable[[Array], None]:
    """Return what computes the lower triangle of op(A) op(A)^H in ``out`` by NumPy's BLAS.

    A has k columns after its op; ctypes takes none but contiguous and writable memory.
    """
    herk, first, leading, last = _arguments(op, k, out)
    rest = (*leading, *_places(out[None]), last)
    at, memory_of = ctypes.byref, ctypes.c_char.from_buffer

    def run(a: Any) -> None:
        herk(*first, at(memory_of(a if a.flags.carray else a.copy())), *rest)

    return run


def _arguments(
    op: Op, k: int, products: Array
) -> tuple[Callable[..., None], tuple[Any, ...], tuple[Any, ...], Any]:
    """Return NumPy's herk, its arguments before A, those between A and C, and the last one."""
    address = lapack_address(f"{PREFIX[str(products.dtype)]}herk")
    assert address is not None
    at, integer, n = ctypes.byref, ctypes.c_int64, products.shape[-1]
    real = ctypes.c_float if products.dtype == np.complex64 else ctypes.c_double
    rows, columns = at(integer(n)), at(integer(k))
    trans, leading = (b"C", columns) if op == "N" else (b"N", rows)
    first = at(ctypes.c_char(b"U")), at(ctypes.c_char(trans)), rows, columns, at(real(1))
    return ctypes.PYFUNCTYPE(None)(address), first, (leading, at(real(0))), rows


def _places(matrices: Array) -> list[Any]:
    """Return the place of each matrix in contiguous memory, as an argument."""
    memory = (ctypes.c_char * matrices.nbytes).from_buffer(matrices.data)
    step = matrices.nbytes // len(matrices)
    return [ctypes.byref(memory, i * step) for i in range(len(matrices))]
