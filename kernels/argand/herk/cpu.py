"""Hermitian rank-k products on the CPU: BLAS's herk, and the model of every other precision.

Operands are rounded as `argand.gemm.cpu` rounds them, which is as the kernels of GPUs do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from argand.gemm.cpu import Terms, multiply_terms, terms_of
from argand.gemm.modular.api import modular_gemm
from argand.gemm.modular.exact import RANGES
from argand.gemm.modular.moduli import EXACT
from argand.gemm.pairs import Pairs
from argand.herk.problem import HerkProblem, triangle_length
from argand.precision import Precision
from argand.runtime.complex_types import PREFIX

Array = npt.NDArray[Any]
_PANEL = 256
"""Rows of the lower triangle that are multiplied at a time."""
_BLAS_ROWS = 48
"""Fewest rows for which a call of herk for each product pays beside one call of matmul for all."""


def herk_algorithm(precision: Precision) -> str:
    """Return the BLAS routine that `herk` runs for a precision, for records."""
    if precision.moduli:
        return "integers, two real products a modulus, full product"
    prefix = PREFIX[precision.output]
    if precision.exact_operands:
        return f"{prefix}herk"
    count = len(precision.products)
    return (
        f"{prefix}gemm, lower triangle" if count == 1 else f"{count} x {prefix}gemm, lower triangle"
    )


def herk(problem: HerkProblem, a: Array | Pairs, c: Array | None) -> Array:
    """Return the result of a `HerkProblem` as a new array; shapes are checked, op is N or C."""
    shape = (*problem.batch_shape, problem.n, problem.n)
    found = np.zeros(shape, problem.dtype)
    if problem.alpha != 0 and problem.k and found.size:
        with np.errstate(all="ignore"):
            _lower(problem, a, found)
    return _finished(problem, found, c)


def _lower(problem: HerkProblem, a: Array | Pairs, out: Array) -> None:
    """Compute the lower triangle of op(A) op(A)^H; what is above the diagonal is left to chance."""
    precision = problem.precision
    if precision is None and _fits_fp64(problem, a):
        _by_blas(problem, _array(a).astype(np.complex128), out)
    elif precision is None or precision.moduli:
        modular_gemm(
            a, a, None, alpha=1, beta=0, op_a=problem.op, op_b=problem.other_op,
            precision=EXACT if precision is None else precision.name, tolerance=None, check=False,
            out=out,
        )  # fmt: skip
    elif precision.exact_operands and problem.n >= _BLAS_ROWS:
        _by_blas(problem, _array(a).astype(precision.output, copy=False), out)
    else:
        _by_terms(problem.n, terms_of(_array(a), problem.op, precision, "a"), precision, out)


def _array(a: Array | Pairs) -> Array:
    return np.asarray(a.to_complex64()) if isinstance(a, Pairs) else a


def _fits_fp64(problem: HerkProblem, a: Array | Pairs) -> bool:
    """Return whether fp64 holds every sum of products of integers, in any order."""
    assert isinstance(a, Pairs)
    numbers = RANGES[a.format]
    return 2 * problem.k * (numbers.largest << numbers.fraction_bits) ** 2 < 1 << 53


def _by_blas(problem: HerkProblem, a: Array, out: Array) -> None:
    """Compute the lower triangles by herk, which reads a column-major matrix.

    It is given A^T and computes C^T, whose upper triangle is the lower one of C.
    """
    from scipy.linalg import blas

    routine = getattr(blas, f"{PREFIX[str(a.dtype)]}herk")
    transposed = 2 if problem.op == "N" else 0  # conj(A) A^T or A^T conj(A)
    for index in np.ndindex(problem.batch_shape):
        out[index] = routine(1.0, a[index].T, trans=transposed, lower=0).T


def _by_terms(n: int, left: Terms, precision: Precision, out: Array) -> None:
    """Compute the lower triangle by panels of rows, from the terms of the rows alone."""
    for start in range(0, n, _PANEL):
        rows, columns = slice(start, start + _PANEL), slice(0, start + _PANEL)
        multiply_terms(
            _rows(left, rows), _conjugate_transposed(_rows(left, columns)), precision,
            out[..., rows, columns],
        )  # fmt: skip


def _rows(terms: Terms, some: slice) -> Terms:
    exponents = None if terms.exponents is None else terms.exponents[..., some, :]
    return Terms([x[..., some, :] for x in terms.values], exponents)


def _conjugate_transposed(terms: Terms) -> Terms:
    exponents = None if terms.exponents is None else np.swapaxes(terms.exponents, -1, -2)
    return Terms([np.conj(np.swapaxes(x, -1, -2)) for x in terms.values], exponents)


def _finished(problem: HerkProblem, found: Array, c: Array | None) -> Array:
    """Return alpha times the lower triangle plus beta C in the problem's form."""
    lowest = np.empty(problem.shape, problem.dtype) if problem.form == "triangle" else found
    for start in range(0, problem.n, _PANEL):
        rows = range(start, min(start + _PANEL, problem.n))
        with np.errstate(all="ignore"):
            panel = _combined(problem, found, c, rows)
        if problem.form == "triangle":
            for i in rows:
                lowest[..., triangle_length(i) : triangle_length(i + 1)] = panel[
                    ..., i - start, : i + 1
                ]
            continue
        found[..., rows, : rows.stop] = panel
        found[..., : rows.stop, rows] = np.conj(np.swapaxes(panel, -1, -2))
    return lowest


def _combined(problem: HerkProblem, found: Array, c: Array | None, rows: range) -> Array:
    """Return some rows up to their last diagonal element, Hermitian where they cross it."""
    panel = found[..., rows, : rows.stop]
    real = panel.real.dtype.type
    if problem.alpha != 1:
        panel.real *= real(problem.alpha)
        panel.imag *= real(problem.alpha)
    if c is not None:
        addend = _addend(problem, c, rows)
        panel.real += real(problem.beta) * addend.real.astype(real)
        panel.imag += real(problem.beta) * addend.imag.astype(real)
    crossing = panel[..., :, rows.start :]
    crossing.imag[..., range(len(rows)), range(len(rows))] = 0
    mirrored = np.conj(np.swapaxes(crossing, -1, -2))
    np.copyto(crossing, mirrored, where=np.tri(len(rows), k=-1, dtype=bool).T)
    return panel


def _addend(problem: HerkProblem, c: Array, rows: range) -> Array:
    """Return some rows of C up to their last diagonal element, zeros above it in a triangle."""
    if problem.form == "full":
        return c[..., rows, : rows.stop]
    found = np.zeros((*problem.batch_shape, len(rows), rows.stop), c.dtype)
    for i in rows:
        found[..., i - rows.start, : i + 1] = c[..., triangle_length(i) : triangle_length(i + 1)]
    return found
