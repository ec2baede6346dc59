"""The error of a whole product, estimated from random vectors.

For E = C^ - C and a vector x of independent complex normal components of unit variance, E|E x|^2 is
||E||_F^2. E x = C^ x - alpha A (B x) - beta C x takes matrix-vector products alone. The mean of s
such squared norms estimates ||E||_F^2. Each of them is sum_i w_i X_i with X_i exponential of mean 1
and w_i the squares of E's singular values, whose moment generating function at -h is
prod 1 / (1 + h w_i) <= 1 / (1 + h ||E||_F^2) for any E; so the mean is below t ||E||_F^2 with a
probability of at most (t e^(1 - t))^s (Chernoff, at h = (1 / t - 1) / ||E||_F^2). `LIMIT` is
1 / sqrt(t) where that is `FAILURE`: whatever E is, its norm is at most `LIMIT` times the estimate.
Vectors from the left, y^H E, would be distributed alike, and have the operands rounded once more.

The same vectors tell what the operands' rounding alone does, A^ B^ - A B with the operands as the
kernel has them, and how long partial sums over k are: the two numbers that the probabilistic bound
on the whole needs of the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from argand import Precision

from workflow.accuracy.assessment import FAILURE, finite
from workflow.accuracy.references import Array, ProductReference
from workflow.accuracy.suspects import Sides, operand_terms
from workflow.accuracy.ties import other_rounding
from workflow.threads import each, stretches

VECTORS = 32
CUTS = 8
"""Places along k where partial sums are measured, drawn so that no period of the data hits all."""
_BLOCK_VALUES = 1 << 20
"""Values of an operand in fp64 at a time."""


def _limit(samples: int) -> float:
    """Return 1 / sqrt(t) with (t e^(1 - t))^samples = FAILURE."""
    t = 0.0
    for _ in range(1000):  # a fixed point; the error shrinks by t each time, well below 1
        t = FAILURE ** (1 / samples) * math.exp(t - 1)
    return 1 / math.sqrt(t)


LIMIT = _limit(VECTORS)


@dataclass(frozen=True)
class WholeError:
    """Frobenius norms over all rows and columns that are finite.

    Attributes:
        error: estimate of ||C^ - C||; the norm is at most `LIMIT` times that.
        rounding: estimate of ||alpha (A^ B^ - A B)||, what rounding the operands moves C by.
        partial_sums: root mean square of ||alpha A_S B_S|| over prefixes S of k.
        addend: estimate of ||beta C||.
        size: estimate of ||C||.
        result: ||C^||, not an estimate.
    """

    error: float
    rounding: float
    partial_sums: float
    addend: float
    size: float
    result: float

    @property
    def limit(self) -> float:
        """The bound on ||C^ - C|| / ||C||, with a probability of 1 - `FAILURE`."""
        most = LIMIT * self.error
        return most / (self.result - most) if most < self.result else math.inf if most else 0.0


@dataclass
class _Squares:
    """Sums of squared norms over vectors."""

    error: float = 0.0
    rounding: float = 0.0
    partial_sums: float = 0.0
    addend: float = 0.0
    size: float = 0.0

    def add(self, other: _Squares) -> None:
        self.error += other.error
        self.rounding += other.rounding
        self.partial_sums += other.partial_sums
        self.addend += other.addend
        self.size += other.size


def whole_error(
    reference: ProductReference, result: Array, precision: Precision, *, backend: str, draw: int = 0
) -> WholeError:
    """Estimate the error of all of ``result``, of the reference's shape.

    ``draw`` counts the samples of vectors that were drawn before: each has vectors of its own.
    Where the ``backend`` may round ties either way, ``rounding`` is the larger of both.
    """
    found = _whole_error(reference, result, precision, draw)
    other = other_rounding(precision, backend)
    if other is None:
        return found
    rounding = _whole_error(reference, result, other, draw).rounding
    return replace(found, rounding=max(found.rounding, rounding))


def _whole_error(
    reference: ProductReference, result: Array, precision: Precision, draw: int
) -> WholeError:
    found, sizes = _Squares(), 0.0
    sides = Sides(reference, precision, "", transposed=False)
    rng = np.random.default_rng([reference.seed, 0xE0, draw])
    with np.errstate(all="ignore"):
        for group in _groups(sides):
            squares, size = _of_group(sides, result, group, rng)
            found.add(squares)
            sizes += size

    def mean(squares: float) -> float:
        return float(np.sqrt(squares / VECTORS)) / reference.unit

    return WholeError(
        mean(found.error), mean(found.rounding), mean(found.partial_sums), mean(found.addend),
        mean(found.size), float(np.sqrt(sizes)) / reference.unit,
    )  # fmt: skip


def _groups(sides: Sides) -> list[slice]:
    if 0 in sides.reference.shape:
        return []
    values = max(sides.rows, sides.columns) * max(sides.reference.k, sides.columns, 1)
    return stretches(sides.reference.batch, max(1, _BLOCK_VALUES // values))


def _of_group(
    sides: Sides, result: Array, group: slice, rng: np.random.Generator
) -> tuple[_Squares, float]:
    """Return squares of the error of some products, and ||C^||^2 of them."""
    reference, span = sides.reference, (group.start, group.stop)
    count = group.stop - group.start
    x = rng.standard_normal((count, sides.columns, 2 * VECTORS)).view(complex) / np.sqrt(2)
    rows = np.ones((count, sides.rows, 1), bool)
    if reference.k:
        rows = sides.finite_rows(*span)
        x = np.where(np.swapaxes(sides.finite_columns(*span), -1, -2), x, 0)
    inner = _Inner(sides, span, x, rng) if reference.k else None
    left = sides.left(*span) if inner else None
    computed = sides.result(result, *span)
    addend = None if reference.c is None else sides.result(reference.c, *span)
    used = (x != 0).any(axis=-1)[:, None, :]

    def measure(some: slice) -> tuple[_Squares, float]:
        return _of_rows(
            sides, inner, x, used, rows[:, some], computed[:, some],
            None if left is None else left[:, some], None if addend is None else addend[:, some],
        )  # fmt: skip

    found, size = _Squares(), 0.0
    length = max(reference.k, sides.columns, 1)
    for squares, own in each(measure, stretches(sides.rows, max(1, _BLOCK_VALUES // length))):
        found.add(squares)
        size += own
    return found, size


def _of_rows(
    sides: Sides, inner: _Inner | None, x: Array, used: Array, good: Array, computed: Array,
    left: Array | None, addend: Array | None,
) -> tuple[_Squares, float]:  # fmt: skip
    reference = sides.reference
    values = np.where(good & used, computed, 0).astype(complex)
    if addend is not None:
        good = good & (finite(addend) | ~used).all(axis=-1, keepdims=True)
    exact, found = np.zeros((*values.shape[:2], x.shape[-1]), complex), _Squares()
    if left is not None and inner is not None:
        weight = abs(reference.alpha) * reference.unit
        product, rounded, sums = inner.times(np.where(good, left, 0), weight)
        exact = reference.alpha * product
        found.rounding = squared_norm(rounded * weight)
        found.partial_sums = sums
    if addend is not None:
        own = reference.beta * (np.where(good & used, addend, 0).astype(complex) @ x)
        exact = exact + own
        found.addend = squared_norm(own * reference.unit)
    found.error = squared_norm(np.where(good, values @ x - exact, 0) * reference.unit)
    found.size = squared_norm(np.where(good, exact, 0) * reference.unit)
    return found, squared_norm(values * reference.unit)


class _Inner:
    """B x in fp64, and with the terms of B."""

    def __init__(
        self, sides: Sides, span: tuple[int, int], x: Array, rng: np.random.Generator
    ) -> None:
        self.sides, k = sides, sides.reference.k
        right = sides.right(*span)
        self.exact = np.empty((len(x), k, x.shape[-1]), complex)
        self.rounds = not (
            sides.precision.exact_operands and right.dtype == np.dtype(sides.precision.output)
        )
        terms = sides.precision.terms if self.rounds else 0
        self.terms = [np.empty_like(self.exact) for _ in range(terms)]
        columns = sides.finite_columns(*span)
        self.edges = np.unique([0, *rng.integers(1, k + 1, CUTS), k])

        def fill(some: slice) -> None:
            self.exact[:, some] = np.where(columns, right[:, some], 0).astype(complex) @ x

        def fill_terms(some: slice) -> None:
            values = np.where(columns[:, :, some], right[:, :, some], 0)
            for total, term in zip(
                self.terms, operand_terms(values, sides.precision, -2), strict=True
            ):
                total += term @ x[:, some]

        step = max(1, _BLOCK_VALUES // max(sides.columns, 1))
        for _ in each(fill, stretches(k, step)):
            pass
        if self.rounds:
            for total in self.terms:
                total[...] = 0
            # A column's scale is that of all of it, so columns are taken whole; sums in order.
            for some in stretches(sides.columns, max(1, _BLOCK_VALUES // k)):
                fill_terms(some)

    def times(self, left: Array, weight: float) -> tuple[Array, Array, float]:
        """Return a (B x), what rounding adds to it, and mean squared norms over prefixes of k.

        The last are of ``weight`` times partial sums; between `CUTS` they are taken to be linear.
        """
        wide = left.astype(complex)
        product = np.zeros((*left.shape[:2], self.exact.shape[-1]), complex)
        sums = before = 0.0
        for start, stop in zip(self.edges[:-1], self.edges[1:], strict=True):
            product = product + wide[:, :, start:stop] @ self.exact[:, start:stop]
            after = squared_norm(product * weight)
            # Over the prefixes start + 1 to stop.
            sums += ((stop - start) * (before + after) + after - before) / (2 * self.edges[-1])
            before = after
        rounded = np.zeros((1, 1, 1), complex)
        if self.rounds:
            rounded = -product
            for p, term in enumerate(operand_terms(left, self.sides.precision, -1)):
                partners = [self.terms[j] for i, j in self.sides.products if i == p]
                if partners:
                    rounded = rounded + term @ sum(partners[1:], partners[0])
        return product, rounded, sums


def squared_norm(x: Array) -> float:
    """Return the sum of the squared moduli."""
    return float(np.vdot(x, x).real)
