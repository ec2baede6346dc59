"""A Freivalds check of a whole product, sharp enough to see one wrong element.

Freivalds (1979) compares C x with A (B x) for a random x: two matrix-vector products instead of a
matrix product. With one x over a whole row a wrong element hides in the rounding errors of all
others, so x is split into blocks of ``BLOCK`` columns, each checked apart: for each row i and
block J

    r_iJ = sum_{j in J} x_j (C^_ij - C_ij),   x_j = e^(i theta_j), theta_j uniform.

Reference. The operands are rounded here by the same rule as in the kernel (`argand.rounding`), so
the rounding of operands, the largest error of a low precision, drops out of r, except for `ties`.
That rule is held to fp64 by rows of the reference; this check says that all follows from the
operands.

Threshold. The errors e_j = C^_ij - C_ij do not depend on x, which is drawn after them. Re r is a
sum of independent zero-mean terms |e_j| cos(theta_j + phi_j), each sub-Gaussian with variance proxy
|e_j|^2 / 2 (its moment generating function is I_0(s |e_j|) <= exp(s^2 |e_j|^2 / 4)), so

    P(|Re r| > lambda F) <= 2 exp(-lambda^2 / 2)   where   sum |e_j|^2 <= 2 F^2,

and the same for Im r. F bounds the 2-norm of either part's errors over the block. With T tests
lambda = sqrt(2 log(2 T / p)) makes a false alarm less likely than p = ``FAILURE``. No rounding
error is assumed to be random (they are not for constant or structured operands): only x is.

F. Every partial sum of row i over block J is a row vector a_S B_S of 2-norm at most ||a_i||_2 s_J,
where s_J^2 is the largest eigenvalue of Re(B_J^H B_J); `bounds.sum_error` says how many of them are
rounded. This is what makes the check sharp: a bound by |A| |B| would be larger by about sqrt(k)
for random operands.

s_J is bounded by ||G^8||_F^(1/16), G = Re(B_J^H B_J): an eigenvalue is at most the 2-norm of all,
and powers make the largest dominate (at most a factor BLOCK^(1/32) = 1.14 is lost).

This threshold holds for any data and any order of summation, and grows as k^(3/2). So that one
wrong element is seen at large k too, the ``SUSPECTS`` residuals that stand out most, relative to
||a_i||_2 s_J, are inspected element by element (`workflow.accuracy.suspects`).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np
from argand import Precision

from workflow.accuracy import bounds
from workflow.accuracy.assessment import FAILURE, excess_of, finite
from workflow.accuracy.lines import norm_along, spectral_bound
from workflow.accuracy.references import Array, ProductReference
from workflow.accuracy.suspects import BLOCK, Inspected, RightBlock, Sides, inspect, operand_terms
from workflow.accuracy.ties import ties
from workflow.accuracy.underflow import underflow
from workflow.threads import each, for_each, stretches, thread_count

SUSPECTS = 16
"""Residuals that are inspected element by element."""
_BLOCK_VALUES = 1 << 17
"""Complex values of an operand converted to fp64 at a time, more where rows are long."""
_MIN_ROWS = 64
"""Fewer would not pay for what BLAS does with the other factor."""


@dataclass(frozen=True)
class Findings:
    """The findings of the check.

    ``reason`` is empty where nothing impossible was, ``suspicion`` where nothing improbable was.
    ``worst`` is the largest residual over its threshold.
    """

    worst: float
    reason: str
    suspicion: str = ""


def freivalds(
    reference: ProductReference, result: Array, precision: Precision, backend: str
) -> Findings:
    """Check all of ``result``, of the reference's shape.

    Rows of A and columns of B with values that are not finite are left out. Costs about P / BLOCK
    of the product, in complex128.
    """
    sides = Sides(reference, precision, backend, reference.m < reference.n)
    tests = reference.batch * sides.rows * math.ceil(sides.columns / BLOCK)
    strength = math.sqrt(2 * math.log(2 * 2 * max(tests, 1) / FAILURE))
    rng = np.random.default_rng([reference.seed, 0xF4E1])
    phases = np.exp(2j * np.pi * rng.random((reference.batch, sides.columns)))
    groups = _groups(sides)
    with np.errstate(all="ignore"):
        # Many groups are shared out, of few each.
        share = each if len(groups) >= 2 * thread_count() else map
        parts = share(partial(_suspects, sides, result, phases, strength), groups)
        found = heapq.nlargest(SUSPECTS, chain.from_iterable(parts))
        worst = found[0].over if found else 0.0
        if not worst <= 1:
            return Findings(worst, f"Freivalds residual is {worst:.3g} times its threshold in "
                f"{sides.place(found[0].batch, found[0].row, found[0].block)}")  # fmt: skip
        seen = _inspected(sides, result, found) if sides.are_inspected else []
    wrong = next((one.wrong for one in seen if one.wrong), "")
    return Findings(worst, wrong, next((one.suspect for one in seen if one.suspect), ""))


def _inspected(sides: Sides, result: Array, found: Sequence[Suspect]) -> list[Inspected]:
    """Return what inspections of suspects find. Those of a block share its columns."""
    blocks = list(dict.fromkeys((one.batch, one.block) for one in found))

    def of_block(block: tuple[int, int]) -> dict[int, Inspected]:
        right = RightBlock.of(sides, *block)
        rows = [one.row for one in found if (one.batch, one.block) == block]
        texts = each(lambda row: inspect(sides, result, row, right), rows)
        return dict(zip(rows, texts, strict=True))

    share = each if len(blocks) >= thread_count() else map
    seen = dict(zip(blocks, share(of_block, blocks), strict=True))
    return [seen[one.batch, one.block][one.row] for one in found]


class Suspect(NamedTuple):
    """A residual that stands out, ordered by how far it does."""

    over: float
    batch: int
    row: int
    block: int


def _largest(over: Array, batch: int, row: int) -> list[Suspect]:
    """Return the largest of an array (products, rows, blocks) that starts at ``batch``, ``row``."""
    count = min(SUSPECTS, over.size)
    chosen = np.argpartition(over, over.size - count, axis=None)[over.size - count :]
    places = zip(*np.unravel_index(chosen, over.shape), strict=True)
    return [
        Suspect(float(over.flat[index]), batch + int(i), row + int(j), int(block))
        for index, (i, j, block) in zip(chosen, places, strict=True)
        if over.flat[index] > 0
    ]


def _groups(sides: Sides) -> list[slice]:
    """Return the products that are checked together."""
    if 0 in sides.reference.shape:
        return []
    largest = sides.rows * max(sides.reference.k, sides.columns)
    return stretches(sides.reference.batch, max(1, _BLOCK_VALUES // largest))


def _suspects(
    sides: Sides, result: Array, phases: Array, strength: float, group: slice
) -> list[Suspect]:
    """Return the blocks of some products that stand out most."""
    reference, span = sides.reference, (group.start, group.stop)
    own = phases[group]
    right = _Right(sides, group, own) if reference.k else None
    left = sides.left(*span) if right else None
    computed = sides.result(result, *span)
    addend = None if reference.c is None else sides.result(reference.c, *span)

    def found(rows: slice) -> list[Suspect]:
        residual, error = _block_of_rows(
            sides, group, rows, own, right, None if left is None else left[:, rows],
            computed[:, rows], None if addend is None else addend[:, rows],
        )  # fmt: skip
        size = np.maximum(np.abs(residual.real), np.abs(residual.imag))
        return _largest(excess_of(size, strength * error), group.start, rows.start)

    step = max(_MIN_ROWS, _BLOCK_VALUES // max(reference.k, sides.columns, 1))
    return heapq.nlargest(SUSPECTS, chain.from_iterable(each(found, stretches(sides.rows, step))))


def _block_of_rows(
    sides: Sides, group: slice, rows: slice, phases: Array, right: _Right | None,
    left: Array | None, computed: Array, addend: Array | None,
) -> tuple[Array, Array]:  # fmt: skip
    """Return r and F for some rows of some products."""
    reference, precision = sides.reference, sides.precision
    alpha, beta, k = reference.alpha, reference.beta, reference.k
    good = np.ones((*computed.shape[:2], 1), bool)
    known = np.ones(computed.shape, bool)
    if left is not None and right is not None:
        good = sides.finite_rows(group.start, group.stop)[:, rows]
        known = good & right.good
        left = left if good.all() else np.where(good, left, 0)
    if addend is not None:
        known = known & finite(addend)
        addend = np.where(known, addend, 0).astype(complex)
    computed = computed if known.all() else np.where(known, computed, 0)
    computed = computed.astype(complex)
    # Also what alpha and beta may be off by when they underflow in the output's type.
    lost = 2 * underflow(precision, sides.backend).result
    residual = _per_block(computed * phases[:, None, :])
    error = _own_error(k) * _block_norm(computed)
    if left is not None and right is not None:
        exact, bound = right.times(left)
        residual -= alpha * exact
        error = error + (abs(alpha) + lost) * bound + lost * right.size(left)
    if addend is not None:
        residual -= beta * _per_block(addend * phases[:, None, :])
        u = bounds.accumulator_roundoff(precision)
        rounded = bounds.roundings(bounds.ADDEND_ROUNDINGS, u) + _own_error(k)
        error = error + (abs(beta) * rounded + lost) * _block_norm(addend)
    # An element whose addend is not finite has no known value: its row's block is left out.
    if addend is not None and not known.all():
        partly = ~_per_block((~known & good & (right.good if right else True)) * 1.0).astype(bool)
        residual = np.where(partly, residual, 0)
    return residual, error + lost * 4 * (k + 4) * math.sqrt(BLOCK)


class _Right:
    """The right operands of some products, reduced to blocks: B_q x, s_J, ||B_J||_F, ties."""

    def __init__(self, sides: Sides, group: slice, phases: Array) -> None:
        self.sides = sides
        right = sides.right(group.start, group.stop)
        self.good = sides.finite_columns(group.start, group.stop)
        columns = stretches(sides.columns, BLOCK)
        terms = sides.precision.terms
        shape = (group.stop - group.start, sides.reference.k, len(columns))
        self.sums = [np.empty(shape, complex) for _ in range(terms)]
        self.spectral = np.empty((shape[0], 1, len(columns)))
        self.frobenius, self.ties = np.empty_like(self.spectral), np.empty_like(self.spectral)

        def fill(index: int) -> None:
            block = columns[index]
            good = self.good[:, :, block]
            values = right[:, :, block] if good.all() else np.where(good, right[:, :, block], 0)
            x = np.where(good[:, 0], phases[:, block], 0)[:, :, None]
            for total, term in zip(
                self.sums, operand_terms(values, sides.precision, -2), strict=True
            ):
                total[:, :, index] = (term @ x)[..., 0]
            wide = values.astype(complex)
            self.spectral[:, 0, index] = spectral_bound(wide)
            self.frobenius[:, 0, index] = norm_along(np.abs(wide).reshape(len(wide), -1), -1)
            moved = ties(values, sides.precision, sides.backend).reshape(len(wide), -1)
            self.ties[:, 0, index] = norm_along(moved, -1)

        for_each(fill, range(len(columns)))

    def size(self, left: Array) -> Array:
        """Return ||a_i||_2 s_J: at least the 2-norm of either part of any partial sum."""
        return np.asarray(norm_along(np.abs(left), -1)[..., None] * self.spectral)

    def times(self, left: Array) -> tuple[Array, Array]:
        """Return the sum of A_p (B_q x) over the products kept, and F for alpha = 1."""
        precision, k = self.sides.precision, self.sides.reference.k
        reference = self.sides.reference
        terms = operand_terms(left, precision, -1)
        exact = np.zeros((*left.shape[:2], self.spectral.shape[-1]), complex)
        for p, term in enumerate(terms):
            partners = [self.sums[j] for i, j in self.sides.products if i == p]
            if partners:
                exact += term @ sum(partners[1:], partners[0])
        norms = norm_along(np.abs(left.astype(complex)), -1)[..., None]
        mixed = bounds.spread(reference.alpha) * bounds.sum_error(precision, k, self.sides.backend)
        u = bounds.accumulator_roundoff(precision)
        scaling = bounds.roundings(bounds.scaling_roundings(reference.alpha, reference.beta), u)
        relative = (mixed + (1 + mixed) * scaling) * bounds.kept_size(precision)
        flushed = underflow(precision, self.sides.backend).operand
        own = _own_error(k) * self.frobenius * len(precision.products)
        small = flushed * math.sqrt(2 * k) * (self.spectral + norms * math.sqrt(BLOCK))
        moved = norm_along(ties(left, precision, self.sides.backend), -1)[..., None]
        moved = moved * self.spectral + (norms + moved) * self.ties
        small += 2 * bounds.spread(reference.alpha) * moved  # twice, as operands are rounded, too
        return exact, norms * (relative * self.spectral + own) + small


def _own_error(k: int) -> float:
    """Return the check's own rounding, relative to 1-norms over k x BLOCK: sqrt(BLOCK) of 2-norms.

    B x, A (B x), C x and their differences are chains of at most 2 k + 4 BLOCK roundings at 2^-53,
    in two parts.
    """
    chain = bounds.gamma(2 * k + 4 * BLOCK, 2.0**-53)
    return 2 * chain * math.sqrt(BLOCK)


def _per_block(x: Array) -> Array:
    """Return the sums over blocks of the last axis."""
    return np.add.reduceat(x, np.arange(0, x.shape[-1], BLOCK), axis=-1)


def _block_norm(x: Array) -> Array:
    """Return 2-norms over blocks of the last axis, also where squares are out of fp64's range."""
    blocks = np.arange(0, x.shape[-1], BLOCK)
    moduli = np.abs(x)
    largest = np.maximum.reduceat(moduli, blocks, axis=-1)
    unit = np.where((largest > 0) & np.isfinite(largest), largest, 1)
    moduli = moduli / np.repeat(unit, BLOCK, axis=-1)[..., : x.shape[-1]]
    return np.asarray(np.sqrt(_per_block(moduli * moduli)) * unit)
