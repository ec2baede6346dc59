"""Inspection of the elements of a product that stand out: whether they are within rounding.

A part of C^_ij is a sum of 2 k real products. For given operands its partial sums are known, so the
error of this very element can be bounded (running error analysis, Higham, section 3.3) far below
what |A| |B| allows. Let M be the largest modulus of any prefix sum over l of the part's first kind
of products plus that of its second kind (ar br and ai bi for the real part). A sum over any
contiguous range of l is a difference of two prefixes, so every partial sum of a kernel that walks k
in order, whole or split into contiguous slices, is at most 2 M, and so is a single product. Then

- in IEEE arithmetic each of the at most 4 k + P roundings loses at most u 2 M,
- on tensor cores each of the at most P (3 k + 4) truncations loses at most 2 u 2 M.

Beyond these a result is wrong. A probable error is far smaller (`_probable`): roundings that are
independent of each other add in quadrature.

A GPU may scale slices of a line, or nothing (`product_in_tf32`). It then keeps
what the line's scale flushes, and may round ties the other way: `_scaling_difference` bounds what
that is of an element.

One dimension apart: with one column or row BLAS runs a dot product in interleaved lanes, whose
partial sums are not contiguous; such products are not inspected.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
from argand import Precision
from argand.gemm.modular.moduli import moduli
from argand.gemm.modular.residues import integers
from argand.rounding import scale_exponents, split

from workflow.accuracy import bounds
from workflow.accuracy.coherence import coherence
from workflow.accuracy.partial_sums import PartialSums, partial_sums
from workflow.accuracy.probabilistic import (
    PRODUCT_TRUNCATION,
    SUM_DEVIATION,
    SUM_TRUNCATION,
    deviations,
    slice_truncations,
)
from workflow.accuracy.references import Array, ProductReference
from workflow.accuracy.ties import ties
from workflow.accuracy.underflow import underflow

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
    def are_inspected(self) -> bool:
        """Whether partial sums are contiguous, so that elements can be inspected."""
        return bool(self.reference.k) and min(self.rows, self.columns) > 1

    @property
    def rows(self) -> int:
        """Lines, each tested block by block."""
        return self.reference.n if self.transposed else self.reference.m

    @property
    def columns(self) -> int:
        """Length of a line."""
        return self.reference.m if self.transposed else self.reference.n

    def left(self, start: int, stop: int) -> Array:
        """Return (products, rows, k)."""
        found = self.reference.b if self.transposed else self.reference.a
        return self._turned(self.reference.items(found, start, stop))

    def right(self, start: int, stop: int) -> Array:
        """Return (products, k, columns)."""
        found = self.reference.a if self.transposed else self.reference.b
        return self._turned(self.reference.items(found, start, stop))

    def finite_rows(self, start: int, stop: int) -> Array:
        """Return (products, rows, 1): which rows of the left operand are finite."""
        found = self.reference.columns_of_b if self.transposed else self.reference.rows_of_a
        return self._turned(self.reference.items(found.finite, start, stop))

    def finite_columns(self, start: int, stop: int) -> Array:
        """Return (products, 1, columns): which columns of the right operand are finite."""
        found = self.reference.rows_of_a if self.transposed else self.reference.columns_of_b
        return self._turned(self.reference.items(found.finite, start, stop))

    def result(self, x: Array, start: int, stop: int) -> Array:
        """Return (products, rows, columns) of C^ or of the addend C."""
        return self._turned(self.reference.items(x, start, stop))

    def _turned(self, x: Array) -> Array:
        return np.swapaxes(x, -1, -2) if self.transposed else x

    @property
    def products(self) -> tuple[tuple[int, int], ...]:
        """Pairs (term of the left operand, term of the right one)."""
        pairs = self.precision.products
        return tuple((j, i) for i, j in pairs) if self.transposed else pairs

    def place(self, batch: int, row: int, block: int) -> str:
        """Return where a block is, for a person."""
        line, others = ("column", "rows") if self.transposed else ("row", "columns")
        last = min((block + 1) * BLOCK, self.columns) - 1
        return f"product {batch}, {line} {row}, {others} {block * BLOCK} to {last}"


def operand_terms(x: Array, precision: Precision, axis: int) -> list[Array]:
    """Return the terms of an operand as the kernel has them, in complex128, scaling undone."""
    x = x.astype(precision.output, copy=False)
    if precision.moduli:
        return [_as_integers(x, precision, axis)]
    if not precision.scaled:
        return [term.astype(complex) for term in split(x, precision)]
    exponents = scale_exponents(x, axis, precision.operand)
    undo = np.ldexp(1.0, -exponents)
    return [term * undo for term in split(x, precision, exponents)]


def _as_integers(x: Array, precision: Precision, axis: int) -> Array:
    """Return an operand after its lines along ``axis`` were rounded to integers, scaling undone."""
    turned = np.moveaxis(x, axis, -1)
    found = integers(turned.reshape(-1, turned.shape[-1]), moduli(precision.moduli))
    undo = -found.exponents.astype(np.int32)[:, None]
    rounded = np.empty(found.real.shape, complex)
    rounded.real, rounded.imag = (
        np.ldexp(part.astype(np.float64), undo) for part in (found.real, found.imag)
    )
    return np.moveaxis(rounded.reshape(turned.shape), -1, axis)


class Inspected(NamedTuple):
    """The findings of an inspection: beyond what is possible, and beyond what is probable."""

    wrong: str = ""
    suspect: str = ""


class RightBlock(NamedTuple):
    """The columns of one product that a block has, which inspections of its rows share.

    Attributes:
        batch, block: the numbers of the product and of the block.
        given: the right operand's, (k, columns).
        terms: each as the kernel has it (`operand_terms`), and their sum ``whole``.
    """

    batch: int
    block: int
    given: Array
    terms: list[Array]
    whole: Array

    @classmethod
    def of(cls, sides: Sides, batch: int, block: int) -> RightBlock:
        """Return a block's columns of a product."""
        given = sides.right(batch, batch + 1)[0, :, block * BLOCK : (block + 1) * BLOCK]
        terms = operand_terms(given, sides.precision, -2)
        return cls(batch, block, given, terms, reduce(np.add, terms))


def inspect(sides: Sides, result: Array, row: int, right: RightBlock) -> Inspected:
    """Compare one row's block of C^ with the product of the rounded operands.

    The text of a fault names the element, how far it is off and what is allowed.
    """
    reference, precision = sides.reference, sides.precision
    batch, block = right.batch, right.block
    columns = slice(block * BLOCK, (block + 1) * BLOCK)
    left = sides.left(batch, batch + 1)[0, row : row + 1]
    a = operand_terms(left, precision, -1)
    exact = sum(a[p][0] @ right.terms[q] for p, q in sides.products)
    kept = np.zeros(exact.shape)
    if precision.scaled and sides.backend == "cuda":
        kept = _scaling_difference(left[0], right.given, precision)
    both = _allowed(sides, reduce(np.add, a)[0], right.whole, exact, kept)
    got = sides.result(result, batch, batch + 1)[0, row, columns].astype(complex)
    exact = reference.alpha * exact
    if reference.c is not None:
        addend = sides.result(reference.c, batch, batch + 1)[0, row, columns].astype(complex)
        u = bounds.accumulator_roundoff(precision)
        rounded = bounds.roundings(bounds.ADDEND_ROUNDINGS, u)
        exact = exact + reference.beta * addend
        lost = 2 * underflow(precision, sides.backend).result
        both = both + (rounded * abs(reference.beta) + lost) * np.abs(addend)
    error = np.maximum(np.abs((got - exact).real), np.abs((got - exact).imag))
    said = []
    for allowed in both:
        excess = np.where(np.isfinite(exact) & (error > 0), error / allowed, 0)
        column = int(excess.argmax())
        said.append(
            ""
            if excess[column] <= 1
            else f"an element is off by {error[column]:.3g} where {allowed[column]:.3g} is "
            f"allowed, at column {column} of those of {sides.place(batch, row, block)}"
        )
    return Inspected(*said)


def _scaling_difference(a: Array, b: Array, precision: Precision) -> Array:
    """Return (columns,): how far products of (k,) and (k, columns) with less scaling may differ.

    A line's scale and a larger one, or none, round a component to the same bits where its terms are
    normal numbers, or hold all of fp32's 24 bits: within 2^28 of the line's largest in one term,
    2^15 in two, so within `Precision.full_range` less 2. Elsewhere either is within
    `Precision.scaled_floor` of the largest of it (`underflow`), so both parts of a number
    differ by at most 2 sqrt(2) of that together, and by `ties`. Twice, for the products that are
    not kept.
    """
    assert precision.full_range is not None
    moved = []
    for x in (a, b):
        parts = np.stack([np.abs(x.real), np.abs(x.imag)]).astype(float)
        top = np.where(np.isfinite(parts), parts, 0).max(axis=(0, 1))
        small = ((parts > 0) & (parts < top * 2.0 ** (2 - precision.full_range))).any(axis=0)
        floor = 2 * math.sqrt(2) * precision.scaled_floor * top * small
        moved.append(floor + ties(x, precision, "cuda"))
    of_a, of_b = moved
    return np.asarray(2 * (of_a @ np.abs(b) + np.abs(a) @ of_b + of_a @ of_b))


def _allowed(sides: Sides, a: Array, b: Array, exact: Array, kept: Array) -> Array:
    """Return the bounds on the error of either part, (2, columns), as the module derives them.

    ``kept`` (columns,) is what any of an element's partial sums may differ by before rounding.
    """
    reference, precision = sides.reference, sides.precision
    k, u = reference.k, bounds.accumulator_roundoff(precision)
    count = len(precision.products)
    if precision.moduli:
        relative = u  # exact sums, rounded once
    elif bounds.on_tensor_cores(precision, sides.backend):
        relative = bounds.gamma(count * bounds.truncations(k), 2 * u)
    else:
        relative = bounds.gamma(4 * k + count, u)
    sums = partial_sums(a, b)
    largest = sums.largest + 4 * kept
    probable = _probable(sides, a, b, sums) + relative * 4 * kept
    sizes = np.abs(a), np.abs(b)
    own = bounds.gamma(2 * k + 8, 2.0**-53) * (sizes[0] @ sizes[1])
    scaling = bounds.roundings(bounds.scaling_roundings(reference.alpha, reference.beta), u)
    lost = underflow(precision, sides.backend)
    moduli = sizes[0].sum() + sizes[1].sum(axis=0)
    small = 2 * lost.operand * moduli + 2 * (k + 4) * count * lost.result
    # The last `lost.result` is of alpha and beta, after the product.
    summed = np.stack([relative * largest, np.minimum(probable, relative * largest)])
    inner = bounds.spread(reference.alpha) * (
        bounds.kept_size(precision) * summed + own + small + kept
    )
    size = abs(reference.alpha)
    # alpha itself may underflow in the output's type.
    scalar = 2 * lost.result * (np.abs(exact) + inner)
    return np.asarray(size * (inner + scaling * (np.abs(exact) + inner)) + 4 * lost.result + scalar)


def _probable(sides: Sides, a: Array, b: Array, sums: PartialSums) -> Array:
    """Return (columns,): what the sums of an element are within, except in one result in 1e9.

    The roundings of a part's 2 k partial sums add in quadrature, those of slices of k that were
    summed apart too: a slice's are differences of two partial sums. The truncations of tensor cores
    add up in a straight sum, except those of products, which have either sign; at split precisions
    it is relative to the sums of a slice alone (`probabilistic.slice_truncations`).
    """
    precision, k = sides.precision, sides.reference.k
    u = bounds.accumulator_roundoff(precision)
    tests = 2 * math.prod(sides.reference.shape)
    strength = deviations(tests)
    apart = coherence(a[None], b, precision)
    rounded = strength * apart * u * 2 * np.sqrt(sums.squares + sums.last**2)
    if not bounds.on_tensor_cores(precision, sides.backend):
        return np.asarray(rounded)
    if len(precision.products) == 1:
        means = bounds.truncations(k) * u * math.sqrt(2) * sums.mean
        return np.asarray(means + strength * PRODUCT_TRUNCATION * u * 2 * np.sqrt(sums.squares))
    instructions, products = slice_truncations(precision, k)
    longest = np.maximum(np.sqrt(sums.within), np.abs(np.diff(sums.ends, axis=0, prepend=0)))
    means = SUM_TRUNCATION * instructions * longest.sum(axis=0)
    each = math.sqrt(SUM_DEVIATION**2 * instructions + PRODUCT_TRUNCATION**2 * products)
    truncated = each * np.sqrt((longest**2).sum(axis=0))
    added = apart * np.sqrt(2 * (sums.starts**2).sum(axis=0) + sums.squares / k)
    return np.asarray(u * (means + strength * (truncated + added)))
