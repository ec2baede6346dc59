"""The assessment of softmax: elementwise relative, with the sum of each row apart."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
from argand import Precision
from argand.rounding import round_operand
from argand.softmax.problem import rounding_of

from workflow.accuracy import bounds
from workflow.accuracy.assessment import Accuracy, Checks, excess_of, ratio, same_shape
from workflow.accuracy.measures import Measure, measured
from workflow.accuracy.probabilistic import concentration, deviations
from workflow.accuracy.references import Array, SoftmaxReference
from workflow.threads import each, stretches

MEASURES = (
    Measure(
        column="max_ulp", caption="largest error", unit="ulp",
        what="Largest error of a softmax in units in the last place of the output's type.",
    ),
    Measure(
        column="row_sum_error", caption="row sum error", scientific=True,
        what="Largest |sum of a softmax row - 1|.",
    ),
)  # fmt: skip
_BLOCK_VALUES = 1 << 16
"""Values compared at a time: what is made of them stays in a core's cache."""
EXP_ROUNDINGS = 4
"""Roundings' worth of error of exp: NumPy documents under 4 ulp, ex2.approx has 2 ulp."""
EXP_DEVIATION = 2
"""Error of exp almost everywhere, in u: an ulp."""
ARGUMENT_ROUNDINGS = 3
"""Roundings of an exponent x - m: the difference, the product with log2(e), and log2(e) itself."""
TILE_ROUNDINGS = 3
"""Roundings of joining a tile beside two exponentials: two products and a sum."""
_LONGEST_CHAIN = 128
"""Most values that a lane of a GPU holds in its registers."""
_LANE_VALUES = 64
"""Most values that a lane holds of a row that has less than a warp."""
_SMALLEST_TILE = 256
"""No implementation of ours has narrower tiles."""


@dataclass
class _Worst:
    """Maxima and sums over some rows."""

    squared_error: float = 0.0
    squared_size: float = 0.0
    squared_rounding: float = 0.0
    squared_bound: float = 0.0
    squared_deviation: float = 0.0
    ulp: float = 0.0
    excess: float = 0.0
    row: int = 0
    deviations: float = 0.0
    odd_row: int = 0
    sum_error: float = 0.0
    sum_excess: float = 0.0
    misplaced: int = 0
    beyond: int = 0
    """Rows whose softmax is NaN only because their logits are out of the precision's range."""

    def add(self, other: _Worst) -> None:
        """Take in what later rows have."""
        for name in _SQUARES:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.ulp = max(self.ulp, other.ulp, key=_nan_last)
        if other.excess > self.excess:
            self.excess, self.row = other.excess, other.row
        if other.deviations > self.deviations:
            self.deviations, self.odd_row = other.deviations, other.odd_row
        self.sum_error = max(self.sum_error, other.sum_error, key=_nan_last)
        self.sum_excess = max(self.sum_excess, other.sum_excess, key=_nan_last)
        self.misplaced += other.misplaced
        self.beyond += other.beyond


_SQUARES = tuple(one.name for one in fields(_Worst) if one.name.startswith("squared"))


def rounding_bound(precision: Precision, columns: int, backend: str) -> tuple[float, float]:
    """Return (r, q): a computed probability is off by r + q d relatively, d = max(x) - x.

    With u the roundoff of the accumulator: the exponent x - m, made in two steps (to the tile's
    maximum, from there to the row's), is off by ``ARGUMENT_ROUNDINGS`` u d, each of the two
    exponentials by ``EXP_ROUNDINGS`` u more; then a division and a product. The sum z of positive
    terms inherits their error weighted by their share: the mean of d over a row is at most its
    entropy, log(columns); besides it has the depth of its tree, and for each tile on the way
    two exponentials and ``TILE_ROUNDINGS``. The depth on the CPU is that of NumPy's pairwise sum
    (blocks of 128 in 8 chains), and on a GPU at most columns / 32 where a row has a warp, and the
    values that a lane holds, ``_LANE_VALUES``, where it has fewer lanes.
    """
    u = bounds.accumulator_roundoff(precision)
    if backend == "cuda":
        depth = max(math.ceil(columns / 32), min(columns, _LANE_VALUES)) + 10
    else:
        depth = 128 // 8 + 3 + math.ceil(math.log2(max(2, columns)))
    tiles = math.ceil(columns / _SMALLEST_TILE) if backend == "cuda" else math.ceil(columns / 16384)
    total = float(depth + tiles * (2 * EXP_ROUNDINGS + TILE_ROUNDINGS))
    total += EXP_ROUNDINGS + 2 * ARGUMENT_ROUNDINGS * math.log(columns)
    return bounds.roundings(2 * EXP_ROUNDINGS + 2 + total, u), ARGUMENT_ROUNDINGS * u


def rounding_deviation(precision: Precision, values: Array, below: Array, backend: str) -> Array:
    """Return (rows, columns): relative deviation of computed probabilities, for exact x.

    Args:
        values: the probabilities p.
        below: max(x) - x, the exponents.

    The element itself has two exponentials of ``EXP_DEVIATION`` u, the roundings of the exponent, a
    division and a product. The sum has the same of its terms, weighted by their shares p; and its
    additions: a term passes a chain of c of them and then a tree. Chains of different lanes add in
    quadrature, so a row of P lanes whose terms have shares p deviates by about c (sum p^2 + 1 / P)
    and one for each level of the tree. On a GPU a lane holds at most ``_LONGEST_CHAIN`` values
    before lanes meet, as long as a block has lanes. Errors are taken to be uniform: 1 / sqrt(3).
    """
    u = bounds.accumulator_roundoff(precision)
    columns = values.shape[-1]
    lanes = min(max(32, math.ceil(columns / _LONGEST_CHAIN)), 1024) if backend == "cuda" else 8
    chain = math.ceil(columns / lanes) if backend == "cuda" else 16
    tiles = math.ceil(columns / (_SMALLEST_TILE * lanes))
    shared = (values**2).sum(axis=-1, keepdims=True)
    term = 2 * EXP_DEVIATION**2 + ARGUMENT_ROUNDINGS * below**2
    of_sum = (values**2 * term).sum(axis=-1, keepdims=True)
    of_sum += chain * (shared + 1 / lanes) + math.log2(max(2, columns)) + tiles
    return np.asarray(u * np.sqrt((term + 2 + of_sum) / 3))


@dataclass(frozen=True)
class Rounded:
    """The error that a result of fewer bits adds: half an ulp, and half its smallest number."""

    relative: float = 0.0
    absolute: float = 0.0


_AS_IT_IS = Rounded()


def assess_softmax(
    reference: SoftmaxReference,
    result: Array,
    precision: Precision,
    *,
    backend: str,
    rounded: Rounded = _AS_IT_IS,
) -> Accuracy:
    """Verify a softmax (..., columns) by its a-priori bound, element by element and row by row.

    The input is rounded here by the precision's own rule (`rounding_of`), so what a result is
    compared with is the softmax of the rounded input, in fp64: exp, sum and division remain,
    `rounding_bound`, and what is probable of them, `rounding_deviation`. A row's sum has the same
    bound, because rounded input still has probabilities that sum to 1. The rounding of the input is
    no matter of chance: its norm is part of the bounds on the whole. Below the output's normal
    range a value may be off by the smallest normal number (flushed) on a GPU, by four subnormal
    spacings on the CPU.

    A row that is NaN in the reference must be NaN, and -inf must give exactly 0. ``rounded`` is
    what the result was rounded to after that.

    Raises ValueError where the shape differs.
    """
    result = np.asarray(result)
    same_shape(result, reference.values.shape)
    columns = result.shape[-1]
    exact, got, x = (y.reshape(-1, columns) for y in (reference.values, result, reference.x))
    worst, checks = _Worst(), Checks()

    def compare(rows: slice) -> _Worst:
        return _compare(x[rows], exact[rows], got[rows], precision, backend, rows.start, rounded)

    with np.errstate(all="ignore"):
        for found in each(compare, stretches(len(exact), max(1, _BLOCK_VALUES // columns))):
            worst.add(found)
    largest = np.finfo(precision.real_output)
    checks.require(
        worst.beyond == 0,
        f"{worst.beyond} rows are NaN where those of fp64 are not; logits beyond "
        f"{float(largest.max):.3g}, the largest {largest.dtype}, are infinite: scale the data",
    )
    _check(worst, checks, exact.size)
    # A row's elements share its sum, whose error is common to them: a row counts as one number.
    strength = concentration(len(exact))
    size = math.sqrt(worst.squared_size)
    moved = ratio(math.sqrt(worst.squared_rounding), size)
    most = moved + ratio(math.sqrt(worst.squared_bound), size)
    probable = moved + strength * ratio(math.sqrt(worst.squared_deviation), size)
    error = ratio(math.sqrt(worst.squared_error), size)
    return Accuracy(
        error_limit=error,
        measures=measured(max_ulp=worst.ulp, row_sum_error=worst.sum_error),
        reference="full",
        reference_rows=len(exact),
        **checks.conclude(error, most, probable, precision),
    )


def _check(worst: _Worst, checks: Checks, elements: int) -> None:
    """Check the maxima over rows of ``elements`` against what is possible and what is probable."""
    checks.require(worst.misplaced == 0, f"{worst.misplaced} values are not NaN or 0 as they must")
    checks.require(
        worst.excess <= 1,
        f"an element of row {worst.row} is off by {worst.excess:.3g} times its bound",
    )
    checks.require(
        worst.sum_excess <= 1,
        f"row_sum_error {worst.sum_error:.3g} is {worst.sum_excess:.3g} times its bound",
    )
    checks.expect(
        worst.deviations <= deviations(elements),
        f"an element of row {worst.odd_row} is off by {worst.deviations:.3g} times its deviation",
    )


def _compare(
    x: Array, exact: Array, got: Array, precision: Precision, backend: str, first_row: int,
    rounded: Rounded,
) -> _Worst:  # fmt: skip
    """Return the maxima of some rows."""
    worst = _Worst()
    real = np.dtype(precision.real_output).type
    nan = np.isnan(exact)
    worst.misplaced += int(np.count_nonzero(nan != np.isnan(got)))
    worst.misplaced += int(np.count_nonzero(np.isneginf(x) & ~nan & (got != 0)))
    rows = ~nan.any(axis=-1)
    if not rows.any():
        return worst
    exact, got = exact[rows], got[rows].astype(float)
    held, below, moved = _of_rounded(x[rows], exact, precision)
    worst.beyond = int(np.count_nonzero(np.isnan(held).any(axis=-1)))
    base, slope = rounding_bound(precision, held.shape[-1], backend)
    floor = _floor(precision, backend) + rounded.absolute
    # An element at d = inf is 0 and has no relative error.
    below = np.where(held > 0, below, 0)
    relative = base + slope * below
    relative += (1 + relative) * rounded.relative
    spread = rounding_deviation(precision, held, below, backend)
    spread = np.minimum(np.hypot(spread, rounded.relative), relative)
    error = np.abs(got - held)
    allowed = relative * held + floor
    excess = excess_of(error, allowed)
    worst.excess = float(excess.max())
    numbers = first_row + np.flatnonzero(rows)
    worst.row = int(numbers[int(excess.max(axis=-1).argmax())])
    # Losses of the range are no rounding: the error of a value just above it is all floor.
    odd = excess_of(np.where(error <= floor, 0, error - floor), spread * held)
    worst.deviations = float(odd.max())
    worst.odd_row = int(numbers[int(odd.max(axis=-1).argmax())])
    truth = np.abs(got - exact)
    worst.ulp = float((truth / np.spacing(exact.astype(real))).max())
    worst.squared_error = float((truth**2).sum())
    worst.squared_size = float((exact**2).sum())
    worst.squared_rounding = float((moved**2).sum())
    worst.squared_bound = float((allowed**2).sum())
    worst.squared_deviation = float(((spread * held) ** 2).sum()) + floor**2 * held.size
    sums = np.abs(got.sum(axis=-1) - 1)
    weighted = base + slope * math.log(held.shape[-1]) + floor * held.shape[-1] + rounded.relative
    worst.sum_error = float(sums.max())
    worst.sum_excess = float(sums.max()) / weighted
    return worst


def _of_rounded(x: Array, exact: Array, precision: Precision) -> tuple[Array, Array, Array]:
    """Return the softmax in fp64 of input as the precision holds it, and max - x of that.

    The third array is how far that is from ``exact``. All are (rows, columns).
    """
    held = round_operand(x.astype(precision.real_output, copy=False), rounding_of(precision))
    if held.dtype == x.dtype and np.array_equal(held, x):
        wide = x.astype(float)
        return exact, wide.max(axis=-1, keepdims=True) - wide, np.zeros((1, 1))
    wide = held.astype(float)
    below = wide.max(axis=-1, keepdims=True) - wide
    values = np.exp(-below)
    values /= values.sum(axis=-1, keepdims=True)
    return values, below, values - exact


def _nan_last(value: float) -> float:
    return math.inf if math.isnan(value) else value


def _floor(precision: Precision, backend: str) -> float:
    kind = precision.accumulator
    return 2.0**kind.min_exponent if backend == "cuda" else 4 * kind.smallest_subnormal
