"""Hermitian products of few numbers on the CPU, finished by a gather in memory that is kept.

Lower triangles and the conjugates of all numbers lie one behind the other, so that one gather makes
a new result of both. NumPy's steps that mirror triangles in place take a call of few numbers twice
as long, as they make views of it and skip by a mask.

`gathered`, `gathered_alone` and `_gathered_by_numpy` have the whole call written out: one more call
of Python takes 2 to 3% of a small product (docs/experiments/2026-11-28-small-calls-on-a-cpu.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from argand.herk.cpu_blas import numpy_herk
from argand.herk.cpu_lower import Steps, herk_alone, is_shared, takes_threads, trans_of
from argand.herk.problem import HerkProblem
from argand.runtime.complex_types import PREFIX
from argand.runtime.cpu.kept_memory import KeptMemory
from argand.runtime.cpu.numpy_blas import lapack_address
from argand.runtime.cpu.quiet import quiet_context

Array = npt.NDArray[Any]
Run = Callable[[Array, Array | None, Array | None], Array]
_MOST_NUMBERS = 1 << 12
"""Numbers of results up to which a gather takes less time than to finish them, whatever is left."""
_MOST_MIRRORED = 1 << 15
"""The same where all are mirrored; of complex128 a quarter."""
_LEAST_K = 64
"""k from which NumPy's herk by its address takes less time than SciPy's function."""
_FEWEST_TAKEN = 1 << 9
"""Numbers of results from which `take` takes less time than an index: least where indices, all of
which are within, wrap around."""


_Memory = tuple[Array, Array, Callable[[int], None], Array, Array, Array, Array]
"""Memory of a call: the products; the first of them transposed; what fills the imaginary parts of
their diagonals; the same numbers in a row; their conjugates; both; which of both a result has. A
plain tuple, which Python unpacks in 0.1 us less than one with names."""


def _kept_memory(problem: HerkProblem) -> KeptMemory[_Memory]:
    """Return memory of a form: of results, their conjugates, and as many indices."""
    numbers = problem.batch * problem.n * problem.n
    nbytes = numbers * (2 * np.dtype(problem.dtype).itemsize + np.dtype(np.intp).itemsize)
    return KeptMemory(partial(_memory, problem.shape, problem.dtype), nbytes)


def is_gathered(problem: HerkProblem, start: int = 0) -> bool:
    """Return whether a gather finishes results whose first rows need no mirror."""
    mirrored = _MOST_MIRRORED // (4 if problem.dtype == "complex128" else 1)
    most = _MOST_NUMBERS if start else max(_MOST_NUMBERS, mirrored)
    return problem.batch * problem.n * problem.n <= most and not is_shared(problem)


def _has_few_numbers(problem: HerkProblem) -> bool:
    return problem.batch * problem.n * problem.n < _FEWEST_TAKEN


def gathered(problem: HerkProblem, lower: Steps, *, is_hermitian: bool) -> Run:
    """Return what computes products that are only to be mirrored, by their lower triangles.

    Those of contiguous operands need no mirror where ``is_hermitian``.
    """
    kept, conjugate, few = _kept_memory(problem), np.conjugate, _has_few_numbers(problem)

    def run(a: Array, c: Array | None = None, out: Array | None = None) -> Array:
        try:
            memory = kept.pop()
        except IndexError:
            memory = kept.new()
        products, _, clear_diagonals, flat, conjugates, both, sources = memory
        quiet_context().run(lower, a, products)
        clear_diagonals(0)
        if is_hermitian and a.flags.c_contiguous:
            found = products.copy()
        else:
            conjugate(flat, conjugates)
            found = both[sources] if few else both.take(sources, None, None, "wrap")
        kept.append(memory)
        if out is None:
            return found
        out[...] = found
        return out

    return run


def gathered_alone(problem: HerkProblem) -> Run:
    """Return what computes the only product of a problem, by BLAS's herk (`herk_alone`).

    NumPy's matmul of a small matrix takes longer.
    """
    has_numpy = lapack_address(f"{PREFIX[problem.dtype]}herk") is not None
    if has_numpy and problem.k >= _LEAST_K and not takes_threads(problem):
        return _gathered_by_numpy(problem)
    kept, conjugate, is_flat = _kept_memory(problem), np.conjugate, len(problem.shape) == 2
    routine, trans, few = herk_alone(problem), trans_of(problem.op), _has_few_numbers(problem)

    def run(a: Array, c: Array | None = None, out: Array | None = None) -> Array:
        try:
            memory = kept.pop()
        except IndexError:
            memory = kept.new()
        _, column_major, _, flat, conjugates, both, sources = memory
        routine(1.0, a.T if is_flat else a.reshape(a.shape[-2:]).T, 0.0, column_major, trans, 0, 1)
        conjugate(flat, conjugates)
        found = both[sources] if few else both.take(sources, None, None, "wrap")
        kept.append(memory)
        if out is None:
            return found
        out[...] = found
        return out

    return run


def _gathered_by_numpy(problem: HerkProblem) -> Run:
    """Return what computes the only product of a problem by the herk of NumPy's BLAS."""

    def make() -> tuple[Callable[[Array], None], _Memory]:
        memory = _memory(problem.shape[-2:], problem.dtype)
        return numpy_herk(problem.k, problem.op, memory[0]), memory

    kept, shape = KeptMemory(make, _kept_memory(problem).nbytes), problem.shape
    conjugate, few, is_flat = np.conjugate, _has_few_numbers(problem), len(problem.shape) == 2

    def run(a: Array, c: Array | None = None, out: Array | None = None) -> Array:
        try:
            kept_one = kept.pop()
        except IndexError:
            kept_one = kept.new()
        herk, (_, _, _, flat, conjugates, both, sources) = kept_one
        herk(a if a.flags.carray else a.copy())
        conjugate(flat, conjugates)
        found = both[sources] if few else both.take(sources, None, None, "wrap")
        kept.append(kept_one)
        if not is_flat:
            found = found.reshape(shape)
        if out is None:
            return found
        out[...] = found
        return out

    return run


def _memory(shape: tuple[int, ...], dtype: str) -> _Memory:
    n, size = shape[-1], math.prod(shape)
    both = np.zeros(2 * size, dtype)
    flat, conjugates = both[:size], both[size:]
    products, places = flat.reshape(shape), np.arange(size).reshape(shape)
    sources = np.where(np.tri(n, dtype=bool), places, size + places.swapaxes(-1, -2))
    diagonals = flat.reshape(-1, n * n)[:, :: n + 1].imag
    transposed = products.reshape(-1, n)[:n].T
    return products, transposed, diagonals.fill, flat, conjugates, both, sources
