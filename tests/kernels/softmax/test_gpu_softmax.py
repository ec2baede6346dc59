"""Our GPU softmax against the CPU model and SciPy, and what a softmax must be."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS, log_softmax, logsumexp, softmax
from argand.rounding import round_operand
from argand.softmax.formats import REAL_KINDS
from scipy import special

from tests.kernels.precisions import SCALED
from tests.kernels.softmax.softmax_cases import (
    HALF_ULP,
    SMALLEST,
    assert_logs,
    assert_logsumexp,
    numbers,
    stored,
    ulps,
)

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
    assert np.isnan(logs[[2, 4]]).all()
    np.testing.assert_array_equal(logs[3], np.where(np.isinf(x[3]), nan, -inf))


@pytest.mark.parametrize("precision", SCALED)
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


ODD_COLUMNS = (1, 3, 16, 17, 100, 255, 256, 1000, 1001, 4099, 12_289, 50_257, 131_071)


@pytest.mark.parametrize("scale", [0.5, 4, 30])
@pytest.mark.parametrize("columns", [64, 256, 1000])
def test_a_million_rows_are_within_two_ulp(cp: Any, scale: float, columns: int) -> None:
    random = cp.random.default_rng(5)
    worst = sums = 0.0
    for _ in range(8):
        x = scale * random.standard_normal((1 << 17, columns), dtype=cp.float32)
        found = softmax(x).astype(cp.float64)
        exact = cp.exp(x.astype(cp.float64) - x.max(axis=-1, keepdims=True).astype(cp.float64))
        exact /= exact.sum(axis=-1, keepdims=True)
        # CuPy's own kernels flush what is below the normal numbers, a result rounded down from
        # just above them too; other tests look there.
        _, exponent = cp.frexp(cp.maximum(exact, 2.0**-125))
        error = cp.abs(found - exact) / cp.ldexp(1.0, exponent - 24)
        worst = max(worst, float(cp.where(exact < 2.0**-125, 0, error).max()))
        sums = max(sums, float(cp.abs(found.sum(axis=-1) - 1).max()))
    assert worst <= 2
    assert sums <= columns * 2.0**-24


@pytest.mark.parametrize("columns", ODD_COLUMNS)
def test_two_ulp_at_every_width(cp: Any, rng: np.random.Generator, columns: int) -> None:
    x = (8 * rng.standard_normal((6, columns))).astype(np.float32)
    x[1] += 1000
    x[2] -= 3e4
    x[3] *= 1e4  # one value takes all, and differences are of 1e5
    x[4] = 3e38
    x[5, ::2] = -np.inf
    if columns == 1:
        x[5] = 7
    exact = special.softmax(x.astype(np.float64), axis=-1)
    assert ulps(softmax(cp.asarray(x)).get(), exact) <= 2
    assert (softmax(cp.asarray(x)).get()[np.isneginf(x)] == 0).all()
    logs = log_softmax(cp.asarray(x)).get()
    expected = special.log_softmax(x.astype(np.float64), axis=-1)
    # The maximum's own difference is rounded, the sum's logarithm is off by a few ulp of 1.
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(logs), finite)
    np.testing.assert_allclose(logs[finite], expected[finite], rtol=2.0**-22, atol=2.0**-21)


@pytest.mark.pairwise
@pytest.mark.parametrize("kind", REAL_KINDS)
@pytest.mark.parametrize("output", REAL_KINDS)
@pytest.mark.parametrize("columns", [5, 33, 1000, 4104, 50_257])
def test_kinds(cp: Any, rng: np.random.Generator, kind: str, output: str, columns: int) -> None:
    x = stored(4 * rng.standard_normal((7, columns)).astype(np.float32), kind)
    exact = special.softmax(numbers(x, kind), axis=-1)
    precision = "fp64" if kind == output == "fp64" else "fp32"
    given = {"format": "bf16" if kind == "bf16" else None, "output": output}
    found = numbers(softmax(cp.asarray(x), precision=precision, **given).get(), output)
    smallest = max(SMALLEST[output], SMALLEST[precision])
    held = np.abs(found - exact) / (exact * HALF_ULP[output] + smallest)
    # fp32 lies within two ulp, four halves; what is rounded from it once, half an ulp and little.
    allowed = {"fp64": columns, "fp32": 4, "fp16": 1.05, "bf16": 1.05}[output]
    if output == "fp64" and precision == "fp32":
        allowed = 4 * 2.0**29
    assert held.max() <= allowed
    logs = numbers(log_softmax(cp.asarray(x), precision=precision, **given).get(), output)
    total = numbers(logsumexp(cp.asarray(x), precision=precision, **given).get(), output)
    assert_logs(logs, numbers(x, kind), output, precision)
    assert_logsumexp(total, numbers(x, kind), output, precision)


@pytest.mark.parametrize("columns", [4, 64, 100, 1000, 4096, 20_001, 300_000])
def test_power(cp: Any, rng: np.random.Generator, columns: int) -> None:
    z = rng.standard_normal((5, columns)) + 1j * rng.standard_normal((5, columns))
    z = z.astype(np.complex64)
    power = np.abs(z.astype(np.complex128)) ** 2
    for scale in (1.0, 0.37):
        exact = special.softmax(scale * power, axis=-1)
        found = softmax(cp.asarray(z), power=True, scale=scale).get()
        # Two roundings of the power and one of the scale move the exponent.
        allowed = (4 + 3 * scale * power.max()) * 2.0**-23
        np.testing.assert_allclose(found, exact, rtol=allowed, atol=2.0**-126)
        half = softmax(cp.asarray(z), power=True, scale=scale, output="fp16").get()
        np.testing.assert_allclose(half, exact, rtol=2.0**-10, atol=2.0**-24)
    with pytest.raises(ValueError, match="complex with power=True"):
        softmax(cp.asarray(z))


@pytest.mark.parametrize("scale", [2.0**-40, 0.01, 0.7, 1.0, 3.0, 2.0**40])
@pytest.mark.parametrize("columns", [9, 4096, 70_000])
def test_scale(cp: Any, rng: np.random.Generator, scale: float, columns: int) -> None:
    x = ((4 / scale) * rng.standard_normal((4, columns))).astype(np.float32)
    exact = special.softmax(scale * x.astype(np.float64), axis=-1)
    assert ulps(softmax(cp.asarray(x), scale=scale).get(), exact) <= 3
    expected = special.log_softmax(scale * x.astype(np.float64), axis=-1)
    logs = log_softmax(cp.asarray(x), scale=scale).get()
    np.testing.assert_allclose(logs, expected, rtol=2.0**-21, atol=2.0**-21)
    total = logsumexp(cp.asarray(x), scale=scale).get()
    expected = special.logsumexp(scale * x.astype(np.float64), axis=-1)
    np.testing.assert_allclose(total, expected, rtol=2.0**-21, atol=2.0**-21)


@pytest.mark.parametrize("columns", [37, 1000, 9001])
def test_rows_that_begin_anywhere(cp: Any, rng: np.random.Generator, columns: int) -> None:
    whole = rng.standard_normal((6, columns + 11)).astype(np.float32)
    for first in range(5):
        x = cp.asarray(whole)[:, first : first + columns]
        exact = special.softmax(whole[:, first : first + columns].astype(float), axis=-1)
        assert ulps(softmax(x).get(), exact) <= 2
        for place in range(3):
            out = cp.full((6, columns + 5), np.nan, cp.float32)
            softmax(x, out=out[:, place : place + columns])
            assert ulps(out[:, place : place + columns].get(), exact) <= 2
            assert cp.isnan(out[:, :place]).all()
            assert cp.isnan(out[:, place + columns :]).all()
        mine = cp.asarray(whole)
        view = mine[:, first : first + columns]
        softmax(view, out=view)
        assert ulps(view.get(), exact) <= 2
        np.testing.assert_array_equal(mine[:, :first].get(), whole[:, :first])
        np.testing.assert_array_equal(mine[:, first + columns :].get(), whole[:, first + columns :])


def test_cached_calls_see_overlaps(cp: Any, rng: np.random.Generator) -> None:
    x = rng.standard_normal((6, 1024)).astype(np.float32)
    exact = special.softmax(x[:5].astype(float), axis=-1)
    for _ in range(3):
        apart = cp.empty((5, 1024), cp.float32)
        softmax(cp.asarray(x[:5]), out=apart)
        assert ulps(apart.get(), exact) <= 2
        both = cp.asarray(x)
        softmax(both[:5], out=both[1:])
        assert ulps(both[1:].get(), exact) <= 2
