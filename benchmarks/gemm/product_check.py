"""A check of products whose cost does not grow with them.

The rows R of A and the columns S of B have the product C[R, S], whatever else there is. So a large
product is checked on rows and columns spread over it, some of every tile, and a large batch on
products spread over it; all of the result must be finite. What is sampled must meet everything
that `workflow.accuracy` asks of a whole product: the bound against SciPy, and a Freivalds check.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from argand import Precision

from benchmarks.gemm.shapes import Shape
from benchmarks.harness.samples import on_host
from benchmarks.peers import Candidate
from workflow.accuracy import Accuracy, bounds
from workflow.accuracy.assessment import Checks, ratio
from workflow.accuracy.matrix_product_accuracy import assess_product
from workflow.accuracy.matrix_product_bounds import relative_bounds
from workflow.accuracy.references import ProductReference, product_reference, sample_rows
from workflow.accuracy.underflow import underflow
from workflow.accuracy.whole_error import whole_error

Array = np.ndarray[Any, Any]

ELEMENTS = 1 << 22
"""Elements of operands and results that are checked: half a second a candidate."""
_PRODUCTS = 16
_LINES = 64
"""Products of a batch, and rows and columns of a product, that are sampled at least."""


@dataclass(frozen=True)
class Sample:
    """The products, rows of C and columns of C that are checked."""

    shape: Shape
    products: Array
    rows: Array
    columns: Array

    @classmethod
    def of(cls, shape: Shape, seed: int, elements: int = ELEMENTS, lines: int = _LINES) -> Sample:
        """Return all of a shape with at most ``elements``; else a part with about as many.

        It has ``lines`` rows and columns at least.
        """
        m, n, k, batch = shape.m, shape.n, shape.k, shape.batch
        if batch * (m * k + k * n + m * n) <= elements:
            return cls(shape, np.arange(batch), np.arange(m), np.arange(n))
        products = min(batch, _PRODUCTS, lines)
        # f (m k + k n) + f^2 m n is what a share f of rows and columns takes.
        operands, each = m * k + k * n, elements / products
        share = (math.sqrt(operands**2 + 4 * m * n * each) - operands) / (2 * m * n)
        rows = max(int(share * m), min(m, lines))
        left = int((each - rows * k) / (k + rows))
        columns = max(min(left, n), min(n, lines))
        return cls(
            shape, sample_rows(batch, products, seed), sample_rows(m, rows, seed),
            sample_rows(n, columns, seed + 1),
        )  # fmt: skip

    @property
    def whole(self) -> bool:
        """Whether nothing is left out."""
        counts = (len(self.products), len(self.rows), len(self.columns))
        return counts == (self.shape.batch, self.shape.m, self.shape.n)

    def of_a(self, a: Any) -> Array:
        """Return the checked rows of A (products, rows, k), in NumPy."""
        return self._part(a, (self.shape.m, self.shape.k), rows=self.rows)

    def of_b(self, b: Any) -> Array:
        """Return the checked columns of B (products, k, columns), in NumPy."""
        return self._part(b, (self.shape.k, self.shape.n), columns=self.columns)

    def of_result(self, c: Any) -> Array:
        """Return the checked part of C (products, rows, columns), in NumPy."""
        size = (self.shape.m, self.shape.n)
        return self._part(c, size, rows=self.rows, columns=self.columns)

    def _part(
        self, x: Any, size: tuple[int, int], rows: Array | None = None, columns: Array | None = None
    ) -> Array:
        found = x.reshape(self.shape.batch, *size)
        if self.whole:
            return on_host(found)
        parts = []
        for index in self.products:
            part = found[int(index)]
            # CuPy takes lists as indices, but not NumPy's arrays.
            part = part if rows is None else part[rows.tolist()]
            parts.append(on_host(part if columns is None else part[:, columns.tolist()]))
        return np.stack(parts)


@dataclass(frozen=True)
class Taken:
    """The sampled ``values`` of a result, and how many of all its elements are not finite."""

    values: Array
    bad: int


class ProductCheck:
    """Assesses every candidate's result for one pair of operands against one reference."""

    def __init__(
        self, shape: Shape, a: Any, b: Any, *, backend: str, seed: int, elements: int = ELEMENTS,
        lines: int = _LINES,
    ) -> None:  # fmt: skip
        """Compute the reference of A (..., m, k) and B (..., k, n), NumPy or CuPy arrays."""
        self._shape = shape
        self._backend = backend
        self._sample = Sample.of(shape, seed, elements, lines)
        self._reference = product_reference(self._sample.of_a(a), self._sample.of_b(b), seed=seed)

    def __call__(self, result: Any, candidate: Candidate) -> Accuracy:
        """Assess a result (..., m, n), NumPy or CuPy; a complex-half one is given as complex64.

        Raises ValueError for another shape.
        """
        return self.assess(self.taken(result), candidate)

    def taken(self, result: Any) -> Taken:
        """Return the assessed part of a result on the host. Raises ValueError as a call does."""
        expected = (*self._shape.leading, self._shape.m, self._shape.n)
        if tuple(result.shape) != expected:
            raise ValueError(f"result.shape must be {expected}, got {tuple(result.shape)}")
        # NumPy's functions compute CuPy's arrays on their device.
        return Taken(self._sample.of_result(result), int((~np.isfinite(result)).sum()))

    def assess(self, taken: Taken, candidate: Candidate) -> Accuracy:
        """Assess a candidate by what was taken of its result."""
        return self.assess_output(taken, candidate.precision, candidate.output)

    def assess_output(self, taken: Taken, precision: Precision, output: str) -> Accuracy:
        """Assess what was taken of a result of this kind at a precision."""
        assess = _assess_half if output == "complex-half" else assess_product
        found = assess(self._reference, taken.values, precision, backend=self._backend)
        if not self._sample.whole:
            found = replace(found, reference="sampled")
        if taken.bad:
            reason = f"{taken.bad} elements are not finite"
            found = replace(found, verdict="wrong", verified=False, reason=reason)
        return found


def _assess_half(
    reference: ProductReference, result: Array, precision: Precision, *, backend: str
) -> Accuracy:
    """Return `assess_product` of a result rounded to complex-half, on the reference's rows.

    Before that (`bounds.rounded_once`) it is within the bound of the precision and what underflow
    takes of the operands: e = `underflow` for each real part, so sqrt(2) e (|a|_1 + |b|_1) +
    2 k e^2 in a sum of k complex products.
    """
    bound = bounds.product_bound(precision, reference.k, backend)
    e = underflow(precision, backend).operand
    products, rows = np.divmod(reference.rows, reference.m)
    a, b = (np.abs(x).astype(float) for x in (reference.a, reference.b))
    sums = a.sum(axis=-1)[products, rows, None] + b.sum(axis=-2)[products]
    before = bound * reference.magnitude + math.sqrt(2) * e * sums + 2 * reference.k * e * e
    error = result[products, rows] - reference.values
    checks, worst = Checks(), []
    for name in ("real", "imag"):
        off, exact = np.abs(getattr(error, name)), np.abs(getattr(reference.values, name))
        excess = off / bounds.rounded_once(precision.operand, before, exact)
        checks.at_most(f"{name} part: error over what is allowed", float(excess.max()), 1.0)
        worst.append(float((off / reference.magnitude).max()))
    size = float(np.linalg.norm(reference.values))
    whole = whole_error(reference, result, precision, backend=backend)
    both = relative_bounds(reference, whole, size, precision, backend)
    kind = precision.operand
    last = bounds.rounded_once(kind, 0.0, 1.0)
    last += math.sqrt(2 * error.size) * kind.smallest_subnormal / max(size, math.ulp(0))
    found = ratio(float(np.linalg.norm(error)), size)
    worst_bound, probable = (float((1 + last) * one + last) for one in both)
    return Accuracy(
        error_limit=found,
        componentwise_re=worst[0], componentwise_im=worst[1],
        reference="sampled" if reference.sampled else "full", reference_rows=len(reference.rows),
        **checks.conclude(found, worst_bound, probable, precision),
    )  # fmt: skip
