"""Softmax of few numbers on the CPU, in as few of NumPy's steps as its rows allow.

The arithmetic is that of `argand.softmax.cpu`, to the bit. Rows of one tile that are finite need no
running sums.
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
from argand.softmax.cpu import ALONE, EXACT_KINDS, UNSHIFTED

if TYPE_CHECKING:
    from argand.softmax.problem import SoftmaxProblem

Run = Callable[[Array, "Array | None"], Array]
"""Computes a problem of x, and the memory of the result or None."""
# Arguments by their places take less time: the axis, a type, memory, whether the axis stays.
_add: Any = np.add.reduce
_minimum: Any = np.minimum.reduce
_maximum: Any = np.maximum.reduce
_all: Any = np.logical_and.reduce
_MOST_NUMBERS = 1 << 16
"""Numbers up to which NumPy's calls take longer than what they compute, or nearly so."""


def prepared(problem: SoftmaxProblem) -> Run:
    """Return what computes a problem; ``out`` is checked."""
    kind = EXACT_KINDS[problem.precision.real_output]
    plain = problem.precision.exact_operands and problem.input == problem.output == kind
    few = 0 < math.prod(problem.shape) <= _MOST_NUMBERS and problem.columns <= cpu.TILE_COLUMNS
    whole = partial(cpu.softmax, problem)
    if not plain or not few or problem.scale != 1:
        return whole
    steps = {"softmax": _softmax, "log_softmax": _log_softmax, "logsumexp": _logsumexp}
    return partial(_finite, whole, steps[problem.operation], problem.rows == 1)


def _finite(
    whole: Run, step: Callable[[Array, Array, Any, Any], Array], one: bool, x: Array,
    out: Array | None,
) -> Array:  # fmt: skip
    """Compute rows whose largest numbers are finite by a step, others by ``whole``."""
    top = _maximum(x, -1, None, None, True)
    if one:
        lowest = highest = top.item()
    else:
        lowest, highest = _minimum(top, None), _maximum(top, None)
    if not -math.inf < lowest <= highest < math.inf:  # nor where a row has NaN
        return whole(x, out)
    found = step(x, top, lowest, highest)
    if out is None:
        return found
    out[...] = found
    return out


def _softmax(x: Array, top: Array, lowest: Any, highest: Any) -> Array:
    """Return exponentials over their sums: rows whose exponents are not large are not shifted."""
    found: Array = np.empty(x.shape, x.dtype)
    if lowest >= 0 and highest <= UNSHIFTED:
        np.exp(x, found)
    else:
        if highest <= UNSHIFTED:
            shift = np.minimum(top, 0)
        else:
            shift = np.where((top >= 0) & (top <= UNSHIFTED), x.dtype.type(0), top)
        np.exp(_difference(x, shift, found), found)
        top = np.subtract(top, shift)
    total = _add(found, -1, None, None, True)
    # A term that is its row's whole sum has to give 1; a product with the reciprocal may not.
    if _all(total > ALONE * np.exp(top), None):
        np.multiply(found, 1 / total, found)
    else:
        np.divide(found, total, found)
    return found


def _log_softmax(x: Array, top: Array, lowest: Any, highest: Any) -> Array:
    found = _difference(x, top, np.empty(x.shape, x.dtype))
    total = _add(np.exp(found), -1, None, None, True)
    np.subtract(found, np.log(total), found)
    return found


def _logsumexp(x: Array, top: Array, lowest: Any, highest: Any) -> Array:
    terms = _difference(x, top, np.empty(x.shape, x.dtype))
    total = _add(np.exp(terms, terms), -1, None, None, True)
    logarithm: Array = np.log(total, total)
    return np.add(top, logarithm, logarithm)[..., 0]


def _difference(x: Array, top: Array, out: Array) -> Array:
    """Return x - top, which is -inf of numbers near both ends of their range, without a warning."""
    quietly(np.subtract, x, top, out)
    return out
