"""Products on the CPU whose steps are chosen once for a form of operands, where BLAS does the work.

Around a product of few numbers, NumPy's views, conversions and scalars take longer than BLAS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from timeit import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from argand.gemm.cpu import gemm
from argand.gemm.cpu_skinny import multiplication
from argand.rounding import Array
from argand.runtime.cpu.numpy_blas import clear_registers, has_avx512_kernels

if TYPE_CHECKING:
    from argand.gemm.problem import GemmProblem

Run = Callable[..., Array]
"""Computes a product of a, b, c or None, and the memory of the result or None; the last two may be
left out where the call had neither."""
_DOT_BYTES = 3 << 14
"""Most bytes of a result that NumPy's ``dot`` computes in less time than its matmul: a call of the
same function of BLAS takes 0.4 us less, but ``dot`` fills the result with zeros first."""


def prepared(problem: GemmProblem, a: Any, b: Any, c: Array | None, *, alone: bool) -> Run:
    """Return a function that computes a problem of operands of this form, which are checked.

    ``alone`` is whether the call had neither c nor out.
    """
    output = np.dtype(problem.precision.output)
    plain = all(type(x) is np.ndarray and x.dtype == output for x in (a, b))
    if not plain or not problem.precision.exact_operands or problem.alpha == 0 or problem.k == 0:
        return partial(gemm, problem)
    matrices = a.ndim == b.ndim == 2 and min(a.shape + b.shape) > 1
    by_dot = matrices and problem.m * problem.n * output.itemsize <= _DOT_BYTES
    addend = c if problem.beta != 0 else None
    if alone and problem.alpha == 1 and problem.op_a == problem.op_b == "N":
        multiply = multiplication(problem)
        if multiply is not np.matmul or 1 in a.shape[-2:] + b.shape[-2:]:
            return _of_contiguous(problem, multiply)
        return _fastest_dot() if by_dot else np.matmul
    product = _product(problem, matrices, by_dot)
    if problem.alpha == 1 and addend is None:
        return product
    return _with_scalars(problem, product, None if addend is None else addend.dtype)


def _of_contiguous(problem: GemmProblem, multiply: Run) -> Run:
    """Return a function that computes A B by products of vectors, of operands with gaps by `gemm`.

    Gaps would change the order of BLAS's sums, so `gemm` copies such operands. NumPy's ``dot`` and
    matmul, which are all other products without options, copy them by themselves.
    """

    def run(a: Array, b: Array) -> Array:
        if a.flags.c_contiguous and b.flags.c_contiguous:
            return multiply(a, b)
        return gemm(problem, a, b)

    return run


def _cleared_dot(a: Array, b: Array) -> Array:
    found: Array = a.dot(b)
    clear_registers()
    return found


@lru_cache(maxsize=1)
def _fastest_dot() -> Run:
    """Return the function that multiplies small matrices fastest here, measured in 1 ms."""
    ways: tuple[Run, ...] = (np.ndarray.dot, _cleared_dot)
    if not has_avx512_kernels():
        return ways[0]
    x = np.ones((4, 4), np.complex64)

    def seconds(way: Run) -> float:  # with what a look-up of a call takes
        return min(repeat(lambda: (way(x, x), x.dtype, x.shape, {}), number=10, repeat=20))

    return min(ways, key=seconds)


def _product(problem: GemmProblem, matrices: bool, by_dot: bool) -> Run:
    """Return a function that computes op(A) op(B), of ``matrices``, not vectors, or ``by_dot``.

    It leaves operands with gaps to `argand.gemm.cpu.gemm`, and reads no C.
    """
    alone = problem if problem.alpha == 1 and problem.beta == 0 else _without_scalars(problem)
    multiply = multiplication(problem)
    left, right = _oriented(problem.op_a), _oriented(problem.op_b)
    as_given = left is None and right is None

    def run(a: Array, b: Array, c: Array | None = None, out: Array | None = None) -> Array:
        if matrices:
            if not (a.flags.forc and b.flags.forc):
                return gemm(alone, a, b, None, out)
        elif not (a.flags.c_contiguous and b.flags.c_contiguous):
            return gemm(alone, a, b, None, out)
        if not as_given:
            a = a if left is None else left(a)
            b = b if right is None else right(b)
        if by_dot and (out is None or out.flags.carray):  # contiguous, aligned
            found: Array = a.dot(b, out)
            return found
        return multiply(a, b, out)

    return run


def _without_scalars(problem: GemmProblem) -> GemmProblem:
    return replace(problem, alpha=1 + 0j, beta=0j)


def _with_scalars(problem: GemmProblem, product: Run, addend: np.dtype[Any] | None) -> Run:
    """Return a function that computes alpha op(A) op(B) + beta C, of a C of the type ``addend``."""
    output = np.dtype(problem.precision.output)
    alpha, beta = (np.array(x, output) for x in (problem.alpha, problem.beta))
    multiply, scaled, times = np.multiply, problem.alpha != 1, problem.beta != 1

    def run(a: Array, b: Array, c: Array | None = None, out: Array | None = None) -> Array:
        added = None  # C is read before the product is written, because out may be c
        if addend is not None and c is not None:
            if times:
                added = multiply(c, beta, dtype=output)
            else:
                added = c if out is None and addend == output else np.array(c, output)
        found = product(a, b, None, out)
        if scaled:
            multiply(found, alpha, found)
        if added is not None:
            found += added
        return found

    return run


def _oriented(op: str) -> Callable[[Array], Array] | None:
    """Return a function that makes op(x) of x; None where op(x) is x."""
    if op == "N":
        return None
    conjugate = np.conjugate
    if op == "T":
        return lambda x: x.swapaxes(-1, -2)
    return lambda x: conjugate(x).swapaxes(-1, -2)
