"""Softmax of finite rows of one tile on the CPU, in as few of NumPy's steps as they allow.

The arithmetic is that of `argand.softmax.cpu`, to the bit, without running sums. Few numbers take
one call, more of them one for each block. The times behind the choices are in
docs/experiments/2026-11-28-small-calls-on-a-cpu.md; `python -m benchmarks.cpu_calls --kinds
softmax` times drawn rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from argand.rounding import Array
from argand.runtime.quiet import quietly
from argand.softmax import cpu
from argand.softmax.cpu import EXACT_KINDS, UNSHIFTED

if TYPE_CHECKING:
    from argand.softmax.problem import SoftmaxProblem

Run = Callable[[Array, "Array | None"], Array]
"""Computes a problem of x, and the memory of the result or None."""
_Reduction = Callable[[Array], Array]
"""Returns one number for each row, (..., 1)."""
# Arguments by their places take less time: the axis, a type, memory, whether the axis stays.
_add: Any = np.add.reduce
_minimum: Any = np.minimum.reduce
_maximum: Any = np.maximum.reduce
_FEW_ROWS = 16
"""Rows up to which Python's own functions compare their largest numbers in less time than NumPy."""
_SHORT_COLUMNS, _ROWS_PER_COLUMN = 7, 32
"""Largest number of columns, and fewest rows for each column, with which a reduction column by
column takes less time than NumPy's. NumPy reduces each row by itself."""


def prepared(problem: SoftmaxProblem) -> Run:
    """Return a function that computes a problem; ``out`` is checked."""
    kind = EXACT_KINDS[problem.precision.real_output]
    plain = problem.precision.exact_operands and problem.input == problem.output == kind
    numbers = math.prod(problem.shape)
    whole = partial(cpu.softmax, problem)
    if (
        not plain
        or problem.scale != 1
        or not 0 < problem.columns <= cpu.TILE_COLUMNS
        or not numbers
    ):
        return whole
    steps = {"softmax": _softmax, "log_softmax": _log_softmax, "logsumexp": _logsumexp}
    short = problem.columns <= _SHORT_COLUMNS and problem.rows >= _ROWS_PER_COLUMN * problem.columns
    reductions = (
        (_largest_by_columns, _sums_by_columns) if short else (_largest_of_rows, _sums_of_rows)
    )
    found = partial(_finite, steps[problem.operation], problem.rows, *reductions)
    if numbers <= cpu.BLOCK_VALUES:
        return partial(_at_once, found, whole)
    return partial(cpu.softmax, problem, solve=partial(_block, found, problem))


def _at_once(finite: Callable[..., Array | None], whole: Run, x: Array, out: Array | None) -> Array:
    """Compute all rows by ``finite``, or by ``whole`` where some are not."""
    apart = out is not None and out.flags.c_contiguous and not np.may_share_memory(x, out)
    found = finite(x, out if apart else None)
    if found is None:
        return whole(x, out)
    if out is None or found is out:
        return found
    out[...] = found
    return out


def _block(
    finite: Callable[..., Array | None], problem: SoftmaxProblem, x: Array, out: Array
) -> None:
    """Compute some rows: contiguous ``out`` is apart from x, or x itself."""
    found = finite(x, out)
    if found is None:
        cpu.solve_block(problem, x, out)
    elif found is not out:
        out[...] = found


def _finite(
    step: Callable[..., Array], rows: int, largest: _Reduction, sums: _Reduction, x: Array,
    memory: Array | None,
) -> Array | None:  # fmt: skip
    """Return rows by a step, in ``memory`` of the result where the step can; None: not finite."""
    top = largest(x)
    if rows <= _FEW_ROWS:
        values = top.ravel().tolist()
        lowest, highest, finite = min(values), max(values), math.isfinite(sum(values))
    else:
        lowest, highest = _minimum(top, None), _maximum(top, None)
        finite = -math.inf < lowest <= highest < math.inf
    # Nor is a row with NaN.
    return step(x, top, lowest, highest, sums, memory) if finite else None


def _softmax(
    x: Array, top: Array, lowest: Any, highest: Any, sums: _Reduction, memory: Array | None
) -> Array:
    """Return exponentials over their sums: rows whose exponents are not large are not shifted."""
    found: Array = np.empty(x.shape, x.dtype) if memory is None else memory
    if highest > UNSHIFTED:
        shift = np.where((top >= 0) & (top <= UNSHIFTED), x.dtype.type(0), top)
        np.exp(_difference(x, shift, found), found)
        top = top - shift
    elif lowest < 0:
        shift = np.minimum(top, 0)
        np.exp(np.subtract(x, shift, found), found)
        top = top - shift
    else:
        np.exp(x, found)
    total = sums(found)
    if cpu.takes_reciprocal(x.shape[-1], total, top):
        return np.multiply(found, 1 / total, found)
    return np.divide(found, total, found)


def _log_softmax(
    x: Array, top: Array, lowest: Any, highest: Any, sums: _Reduction, memory: Array | None
) -> Array:
    found = _difference(x, top, np.empty(x.shape, x.dtype) if memory is None else memory)
    np.subtract(found, np.log(sums(np.exp(found))), found)
    return found


def _logsumexp(
    x: Array, top: Array, lowest: Any, highest: Any, sums: _Reduction, memory: Array | None
) -> Array:
    terms = _difference(x, top, np.empty(x.shape, x.dtype))
    total = sums(np.exp(terms, terms))
    logarithm: Array = np.log(total, total)
    return np.add(top, logarithm, logarithm)[..., 0]


def _difference(x: Array, top: Array, out: Array) -> Array:
    """Return x - top, which is -inf of numbers near both ends of their range, without a warning."""
    quietly(np.subtract, x, top, out)
    return out


def _largest_of_rows(x: Array) -> Array:
    found: Array = _maximum(x, -1, None, None, True)
    return found


def _sums_of_rows(x: Array) -> Array:
    found: Array = _add(x, -1, None, None, True)
    return found


def _largest_by_columns(x: Array) -> Array:
    """Return the largest number of each row, as `_largest_of_rows`, column by column."""
    found = x[..., :1].copy()
    for column in range(1, x.shape[-1]):
        np.maximum(found, x[..., column : column + 1], out=found)
    return found


def _sums_by_columns(x: Array) -> Array:
    """Return the sum of each row column by column: the bits of `_sums_of_rows`.

    NumPy adds fewer than 8 numbers from the first to the last.
    """
    found = x[..., :1].copy()
    for column in range(1, x.shape[-1]):
        np.add(found, x[..., column : column + 1], found)
    return found
