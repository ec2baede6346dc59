"""The kernels on the CPU, with the rounding of the GPU's: the model of every precision.

Operands are rounded and split as the hardware and our CUDA kernels do it, then multiplied by BLAS
in the accumulator's type, so what a precision costs in accuracy can be seen without a GPU.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from argand.device import available_cores
from argand.precision import Precision
from argand.rounding import Array, power_of_two, round_operand, scale_exponents, split

if TYPE_CHECKING:
    from argand.gemm import GemmProblem
    from argand.softmax import SoftmaxProblem

_TILE_COLUMNS = 32768
"""Columns of a softmax tile: an element is read once where a row is not longer than a tile."""
_BLOCK_VALUES = 1 << 19
"""Values of the rows that a thread works on at a time: they stay in the last-level cache, and
NumPy's calls are long enough that threads seldom wait for each other's hold of the interpreter."""


def gemm_algorithm(precision: Precision) -> str:
    """What `gemm` runs for a precision, for the record."""
    routine = "zgemm" if precision.output == "complex128" else "cgemm"
    return routine if len(precision.products) == 1 else f"{len(precision.products)} x {routine}"


def gemm(problem: GemmProblem, a: Array, b: Array, c: Array | None, out: Array | None) -> Array:
    """Solve a GemmProblem; shapes and ``out`` are already checked."""
    precision = problem.precision
    if out is None:
        target = np.empty(problem.shape, precision.output)
    elif any(x is not None and np.may_share_memory(out, x) for x in (a, b)):
        target = np.empty_like(out)
    else:
        target = out
    # C is taken before the product is written, because out may be c.
    addend = None
    if problem.beta != 0 and c is not None:
        addend = np.multiply(c, np.array(problem.beta, precision.output), dtype=precision.output)
    if problem.alpha == 0 or problem.k == 0:
        target[...] = 0
    else:
        _product(_oriented(a, problem.op_a), _oriented(b, problem.op_b), precision, target)
        if problem.alpha != 1:
            np.multiply(target, np.array(problem.alpha, precision.output), out=target)
    if addend is not None:
        target += addend
    if out is not None and target is not out:
        out[...] = target
        return out
    return target


def _oriented(x: Array, op: str) -> Array:
    if op == "N":
        return x
    x = np.swapaxes(x, -1, -2)
    return np.conj(x) if op == "C" else x


def _product(a: Array, b: Array, precision: Precision, out: Array) -> None:
    """out = a b, each operand replaced by its terms."""
    complex_type = np.dtype(precision.output)
    a = a.astype(complex_type, copy=False)
    b = b.astype(complex_type, copy=False)
    if precision.scaled:
        rows, columns = scale_exponents(a, -1), scale_exponents(b, -2)
        a, b = a * power_of_two(rows), b * power_of_two(columns)
    terms_a, terms_b = split(a, precision), split(b, precision)
    partial = np.empty_like(out) if len(precision.products) > 1 else None
    # The smallest products come first, so that they are not lost in the sum of the large ones.
    for index, (i, j) in enumerate(precision.products):
        if index == 0 or partial is None:
            np.matmul(terms_a[i], terms_b[j], out=out)
        else:
            np.matmul(terms_a[i], terms_b[j], out=partial)
            out += partial
    if precision.scaled:
        _unscale(out, rows, columns)


def _unscale(out: Array, rows: Array, columns: Array) -> None:
    """out *= 2^-(rows + columns), exact even where the two powers apart leave fp32's range."""
    exponents = -(rows + columns)
    if np.abs(exponents).max(initial=0) <= 126:
        out *= power_of_two(exponents)
    else:
        out.real = np.ldexp(out.real, exponents)
        out.imag = np.ldexp(out.imag, exponents)


def softmax(problem: SoftmaxProblem, x: Array, out: Array | None) -> Array:
    """Solve a SoftmaxProblem, its rows shared among threads."""
    real_type = np.dtype(problem.precision.real_output)
    target = out if out is not None else np.empty(problem.shape, real_type)
    rows = x.reshape(-1, problem.columns)
    contiguous = target.flags.c_contiguous
    results = target.reshape(rows.shape) if contiguous else np.empty(rows.shape, real_type)
    step = max(1, _BLOCK_VALUES // problem.columns)
    starts = range(0, len(rows), step)

    def work(start: int) -> None:
        block = slice(start, start + step)
        _softmax_rows(rows[block], results[block], problem)

    if len(starts) > 1 and available_cores() > 1:
        with ThreadPoolExecutor(available_cores()) as pool:
            for _ in pool.map(work, starts):
                pass
    else:
        for start in starts:
            work(start)
    if not contiguous:
        target[...] = results.reshape(problem.shape)
    return target


def _softmax_rows(x: Array, out: Array, problem: SoftmaxProblem) -> None:
    """The tiled recurrence over some rows; ``out`` is a contiguous (rows, columns) of its type."""
    tiles = [
        slice(start, start + _TILE_COLUMNS) for start in range(0, problem.columns, _TILE_COLUMNS)
    ]
    scale = scale_exponents(x, -1) if problem.precision.scaled else None
    running_max = np.full((len(x), 1), -np.inf, out.dtype)
    running_sum = np.zeros((len(x), 1), out.dtype)
    shifts = []
    # inf - inf is meant: a row of -inf alone, or with +inf in it, is NaN, as in SciPy.
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        for tile in tiles:
            values = _operand(x[:, tile], problem.precision, scale)
            tile_max = values.max(axis=-1, keepdims=True)
            shift = np.where(tile_max == -np.inf, 0, tile_max)
            exponentials = out[:, tile]
            np.subtract(values, shift, out=exponentials)
            if problem.log:
                exponentials = np.exp(exponentials)
            else:
                np.exp(exponentials, out=exponentials)
            tile_sum = exponentials.sum(axis=-1, keepdims=True)
            new_max = np.maximum(running_max, tile_max)
            running_sum = _rescale(running_sum, running_max, new_max) + _rescale(
                tile_sum, tile_max, new_max
            )
            running_max = new_max
            shifts.append(shift)
        for tile, shift in zip(tiles, shifts, strict=True):
            if problem.log:
                out[:, tile] += shift - running_max
                out[:, tile] -= np.log(running_sum)
            else:
                # A tile of -inf alone has shift 0, maybe far above the row: 0 x e^inf is NaN.
                out[:, tile] *= np.exp(np.minimum(shift - running_max, 0)) / running_sum


def _rescale(total: Array, old_max: Array, new_max: Array) -> Array:
    """e^(old - new) total; 0 where nothing finite was seen yet."""
    return np.where(old_max == -np.inf, 0, np.exp(old_max - new_max) * total)


def _operand(x: Array, precision: Precision, scale: Any) -> Array:
    """Values as the precision holds them, in the accumulator's type."""
    values = x.astype(precision.real_output, copy=False)
    if scale is None:
        return round_operand(values, precision)
    return np.asarray(round_operand(values * power_of_two(scale), precision) * power_of_two(-scale))
