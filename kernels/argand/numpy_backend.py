"""The kernels on the CPU, with the rounding of the GPU's: the model of every precision.

Operands are rounded and split as the hardware and our CUDA kernels do it, then multiplied by BLAS
in the accumulator's type, so what a precision costs in accuracy can be seen without a GPU.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from argand.device import available_cores
from argand.precision import Precision
from argand.rounding import (
    LARGEST_SHIFT,
    Array,
    power_of_two,
    round_operand,
    scale_exponents,
    split,
)

if TYPE_CHECKING:
    from argand.gemm import GemmProblem
    from argand.operands import Side
    from argand.softmax import SoftmaxProblem

_TILE_COLUMNS = 32768
"""Columns of a softmax tile: an element is read once where a row is not longer than a tile."""
_BLOCK_VALUES = 1 << 19
"""Values of the rows that a thread works on at a time: they stay in the last-level cache, and
NumPy's calls are long enough that threads seldom wait for each other's hold of the interpreter."""
_K_AXIS = {"a": -1, "b": -2}
"""Where k lies in the operand on each side of the product."""


def gemm_algorithm(precision: Precision) -> str:
    """What `gemm` runs for a precision, for the record."""
    routine = "zgemm" if precision.output == "complex128" else "cgemm"
    return routine if len(precision.products) == 1 else f"{len(precision.products)} x {routine}"


@dataclass(frozen=True, eq=False)
class Terms:
    """What an operand is multiplied as: ``values``, the largest term first, oriented by its op.

    ``exponents`` are of the powers of two by which its lines along k were multiplied before
    rounding, with k as length 1; None where the precision does not scale.
    """

    values: list[Array]
    exponents: Array | None

    @property
    def nbytes(self) -> int:
        """Memory that it takes."""
        exponents = 0 if self.exponents is None else self.exponents.nbytes
        return exponents + sum(term.nbytes for term in self.values)


def terms_of(x: Array, op: str, precision: Precision, side: Side) -> Terms:
    """The terms of op(x) as the left (a) or right (b) operand; at fp64 and fp32 maybe x itself."""
    x = _oriented(x, op).astype(precision.output, copy=False)
    if precision.exact_operands:
        return Terms([_for_blas(x)], None)
    if not precision.scaled:
        return Terms(split(x, precision), None)
    exponents = scale_exponents(x, _K_AXIS[side])
    return Terms(split(x, precision, exponents), exponents)


def pack(x: Array, op: str, precision: Precision, side: Side) -> Terms:
    """The terms that `gemm` makes of an operand, in memory of their own.

    They lie in the same order, rows or columns together, so that BLAS gives the same bits.
    """
    terms = terms_of(x, op, precision, side)
    own = [np.array(t, order="K") if np.may_share_memory(t, x) else t for t in terms.values]
    return Terms(own, terms.exponents)


def gemm(
    problem: GemmProblem, a: Array | Terms, b: Array | Terms, c: Array | None, out: Array | None
) -> Array:
    """Solve a GemmProblem; shapes and ``out`` are already checked. Terms are of `pack`."""
    precision = problem.precision
    if out is None:
        target = np.empty(problem.shape, precision.output)
    elif any(not isinstance(x, Terms) and np.may_share_memory(out, x) for x in (a, b)):
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
        left = a if isinstance(a, Terms) else terms_of(a, problem.op_a, precision, "a")
        right = b if isinstance(b, Terms) else terms_of(b, problem.op_b, precision, "b")
        _product(left, right, precision, target)
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


def _for_blas(x: Array) -> Array:
    """x, or a copy where neither its rows nor its columns lie together.

    NumPy multiplies other layouts in a way of its own, and BLAS takes the dot product of vectors
    with gaps in another order: sums are to depend on nothing that `pack` does not keep.
    """
    (rows, columns), (down, along) = x.shape[-2:], x.strides[-2:]
    item = x.itemsize
    if 1 in (rows, columns):
        together = (along if rows == 1 else down) == item
    else:
        by_rows = along == item and down % item == 0 and down // item >= columns
        together = by_rows or (down == item and along % item == 0 and along // item >= rows)
    return x if together else np.ascontiguousarray(x)


def _product(a: Terms, b: Terms, precision: Precision, out: Array) -> None:
    """out = the sum of the products of terms that the precision keeps."""
    partial = np.empty_like(out) if len(precision.products) > 1 else None
    # The smallest products come first, so that they are not lost in the sum of the large ones.
    for index, (i, j) in enumerate(precision.products):
        if index == 0 or partial is None:
            np.matmul(a.values[i], b.values[j], out=out)
        else:
            np.matmul(a.values[i], b.values[j], out=partial)
            out += partial
    if a.exponents is not None and b.exponents is not None:
        _unscale(out, a.exponents, b.exponents)


def _unscale(out: Array, rows: Array, columns: Array) -> None:
    """out *= 2^-(rows + columns), exact even where the two powers apart leave fp32's range."""
    step = max(1, _BLOCK_VALUES * out.shape[-2] // max(1, out.size))
    for start in range(0, out.shape[-2], step):
        block = (..., slice(start, start + step), slice(None))
        exponents = -(rows[block] + columns)
        if np.abs(exponents).max(initial=0) <= LARGEST_SHIFT:
            out[block] *= power_of_two(exponents)
        else:
            out.real[block] = np.ldexp(out.real[block], exponents)
            out.imag[block] = np.ldexp(out.imag[block], exponents)


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
