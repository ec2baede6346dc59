"""Beam power in blocks of bins: products by `argand.gemm`, then their squares, on any device.

It is the model of every precision on the CPU, and what GPUs compute at fp64 and fp32 by cuBLAS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from argand.beam_power.problem import LONGEST_SUM, BeamPowerProblem
from argand.gemm.api import gemm
from argand.gemm.cpu import terms_of
from argand.gemm.pack.api import pack
from argand.gemm.pairs import Pairs
from argand.precision import PRECISIONS
from argand.runtime.cpu.quiet import quietly

Run = Callable[[Any, Any, Any], Any]
"""Computes the result of weights and samples, in the third argument where that is an array."""
_BLOCK_VALUES = {"numpy": 1 << 17, "cupy": 1 << 24}
"""Beams that are made at a time: on the CPU they and their squares stay in a core's cache."""
_PART_BYTES = 1 << 19
"""Bytes of beams that are made at a time where they are products of NumPy's."""

_MANY_TERMS, _FEW_SUMS = 64, 512
"""Terms of a sum from which BLAS's dot product takes less time than einsum, whatever their number;
sums up to which a call of it takes less time."""
_FEW_TERMS = 4
"""Terms up to which einsum takes longer than to add all sums' first terms, then their second."""


def prepared(problem: BeamPowerProblem, w: Any, x: Any) -> Run:
    """Return a function that computes a problem of checked NumPy arrays of the form of w and x."""
    if problem.antennas and prod(problem.shape) and _is_by_matmul(problem, w, x):
        typed = all(one.dtype == problem.precision.output for one in (w, x))
        if problem.batch * _product_values(problem) <= _BLOCK_VALUES["numpy"]:
            return _in_one_block(problem, typed)
        if typed and w.shape[:-2] == x.shape[:-2]:
            return partial(_in_parts, problem)
    return partial(in_blocks, problem, arrays=np)


def in_blocks(problem: BeamPowerProblem, w: Any, x: Any, out: Any, arrays: Any) -> Any:
    """Return the result of a problem whose arguments are checked.

    ``arrays`` is NumPy or CuPy, which holds the operands. Memory beside the result: one block of
    complex beams.
    """
    found = arrays.empty(problem.shape, problem.dtype) if out is None else out
    if not found.size:
        return found
    if not problem.antennas:
        found[...] = 0
        return found
    values = _BLOCK_VALUES[arrays.__name__]
    together = max(1, min(problem.batch, values // _product_values(problem)))
    with np.errstate(all="ignore"):
        for first in range(0, problem.batch, together):
            index = _index(problem, first, together)
            left, right = (_chosen(problem, one, index, arrays) for one in (w, x))
            packed = pack(left, side="a", precision=problem.precision)
            for bins in _bins(problem, together, arrays):
                place = (*index, ..., bins)
                for number, times in enumerate(_parts(problem, bins)):
                    beams = gemm(packed, _columns(right, times), precision=problem.precision)
                    sums = _detected(problem, beams, bins.stop - bins.start, arrays)
                    found[place] = sums if number == 0 else found[place] + sums
    return found


def _is_by_matmul(problem: BeamPowerProblem, w: Any, x: Any) -> bool:
    """Return whether products of NumPy's are the beams, and bins are summed at once."""
    exact = problem.precision.exact_operands and problem.integrate <= LONGEST_SUM
    return exact and not isinstance(w, Pairs) and not isinstance(x, Pairs)


def _in_one_block(problem: BeamPowerProblem, typed: bool) -> Run:
    """Return a function that computes a small problem in one block, faster than in several.

    Operands that are ``typed`` as the precision are multiplied as they are where they are
    contiguous.
    """
    times, precision = problem.bins * problem.integrate, problem.precision
    whole, real = times == problem.samples, np.dtype(problem.dtype)
    shape = *problem.shape[:-1], problem.bins, 2 * problem.integrate
    dot, is_power = _dot_of(shape[-1], prod(shape[:-1])), problem.detect == "power"

    def detected(w: Any, columns: Any) -> Any:
        beams = np.matmul(w, columns)
        if not is_power:
            return _detected(problem, beams, problem.bins, np)
        parts = beams.view(real).reshape(shape)
        return dot(parts, parts)

    def run(w: Any, x: Any, out: Any) -> Any:
        columns = x if whole else x[..., :times]
        if not (typed and w.flags.c_contiguous and columns.flags.c_contiguous):
            w = terms_of(w, "N", precision, "a").values[0]
            columns = terms_of(columns, "N", precision, "b").values[0]
        found = quietly(detected, w, columns)
        if out is None:
            return found
        out[...] = found
        return out

    return run


def _in_parts(problem: BeamPowerProblem, w: Any, x: Any, out: Any) -> Any:
    """Return the result for operands of the precision's type and equal leading axes.

    It computes some matrices at a time, or some bins of one, whose beams stay in a core's cache.
    """
    if not (w.flags.c_contiguous and x.flags.c_contiguous):
        return in_blocks(problem, w, x, out, np)
    found = np.empty(problem.shape, problem.dtype) if out is None else out
    batch, inner = problem.batch, w.ndim - len(problem.batch_shape)
    w, x, sums = (one.reshape(batch, *one.shape[-inner:]) for one in (w, x, found))
    values = _PART_BYTES // w.itemsize
    together = max(1, min(batch, values // _product_values(problem)))
    step = max(1, values * problem.bins // (together * _product_values(problem)))
    with np.errstate(all="ignore"):
        for first in range(0, batch, together):
            some = slice(first, first + together)
            for start in range(0, problem.bins, step):
                bins = slice(start, min(start + step, problem.bins))
                times = slice(start * problem.integrate, bins.stop * problem.integrate)
                beams = np.matmul(w[some], x[some, ..., times])
                sums[some, ..., bins] = _detected(problem, beams, bins.stop - start, np)
    if not np.may_share_memory(sums, found):
        found[...] = sums.reshape(problem.shape)
    return found


def in_exact_blocks(problem: BeamPowerProblem, w: Any, x: Any, out: Any, arrays: Any) -> Any:
    """Return the result of a problem of int8 operands at `EXACT`: that of fp64, rounded to fp32."""
    wide = replace(problem, precision=PRECISIONS["fp64"])
    found = (
        prepared(wide, w, x)(w, x, None) if arrays is np else in_blocks(wide, w, x, None, arrays)
    )
    if out is None:
        return found.astype(problem.dtype)
    out[...] = found
    return out


def _product_values(problem: BeamPowerProblem) -> int:
    return max(1, problem.polarizations * problem.beams * problem.bins * problem.integrate)


def _index(problem: BeamPowerProblem, first: int, count: int) -> tuple[Any, ...]:
    """Return where some results stand along the leading axes: numbers for one, arrays for more."""
    if not problem.batch_shape:
        return ()
    if count == 1:
        return tuple(map(int, np.unravel_index(first, problem.batch_shape)))
    some = np.arange(first, min(first + count, problem.batch))
    return np.unravel_index(some, problem.batch_shape)


def _chosen(problem: BeamPowerProblem, x: Any, index: Any, arrays: Any) -> Any:
    """Return an operand's matrices of some results: a view of one, a copy of several."""
    parts = x.array if isinstance(x, Pairs) else x
    inner = parts.shape[x.ndim - 2 :]
    whole = arrays.broadcast_to(parts, (*problem.operand_batch, *inner))
    found = whole[index]
    return Pairs(found, x.format) if isinstance(x, Pairs) else found


def _columns(x: Any, times: slice) -> Any:
    return Pairs(x.array[..., times, :], x.format) if isinstance(x, Pairs) else x[..., times]


def _bins(problem: BeamPowerProblem, results: int, arrays: Any) -> Iterator[slice]:
    """Yield stretches of bins whose beams are made at a time."""
    if problem.integrate > LONGEST_SUM:
        yield from (slice(at, at + 1) for at in range(problem.bins))
        return
    of_bin = results * problem.polarizations * problem.beams * problem.integrate
    step = max(1, _BLOCK_VALUES[arrays.__name__] // of_bin)
    for start in range(0, problem.bins, step):
        yield slice(start, min(start + step, problem.bins))


def _parts(problem: BeamPowerProblem, bins: slice) -> Iterator[slice]:
    """Yield the samples of some bins, of one that is longer than `LONGEST_SUM` in parts."""
    first, last = bins.start * problem.integrate, bins.stop * problem.integrate
    step = LONGEST_SUM if problem.integrate > LONGEST_SUM else last - first
    for start in range(first, last, step):
        yield slice(start, min(start + step, last))


def _detected(problem: BeamPowerProblem, beams: Any, bins: int, arrays: Any) -> Any:
    """Return sums over bins of (..., beam, time), with two polarizations before beams at Stokes."""
    parts = beams.view(problem.dtype).reshape(*beams.shape[:-1], bins, -1)
    if problem.detect == "power":
        return _dot(parts, parts, arrays)
    x, y = parts[..., 0, :, :, :], parts[..., 1, :, :, :]
    re, im = (slice(start, None, 2) for start in (0, 1))
    xx, yy = _dot(x, x, arrays), _dot(y, y, arrays)
    u = _dot(x, y, arrays)
    v = _dot(x[..., re], y[..., im], arrays) - _dot(x[..., im], y[..., re], arrays)
    return arrays.stack([xx + yy, xx - yy, 2 * u, 2 * v], axis=-3)


def _dot(x: Any, y: Any, arrays: Any) -> Any:
    if arrays is not np:
        return (x * y).sum(axis=-1)
    return _dot_of(x.shape[-1], x.size // x.shape[-1])(x, y)


def _dot_of(terms: int, sums: int) -> Callable[[Any, Any], Any]:
    """Return the fastest way to sum ``terms`` products along the last axis, for ``sums`` sums."""
    if terms >= _MANY_TERMS or sums <= _FEW_SUMS:
        return np.vecdot
    return partial(np.einsum, "...t,...t->...") if terms > _FEW_TERMS else _add_terms


def _add_terms(x: Any, y: Any) -> Any:
    products = np.square(x) if x is y else x * y  # squares read one operand
    total = products[..., 0]
    for term in range(1, x.shape[-1]):
        total = total + products[..., term]
    return total
