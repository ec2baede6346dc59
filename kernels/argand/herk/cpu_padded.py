"""Batches of small Hermitian products on the CPU by whole tiles of BLAS, without a mirror.

BLAS computes element (i, j) by the steps of (j, i) where both columns lie in whole tiles
(`cpu_matmul`). So products have the columns of whole tiles here: behind the conjugates of a matrix
come those of the next one, and what BLAS makes of these is not copied to the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from argand.herk.cpu_lower import is_multiplied
from argand.herk.cpu_matmul import MIN_BEYOND, TILE, weight
from argand.herk.cpu_probe import rows_seen
from argand.herk.problem import HerkProblem
from argand.runtime.complex_types import ITEM
from argand.runtime.cpu.kept_memory import KeptMemory
from argand.runtime.cpu.numpy_blas import (
    clear_registers,
    has_avx512_kernels,
    is_of_amd,
    openblas_kernels,
)
from argand.runtime.cpu.quiet import quiet_context
from argand.runtime.cpu.threads import ONE_CORE_COMPLEX

Array = npt.NDArray[Any]
Run = Callable[..., Array]
_FEW_NUMBERS = 1 << 12
"""Numbers of results up to which all products take less time so."""
_PART_BYTES = 1 << 18
"""Bytes of products that stay in a core's cache until they are copied."""
_MAX_ROWS = 24
"""Most rows of products that are multiplied in several parts: with more rows two products of some
columns each take less time."""
_BEYOND = 5
"""Multiplications for each number of a result, of complex64 beyond its columns, from which they
take longer than a mirror. Results of complex128 have too few columns beyond theirs."""
_FEW_ROWS = 1 << 7
"""Rows of results up to which NumPy copies them in less time as numbers: each of more rows is one
item of as many bytes."""

_Memory = tuple[Array, Array, Array, Array, Array, Callable[[int], None]]
"""Memory of some matrices: their conjugates; those as right operands, with the columns of whole
tiles; products; their columns of the result, and these as an item a row; what fills the imaginary
parts of their diagonals."""


def is_padded(problem: HerkProblem) -> bool:
    """Return whether `padded` takes less time than other products of matrices."""
    n, k, batch = problem.n, problem.k, problem.batch
    if batch == 1 or problem.op != "N" or min(n, k) < 2 or not has_avx512_kernels():
        return False
    columns = _columns(n, problem.dtype)
    if columns >= 2 * n:
        return False  # half of BLAS's work would be for what is not copied
    if problem.dtype == "complex64" and (columns - n) * k > _BEYOND * n:
        return False
    if batch * n * n > _FEW_NUMBERS:
        most = _most_matrices(problem)
        if n % TILE[problem.dtype] < MIN_BEYOND or (n > _MAX_ROWS and batch > most):
            return False
    on_one_core = weight(problem) * columns <= ONE_CORE_COMPLEX * n
    return on_one_core and is_multiplied(problem, n) and _are_hermitian(n, k, problem.dtype)


def padded(problem: HerkProblem) -> Run:
    """Return a function that computes products that are only to be mirrored, of op N."""
    batch, shape, dtype = problem.batch, problem.shape, np.dtype(problem.dtype)
    step = min(batch, _most_matrices(problem))
    leading = shape[:-2] if step == batch else (step,)
    nbytes = step * (_bytes_of_one(problem) + problem.n * problem.k * dtype.itemsize)
    kept = KeptMemory(partial(_memory, leading, problem.n, problem.k, problem.dtype), nbytes)
    conjugate, matmul, view = np.conjugate, np.matmul, np.ndarray
    few, waits = batch * problem.n < _FEW_ROWS, not is_of_amd()

    def run(a: Array, c: Array | None = None) -> Array:
        try:
            memory = kept.pop()
        except IndexError:
            memory = kept.new()
        if not a.flags.c_contiguous:
            a = a.copy()
        if step < batch:
            found = np.empty(shape, dtype)
            quiet_context().run(_in_parts, memory, a, found)
        else:
            conjugates, right, products, columns, rows, clear_diagonals = memory
            conjugate(a, conjugates)
            quiet_context().run(matmul, a, right, products)
            if waits:
                clear_registers()
            clear_diagonals(0)
            found = columns.copy() if few else view(shape, dtype, rows.copy())
        kept.append(memory)
        return found

    return run


def _in_parts(memory: _Memory, a: Array, found: Array) -> None:
    """Compute as many products at a time as there is memory for."""
    conjugates, right, products, _, rows, clear_diagonals = memory
    step, n = products.shape[:2]
    a, found_rows = a.reshape(-1, *a.shape[-2:]), np.ndarray(found.size // n, rows.dtype, found)
    for first in range(0, len(a), step):
        last = min(first + step, len(a))
        some = slice(0, last - first)
        np.conjugate(a[first:last], conjugates[some])
        np.matmul(a[first:last], right[some], products[some])
        clear_diagonals(0)
        found_rows[first * n : last * n] = rows[: (last - first) * n]


def _columns(n: int, dtype: str) -> int:
    """Return the columns of the whole tiles that n columns lie in."""
    return n + -n % TILE[dtype]


def _bytes_of_one(problem: HerkProblem) -> int:
    """Return the bytes of a product with the columns of whole tiles."""
    return problem.n * _columns(problem.n, problem.dtype) * ITEM[problem.dtype]


def _most_matrices(problem: HerkProblem) -> int:
    return _PART_BYTES // _bytes_of_one(problem)


def _memory(leading: tuple[int, ...], n: int, k: int, dtype: str) -> _Memory:
    rows, columns, item = math.prod(leading) * n, _columns(n, dtype), ITEM[dtype]
    flat = np.zeros((rows + columns - n) * k, dtype)
    conjugates = flat[: rows * k].reshape(*leading, n, k)
    strides = (*conjugates.strides[:-2], item, k * item)
    products = np.empty((*leading, n, columns), dtype)
    diagonals = products.reshape(-1, n * columns)[:, : n * columns : columns + 1].imag
    return (
        conjugates, as_strided(flat, (*leading, k, columns), strides), products, products[..., :n],
        np.ndarray(rows, f"V{n * item}", products, 0, columns * item), diagonals.fill,
    )  # fmt: skip


@lru_cache(maxsize=4096)
def _are_hermitian(n: int, k: int, dtype: str) -> bool:
    """Return whether all these products of contiguous operands are Hermitian to the bit."""

    def steps(a: Array, out: Array) -> None:
        conjugates, right, products, columns, *_ = _memory(a.shape[:-2], n, k, dtype)
        np.conjugate(a, conjugates)
        np.matmul(a, right, products)
        out[...] = columns

    return openblas_kernels() is not None and rows_seen(steps, n, k, "N", dtype) == n
