"""Bounds on ||C^ - C||_F of a whole product, over ||C||_F: what can be, and what is probable."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from argand import Precision
from argand.precision import FP64, PRECISIONS

from workflow.accuracy import bounds
from workflow.accuracy.assessment import finite
from workflow.accuracy.lines import norm_along
from workflow.accuracy.probabilistic import accumulation_errors, length_within
from workflow.accuracy.references import Array, ProductReference
from workflow.accuracy.underflow import underflow
from workflow.accuracy.whole_error import LIMIT, WholeError


class Bounds(NamedTuple):
    """The worst case, and what a right result exceeds with a probability of 1e-9."""

    worst: float
    probable: float


def relative_bounds(
    reference: ProductReference,
    whole: WholeError,
    size: float,
    precision: Precision,
    backend: str,
) -> Bounds:
    """Return the bounds relative to ``size``, the norm of C.

    Worst case: each part of an element is within `bounds.product_bound` of |alpha| |A| |B| +
    |beta| |C|, and || |A| |B| ||_F <= ||A||_F ||B||_F for each product of a batch.

    Probable: what rounding the operands does is no matter of chance, as the rule is known; its norm
    is at most `LIMIT` times the estimate of ``whole``. Sums add `accumulation_errors` times the
    partial sums, and the fp64 reference the same at its precision.
    """
    coefficient = bounds.product_bound(
        precision, reference.k, backend, alpha=reference.alpha, beta=reference.beta
    )
    scalars = lost_scalars(reference, precision, backend)
    magnitude = abs(reference.alpha) * _norm_product(reference) + LIMIT * whole.addend
    if not size:  # nothing to compute, or all of it cancels and no relative error can be proved
        return Bounds(math.inf, math.inf) if magnitude else Bounds(0.0, 0.0)
    worst = math.sqrt(2) * ((coefficient + scalars) * magnitude + _lost(reference, precision,
        backend, underflow(precision, backend, reference.k).of_largest))  # fmt: skip

    u = bounds.accumulator_roundoff(precision)
    summed, exact = (
        accumulation_errors(row, reference.k, where, reference.coherence(row))
        for row, where in ((precision, backend), (PRECISIONS["fp64"], "cpu"))
    )
    elements = 2.0 * math.prod(reference.shape)
    # The result of exact integers is rounded once, the sums are not.
    scaled = (
        bounds.scaling_roundings(reference.alpha, reference.beta) + bool(precision.moduli)
    ) * size
    if reference.beta:
        scaled += bounds.ADDEND_ROUNDINGS * whole.addend
    ends = (u + 2.0**-FP64.significand) * scaled
    probable = LIMIT * whole.rounding + math.sqrt(2) * (
        scalars * magnitude + _lost(reference, precision, backend, 0.0)
    )
    own = (summed.deviation + exact.deviation) * whole.partial_sums + ends
    probable += length_within(summed.mean * whole.partial_sums, own, elements)
    # A sum that overflows is no bound, and nothing would be within a NaN.
    worst = worst if worst == worst else math.inf
    return Bounds(worst / size, probable / size)


def of_left_out(reference: ProductReference, precision: Precision, backend: str) -> float:
    """Return the worst case of what a full reference has and random vectors leave out.

    These are the rows and columns in which some element of the addend is not finite. The losses of
    scaling and of integers are counted over all lines.
    """
    if reference.sampled or reference.c is None:
        return 0.0
    shape = (reference.batch, reference.m, reference.n)
    lost = ~finite(reference.items(reference.c, 0, reference.batch))
    if not lost.any():
        return 0.0
    left_out = lost.any(axis=-1, keepdims=True) | lost.any(axis=-2, keepdims=True)
    magnitude = reference.magnitude.reshape(shape)
    magnitude = np.where(left_out & np.isfinite(magnitude), magnitude, 0)
    bound = bounds.product_bound(
        precision, reference.k, backend, alpha=reference.alpha, beta=reference.beta
    )
    of_largest = underflow(precision, backend, reference.k).of_largest
    lines = _lost(reference, precision, backend, of_largest)
    return float(np.sqrt(2) * (bound * norm_along(magnitude.reshape(-1), 0) + lines))


def lost_scalars(reference: ProductReference, precision: Precision, backend: str) -> float:
    """Return the relative loss of alpha and beta that underflow in the output's type."""
    lost = 2 * underflow(precision, backend).result
    return sum(lost / abs(scalar) for scalar in (reference.alpha, reference.beta) if scalar)


def _norm_product(reference: ProductReference) -> float:
    """Return the root of the sum of ||A||^2 ||B||^2 of all products, without non-finite lines."""
    if not reference.k:
        return 0.0
    a = _by_product(reference, reference.rows_of_a.norms, reference.rows_of_a.finite)
    b = _by_product(reference, reference.columns_of_b.norms, reference.columns_of_b.finite)
    return float(norm_along(a * b, 0))


def _by_product(reference: ProductReference, values: Array, finite: Array) -> Array:
    """Return (batch,): 2-norms over lines of some values of lines."""
    known = reference.items(np.where(finite, values, 0), 0, reference.batch)
    return norm_along(known.reshape(len(known), math.prod(known.shape[1:])), 1)


def _lost(
    reference: ProductReference, precision: Precision, backend: str, of_largest: float
) -> float:
    """Return the Frobenius norm of at least what underflow may cost each part.

    ``of_largest`` is what a component of a scaled line loses, relative to the line's largest.
    """
    terms, k = underflow(precision, backend), reference.k
    elements = math.sqrt(math.prod(reference.shape))
    total = elements * terms.result * 4 * (1 + abs(reference.beta))
    if not k:
        return total
    rows, columns = reference.rows_of_a, reference.columns_of_b

    lost_a = _by_product(reference, terms.operand + of_largest * rows.largest, rows.finite)
    lost_b = _by_product(reference, terms.operand + of_largest * columns.largest, columns.finite)
    sums_a = _by_product(reference, rows.sums, rows.finite)
    sums_b = _by_product(reference, columns.sums, columns.finite)
    operands = math.sqrt(2) * (lost_a * sums_b + sums_a * lost_b) + 2 * k * lost_a * lost_b
    inner = 2 * float(norm_along(operands, 0))
    inner += 2 * k * len(precision.products) * terms.result * elements
    return total + bounds.spread(reference.alpha) * abs(reference.alpha) * inner
