"""Batches of Hermitian products of short k on the CPU by two real products each, without a mirror.

With A = P + i Q the numbers of a row of C = A A^H, real and imaginary part in turn, are those of
P (p, -q) + Q (q, p), where p and q are the rows of P^T and Q^T, in turn. BLAS computes both real
products. Element (i, j) of the first is p_i p_j and -p_i q_j, of the second q_i q_j and q_i p_j, so
the sums of (j, i) are those of (i, j) with both imaginary parts exchanged and of another sign: C is
Hermitian to the bit with a real diagonal wherever BLAS adds all elements' terms in one order.
OpenBLAS does for a short k, and `cpu_probe` sees whether it does.

A real product takes a quarter (kernels for AVX-512) to a half (Haswell's) of the complex one's time
at short k, and to mirror as long as Haswell's complex product
(docs/experiments/2026-11-30-hermitian-products-by-real-ones.md).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from argand.herk.cpu_probe import rows_seen
from argand.herk.problem import HerkProblem
from argand.runtime.cpu.kept_memory import KeptMemory
from argand.runtime.cpu.numpy_blas import has_avx512_kernels, openblas_kernels
from argand.runtime.cpu.threads import ONE_CORE

Array = npt.NDArray[Any]
_FEWEST_ROWS = 24
"""Fewest rows whose operands' parts take less time than a mirror."""
_NUMBERS, _ROWS_FOR_K = 1 << 16, (6, 8)
"""Fewest numbers of results, for the ten steps of NumPy around the products, and fewest rows for
each k, for the operands' parts: by other kernels of OpenBLAS, and by those for AVX-512."""
_MOST_OPERANDS = 400
"""Numbers of an operand up to which that is so by other kernels: of more, herk and a mirror take
less time."""
_PART_BYTES = 1 << 18
"""Bytes of the first products that stay in a core's cache until the second ones are added."""
_HALF = np.uint64(32)
"""Bits of a number of complex64, each half of which is a part: integers are split in less time."""

_Part = tuple[slice, Array, Array, Array, Array, Array]
_Memory = tuple[Array, Array, Array, Array, Array, Array, Array, list[_Part]]
"""Memory of some matrices: P and Q as integers; (p, -q) as matrices, as a row, and as integers;
(q, p) as integers; other integers; of each part of the matrices its place, P, (p, -q), Q, (q, p)
and the second product. Views of a batch of few numbers take longer than its products."""


def takes_real_products(problem: HerkProblem) -> bool:
    """Return whether `real_products` take less time than complex ones, and are Hermitian."""
    n, k, by_avx512 = problem.n, problem.k, has_avx512_kernels()
    if problem.op != "N" or problem.dtype != "complex64" or sys.byteorder != "little":
        return False
    if problem.batch == 1 or k < 2 or n < max(_FEWEST_ROWS, _ROWS_FOR_K[by_avx512] * k):
        return False
    if problem.batch * n * n < _NUMBERS or 2 * n * n * k > ONE_CORE:
        return False
    if n * k > _MOST_OPERANDS and not by_avx512:
        return False
    return openblas_kernels() is not None and _are_hermitian(n, k)


def real_products() -> Callable[..., Array]:
    """Return a function that computes products of contiguous operands, (..., n, k).

    All have one n and k; results are in new or given memory.
    """
    return partial(_by_parts, {})


def _kept(matrices: int, n: int, k: int) -> KeptMemory[_Memory]:
    nbytes = 32 * matrices * n * k + 8 * _part(n) * n * n
    return KeptMemory(partial(_memory, matrices, n, k), nbytes)


def _by_parts(forms: dict[int, KeptMemory[_Memory]], a: Array, out: Array | None = None) -> Array:
    n, k = a.shape[-2:]
    numbers = a.reshape(-1).view(np.uint64)
    matrices = numbers.size // (n * k)
    kept = forms.get(matrices)
    if kept is None:
        kept = forms[matrices] = _kept(matrices, n, k)
    try:
        memory = kept.pop()
    except IndexError:
        memory = kept.new()
    if out is None:
        out = np.empty((*a.shape[:-1], n), a.dtype)
    _split(a, numbers, memory)
    matmul, found = np.matmul, out.reshape(-1, n, n).view(np.float32)
    for some, p, conjugates, q, turned, second in memory[-1]:
        these = found[some]
        matmul(p, conjugates, these)
        matmul(q, turned, second)
        np.add(these, second, these)
    kept.append(memory)
    return out


def _split(a: Array, numbers: Array, memory: _Memory) -> None:
    """Write the operands of both real products; the real part of a number is its lower half."""
    p, q, transposed, row, conjugates, turned, upper, _ = memory
    copyto, right_shift = np.copyto, np.right_shift
    copyto(p, numbers, casting="unsafe")
    right_shift(numbers, _HALF, upper)
    copyto(q, upper, casting="unsafe")
    copyto(transposed, a.reshape(-1, *a.shape[-2:]).swapaxes(1, 2))
    right_shift(conjugates, _HALF, upper)
    np.left_shift(conjugates, _HALF, turned)
    np.bitwise_or(turned, upper, turned)
    np.conjugate(row, row)


def _part(n: int) -> int:
    """Return how many matrices make a part."""
    return max(1, _PART_BYTES // (8 * n * n))


def _memory(matrices: int, n: int, k: int) -> _Memory:
    left = np.empty((2, matrices, n, k), np.float32)
    right = np.empty((2, matrices, k, n), np.complex64)
    step = min(matrices, _part(n))
    second, (p, q), (first_right, second_right) = (
        np.empty((step, n, 2 * n), np.float32), left, right.view(np.float32)
    )  # fmt: skip
    places = [slice(i, min(i + step, matrices)) for i in range(0, matrices, step)]
    return (
        *left.view(np.uint32).reshape(2, -1), right[0], right[0].reshape(-1),
        *right.view(np.uint64).reshape(2, -1), np.empty(matrices * n * k, np.uint64),
        [(x, p[x], first_right[x], q[x], second_right[x], second[: x.stop - x.start])
         for x in places],
    )  # fmt: skip


@lru_cache(maxsize=4096)
def _are_hermitian(n: int, k: int) -> bool:
    """Return whether all these products of contiguous operands are Hermitian to the bit."""

    def steps(a: Array, out: Array) -> None:
        _by_parts({}, a, out)

    return rows_seen(steps, n, k, "N", "complex64") == n
