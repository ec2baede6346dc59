"""Hermitian rank-k products on the CPU: BLAS's herk, and the model of every other precision.

Operands are rounded as `argand.gemm.cpu` rounds them, which is as the kernels of GPUs do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from argand.gemm.cpu import Terms, multiply_terms, terms_of
from argand.gemm.modular.api import modular_gemm
from argand.gemm.modular.exact import RANGES
from argand.gemm.modular.moduli import EXACT
from argand.gemm.pairs import Pairs
from argand.herk.cpu_dot import all_dots, dotted, few_by_dots
from argand.herk.cpu_gather import alone, by_steps, gathered, in_place, is_gathered
from argand.herk.cpu_lower import (
    Steps,
    hermitian_rows,
    is_multiplied,
    limited,
    lower_of,
    takes_numpy_herk,
)
from argand.herk.cpu_mirror import mirror, mirrored
from argand.herk.cpu_padded import is_padded, padded
from argand.herk.cpu_parts import at_a_time, in_parts
from argand.herk.problem import HerkProblem, triangle_length
from argand.precision import Precision
from argand.runtime.complex_types import PREFIX
from argand.runtime.cpu.quiet import quiet_context

Array = npt.NDArray[Any]
Run = Callable[..., Array]
"""Computes a product of a, and of c where it is given; `into` also writes it into ``out``."""
_PANEL = 256
"""Rows of the lower triangle that are multiplied at a time."""


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


def prepared(problem: HerkProblem, a: Array | Pairs, c: Array | None) -> Run:
    """Return a function that computes a `HerkProblem` of operands of this form.

    It returns a new array. Shapes are checked, op is N or C, c is None or not read where it is not
    added.
    """
    if not _is_plain(problem, a, c):
        return partial(_herk, problem, limited(problem, lower_of(problem)))
    return limited(problem, _plain(problem), hermitian_rows(problem))


def _plain(problem: HerkProblem) -> Run:
    """Return a function that computes a problem that `_is_plain`."""
    if dotted(problem) is None and is_padded(problem):
        return padded(problem)
    matched = hermitian_rows(problem)
    by_herk = dotted(problem) is None and not is_multiplied(problem, matched)
    if by_herk and is_gathered(problem) and takes_numpy_herk(problem):
        return gathered(problem, in_place)
    if by_herk and is_gathered(problem) and problem.batch == 1:
        return alone(problem)
    lower, start = lower_of(problem, matched), 0 if by_herk else matched
    if start == problem.n and lower is all_dots and is_gathered(problem, start):
        return few_by_dots(problem)
    if is_gathered(problem, start):
        return gathered(problem, by_steps(lower), is_hermitian=start == problem.n)
    return _several(problem, lower, start)


def into(run: Run) -> Run:
    """Return a function that writes the result of ``run`` into ``out``, which may be c."""

    def written(a: Array | Pairs, c: Array | None = None, *, out: Array) -> Array:
        out[...] = run(a, c)
        return out

    return written


def _is_plain(problem: HerkProblem, a: Array | Pairs, c: Array | None) -> bool:
    """Return whether BLAS makes the products of a problem, which are only to be mirrored then."""
    if isinstance(a, Pairs) or c is not None or a.dtype != problem.dtype or not a.size:
        return False
    exact = problem.precision is not None and problem.precision.exact_operands
    return exact and problem.alpha == 1 and problem.form == "full"


def _several(problem: HerkProblem, lower: Steps, start: int) -> Run:
    """Return a function that computes products that are only to be mirrored (`_is_plain`).

    ``start`` rows and columns of contiguous operands' products are Hermitian (`hermitian_rows`).
    """
    finish = mirrored(problem, start)
    empty, shape, dtype = np.empty, problem.shape, np.dtype(problem.dtype)
    at_once = problem.batch <= at_a_time(problem)

    def part(a: Array, found: Array | None = None) -> Array:
        if start and not a.flags.c_contiguous:
            a = a.copy()
        if found is None:
            found = quiet_context().run(lower, a)
        else:
            quiet_context().run(lower, a, found)
        finish(a, found)
        return found

    def run(a: Array, c: Array | None = None) -> Array:
        if at_once:
            found = part(a) if start else part(a, empty(shape, dtype))
        else:
            found = empty(shape, dtype)
            in_parts(problem, part, a, found)
        return found

    return run


def _herk(problem: HerkProblem, lower: Steps, a: Array | Pairs, c: Array | None = None) -> Array:
    c = c if problem.beta else None
    found = np.empty((*problem.batch_shape, problem.n, problem.n), problem.dtype)
    lowest = np.empty(problem.shape, problem.dtype) if problem.form == "triangle" else found
    precision = problem.precision
    if lowest.size:
        part = partial(_part, problem, lower)
        if precision is None or precision.moduli:
            part(a, found, lowest, c)
        elif c is None:
            in_parts(problem, part, _array(a), found, lowest)
        else:
            in_parts(problem, part, _array(a), found, lowest, c)
    return lowest


def _part(
    problem: HerkProblem,
    lower: Steps,
    a: Array | Pairs,
    found: Array,
    lowest: Array,
    c: Array | None = None,
) -> None:
    """Compute some products of a problem: ``found`` whole, or ``lowest``, their triangles."""
    with np.errstate(all="ignore"):
        if problem.alpha == 0 or not problem.k:
            found[...] = 0
        else:
            _lower(problem, lower, a, found)
        _finish(problem, found, c, lowest)


def _lower(problem: HerkProblem, lower: Steps, a: Array | Pairs, out: Array) -> None:
    """Compute the lower triangle of op(A) op(A)^H; what is above the diagonal is undefined."""
    precision = problem.precision
    if precision is None and _fits_fp64(problem, a):
        wide = np.empty(out.shape, np.complex128)
        lower(_array(a).astype(np.complex128), wide)
        out[...] = wide
    elif precision is None or precision.moduli:
        modular_gemm(
            a, a, None, alpha=1, beta=0, op_a=problem.op, op_b=problem.other_op,
            precision=EXACT if precision is None else precision.name, tolerance=None, check=False,
            out=out,
        )  # fmt: skip
    elif precision.exact_operands:
        lower(_array(a).astype(precision.output, copy=False), out)
    else:
        _by_terms(problem.n, terms_of(_array(a), problem.op, precision, "a"), precision, out)


def _array(a: Array | Pairs) -> Array:
    return np.asarray(a.to_complex64()) if isinstance(a, Pairs) else a


def _fits_fp64(problem: HerkProblem, a: Array | Pairs) -> bool:
    """Return whether fp64 holds every sum of products of integers, in any order."""
    assert isinstance(a, Pairs)
    numbers = RANGES[a.format]
    return 2 * problem.k * (numbers.largest << numbers.fraction_bits) ** 2 < 1 << 53


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


def _finish(problem: HerkProblem, found: Array, c: Array | None, lowest: Array) -> None:
    """Compute alpha times the lower triangle plus beta C in the problem's form."""
    for start in range(0, problem.n, _PANEL):
        rows = range(start, min(start + _PANEL, problem.n))
        panel = found[..., start : rows.stop, : rows.stop]
        if problem.alpha != 1 or c is not None:
            _combine(problem, panel, c, rows)
        mirror(panel[..., start:])
        if problem.form == "triangle":
            _copy_rows(panel, lowest, rows)
        elif start:
            above = found[..., :start, start : rows.stop]
            np.conj(panel[..., :start].swapaxes(-1, -2), out=above)


def _copy_rows(panel: Array, lowest: Array, rows: range) -> None:
    """Copy rows up to their diagonal element to their places in a triangle."""
    for i in rows:
        row = slice(triangle_length(i), triangle_length(i + 1))
        lowest[..., row] = panel[..., i - rows.start, : i + 1]


def _combine(problem: HerkProblem, panel: Array, c: Array | None, rows: range) -> None:
    """Multiply some rows up to their last diagonal element by alpha, and add beta C."""
    real = panel.real.dtype.type
    if problem.alpha != 1:
        panel.real *= real(problem.alpha)
        panel.imag *= real(problem.alpha)
    if c is not None:
        addend = _addend(problem, c, rows)
        panel.real += real(problem.beta) * addend.real.astype(real)
        panel.imag += real(problem.beta) * addend.imag.astype(real)


def _addend(problem: HerkProblem, c: Array, rows: range) -> Array:
    """Return some rows of C up to their last diagonal element, zeros above it in a triangle."""
    if problem.form == "full":
        return c[..., rows, : rows.stop]
    found = np.zeros((*c.shape[:-1], len(rows), rows.stop), c.dtype)
    for i in rows:
        found[..., i - rows.start, : i + 1] = c[..., triangle_length(i) : triangle_length(i + 1)]
    return found
