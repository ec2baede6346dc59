"""Numbers as arrays of each kind, and how far a result is from the exact one."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
from argand.softmax.formats import REAL_KINDS, Operation, bf16_bits, bf16_values
from scipy import special

Array = npt.NDArray[Any]

EXACT: dict[Operation, Any] = {
    "softmax": special.softmax, "log_softmax": special.log_softmax, "logsumexp": special.logsumexp,
}  # fmt: skip
"""Each operation in fp64."""
HALF_ULP = {"fp64": 2.0**-53, "fp32": 2.0**-24, "fp16": 2.0**-11, "bf16": 2.0**-8}
UNIT = {"fp64": 2.0**-53, "fp32": 2.0**-24}
"""Half an ulp of what a precision computes in."""
SMALLEST = {"fp64": 0.0, "fp32": 2.0**-149, "fp16": 2.0**-24, "bf16": 2.0**-126}


def stored(x: Array, kind: str) -> Array:
    """float32 numbers as an array of a kind."""
    with np.errstate(over="ignore"):
        return bf16_bits(x) if kind == "bf16" else x.astype(REAL_KINDS[kind])


def numbers(x: Array, kind: str) -> Array:
    return (bf16_values(x) if kind == "bf16" else x).astype(np.float64)


def ulps(found: Array, exact: Array) -> float:
    """The largest error in units of fp32's last place at the exact result."""
    spacing = np.spacing(np.maximum(np.abs(exact), 2.0**-149).astype(np.float32))
    return float((np.abs(found - exact) / spacing).max())


def half_ulps(found: Array, exact: Array, kind: str) -> Array:
    """Return each error over half an ulp of the exact result and the kind's smallest number."""
    return np.asarray(np.abs(found - exact) / (exact * HALF_ULP[kind] + SMALLEST[kind]))


def nasty_rows(columns: int) -> Array:
    """(343, columns) float32: every three of these numbers, first, in the middle and last.

    The rest of a row is its middle number. Those that are finite are exact at every precision.
    """
    numbers = (0.0, 1.0, -2.0, 64.0, np.inf, -np.inf, np.nan)
    triples = np.array(list(itertools.product(numbers, repeat=3)), np.float32)
    rows = np.repeat(triples[:, 1:2], columns, axis=1)
    rows[:, 0], rows[:, -1] = triples[:, 0], triples[:, 2]
    return rows


def approximate_errors(x: Array) -> tuple[Array, float]:
    """Relative errors that `ex2.approx` and sums in fp32 may leave: of each term, and of the sum.

    With u = 2^-24 and d = max(x) - x, an exponential is off by 3 u d (its difference, its factor
    log2 e and their product) and by 4 u (ex2.approx has 2 ulp). The mean of d by share is at most
    log n. Additions make a chain of the 64 values of a thread at most, a tree, and a chain of
    blocks.
    """
    wide = x.astype(np.float64)
    below = wide.max(axis=-1, keepdims=True) - wide
    columns = x.shape[-1]
    chain = min(columns, 64) + float(np.log2(columns + 1)) + columns / 4096
    u = 2.0**-24
    return u * (3 * below + 4), u * (4 + 3 * float(np.log(columns)) + chain)


def log_bound(x: Array, logs: Array, precision: str) -> Array:
    """The largest absolute error of log_softmax at fp32 or fp64.

    With u = 2^-24 (fp64: 2^-53) and d = max(x) - x: d and the last difference are off by u of
    their sizes, log z by 2 u (logf has an ulp) of its own and by the relative error of the sum z.
    """
    with np.errstate(invalid="ignore"):  # rows of infinities have no bound
        wide = x.astype(np.float64)
        below = wide.max(axis=-1, keepdims=True) - wide
        of_log = 2 * np.log(x.shape[-1])
        _, of_sum = approximate_errors(x)
        unit = UNIT[precision]
        return np.asarray(unit * (below + np.abs(logs) + of_log + of_sum / UNIT["fp32"]))


def assert_logs(found: Array, x: Array, output: str, precision: str = "fp32") -> None:
    """Raise AssertionError where log_softmax of x is beyond its bound, rounded to ``output``."""
    with np.errstate(invalid="ignore"):
        exact = special.log_softmax(x, axis=-1)
    _assert_within(found, exact, log_bound(x, exact, precision), output)


def assert_logsumexp(found: Array, x: Array, output: str, precision: str = "fp32") -> None:
    """Raise AssertionError where logsumexp of x is beyond its bound, rounded to ``output``.

    It is the maximum and a logarithm, of which the error is that of log_softmax at the maximum.
    """
    with np.errstate(invalid="ignore"):
        exact = special.logsumexp(x, axis=-1)
        logs = special.log_softmax(x, axis=-1)
    of_log = np.fmin.reduce(log_bound(x, logs, precision), axis=-1)
    bound = of_log + UNIT[precision] * np.abs(exact)
    _assert_within(found, exact, bound, output)


def _assert_within(found: Array, exact: Array, bound: Array, output: str) -> None:
    """Compare finite values with a bound before they are rounded, and the others for equality."""
    finite = np.isfinite(exact)
    np.testing.assert_array_equal(found[~finite], exact[~finite])
    rounding = HALF_ULP[output] * (np.abs(exact) + bound) + SMALLEST[output]
    assert (np.abs(found[finite] - exact[finite]) <= (bound + rounding)[finite]).all()
