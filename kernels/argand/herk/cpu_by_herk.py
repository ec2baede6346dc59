"""Batches of Hermitian products on the CPU by a call of NumPy's herk for each matrix.

The arguments of these calls are made once: they name memory that is kept, into which the conjugates
of some operands are copied at a time. So herk leaves the conjugates of the result's lower triangles
there. One step conjugates them into the result, and another one fills what is above its diagonals.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import starmap
from typing import Any

import numpy as np
import numpy.typing as npt

from argand.herk.cpu_blas import CALL_BYTES, calls_of_numpy
from argand.herk.cpu_mirror import fill_above
from argand.herk.cpu_parts import at_a_time
from argand.herk.problem import HerkProblem
from argand.runtime.complex_types import ITEM
from argand.runtime.cpu.kept_memory import KeptMemory

Array = npt.NDArray[Any]
_Memory = tuple[Array, Array, Callable[..., None], list[tuple[Any, ...]]]
"""Memory of some matrices: the conjugates of their operands; the products of these; herk, and its
arguments for each."""


def each_by_numpy(problem: HerkProblem) -> Callable[..., Array]:
    """Return a function that computes products by herk and mirrors them."""
    batch, n, shape, dtype = problem.batch, problem.n, problem.shape, np.dtype(problem.dtype)
    some = at_a_time(problem)
    nbytes = some * (n * (n + problem.k) * ITEM[problem.dtype] + CALL_BYTES)
    kept = KeptMemory(partial(_memory, problem, some), nbytes)
    empty, conjugate, run_all = np.empty, np.conjugate, deque[Any](maxlen=0).extend
    # The last part has as many: some of its products are computed twice, to the same bits.
    parts = [slice(i, i + some) for i in (*range(0, batch - some, some), batch - some)]

    def run(a: Array, c: Array | None = None) -> Array:
        try:
            memory = kept.pop()
        except IndexError:
            memory = kept.new()
        operands, products, herk, calls = memory
        found = empty(shape, dtype)
        matrices, results = a.reshape(-1, *a.shape[-2:]), found.reshape(-1, n, n)
        for part in parts:
            conjugate(matrices[part], operands)
            run_all(starmap(herk, calls))
            square = results[part]
            conjugate(products, square)
            fill_above(products, square)
        kept.append(memory)
        return found

    return run


def _memory(problem: HerkProblem, some: int) -> _Memory:
    n, k, op = problem.n, problem.k, problem.op
    operands = np.empty((some, n, k) if op == "N" else (some, k, n), problem.dtype)
    products = np.zeros((some, n, n), problem.dtype)
    return operands, products, *calls_of_numpy(op, operands, products)
