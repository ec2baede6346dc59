"""Hermitian products of few numbers on the CPU, finished by a gather in memory that is kept.

Lower triangles and the conjugates of all numbers lie one behind the other, so that one gather makes
a new result of both. NumPy's steps that mirror triangles in place take a call of few numbers twice
as long, as they make views of it and skip by a mask. What computes the triangles is made with the
memory that it writes, so that a call makes no views either.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from argand.herk.cpu_blas import places_of
from argand.herk.cpu_lower import Steps, herk_alone, herk_of_numpy, is_shared, trans_of
from argand.herk.cpu_matmul import of_columns, of_rows
from argand.herk.cpu_parts import at_a_time
from argand.herk.problem import HerkProblem
from argand.runtime.complex_types import ITEM
from argand.runtime.cpu.kept_memory import KeptMemory
from argand.runtime.cpu.quiet import quiet_context

Array = npt.NDArray[Any]
Run = Callable[..., Array]
_MAX_NUMBERS = 1 << 12
"""Numbers of results up to which a gather takes less time than to finish them, whatever is left."""
_MAX_MIRRORED = 1 << 16
"""The same where all are mirrored; of complex128 half as many."""
_MIN_TAKEN = 1 << 9
"""Numbers of results from which `take` takes less time than an index: least where indices, all of
which are within, wrap around."""


class _Bound(NamedTuple):
    """A step that computes lower triangles in memory that is kept, and what is left to do to them.

    Attributes:
        step: computes them of operands.
        has_real_diagonals: whether it makes diagonals real.
    """

    step: Callable[[Array], object]
    has_real_diagonals: bool = False


Bind = Callable[[HerkProblem, Array], _Bound]
"""Returns the step that computes the triangles of a problem in the memory of its products."""
_Memory = tuple[
    Callable[[Array], object], Callable[[int], None] | None, Array, Array, Array, Array, Array
]
"""Memory of a call: what computes the triangles; what fills the imaginary parts of the diagonals
after it; the products; the same numbers in a row; their conjugates; both; which of both a result
has. A plain tuple, which Python unpacks in 0.1 us less than one with names."""


def is_gathered(problem: HerkProblem, start: int = 0) -> bool:
    """Return whether a gather finishes results whose first rows need no mirror."""
    mirrored = _MAX_MIRRORED // (2 if problem.dtype == "complex128" else 1)
    most = _MAX_NUMBERS if start else max(_MAX_NUMBERS, mirrored)
    return problem.batch * problem.n * problem.n <= most and not is_shared(problem)


def gathered(problem: HerkProblem, bind: Bind, *, is_hermitian: bool = False) -> Run:
    """Return a function that computes products that are only to be mirrored.

    Those of contiguous operands need no mirror where ``is_hermitian``.
    """
    numbers, item = problem.batch * problem.n * problem.n, ITEM[problem.dtype]
    nbytes = numbers * (2 * item + np.dtype(np.intp).itemsize)
    if bind is not in_place and problem.batch <= at_a_time(problem):  # others copy few operands
        nbytes += problem.batch * problem.n * problem.k * item
    kept = KeptMemory(partial(_memory, problem, bind), nbytes)
    conjugate, few = np.conjugate, numbers < _MIN_TAKEN

    def run(a: Array, c: Array | None = None) -> Array:
        try:
            memory = kept.pop()
        except IndexError:
            memory = kept.new()
        step, clear_diagonals, products, flat, conjugates, both, sources = memory
        step(a)
        if clear_diagonals is not None:
            clear_diagonals(0)
        if is_hermitian and a.flags.c_contiguous:
            found = products.copy()
        else:
            conjugate(flat, conjugates)
            found = both[sources] if few else both.take(sources, None, None, "wrap")
        kept.append(memory)
        return found

    return run


def _memory(problem: HerkProblem, bind: Bind) -> _Memory:
    n, shape, size = problem.n, problem.shape, math.prod(problem.shape)
    both = np.zeros(2 * size, problem.dtype)
    flat, conjugates = both[:size], both[size:]
    bound = bind(problem, flat.reshape(shape))
    clear = None if bound.has_real_diagonals else flat.reshape(-1, n * n)[:, :: n + 1].imag.fill
    return bound.step, clear, flat.reshape(shape), flat, conjugates, both, _sources(problem)


def _sources(problem: HerkProblem) -> npt.NDArray[np.intp]:
    """Return where a result's numbers lie among those with lower triangles and the conjugates.

    A diagonal's own zeros are positive, those of its conjugates are not.
    """
    size, lower = math.prod(problem.shape), np.tri(problem.n, dtype=bool)
    places = np.arange(size).reshape(problem.shape)
    return np.where(lower, places, size + places.swapaxes(-1, -2))


def by_steps(lower: Steps) -> Bind:
    """Return a function that binds the steps of a batch (`lower_of`) to memory.

    Conjugates of operands for one matmul are kept, too, where they are few.
    """

    def bind(problem: HerkProblem, products: Array) -> _Bound:
        if lower not in (of_rows, of_columns) or problem.batch > at_a_time(problem):
            return _Bound(lambda a: quiet_context().run(lower, a, products))
        return _Bound(_by_matmul(problem, products))

    return bind


def _by_matmul(problem: HerkProblem, products: Array) -> Callable[[Array], object]:
    n, k, conjugate, matmul = problem.n, problem.k, np.conjugate, np.matmul
    sizes = (n, k) if problem.op == "N" else (k, n)
    conjugates = np.empty((*problem.batch_shape, *sizes), problem.dtype)
    transposed, run_quietly = conjugates.swapaxes(-1, -2), quiet_context().run

    def rows(a: Array) -> None:
        conjugate(a, conjugates)
        run_quietly(matmul, a, transposed, products)

    def columns(a: Array) -> None:
        conjugate(a, conjugates)
        run_quietly(matmul, transposed, a, products)

    return rows if problem.op == "N" else columns


def in_place(problem: HerkProblem, products: Array) -> _Bound:
    """Return a step that computes each product by NumPy's herk, which reads operands in place."""
    herk, places = herk_of_numpy(problem), places_of(products)
    return _Bound(lambda a: herk(a, places), has_real_diagonals=True)


def alone(problem: HerkProblem) -> Run:
    """Return a function that computes the only product of a problem by SciPy's herk, in one step.

    NumPy's matmul of a small matrix takes longer, and so do functions that call each other.
    """
    routine, trans, conjugate = herk_alone(problem), trans_of(problem.op), np.conjugate
    numbers, item = problem.n * problem.n, ITEM[problem.dtype]
    few, has_axes = numbers < _MIN_TAKEN, problem.batch_shape != ()
    kept = KeptMemory(partial(_alone, problem), numbers * (2 * item + np.dtype(np.intp).itemsize))

    def run(a: Array, c: Array | None = None) -> Array:
        try:
            memory = kept.pop()
        except IndexError:
            memory = kept.new()
        transposed, flat, conjugates, both, sources = memory
        if has_axes:
            a = a.reshape(a.shape[-2:])
        routine(1.0, a.T, 0.0, transposed, trans, 0, 1)
        conjugate(flat, conjugates)
        found = both[sources] if few else both.take(sources, None, None, "wrap")
        kept.append(memory)
        return found

    return run


def _alone(problem: HerkProblem) -> tuple[Array, Array, Array, Array, Array]:
    """Return a product transposed, its numbers in a row, their conjugates, both, and sources."""
    n, size = problem.n, problem.n * problem.n
    both = np.zeros(2 * size, problem.dtype)
    flat, conjugates = both[:size], both[size:]
    return flat.reshape(n, n).T, flat, conjugates, both, _sources(problem)
