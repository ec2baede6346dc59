"""Softmax on the CPU beside SciPy in fp64: widths, tiles, infinities and NaN."""

import numpy as np
import pytest
from argand import PRECISIONS, log_softmax, softmax
from argand.rounding import scale_exponents
from argand.softmax import cpu as numpy_softmax
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from tests.covers import examples
from tests.kernels.precisions import SOFTMAX, WITH_COUNTERPART
from workflow.accuracy.assessment import PROVABLE
from workflow.accuracy.references import softmax_reference
from workflow.accuracy.softmax_accuracy import assess_softmax

TILE = numpy_softmax.TILE_COLUMNS
WIDTHS = [1, 2, 3, 31, 257, 1000, 16383, 16384, 16385, TILE - 1, TILE, TILE + 1, 2 * TILE + 9]


def check(x, precision, **kw):
    row = PRECISIONS[precision]
    got = softmax(x, precision=precision, **kw)
    assert got.dtype == row.real_output
    accuracy = assess_softmax(softmax_reference(x), got, row, backend="cpu")
    assert accuracy.verified, accuracy.reason
    return got


@pytest.mark.each_value
@pytest.mark.parametrize("precision", SOFTMAX)
@pytest.mark.parametrize("columns", WIDTHS)
def test_widths_and_tile_boundaries(precision, columns):
    x = np.random.default_rng(columns).normal(0, 4, (3, columns)).astype(np.float32)
    got = check(x, precision)
    assert ((got >= 0) & (got <= 1)).all()
    # r of `rounding_bound` at these widths is below 64 u.
    np.testing.assert_allclose(got.sum(axis=-1, dtype=float), 1, rtol=0, atol=128 * 2.0**-24)


@pytest.mark.parametrize("precision", SOFTMAX)
def test_one_column_is_one(precision):
    x = np.array([[-1e30], [5], [0.0]])
    np.testing.assert_array_equal(softmax(x, precision=precision), 1)


@pytest.mark.parametrize("columns", [5, TILE + 1])
@pytest.mark.parametrize("precision", SOFTMAX)
def test_equal_values_share_alike(precision, columns):
    for value in (0.0, 3.25, -1e4, 1e4):
        x = np.full((2, columns), value, np.float32)
        np.testing.assert_allclose(softmax(x, precision=precision), 1 / columns, rtol=64 * 2.0**-24)


@pytest.mark.pairwise
@pytest.mark.parametrize("precision", SOFTMAX)
@pytest.mark.parametrize("level", [-200.0, -1e4, 200.0])
@pytest.mark.parametrize("masked", [slice(None, TILE), slice(TILE, 2 * TILE)])
def test_a_tile_of_minus_infinity_beside_low_values(precision, level, masked):
    x = np.full((1, 3 * TILE), level, np.float32)
    x[:, masked] = -np.inf
    got = check(x, precision)
    assert (got[:, masked] == 0).all()
    logs = log_softmax(x, precision=precision)
    assert np.isneginf(logs[:, masked]).all()
    np.testing.assert_allclose(np.nanmax(logs), -np.log(2 * TILE), rtol=1e-5)


def test_a_tile_far_below_another_is_not_lost():
    """e^60 x e^-130 is a number of fp32, e^-130 alone is not."""
    x = np.full((1, 2 * TILE), 130, np.float32)
    x[:, :TILE] = 60
    assert (check(x, "fp32") > 0).all()


@pytest.mark.parametrize("columns", [4, TILE * 2])
def test_a_row_that_is_nan_in_scipy_must_be_nan(columns):
    x = np.zeros((4, columns), np.float32)
    x[0], x[1, -1], x[2, 0] = -np.inf, np.inf, np.nan
    got = softmax(x)
    assert np.isnan(got[:3]).all()
    assert not assess_softmax(
        softmax_reference(x), np.nan_to_num(got), PRECISIONS["fp32"], backend="cpu"
    ).verified


@pytest.mark.parametrize("precision", ["fp64", "fp32", "tf32", "3xtf32"])
def test_huge_values_neither_overflow_nor_mix(precision):
    x = np.array([[3e38, -3e38, 0], [1e20, 1e20, -1e20], [-3e38, -3e38, -3e38]], np.float32)
    got = softmax(x, precision=precision)
    np.testing.assert_allclose(got[0], [1, 0, 0], atol=0)
    np.testing.assert_allclose(got[1], [0.5, 0.5, 0], rtol=1e-6)
    np.testing.assert_allclose(got[2], 1 / 3, rtol=1e-6)


@pytest.mark.parametrize("precision", WITH_COUNTERPART)
def test_each_row_is_scaled(precision):
    x = np.array([[1e8, 1e8, -1e8], [1e-8, 2e-8, 0]], np.float32)
    got = softmax(x, precision=precision)
    np.testing.assert_allclose(got[0], [0.5, 0.5, 0], atol=1e-6)
    np.testing.assert_allclose(got[1], 1 / 3, rtol=1e-6)


@pytest.mark.parametrize("power", [-130, -100, 0, 100])
@pytest.mark.parametrize("columns", [50, TILE + 5])
def test_3xfp16_holds_each_value_as_two_terms_of_its_scaled_row(power, columns):
    """Bit for bit the softmax of hi + lo, the row's exponent taken off again."""
    x = np.random.default_rng(7).normal(0, 4, (3, columns)).astype(np.float32)
    x[1] = 0
    x = np.ldexp(x, power)
    s = scale_exponents(x, -1, PRECISIONS["3xfp16"].operand)
    scaled = np.ldexp(x, s)
    hi = scaled.astype(np.float16).astype(np.float32)
    lo = (scaled - hi).astype(np.float16).astype(np.float32)
    held = np.ldexp(hi + lo, -s)
    assert (power < -120) == np.array_equal(held, x), "subnormal numbers are held as they are"
    np.testing.assert_array_equal(softmax(x, precision="3xfp16"), softmax(held))
    np.testing.assert_array_equal(log_softmax(x, precision="3xfp16"), log_softmax(held))


@pytest.mark.parametrize("precision", WITH_COUNTERPART)
@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_scaled_rows_of_any_amplitude(precision, scale):
    x = np.random.default_rng(8).normal(0, 1, (4, 300)).astype(np.float32) * np.float32(scale)
    x[1, 5], x[2], x[3, 4] = -np.inf, 0, np.nan
    with np.errstate(invalid="ignore"):
        got = check(x, precision)
    assert got[1, 5] == 0
    assert np.isnan(got[3]).all()


def test_log_softmax_far_below_what_softmax_can_hold():
    logs = log_softmax(np.array([0.0, -500.0, -1e6], np.float32))
    np.testing.assert_allclose(logs, [0, -500, -1e6], atol=1e-6)


def test_strides_out_and_foreign_types():
    rng = np.random.default_rng(4)
    x = rng.normal(0, 2, (6, 50, 8)).astype(np.float32)
    view = x[::2, :, ::-1].transpose(2, 0, 1)
    expected = softmax(np.ascontiguousarray(view))
    np.testing.assert_array_equal(softmax(view), expected)
    store = np.zeros((8, 3, 100), np.float32)
    got = softmax(view, out=store[..., ::2])
    np.testing.assert_array_equal(store[..., ::2], expected)
    assert np.shares_memory(got, store)
    assert not store[..., 1::2].any()
    np.testing.assert_allclose(softmax(np.array([1, 2, 3])), special.softmax([1, 2, 3]), rtol=1e-6)
    np.testing.assert_allclose(softmax([True, False]), special.softmax([1, 0]), rtol=1e-6)


def test_rows_shared_among_threads_do_not_mix():
    x = np.random.default_rng(6).normal(0, 2, (3000, 200)).astype(np.float32)
    got = softmax(x)
    np.testing.assert_array_equal(got[1234:1240], softmax(x[1234:1240]))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros(3, complex), "x must be real"),
        (np.float32(1), "at least 1 axis"),
        (np.zeros((2, 0)), "at least one column"),
    ],
)
def test_mistakes(x, message):
    with pytest.raises(ValueError, match=message):
        softmax(x)
    with pytest.raises(ValueError, match="out must have shape"):
        softmax(np.zeros(3), out=np.zeros(4))
    with pytest.raises(ValueError, match=r"one column, got shape \(0, 2, 3\) and axis 0"):
        softmax(np.zeros((0, 2, 3)), axis=0)


@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(1, 4),
    columns=st.integers(1, 300),
    scale=st.sampled_from([0.0, 1e-3, 1.0, 30.0, 300.0]),
    precision=st.sampled_from(SOFTMAX),
    dtype=st.sampled_from([np.float16, np.float32, np.float64]),
)
@settings(max_examples=examples(150), deadline=None)
def test_any_call_is_within_its_bound(seed, rows, columns, scale, precision, dtype):
    x = (np.random.default_rng(seed).standard_normal((rows, columns)) * scale).astype(dtype)
    row = PRECISIONS[precision]
    got = softmax(x, precision=precision)
    accuracy = assess_softmax(softmax_reference(x), got, row, backend="cpu")
    # Large values at bf16: a rounded one moves its exponential by more than a bound can prove.
    assert accuracy.verified or accuracy.error_limit > PROVABLE, accuracy.reason
