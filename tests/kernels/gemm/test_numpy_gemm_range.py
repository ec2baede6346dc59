"""Ranges of products: splits, scales, spreads, what is not finite, lines that no scale can hold."""

import sys

import numpy as np
import pytest
from argand import PRECISIONS, gemm
from argand.gemm.scaling_range import LineRange, line_range, line_spreads, product_range
from argand.rounding import LARGEST_SHIFT, power_of_two, round_operand, scale_exponents, split
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.gemm.numpy_product_cases import check
from tests.kernels.precisions import SCALED
from tests.normal import normal
from workflow.accuracy import bounds
from workflow.accuracy.matrix_product_accuracy import assess_product
from workflow.accuracy.references import product_reference


def test_the_split_keeps_three_products_and_adds_the_small_ones_first():
    rng = np.random.default_rng(12)
    a, b = normal(rng, 4, 4), normal(rng, 4, 4)
    row = PRECISIONS["3xtf32"]
    (big_a, small_a), (big_b, small_b) = split(a, row), split(b, row)
    expected = (small_a @ big_b + big_a @ small_b) + big_a @ big_b
    np.testing.assert_array_equal(gemm(a, b, precision="3xtf32"), expected)
    other = big_a @ big_b + (small_a @ big_b + big_a @ small_b)
    assert np.array_equal(expected, other), "addition commutes; only association can differ"
    assert not np.array_equal(expected, (big_a @ big_b + big_a @ small_b) + small_a @ big_b)


def test_3xfp16_scales_splits_and_scales_back():
    """Bit for bit: powers of two for rows and columns, two fp16 terms, three products."""
    rng = np.random.default_rng(21)
    a, b = normal(rng, 5, 6), normal(rng, 6, 4)
    a *= np.float32(2.0) ** rng.integers(-60, 60, (5, 1)).astype(np.float32)
    row = PRECISIONS["3xfp16"]
    s, t = scale_exponents(a, -1, row.operand), scale_exponents(b, -2, row.operand)
    (hi_a, lo_a), (hi_b, lo_b) = split(a * power_of_two(s), row), split(b * power_of_two(t), row)
    for term in (hi_a, lo_a, hi_b, lo_b):
        parts = np.stack([term.real, term.imag])
        np.testing.assert_array_equal(parts.astype(np.float16).astype(np.float32), parts)
    total = (lo_a @ hi_b + hi_a @ lo_b) + hi_a @ hi_b
    expected = (total.astype(complex) * 2.0 ** -(s + t)).astype(np.complex64)
    np.testing.assert_array_equal(gemm(a, b, precision="3xfp16"), expected)


@pytest.mark.parametrize("rounding", ["toward_zero", "nearest_even", "half_ulp_truncate"])
@pytest.mark.parametrize("precision", ["tf32", "3xtf32"])
def test_roundings(precision, rounding):
    rng = np.random.default_rng(13)
    check(normal(rng, 40, 64), normal(rng, 64, 40), precision=precision, rounding=rounding)


def test_the_splits_are_of_fp32_class_and_one_term_is_not():
    rng = np.random.default_rng(14)
    a, b = normal(rng, 128, 256), normal(rng, 256, 128)
    reference = product_reference(a, b)
    errors = {
        name: assess_product(
            reference, gemm(a, b, precision=name), PRECISIONS[name], backend="cpu"
        ).rel_frobenius
        for name in PRECISIONS
    }
    assert errors["fp64"] < 1e-15 < errors["fp32"]
    assert errors["3xtf32"] < 2 * errors["fp32"]
    assert errors["3xfp16"] < 2 * errors["fp32"]
    # Rounding to 11 and 8 bits: about u / sqrt(3) for each of the two operands.
    assert errors["tf32"] == pytest.approx(2**-11 / np.sqrt(3), rel=0.3)
    assert errors["fp16"] == pytest.approx(errors["tf32"], rel=0.05)
    assert errors["bf16"] == pytest.approx(8 * errors["tf32"], rel=0.1)


@pytest.mark.parametrize("precision", SCALED)
def test_a_row_with_one_huge_element_loses_what_the_bound_says(precision):
    a = np.full((1, 4), 1e-8, np.complex64)
    a[0, 0] = 1e8
    b = np.eye(4, dtype=np.complex64)
    got = check(a, b, precision=precision)
    assert abs(got[0, 0] - 1e8) <= PRECISIONS[precision].u * 1e8
    assert got[0, 1] == 0


@pytest.mark.parametrize("precision", SCALED)
@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1e30])
def test_scales_beyond_fp32s_exponents_of_the_product(scale, precision):
    rng = np.random.default_rng(16)
    a, b = normal(rng, 5, 6) * np.float32(scale), normal(rng, 6, 5) * np.float32(1e-25)
    with np.errstate(under="ignore"):
        # Results are below fp32's normal numbers: no relative error of theirs can be proved.
        verdict = "verified" if scale > 1 else "unproven"
        check(a, b, precision=precision, verdict=verdict)


@pytest.mark.parametrize("precision", SCALED)
@pytest.mark.parametrize(("left", "right"), [(1e-30, 1.0), (1.0, 1e30), (1e30, 1e-30)])
def test_amplitude_does_not_matter(left, right, precision):
    """Powers of two change no bit; powers of ten stay within the bound."""
    rng = np.random.default_rng(22)
    a, b = normal(rng, 30, 50), normal(rng, 50, 20)
    a[3], a[:, 7], b[11], b[:, 5] = 0, 0, 0, 0
    got = check(a * np.float32(left), b * np.float32(right), precision=precision)
    assert not got[3].any()
    assert not got[:, 5].any()
    exact = (a.astype(complex) * left) @ (b.astype(complex) * right)
    # Random errors add up as their squares: about sqrt(2 / 3) u of both operands.
    assert np.linalg.norm(got - exact) <= 2 * PRECISIONS[precision].u * np.linalg.norm(exact)
    p, q = (np.float32(2.0 ** round(np.log2(scale))) for scale in (left, right))
    plain = gemm(a, b, precision=precision)
    np.testing.assert_array_equal(gemm(a * p, b * q, precision=precision), plain * (p * q))


@pytest.mark.parametrize("precision", SCALED)
@pytest.mark.parametrize("spread", [1.0, 1e4, 1e8, 1e20])
def test_lines_of_wide_spread(spread, precision):
    """Elements of one line spread over ``spread``, as in a covariance.

    Against the norms of row and column the error is as small as ever: the moduli's product is at
    most that of the norms, and the floor of k elements, in two parts, sqrt(2 k) times that of one.
    """
    rng = np.random.default_rng(23)
    a, b = (
        normal(rng, *shape) * np.float32(spread) ** rng.uniform(-1, 0, shape).astype(np.float32)
        for shape in ((40, 64), (64, 30))
    )
    got = check(a, b, precision=precision)
    norms = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=0)
    exact = a.astype(complex) @ b.astype(complex)
    row = PRECISIONS[precision]
    floor = 2 * 2 * np.sqrt(2 * 64) * row.scaled_floor
    allowed = np.sqrt(2) * (bounds.product_bound(row, 64, "cpu") + floor)
    assert (np.abs(got - exact) <= allowed * norms).all()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_non_finite_operands_stay_in_their_row_and_column(precision):
    rng = np.random.default_rng(17)
    a, b = normal(rng, 6, 8), normal(rng, 8, 7)
    a[2, 3], a[4, 0], b[1, 5] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        got = check(a, b, precision=precision)
    bad = np.zeros((6, 7), bool)
    bad[[2, 4]] = True
    bad[:, 5] = True
    np.testing.assert_array_equal(np.isfinite(got), ~bad)


def spread_of(values):
    """The definition, of one line: largest over smallest of the finite components but 0."""
    parts = np.abs(np.concatenate([values.real, values.imag])).astype(np.float32).astype(float)
    parts = parts[np.isfinite(parts) & (parts > 0)]
    return parts.max() / parts.min() if parts.size else 1.0


@given(
    seed=st.integers(0, 10**6), batch=st.integers(0, 3), rows=st.integers(0, 5),
    columns=st.integers(0, 7), exponents=st.integers(0, 140), dtype=st.sampled_from([8, 16]),
)  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_every_line_by_the_definition(seed, batch, rows, columns, exponents, dtype):
    rng = np.random.default_rng(seed)
    shape = (batch, rows, columns)
    x = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    x *= 2.0 ** rng.integers(-exponents, exponents + 1, shape).clip(-130, 120)
    x[rng.random(shape) < 0.2] = 0
    x[rng.random(shape) < 0.1] = complex(np.nan, np.inf)
    x = x.astype(f"c{dtype}")
    for axis, lines in ((-1, x), (-2, np.swapaxes(x, -1, -2))):
        found = line_spreads(x, axis)
        assert found.shape == lines.shape[:2]
        for index in np.ndindex(found.shape):
            assert found[index] == spread_of(lines[index])


def test_large_operands_are_scanned_in_parts(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((5, 33, 70)) + 1j * rng.standard_normal((5, 33, 70))
    whole = [line_spreads(x, axis) for axis in (-1, -2)]
    for values in (1, 100, 5000):
        monkeypatch.setattr(sys.modules["argand.gemm.scaling_range"], "_CHUNK_VALUES", values)
        for axis, expected in zip((-1, -2), whole, strict=True):
            np.testing.assert_array_equal(line_spreads(x, axis), expected)


@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("scale", [2.0**-130, 1e-30, 1.0, 1e30])
def test_a_line_within_the_range_is_held_to_u_and_one_beyond_it_is_counted(name, scale):
    row = PRECISIONS[name]
    floor = row.operand.smallest_subnormal / 2 * 2.0**-LARGEST_SHIFT
    if scale * 2.0**LARGEST_SHIFT < 1 and floor >= 2.0**-150:
        pytest.skip("the powers of two that scale a line do not bring it into so narrow a format")
    rng = np.random.default_rng(1)
    for power in (row.full_range - 1, row.full_range + 4):
        x = rng.uniform(1, 2, (50, 30)) * 2.0 ** -rng.uniform(0, power - 1, (50, 30))
        x[:, 0], x[:, 1] = 1.0, 1.999 * 2.0**-power
        x = (x * scale).astype(np.complex64)
        s = scale_exponents(x, -1, row.operand)
        held = round_operand(x * power_of_two(s), row).astype(complex) * 2.0**-s
        kept = (np.abs(held - x) <= row.u * np.abs(x.astype(complex))).all(axis=-1)
        found = line_range(x, row, -1)
        assert found.lines == 50
        assert found.largest_spread == line_spreads(x, -1).max()
        if power < row.full_range:
            assert found.out_of_range == 0
            assert kept.all()
        elif row.scaled_floor * scale >= 2.0**-150:
            assert found.out_of_range == 50
            assert not kept.all()
        else:  # fp32 itself, of multiples of 2^-149, is coarser there than the format after scaling
            assert kept.all()


def test_rows_of_a_and_columns_of_b():
    a, b = np.ones((3, 4), complex), np.ones((2, 4, 5), np.complex64)
    a[1, 2], b[1, 0, 3] = 2.0**-20 * 1j, 2.0**20
    row = PRECISIONS["3xfp16"]
    assert line_range(a, row, -1) == LineRange(3, 1, 2.0**20)
    assert product_range(a, b, row) == LineRange(3 + 10, 2, 2.0**20)
    for named in (PRECISIONS["fp16"], "fp16", np.float16):
        assert product_range(a, b.tolist(), named) == LineRange(13, 0, 2.0**20)
    assert line_range(np.zeros((0, 4)), row, -1) == LineRange(0, 0, 1.0)
    assert line_range(np.zeros((2, 0)), row, -1) == LineRange(2, 0, 1.0)


def test_a_precision_that_does_not_scale_has_no_such_range():
    with pytest.raises(ValueError, match="precision must scale its operands, got 3xtf32"):
        line_range(np.ones((2, 2)), PRECISIONS["3xtf32"], -1)
