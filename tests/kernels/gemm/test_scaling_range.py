"""Lines of a product that a scaled precision cannot hold to its unit roundoff, counted."""

import sys

import numpy as np
import pytest
from argand import PRECISIONS
from argand.gemm.scaling_range import LineRange, line_range, line_spreads, product_range
from argand.rounding import LARGEST_SHIFT, power_of_two, round_operand, scale_exponents
from hypothesis import given, settings
from hypothesis import strategies as st

SCALED = [name for name, row in PRECISIONS.items() if row.scaled]


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
