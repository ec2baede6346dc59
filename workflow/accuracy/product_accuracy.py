"""The assessment of products: componentwise against the reference, and Freivalds over all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from argand import Precision
from argand.scaling_range import product_range

from workflow.accuracy import bounds
from workflow.accuracy.freivalds import freivalds
from workflow.accuracy.judgement import Accuracy, Checks, finite, finite_lines, ratio, same_shape
from workflow.accuracy.references import Array, ProductReference

_CHUNK_VALUES = 1 << 21
"""Values compared at a time."""


@dataclass
class _Worst:
    """Running maxima over the reference's rows."""

    squared_error: float = 0.0
    squared_size: float = 0.0
    componentwise: tuple[float, float] = (0.0, 0.0)
    excess: tuple[float, float] = (0.0, 0.0)
    where: tuple[str, str] = ("", "")


def assess_product(
    reference: ProductReference, result: Array, precision: Precision, *, backend: str
) -> Accuracy:
    """Hold a result of the reference's shape to the bound of its precision.

    Real and imaginary part of every element of the reference's rows must be within
    ``bounds.product_bound`` times |alpha| |A| |B| + |beta| |C|, plus what underflow may take
    (`_lost`); an element whose denominator is 0 must be exactly right. Where an operand makes an
    element NaN or infinite it must not be finite, and only there. The whole result must pass
    `freivalds`. Where the precision scales its operands, the lines that spread wider than it holds
    to its unit roundoff are counted; that is no failure, because `_lost` has them in the bound.

    Args:
        precision: as the implementation rounds: a peer that truncates its operands needs
            ``precision.with_rounding("toward_zero")``.
        backend: ``cpu`` or ``cuda``, which sum differently.

    Raises ValueError where the shape differs.
    """
    result = np.asarray(result)
    same_shape(result, reference.shape)
    bound = bounds.product_bound(
        precision, reference.k, backend, alpha=reference.alpha, beta=reference.beta
    )
    worst, checks = _Worst(), Checks()
    checks.require(np.isfinite(bound), f"no bound exists at k = {reference.k} (k u >= 1)")
    with np.errstate(all="ignore"):
        misplaced = _misplaced_nonfinite(reference, result)
        for rows in _groups(reference, result):
            _compare(rows, reference, precision, backend, bound, worst)
        size, error = np.sqrt(worst.squared_size), np.sqrt(worst.squared_error)
    checks.require(misplaced == 0, f"{misplaced} elements are finite or not where C is the other")
    for part, name in enumerate(("componentwise_re", "componentwise_im")):
        checks.require(
            worst.excess[part] <= 1,
            f"{name}: an error is {worst.excess[part]:.3g} times what is allowed "
            f"(bound {bound:.3g}) at {worst.where[part]}",
        )
    verdict = freivalds(reference, result, precision, backend)
    checks.require(not verdict.reason, verdict.reason)
    scaled = precision.scaled and reference.k > 0
    lines = product_range(reference.a, reference.b, precision) if scaled else None
    return Accuracy(
        rel_frobenius=ratio(float(error), float(size)),
        componentwise_re=worst.componentwise[0],
        componentwise_im=worst.componentwise[1],
        bound=bound,
        lines_out_of_range=lines.out_of_range if lines else None,
        largest_spread=lines.largest_spread if lines else None,
        verified=checks.verified,
        reason=checks.reason,
        reference="sampled" if reference.sampled else "full",
        reference_rows=len(reference.rows),
    )


def _misplaced_nonfinite(reference: ProductReference, result: Array) -> int:
    """How many elements are finite where C cannot be, or the other way round.

    A row of A or a column of B with a NaN or an infinity makes every element of that row or column
    of C not finite (even times 0), and so does such an element of the addend.
    """
    lost = np.zeros((1, 1), bool)
    if reference.k:
        lost = ~finite_lines(reference.a, -1)[..., :, None]
        lost = lost | ~finite_lines(reference.b, -2)[..., None, :]
    if reference.c is not None:
        lost = lost | ~finite(reference.c)
    return int(np.count_nonzero(lost == finite(result)))


@dataclass(frozen=True)
class _Rows:
    """Some rows of some products: operands, the result and the truth, each (products, ., .).

    ``first`` is the number of the first product, ``chosen`` the rows' numbers in each.
    """

    first: int
    chosen: Array
    a: Array
    b: Array
    got: Array
    exact: Array
    magnitude: Array


def _groups(reference: ProductReference, result: Array) -> Iterator[_Rows]:
    """The reference's rows: whole products several at a time, or one product's sampled rows."""
    if reference.sampled:
        for index, where, chosen in reference.rows_by_batch():
            a, got = reference.item(reference.a, index), reference.item(result, index)
            yield _Rows(
                index, chosen, a[chosen][None], reference.item(reference.b, index)[None],
                got[chosen][None], reference.values[where][None], reference.magnitude[where][None],
            )  # fmt: skip
        return
    if 0 in reference.shape:
        return
    m, n, chosen = reference.m, reference.n, np.arange(reference.m)
    step = max(1, _CHUNK_VALUES // (m * n))
    for start in range(0, reference.batch, step):
        stop = min(start + step, reference.batch)
        exact, magnitude = (
            x[start * m : stop * m].reshape(-1, m, n)
            for x in (reference.values, reference.magnitude)
        )
        a, b, got = (reference.items(x, start, stop) for x in (reference.a, reference.b, result))
        yield _Rows(start, chosen, a, b, got, exact, magnitude)


def _compare(
    rows: _Rows, reference: ProductReference, precision: Precision, backend: str, bound: float,
    worst: _Worst,
) -> None:  # fmt: skip
    """Take some rows into the maxima."""
    exact, magnitude = rows.exact, rows.magnitude
    error = rows.got - exact
    known = finite(exact) & finite(magnitude)
    if not known.all():
        error, exact = np.where(known, error, 0), np.where(known, exact, 0)
    worst.squared_error += _squared(error)
    worst.squared_size += _squared(exact)
    allowed = (bound + _lost_scalars(reference, precision, backend)) * magnitude
    allowed += _lost(rows, reference, precision, backend)
    allowed[magnitude == 0] = 0
    for part, values in enumerate((np.abs(error.real), np.abs(error.imag))):
        relative, excess, place = _worst_part(values, magnitude, allowed)
        where = f"({rows.first + place[0]}, {rows.chosen[place[1]]}, {place[2]})"
        _raise(worst, part, relative, excess, where)


def _squared(x: Array) -> float:
    """Sum of the squared moduli."""
    return float(np.vdot(x, x).real)


def _worst_part(
    error: Array, magnitude: Array, allowed: Array
) -> tuple[float, float, tuple[int, int, int]]:
    """Largest error / magnitude, largest error / allowed, and where the latter is."""
    relative, excess = error / magnitude, error / allowed
    if not (np.isfinite(relative.max()) and np.isfinite(excess.max())):
        relative[error == 0], excess[error == 0] = 0, 0
        relative[np.isnan(relative)], excess[np.isnan(excess)] = np.inf, np.inf
    product, row, column = np.unravel_index(int(excess.argmax()), excess.shape)
    return float(relative.max()), float(excess.max()), (int(product), int(row), int(column))


def _raise(worst: _Worst, part: int, relative: float, excess: float, place: str) -> None:
    if relative > worst.componentwise[part]:
        values = list(worst.componentwise)
        values[part] = relative
        worst.componentwise = (values[0], values[1])
    if excess > worst.excess[part]:
        excesses, places = list(worst.excess), list(worst.where)
        excesses[part], places[part] = excess, place
        worst.excess, worst.where = (excesses[0], excesses[1]), (places[0], places[1])


def _lost(
    rows: _Rows, reference: ProductReference, precision: Precision, backend: str
) -> Array | float:
    """(products, rows, n): the absolute error that underflow may cause; see `bounds.underflow`.

    Operands are off by e_a = ``operand`` + ``of_largest`` x largest component of the row, in each
    real part, so a product's part is off by e_a (|br| + |bi|) <= sqrt(2) e_a |b|, summed over k;
    the same with a and b exchanged, and 2 k e_a e_b. Each of the 2 k P products and of the last few
    operations may lose ``result``. The factor 2 covers the operands' own rounding, (1 + v) < 2, and
    the terms' products that are not kept (`bounds.underflow`).
    """
    terms = bounds.underflow(precision, backend)
    k, products = reference.k, len(precision.products)
    operations = terms.result * 4 * (1 + abs(reference.beta))
    if not k:
        return operations
    a, b = rows.a, rows.b
    lost_a: Array | float = terms.operand
    lost_b: Array | float = terms.operand
    if terms.of_largest:
        lost_a = lost_a + terms.of_largest * _largest(a, -1)
        lost_b = lost_b + terms.of_largest * _largest(b, -2)
    sum_a = np.abs(a).sum(axis=-1, keepdims=True, dtype=float)
    sum_b = np.abs(b).sum(axis=-2, keepdims=True, dtype=float)
    operands = np.sqrt(2) * (lost_a * sum_b + sum_a * lost_b) + 2 * k * lost_a * lost_b
    inner = 2 * operands + 2 * k * products * terms.result
    return np.asarray(bounds.spread(reference.alpha) * abs(reference.alpha) * inner + operations)


def _lost_scalars(reference: ProductReference, precision: Precision, backend: str) -> float:
    """What alpha and beta lose when they underflow in the output's type, relative to magnitude."""
    lost = 2 * bounds.underflow(precision, backend).result
    return sum(lost / abs(scalar) for scalar in (reference.alpha, reference.beta) if scalar)


def _largest(x: Array, axis: int) -> Array:
    """Largest finite real or imaginary component along an axis, which is kept."""
    parts = np.maximum(np.abs(x.real), np.abs(x.imag))
    return np.asarray(np.where(finite(parts), parts, 0).max(axis=axis, keepdims=True), float)
