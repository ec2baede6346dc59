"""Products on the CPU with the rounding of the GPU's kernels: the model of every precision.

Operands are rounded and split as the hardware and our CUDA kernels do it, then multiplied by BLAS
in the accumulator's type, so what a precision costs in accuracy can be seen without a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from argand.gemm.cpu_skinny import multiplication
from argand.gemm.modular.moduli import EXACT_ALGORITHM
from argand.precision import Precision
from argand.rounding import (
    LARGEST_SHIFT,
    Array,
    power_of_two,
    scale_exponents,
    split,
)

if TYPE_CHECKING:
    from argand.gemm.operands import Side
    from argand.gemm.problem import GemmProblem

_BLOCK_VALUES = 1 << 19
"""Values that are processed at a time, so that they stay in the last-level cache."""
_SPILL_K = 1024
"""Longest sums over k of the largest products of terms. Shorter ones would hardly be more accurate,
because BLAS adds up some hundred products at a time anyway."""
_K_AXIS = {"a": -1, "b": -2}
"""The axis of k in the operand on each side of the product."""


def gemm_algorithm(precision: Precision) -> str:
    """Return the BLAS routine that `gemm` runs for a precision, for records."""
    if precision.moduli:
        return EXACT_ALGORITHM
    routine = "zgemm" if precision.output == "complex128" else "cgemm"
    return routine if len(precision.products) == 1 else f"{len(precision.products)} x {routine}"


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms of an operand: ``values``, the largest first, oriented by its op.

    ``exponents`` are those of the powers of two by which its rows along k (columns of b) were
    multiplied before rounding, with k as length 1; None where the precision does not scale.
    """

    values: list[Array]
    exponents: Array | None

    @property
    def nbytes(self) -> int:
        """Bytes of all terms and exponents."""
        exponents = 0 if self.exponents is None else self.exponents.nbytes
        return exponents + sum(term.nbytes for term in self.values)


def terms_of(x: Array, op: str, precision: Precision, side: Side) -> Terms:
    """Return the terms of op(x) as left (a) or right (b) operand; at fp64 and fp32 perhaps x."""
    if precision.exact_operands:
        return Terms([_whole(x, op, precision)], None)
    x = oriented(x, op).astype(precision.output, copy=False)
    if not precision.scaled:
        return Terms(split(x, precision), None)
    exponents = scale_exponents(x, _K_AXIS[side], precision.operand)
    return Terms(split(x, precision, exponents), exponents)


def pack(x: Array, op: str, precision: Precision, side: Side) -> Terms:
    """Return the terms that `gemm` makes of an operand, in memory of their own.

    Their rows, or their columns, are contiguous as there, so that BLAS gives the same bits.
    """
    terms = terms_of(x, op, precision, side)
    own = [_copied(t) if np.may_share_memory(t, x) else t for t in terms.values]
    return Terms(own, terms.exponents)


def _copied(x: Array) -> Array:
    """Return a copy by rows, or by columns where those of x are contiguous and its rows are not."""
    if x.strides[-1] == x.itemsize:
        return x.copy()
    return x.swapaxes(-1, -2).copy().swapaxes(-1, -2)


def gemm(
    problem: GemmProblem, a: Array | Terms, b: Array | Terms, c: Array | None = None,
    out: Array | None = None,
) -> Array:  # fmt: skip
    """Solve a GemmProblem; shapes and ``out`` are already checked. Terms come from `pack`."""
    precision = problem.precision
    # Where out is a or b, NumPy's matmul copies the operand that it would overwrite.
    target = np.empty(problem.shape, precision.output) if out is None else out
    # C is read before the product is written, because out may be c.
    addend = None
    if problem.beta != 0 and c is not None:
        addend = _times(problem.beta, c, precision)
    if problem.alpha == 0 or problem.k == 0:
        target[...] = 0
    else:
        _multiply(problem, a, b, target)
        if problem.alpha != 1:
            np.multiply(target, np.array(problem.alpha, precision.output), out=target)
    if addend is not None:
        target += addend
    return target


def _times(beta: complex, c: Array, precision: Precision) -> Array:
    """Return beta C in memory of its own; 1 C is C, where a product makes NaN of infinities."""
    if beta == 1:
        return np.array(c, precision.output)
    made: Array = np.multiply(c, np.array(beta, precision.output), dtype=precision.output)
    return made


def _multiply(problem: GemmProblem, a: Array | Terms, b: Array | Terms, out: Array) -> None:
    """Compute out = op(a) op(b)."""
    precision = problem.precision
    if precision.exact_operands:
        left, right = _whole(a, problem.op_a, precision), _whole(b, problem.op_b, precision)
        multiplication(problem)(left, right, out)
        return
    a_terms = a if isinstance(a, Terms) else terms_of(a, problem.op_a, precision, "a")
    b_terms = b if isinstance(b, Terms) else terms_of(b, problem.op_b, precision, "b")
    multiply_terms(a_terms, b_terms, precision, out)


def _whole(x: Array | Terms, op: str, precision: Precision) -> Array:
    """Return the one term of op(x) where nothing is rounded, perhaps x."""
    if isinstance(x, Terms):
        return x.values[0]
    return _for_blas(oriented(x, op).astype(precision.output, copy=False))


def oriented(x: Array, op: str) -> Array:
    """Return op(x): x, its transpose, or its conjugate transpose, over the last two axes."""
    if op == "N":
        return x
    x = np.swapaxes(x, -1, -2)
    return np.conj(x) if op == "C" else x


def _for_blas(x: Array) -> Array:
    """Return x, or a copy where neither its rows nor its columns are contiguous.

    NumPy multiplies other layouts without BLAS, and BLAS sums vectors with gaps in another order.
    Sums must depend on nothing that `pack` does not keep.
    """
    (rows, columns), (down, along) = x.shape[-2:], x.strides[-2:]
    item = x.itemsize
    if 1 in (rows, columns):
        together = (along if rows == 1 else down) == item
    else:
        by_rows = along == item and down % item == 0 and down // item >= columns
        together = by_rows or (down == item and along % item == 0 and along // item >= rows)
    return x if together else np.ascontiguousarray(x)


def multiply_terms(a: Terms, b: Terms, precision: Precision, out: Array) -> None:
    """Compute out, the sum of the products of terms that the precision keeps."""
    partial = np.empty_like(out) if len(precision.products) > 1 else None
    for index, (left, right) in enumerate(_factors(a, b, precision)):
        if index == 0 or partial is None:
            np.matmul(left, right, out=out)
        else:
            np.matmul(left, right, out=partial)
            out += partial
    if a.exponents is not None and b.exponents is not None:
        _descale(out, a.exponents, b.exponents)


def _factors(a: Terms, b: Terms, precision: Precision) -> Iterator[tuple[Array, Array]]:
    """Yield the pairs of factors that BLAS multiplies, in the order of the sum.

    The smallest products come first, so that they are not lost in the sum of the large ones. The
    largest of several is summed over `_SPILL_K` at a time, as the GPU's accumulators spill, because
    the error of a sum grows with its length.
    """
    for i, j in precision.products:
        left, right = a.values[i], b.values[j]
        whole = len(precision.products) == 1 or (i, j) != (0, 0)
        step = max(left.shape[-1], 1) if whole else _SPILL_K
        for start in range(0, left.shape[-1], step):
            k = slice(start, start + step)
            yield left[..., k], right[..., k, :]


def _descale(out: Array, rows: Array, columns: Array) -> None:
    """Compute out *= 2^-(rows + columns), exact also where a single power leaves fp32's range."""
    step = max(1, _BLOCK_VALUES * out.shape[-2] // max(1, out.size))
    for start in range(0, out.shape[-2], step):
        block = (..., slice(start, start + step), slice(None))
        exponents = -(rows[block] + columns)
        if np.abs(exponents).max(initial=0) <= LARGEST_SHIFT:
            out[block] *= power_of_two(exponents)
        else:
            out.real[block] = np.ldexp(out.real[block], exponents)
            out.imag[block] = np.ldexp(out.imag[block], exponents)
