"""Our GPU softmax against the CPU model and SciPy, and what a softmax must be."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS, log_softmax, softmax
from argand.rounding import round_operand
from scipy import special

pytestmark = pytest.mark.gpu
Array = npt.NDArray[Any]

COLUMNS = (1, 2, 7, 31, 33, 256, 1000, 1024, 4099, 8192, 20_000, 32_768, 40_000, 50_257)


def roundoff(precision: str) -> float:
    return 2.0**-53 if precision == "fp64" else 2.0**-24


def tolerance(precision: str, columns: int) -> float:
    """Relative: exponentials within 2 ulp on either side, and three of them with the shift rounded
    by 1 ulp of at most 64, a sum of ``columns`` positive terms in pieces (a logarithm of it at
    most), and the divisions.
    """
    return (2 * columns**0.5 + 2 * 64 + 40) * roundoff(precision)


def compare(cp: Any, x: Array, precision: str, out: Any = None) -> None:
    model = softmax(x, precision=precision)
    target = cp.full(x.shape, np.nan, model.dtype) if out is None else out
    assert softmax(cp.asarray(x), precision=precision, out=target) is target
    allowed = tolerance(precision, x.shape[-1])
    tiny = np.finfo(model.dtype).smallest_normal
    np.testing.assert_allclose(target.get(), model, rtol=allowed, atol=tiny)
    found = log_softmax(cp.asarray(x), precision=precision).get()
    # The logarithm's absolute error: rounding at the size of x, and of log(sum).
    size = np.abs(np.where(np.isfinite(x), x, 0)).max(initial=0) + np.log(x.shape[-1]) + 1
    np.testing.assert_allclose(
        found, log_softmax(x, precision=precision), rtol=0,
        atol=8 * roundoff(precision) * size + allowed,
    )  # fmt: skip


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("columns", COLUMNS)
def test_lengths(cp: Any, rng: np.random.Generator, precision: str, columns: int) -> None:
    x = 4 * rng.standard_normal((5, columns)).astype(np.float32)
    compare(cp, x, precision)
    found = softmax(cp.asarray(x), precision=precision).get()
    dtype = PRECISIONS[precision].real_output
    held = round_operand(x.astype(dtype), PRECISIONS[precision])
    if not PRECISIONS[precision].scaled:
        exact = special.softmax(held.astype(np.float64), axis=-1)
        np.testing.assert_allclose(found, exact, rtol=tolerance(precision, columns), atol=1e-45)
    assert np.abs(found.sum(axis=-1, dtype=np.float64) - 1).max() <= tolerance(precision, columns)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("shape", [(0, 5), (3, 0, 5), (1, 1), (2, 3, 4, 5), (70_000, 3), (7,)])
def test_ranks_and_empty_batches(
    cp: Any, rng: np.random.Generator, precision: str, shape: tuple[int, ...]
) -> None:
    compare(cp, rng.standard_normal(shape).astype(np.float32), precision)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("columns", [3, 40, 1500, 70_000])
def test_nasty_rows(cp: Any, precision: str, columns: int) -> None:
    inf, nan = np.inf, np.nan
    x = np.zeros((9, columns), np.float32)
    x[1, 0], x[2] = -inf, -inf
    x[3, 1], x[4, -1] = inf, nan
    x[5], x[6, :-1] = 3e4, -inf
    x[6, -1] = -2e4  # all but one -inf, and that one far below 0
    x[7] = 1e30
    x[8, ::2] = -1e30
    with np.errstate(invalid="ignore"):
        exact = special.softmax(x.astype(np.float64), axis=-1)
    found = softmax(cp.asarray(x), precision=precision).get()
    np.testing.assert_allclose(found, exact, rtol=tolerance(precision, columns))
    logs = log_softmax(cp.asarray(x), precision=precision).get()
    expected = special.log_softmax(x[[1, 5, 6, 7]].astype(np.float64), axis=-1)
    np.testing.assert_allclose(
        logs[[1, 5, 6, 7]], expected, rtol=1e-6, atol=tolerance(precision, columns)
    )
    assert np.isnan(logs[[2, 3, 4]]).all()


@pytest.mark.parametrize("precision", [name for name, row in PRECISIONS.items() if row.scaled])
@pytest.mark.parametrize("columns", [3000, 70_000])
def test_scaled_precisions_take_any_scale(
    cp: Any, rng: np.random.Generator, precision: str, columns: int
) -> None:
    for power in (-130, -100, -40, 40, 100, 120):
        x = np.ldexp(rng.standard_normal((4, columns)).astype(np.float32), power)
        x[2] = 0
        compare(cp, x, precision)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_strides(cp: Any, rng: np.random.Generator, precision: str) -> None:
    x = rng.standard_normal((6, 8, 130)).astype(np.float32)
    plain = softmax(cp.asarray(x), precision=precision).get()
    for view in (np.s_[::2, :, :], np.s_[:, ::3, :], np.s_[:, :, ::2], np.s_[::-1, :, 1:]):
        found = softmax(cp.asarray(x)[view], precision=precision).get()
        expected = softmax(cp.asarray(np.ascontiguousarray(x[view])), precision=precision).get()
        rtol = tolerance(precision, 130)
        np.testing.assert_allclose(found, expected, rtol=rtol)
    turned = cp.asarray(x).transpose(1, 0, 2)
    rtol = tolerance(precision, 130)
    found = softmax(turned, precision=precision).get()
    np.testing.assert_allclose(found, plain.transpose(1, 0, 2), rtol=rtol)


@pytest.mark.parametrize("columns", [100, 60_000])
@pytest.mark.parametrize("precision", ["fp32", "fp64"])
def test_in_place_and_overlapping(
    cp: Any, rng: np.random.Generator, precision: str, columns: int
) -> None:
    dtype = PRECISIONS[precision].real_output
    x = cp.asarray(rng.standard_normal((5, columns)).astype(dtype))
    expected = softmax(x, precision=precision).get()
    shifted = cp.concatenate([x, x[:1]])
    softmax(shifted[:5], precision=precision, out=shifted[1:])
    np.testing.assert_array_equal(shifted[1:].get(), expected)
    spread = cp.full((5, 2 * columns), np.nan, dtype)[:, ::2]
    softmax(x, precision=precision, out=spread)
    np.testing.assert_array_equal(spread.get(), expected)
    assert softmax(x, precision=precision, out=x) is x
    np.testing.assert_array_equal(x.get(), expected)
