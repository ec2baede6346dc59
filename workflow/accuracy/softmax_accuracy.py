"""The assessment of softmax: elementwise relative, with the sum of each row apart."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from argand import Precision
from argand.precision import FP64

from workflow.accuracy import bounds
from workflow.accuracy.judgement import Accuracy, Checks, ratio, same_shape
from workflow.accuracy.references import Array, SoftmaxReference
from workflow.threads import each, stretches

_BLOCK_VALUES = 1 << 16
"""Values compared at a time: what is made of them stays in a core's cache."""
EXP_ROUNDINGS = 4
"""Roundings' worth of error of exp: NumPy documents under 4 ulp, ex2.approx has 2 ulp."""
ARGUMENT_ROUNDINGS = 3
"""Of an exponent x - m: the difference, the product with log2(e), and log2(e) itself."""
TILE_ROUNDINGS = 3
"""What joining a tile adds beside two exponentials: two products and a sum."""
_SMALLEST_TILE = 256
"""No implementation of ours has narrower tiles."""


@dataclass
class _Worst:
    """Maxima and sums over some rows."""

    squared_error: float = 0.0
    squared_size: float = 0.0
    ulp: float = 0.0
    excess: float = 0.0
    row: int = 0
    sum_error: float = 0.0
    sum_excess: float = 0.0
    bound: float = 0.0
    misplaced: int = 0

    def add(self, other: _Worst) -> None:
        """Take in what later rows have."""
        self.squared_error += other.squared_error
        self.squared_size += other.squared_size
        self.ulp = max(self.ulp, other.ulp, key=_nan_last)
        if other.excess > self.excess:
            self.excess, self.row = other.excess, other.row
        self.sum_error = max(self.sum_error, other.sum_error, key=_nan_last)
        self.sum_excess = max(self.sum_excess, other.sum_excess, key=_nan_last)
        self.bound = max(self.bound, other.bound)
        self.misplaced += other.misplaced


def rounding_bound(precision: Precision, columns: int, backend: str) -> tuple[float, float]:
    """(r, q): a computed probability is off by r + q d relatively, d = max(x) - x, for exact x.

    With u the roundoff of the accumulator: the exponent x - m, made in two steps (to the tile's
    maximum, from there to the row's), is off by ``ARGUMENT_ROUNDINGS`` u d, each of the two
    exponentials by ``EXP_ROUNDINGS`` u more; then a division and a product. The sum z of positive
    terms inherits their error weighted by their share: the mean of d over a row is at most its
    entropy, log(columns); besides it has the depth of its tree, and for each tile on the way
    two exponentials and ``TILE_ROUNDINGS``. The depth on the CPU is that of NumPy's pairwise sum
    (blocks of 128 in 8 chains), and on a GPU at most columns / 32: a row has at least a warp.
    """
    u = bounds.accumulator_roundoff(precision)
    if backend == "cuda":
        depth = math.ceil(columns / 32) + 10
    else:
        depth = 128 // 8 + 3 + math.ceil(math.log2(max(2, columns)))
    tiles = math.ceil(columns / _SMALLEST_TILE) if backend == "cuda" else math.ceil(columns / 16384)
    total = float(depth + tiles * (2 * EXP_ROUNDINGS + TILE_ROUNDINGS))
    total += EXP_ROUNDINGS + 2 * ARGUMENT_ROUNDINGS * math.log(columns)
    return bounds.roundings(2 * EXP_ROUNDINGS + 2 + total, u), ARGUMENT_ROUNDINGS * u


@dataclass(frozen=True)
class Rounded:
    """What a result of fewer bits adds to its errors: half an ulp, and half its smallest number."""

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
    """Hold a softmax (..., columns) to its a-priori bound, element by element and row by row.

    Rounding the input moves x_j by at most e = v |x_j| (where rows are scaled, plus 2^-39 of the
    row's largest), and a probability e^(x_j) / sum e^(x_l) by a factor of at most e^(2 max e). Only
    entries near enough to the maximum to leave a trace in the output's type count for the maximum.
    On top come the errors of exp, sum and division, `rounding_bound`; they are also what a row's
    sum may be off by, because rounded input still has probabilities that sum to 1. Below the
    output's normal range a value may be off by the smallest normal number (flushed) on a GPU, by
    four subnormal spacings on the CPU.

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
    checks.require(worst.misplaced == 0, f"{worst.misplaced} values are not NaN or 0 as they must")
    checks.require(
        worst.excess <= 1,
        f"an element of row {worst.row} is off by {worst.excess:.3g} times its bound",
    )
    checks.require(
        worst.sum_excess <= 1,
        f"row_sum_error {worst.sum_error:.3g} is {worst.sum_excess:.3g} times its bound",
    )
    return Accuracy(
        rel_frobenius=ratio(math.sqrt(worst.squared_error), math.sqrt(worst.squared_size)),
        max_ulp=worst.ulp,
        row_sum_error=worst.sum_error,
        bound=worst.bound,
        verified=checks.verified,
        reason=checks.reason,
        reference="full",
        reference_rows=len(exact),
    )


def _compare(
    x: Array, exact: Array, got: Array, precision: Precision, backend: str, first_row: int,
    rounded: Rounded,
) -> _Worst:  # fmt: skip
    """The maxima of some rows."""
    worst = _Worst()
    real = np.dtype(precision.real_output).type
    nan = np.isnan(exact)
    worst.misplaced += int(np.count_nonzero(nan != np.isnan(got)))
    worst.misplaced += int(np.count_nonzero(np.isneginf(x) & ~nan & (got != 0)))
    rows = ~nan.any(axis=-1)
    if not rows.any():
        return worst
    x, exact, got = x[rows].astype(float), exact[rows], got[rows].astype(float)
    below = x.max(axis=-1, keepdims=True) - x
    base, slope = rounding_bound(precision, x.shape[-1], backend)
    input_error = np.expm1(2 * _operand_error(x, below, precision))
    floor = _floor(precision, backend) + rounded.absolute
    # An element at d = inf is 0 and has no relative error.
    relative = input_error + (1 + input_error) * (base + slope * np.where(exact > 0, below, 0))
    if rounded.relative:
        relative += (1 + relative) * rounded.relative
    error = np.abs(got - exact)
    # Where rounding the input may move an element by any factor, one that vanished may come back.
    allowed = np.where(np.isinf(relative), np.inf, relative * exact) + floor
    excess = np.where(error == 0, 0, error / allowed)
    excess[np.isnan(excess)] = np.inf
    worst.excess = float(excess.max())
    local = int(excess.max(axis=-1).argmax())
    worst.row = first_row + int(np.flatnonzero(rows)[local])
    normal = exact >= float(np.finfo(real).smallest_normal)
    worst.bound = float(relative[normal].max(initial=0))
    worst.ulp = float((error / np.spacing(exact.astype(real))).max())
    worst.squared_error = float((error**2).sum())
    worst.squared_size = float((exact**2).sum())
    sums = np.abs(got.sum(axis=-1) - 1)
    weighted = base + slope * math.log(x.shape[-1]) + floor * x.shape[-1] + rounded.relative
    worst.sum_error = float(sums.max())
    worst.sum_excess = float(sums.max()) / weighted
    return worst


def _nan_last(value: float) -> float:
    return math.inf if math.isnan(value) else value


def _operand_error(x: Array, below: Array, precision: Precision) -> Array:
    """(rows, 1): how far rounding the input moves an entry that matters."""
    roundoff = bounds.operand_roundoff(precision)
    smallest = np.finfo(precision.real_output).smallest_subnormal
    reach = -2 * math.log(float(smallest)) if roundoff else 0.0
    size = np.abs(x)
    largest = size.max(axis=-1, keepdims=True)
    if not np.isfinite(largest).all():
        largest = size.max(axis=-1, keepdims=True, where=np.isfinite(x), initial=0)
    matters = below <= reach + 4 * roundoff * largest
    near = size.max(axis=-1, keepdims=True, where=matters, initial=0)
    lost = bounds.underflow(precision, "cpu")
    scaled = lost.of_largest * largest
    return np.asarray(roundoff * near + scaled + (0.0 if precision.operand is FP64 else 2.0**-126))


def _floor(precision: Precision, backend: str) -> float:
    kind = precision.accumulator
    return 2.0**kind.min_exponent if backend == "cuda" else 4 * kind.smallest_subnormal
