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
from argand.runtime.cpu.quiet import quietly
from argand.softmax import cpu
from argand.softmax.cpu import EXACT_KINDS, RECIPROCAL_COLUMNS, UNSHIFTED

if TYPE_CHECKING:
    from argand.softmax.problem import SoftmaxProblem

Run = Callable[[Array, "Array | None"], Array]
"""Computes a problem of x, and the memory of the result or None."""
_Reduction = Callable[[Array], Array]
"""Returns one number for each row, (..., 1)."""
# Arguments by their places take less time: the axis, a type, memory, whether the axis stays.
_add: Any = np.add.reduce
_maximum: Any = np.maximum.reduce
_LINE_BYTES = 64
"""Bytes of the largest row whose largest numbers take less time column by column: a line of a
cache. NumPy reduces each row by itself."""
_ROWS_PER_COLUMN = 20
"""Fewest rows for each column where they do."""
_SUMMED_COLUMNS = 7
"""Most columns whose sums take less time column by column; with more they would have other bits."""
_SUMMED_ROWS_PER_COLUMN = 48
"""Fewest rows for each column where sums do."""
_ZEROS: dict[Any, Any] = {kind: np.zeros((), kind) for kind in (np.float32, np.float64)}
"""Arrays, which NumPy's functions take sooner than Python's numbers."""


def prepared(problem: SoftmaxProblem) -> Run:
    """Return a function that computes a problem; ``out`` is checked."""
    kind = EXACT_KINDS[problem.precision.real_output]
    plain = problem.precision.exact_operands and problem.input == problem.output == kind
    numbers = math.prod(problem.shape)
    whole = partial(cpu.softmax, problem)
    step = _STEPS.get(problem.operation)
    if (
        not plain
        or step is None
        or problem.scale != 1
        or not 0 < problem.columns <= cpu.TILE_COLUMNS
        or not numbers
    ):
        return whole
    found = partial(_finite, step, *_reductions(problem))
    if numbers <= cpu.BLOCK_VALUES:
        return partial(_at_once, found, whole)
    return partial(cpu.softmax, problem, solve=partial(_block, found, problem))


def _reductions(problem: SoftmaxProblem) -> tuple[_Reduction, _Reduction]:
    """Return the fastest functions for the largest numbers of rows and for their sums."""
    rows, columns = problem.rows, problem.columns
    row_bytes = columns * np.dtype(problem.precision.real_output).itemsize
    short = row_bytes <= _LINE_BYTES and rows >= _ROWS_PER_COLUMN * columns
    few = columns <= _SUMMED_COLUMNS and rows >= _SUMMED_ROWS_PER_COLUMN * columns
    return (
        _largest_by_columns if short else _largest_of_rows,
        _sums_by_columns if few else _sums_of_rows,
    )


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
    step: Callable[..., Array], largest: _Reduction, sums: _Reduction, x: Array,
    memory: Array | None,
) -> Array | None:  # fmt: skip
    """Return rows by a step, in ``memory`` of the result where the step can; None: not finite."""
    top = largest(x)
    # Their places take NumPy half as long as the numbers; that of a NaN is the least and largest.
    lowest, highest = top.item(top.argmin()), top.item(top.argmax())
    finite = -math.inf < lowest <= highest < math.inf
    return step(x, top, lowest, highest, sums, memory) if finite else None


def _softmax(
    x: Array, top: Array, lowest: Any, highest: Any, sums: _Reduction, memory: Array | None
) -> Array:
    """Return exponentials over their sums: rows whose exponents are not large are not shifted."""
    found: Array = np.empty(x.shape, x.dtype) if memory is None else memory
    shift = _ZEROS[x.dtype.type]
    if highest > UNSHIFTED:
        shift = np.where((top >= 0) & (top <= UNSHIFTED), shift, top)
        np.exp(_difference(x, shift, found), found)
    elif lowest < 0:
        shift = np.minimum(top, shift)
        np.exp(np.subtract(x, shift, found), found)
    else:
        np.exp(x, found)
    total = sums(found)
    columns = x.shape[-1]
    if columns >= RECIPROCAL_COLUMNS and cpu.takes_reciprocal(columns, total, top - shift):
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


_STEPS = {"softmax": _softmax, "log_softmax": _log_softmax, "logsumexp": _logsumexp}
"""The steps of each operation on finite rows; an operation without any is `cpu.softmax` alone."""


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
