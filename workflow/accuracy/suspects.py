"""A close look at the elements of a product that stand out, to see if they are within rounding.

A part of C^_ij is a sum of 2 k real products. For given operands its partial sums are known, so the
error of this very element can be bounded (running error analysis, Higham, section 3.3) far below
what |A| |B| allows. Let M be the largest modulus of any prefix sum over l of the part's first kind
of products plus that of its second kind (ar br and ai bi for the real part). A sum over any
contiguous range of l is a difference of two prefixes, so every partial sum of a kernel that walks k
in order, whole or cut into contiguous slices, is at most 2 M, and so is a single product. Then

- in IEEE arithmetic each of the at most 4 k + P roundings loses at most u 2 M,
- on tensor cores each of the at most P (3 k + 4) truncations loses at most 2 u 2 M.

One dimension apart: with one column or row BLAS runs a dot product in interleaved lanes, whose
partial sums are not contiguous; such products are not inspected.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
from argand import Precision
from argand.rounding import scale_exponents, split

from workflow.accuracy import bounds
from workflow.accuracy.references import Array, ProductReference

BLOCK = 64
"""Columns checked together: the Freivalds check costs 1 / BLOCK of the product."""


@dataclass(frozen=True)
class Sides:
    """A product to check, transposed where that makes its blocks the fewer."""

    reference: ProductReference
    precision: Precision
    backend: str
    transposed: bool

    @property
    def rows(self) -> int:
        """Lines, each tested block by block."""
        return self.reference.n if self.transposed else self.reference.m

    @property
    def columns(self) -> int:
        """Length of a line."""
        return self.reference.m if self.transposed else self.reference.n

    def left(self, start: int, stop: int) -> Array:
        """(products, rows, k)."""
        found = self.reference.b if self.transposed else self.reference.a
        return self._turned(self.reference.items(found, start, stop))

    def right(self, start: int, stop: int) -> Array:
        """(products, k, columns)."""
        found = self.reference.a if self.transposed else self.reference.b
        return self._turned(self.reference.items(found, start, stop))

    def finite_rows(self, start: int, stop: int) -> Array:
        """(products, rows, 1): which rows of the left operand are finite."""
        found = self.reference.columns_of_b if self.transposed else self.reference.rows_of_a
        return self._turned(self.reference.items(found.finite, start, stop))

    def finite_columns(self, start: int, stop: int) -> Array:
        """(products, 1, columns): which columns of the right operand are finite."""
        found = self.reference.rows_of_a if self.transposed else self.reference.columns_of_b
        return self._turned(self.reference.items(found.finite, start, stop))

    def result(self, x: Array, start: int, stop: int) -> Array:
        """(products, rows, columns) of C^ or of the addend C."""
        return self._turned(self.reference.items(x, start, stop))

    def _turned(self, x: Array) -> Array:
        return np.swapaxes(x, -1, -2) if self.transposed else x

    @property
    def products(self) -> tuple[tuple[int, int], ...]:
        """Pairs (term of the left operand, term of the right one)."""
        pairs = self.precision.products
        return tuple((j, i) for i, j in pairs) if self.transposed else pairs

    def place(self, batch: int, row: int, block: int) -> str:
        """Where a block is, for a person."""
        line, others = ("column", "rows") if self.transposed else ("row", "columns")
        last = min((block + 1) * BLOCK, self.columns) - 1
        return f"product {batch}, {line} {row}, {others} {block * BLOCK} to {last}"


def operand_terms(x: Array, precision: Precision, axis: int) -> list[Array]:
    """The terms of an operand as the kernel has them, in complex128, scaling undone."""
    x = x.astype(precision.output, copy=False)
    if not precision.scaled:
        return [term.astype(complex) for term in split(x, precision)]
    exponents = scale_exponents(x, axis)
    undo = np.ldexp(1.0, -exponents)
    return [term * undo for term in split(x, precision, exponents)]


def inspect(sides: Sides, result: Array, batch: int, row: int, block: int) -> str:
    """Compare one row's block of C^ with the product of the rounded operands; "" if it holds.

    Otherwise says which element is off, by how much and what is allowed.
    """
    reference, precision = sides.reference, sides.precision
    if not reference.k or min(sides.rows, sides.columns) == 1:
        return ""
    columns = slice(block * BLOCK, (block + 1) * BLOCK)
    a = operand_terms(sides.left(batch, batch + 1)[:, row : row + 1], precision, -1)
    b = operand_terms(sides.right(batch, batch + 1)[:, :, columns], precision, -2)
    exact = sum(a[p][0, 0] @ b[q][0] for p, q in sides.products)
    allowed = _allowed(sides, reduce(np.add, a)[0, 0], reduce(np.add, b)[0], exact)
    got = sides.result(result, batch, batch + 1)[0, row, columns].astype(complex)
    exact = reference.alpha * exact
    if reference.c is not None:
        addend = sides.result(reference.c, batch, batch + 1)[0, row, columns].astype(complex)
        u = bounds.accumulator_roundoff(precision)
        rounded = bounds.roundings(bounds.ADDEND_ROUNDINGS, u)
        exact = exact + reference.beta * addend
        lost = 2 * bounds.underflow(precision, sides.backend).result
        allowed = allowed + (rounded * abs(reference.beta) + lost) * np.abs(addend)
    error = np.maximum(np.abs((got - exact).real), np.abs((got - exact).imag))
    excess = np.where(np.isfinite(exact) & (error > 0), error / allowed, 0)
    column = int(excess.argmax())
    if excess[column] <= 1:
        return ""
    return (
        f"an element is off by {error[column]:.3g} where {allowed[column]:.3g} is allowed, at "
        f"column {column} of those of {sides.place(batch, row, block)}"
    )


def _allowed(sides: Sides, a: Array, b: Array, exact: Array) -> Array:
    """(columns,): the bound on the error of either part, derived in the module's docstring."""
    reference, precision = sides.reference, sides.precision
    k, u = reference.k, bounds.accumulator_roundoff(precision)
    count = len(precision.products)
    if bounds.on_tensor_cores(precision, sides.backend):
        relative = bounds.gamma(count * bounds.truncations(k), 2 * u)
    else:
        relative = bounds.gamma(4 * k + count, u)
    prefix = [
        np.abs(np.cumsum(x[:, None] * y, axis=0)).max(axis=0)
        for x, y in ((a.real, b.real), (a.imag, b.imag), (a.real, b.imag), (a.imag, b.real))
    ]
    largest = 2 * np.maximum(prefix[0] + prefix[1], prefix[2] + prefix[3])
    own = bounds.gamma(2 * k + 8, 2.0**-53) * (np.abs(a) @ np.abs(b))
    scaling = bounds.roundings(bounds.scaling_roundings(reference.alpha, reference.beta), u)
    lost = bounds.underflow(precision, sides.backend)
    sums = np.abs(a).sum() + np.abs(b).sum(axis=0)
    small = 2 * lost.operand * sums + 2 * (k + 4) * count * lost.result
    # The last `lost.result` is of alpha and beta, after the product.
    inner = bounds.spread(reference.alpha) * (
        relative * bounds.kept_size(precision) * largest + own + small
    )
    size = abs(reference.alpha)
    # alpha itself may underflow in the output's type.
    scalar = 2 * lost.result * (np.abs(exact) + inner)
    return np.asarray(size * (inner + scaling * (np.abs(exact) + inner)) + 4 * lost.result + scalar)
