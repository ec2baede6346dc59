"""The assessment of products: componentwise against the reference, and Freivalds over all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from argand import PRECISIONS, Precision
from argand.gemm.modular.integer_range import integer_range
from argand.gemm.scaling_range import LineRange, product_range

from workflow.accuracy import bounds
from workflow.accuracy.assessment import Accuracy, Checks, finite, misplaced, ratio, same_shape
from workflow.accuracy.freivalds import freivalds
from workflow.accuracy.matrix_product_bounds import (
    Bounds,
    lost_scalars,
    of_left_out,
    relative_bounds,
)
from workflow.accuracy.references import Array, ProductReference
from workflow.accuracy.underflow import underflow
from workflow.accuracy.whole_error import squared_norm, whole_error
from workflow.threads import each, stretches

_BLOCK_VALUES = 1 << 16
"""Values compared at a time: what is made of them stays in a core's cache."""


@dataclass
class _Worst:
    """Maxima and sums over some elements; ``where`` the largest excess of each part is.

    What is squared has been multiplied by `ProductReference.unit`.
    """

    squared_error: float = 0.0
    squared_size: float = 0.0
    componentwise: tuple[float, float] = (0.0, 0.0)
    excess: tuple[float, float] = (0.0, 0.0)
    where: tuple[str, str] = ("", "")

    def add(self, other: _Worst) -> None:
        """Take in what later elements have."""
        self.squared_error += other.squared_error
        self.squared_size += other.squared_size
        first, second = zip(self.componentwise, other.componentwise, strict=True)
        self.componentwise = max(first), max(second)
        later = [b > a for a, b in zip(self.excess, other.excess, strict=True)]
        pairs = [(self, other)[use] for use in later]
        self.where = pairs[0].where[0], pairs[1].where[1]
        self.excess = pairs[0].excess[0], pairs[1].excess[1]


def assess_product(
    reference: ProductReference, result: Array, precision: Precision, *, backend: str
) -> Accuracy:
    """Verify a result of the reference's shape by the bound of its precision.

    Real and imaginary part of every element of the reference's rows must be within
    ``bounds.product_bound`` times |alpha| |A| |B| + |beta| |C|, plus what underflow may take
    (`_lost`); an element whose denominator is 0 must be exactly right. Where an operand makes an
    element NaN or infinite it must not be finite, and only there. The whole result must pass
    `freivalds`. Its error must not exceed `relative_bounds`, as an estimate where rows are sampled.
    Where the precision scales its operands, the lines that spread wider than it holds
    to its unit roundoff, or by moduli than their integers hold at all, are counted; that is not a
    failure, because `_lost` has them in the bound.

    A result of operands in one term below fp32 is right where it is at fp32: cuBLAS computes some
    small products so where tf32 is allowed, and the Freivalds check of operands in tf32 finds their
    rounding missing. Splits are not: their sums on a GPU have a lower bound than fp32's at long k.

    Args:
        precision: as the implementation rounds: a peer that truncates its operands needs
            ``precision.with_rounding("toward_zero")``.
        backend: ``cpu`` or ``cuda``, which sum differently.

    Raises ValueError where the shape differs.
    """
    result = np.asarray(result)
    same_shape(result, reference.shape)
    found = _assess(reference, result, precision, backend)
    fp32 = PRECISIONS["fp32"]
    if found.verified or precision.moduli or precision.terms > 1 or precision.u <= fp32.u:
        return found
    finer = _assess(reference, result, fp32, backend)
    return finer if finer.verified else found


def _assess(
    reference: ProductReference, result: Array, precision: Precision, backend: str
) -> Accuracy:
    """Return `assess_product` by the roundings of this precision alone."""
    bound = bounds.product_bound(
        precision, reference.k, backend, alpha=reference.alpha, beta=reference.beta
    )
    worst, checks = _Worst(), Checks()
    checks.require(np.isfinite(bound), f"no bound exists at k = {reference.k} (k u >= 1)")
    with np.errstate(all="ignore"):
        places = _misplaced_nonfinite(reference, result)
        compare = partial(_compare, reference, result, precision, backend, bound)
        for found in each(compare, _blocks(reference)):
            worst.add(found)
    checks.placed(places, "elements", result.dtype)
    for part, name in enumerate(("componentwise_re", "componentwise_im")):
        checks.require(
            worst.excess[part] <= 1,
            f"{name}: an error is {worst.excess[part]:.3g} times what is allowed "
            f"(bound {bound:.3g}) at {worst.where[part]}",
        )
    verdict = freivalds(reference, result, precision, backend)
    checks.require(not verdict.reason, verdict.reason)
    checks.expect(not verdict.suspicion, verdict.suspicion)
    error, limit, found_bounds = _whole(reference, result, worst, precision, backend)
    lines = _line_range(reference, precision) if reference.k > 0 else None
    return Accuracy(
        error_limit=limit,
        componentwise_re=worst.componentwise[0],
        componentwise_im=worst.componentwise[1],
        lines_out_of_range=lines.out_of_range if lines else None,
        largest_spread=lines.largest_spread if lines else None,
        reference="sampled" if reference.sampled else "full",
        reference_rows=len(reference.rows),
        **checks.conclude(error, *found_bounds, precision),
    )


def _line_range(reference: ProductReference, precision: Precision) -> LineRange | None:
    """Return the range of both operands' lines where the precision scales them, else None."""
    if precision.moduli:
        return integer_range(reference.a, reference.b, precision.moduli)
    return product_range(reference.a, reference.b, precision) if precision.scaled else None


def _whole(
    reference: ProductReference, result: Array, worst: _Worst, precision: Precision, backend: str
) -> tuple[float, float, Bounds]:
    """Return the relative Frobenius error of all of a result, what it is at most, and its bounds.

    With a full reference it is known, else estimated (`whole_error`). A result that is beyond the
    probabilistic bound is assessed once more, on vectors of its own.
    """
    skipped = of_left_out(reference, precision, backend)
    for draw in range(2):
        whole = whole_error(reference, result, precision, backend=backend, draw=draw)
        if reference.sampled:
            error, size = ratio(whole.error, whole.size), whole.size
            limit = whole.limit
        else:
            size = float(np.sqrt(worst.squared_size)) / reference.unit
            error = limit = ratio(float(np.sqrt(worst.squared_error)) / reference.unit, size)
        found = relative_bounds(reference, whole, size, precision, backend)
        if skipped and size:
            found = Bounds(found.worst + skipped / size, found.probable + skipped / size)
        if error <= found.probable:
            break
    return error, limit, found


def _misplaced_nonfinite(reference: ProductReference, result: Array) -> Array:
    """Return counts (3,) of elements by `misplaced`, of where C can be finite.

    A row of A or a column of B with a NaN or an infinity makes every element of that row or column
    of C not finite (even times 0), and so does such an element of the addend.
    """

    def of_block(block: tuple[slice, slice]) -> Array:
        products, rows = block
        lost = np.zeros((1, 1), bool)
        span = products.start, products.stop
        if reference.k:
            lost = ~reference.items(reference.rows_of_a.finite, *span)[:, rows]
            lost = lost | ~reference.items(reference.columns_of_b.finite, *span)
        if reference.c is not None:
            lost = lost | ~finite(reference.items(reference.c, *span)[:, rows])
        got = finite(reference.items(result, *span)[:, rows])
        return misplaced(np.broadcast_to(~lost, got.shape), got)

    m, n = reference.m, max(reference.n, 1)
    together = stretches(reference.batch, max(1, _BLOCK_VALUES // max(m * n, 1)))
    apart = stretches(m, max(1, _BLOCK_VALUES // n))
    blocks = ((some, rows) for some in together for rows in apart)
    return np.zeros(3, int) + sum(each(of_block, blocks))


@dataclass(frozen=True)
class _Block:
    """Rows of some products that are compared with the reference together.

    ``products`` are in the batch, ``chosen`` the rows of each, ``where`` these lie in the
    reference's rows.
    """

    products: slice
    chosen: Array
    where: slice


def _blocks(reference: ProductReference) -> Iterator[_Block]:
    """Yield the reference's rows: whole products several at a time, or rows of one."""
    if 0 in reference.shape:
        return
    m, n = reference.m, reference.n
    together = _BLOCK_VALUES // (m * n)
    if together > 1 and not reference.sampled:
        for products in stretches(reference.batch, together):
            where = slice(products.start * m, products.stop * m)
            yield _Block(products, np.arange(m), where)
        return
    for index, where, chosen in reference.rows_by_batch():
        for some in stretches(len(chosen), max(1, _BLOCK_VALUES // n)):
            there = slice(where.start + some.start, where.start + some.stop)
            yield _Block(slice(index, index + 1), chosen[some], there)


def _compare(
    reference: ProductReference, result: Array, precision: Precision, backend: str, bound: float,
    block: _Block,
) -> _Worst:  # fmt: skip
    """Return the maxima of a block."""
    first, stop = block.products.start, block.products.stop
    shape = (stop - first, len(block.chosen), reference.n)
    exact, magnitude = (
        x[block.where].reshape(shape) for x in (reference.values, reference.magnitude)
    )
    error = reference.items(result, first, stop)[:, block.chosen] - exact
    known = finite(exact) & finite(magnitude)
    if not known.all():
        error, exact = np.where(known, error, 0), np.where(known, exact, 0)
    allowed = (bound + lost_scalars(reference, precision, backend)) * magnitude
    allowed += _lost(reference, block, precision, backend)
    allowed[magnitude == 0] = 0
    parts = [
        _worst_part(values, magnitude, allowed)
        for values in (np.abs(error.real), np.abs(error.imag))
    ]
    (re, re_excess, _), (im, im_excess, _) = parts
    error, exact = error * reference.unit, exact * reference.unit
    places = [
        f"({first + product}, {block.chosen[row]}, {column})"
        for _, _, (product, row, column) in parts
    ]
    return _Worst(
        squared_norm(error), squared_norm(exact), (re, im), (re_excess, im_excess),
        (places[0], places[1]),
    )  # fmt: skip


def _worst_part(
    error: Array, magnitude: Array, allowed: Array
) -> tuple[float, float, tuple[int, int, int]]:
    """Return the largest error / magnitude, largest error / allowed, and where the latter is."""
    relative, excess = error / magnitude, error / allowed
    if not (np.isfinite(relative.max()) and np.isfinite(excess.max())):
        relative[error == 0], excess[error == 0] = 0, 0
        relative[np.isnan(relative)], excess[np.isnan(excess)] = np.inf, np.inf
    product, row, column = np.unravel_index(int(excess.argmax()), excess.shape)
    return float(relative.max()), float(excess.max()), (int(product), int(row), int(column))


def _lost(
    reference: ProductReference, block: _Block, precision: Precision, backend: str
) -> Array | float:
    """Return (products, rows, n): the absolute error that underflow may cause; see `underflow`.

    Operands are off by e_a = ``operand`` + ``of_largest`` x largest component of the row, in each
    real part, so a product's part is off by e_a (|br| + |bi|) <= sqrt(2) e_a |b|, summed over k;
    the same with a and b exchanged, and 2 k e_a e_b. Each of the 2 k P products and of the last few
    operations may lose ``result``. The factor 2 covers the operands' own rounding, (1 + v) < 2, and
    the terms' products that are not kept (`underflow`).
    """
    terms = underflow(precision, backend, reference.k)
    k, products = reference.k, len(precision.products)
    operations = terms.result * 4 * (1 + abs(reference.beta))
    if not k:
        return operations
    span = block.products.start, block.products.stop
    rows, columns = reference.rows_of_a, reference.columns_of_b
    sum_a, largest_a = (
        reference.items(x, *span)[:, block.chosen] for x in (rows.sums, rows.largest)
    )
    sum_b, largest_b = (reference.items(x, *span) for x in (columns.sums, columns.largest))
    lost_a = terms.operand + terms.of_largest * largest_a
    lost_b = terms.operand + terms.of_largest * largest_b
    operands = np.sqrt(2) * (lost_a * sum_b + sum_a * lost_b) + 2 * k * lost_a * lost_b
    inner = 2 * operands + 2 * k * products * terms.result
    return np.asarray(bounds.spread(reference.alpha) * abs(reference.alpha) * inner + operations)
