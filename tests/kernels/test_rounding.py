"""Rounding and splitting on the CPU beside exact arithmetic, for every format and rounding."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from argand import PRECISIONS
from argand.operand_format import Format
from argand.rounding import encode, power_of_two, round_operand, scale_exponents, split
from hypothesis import given, settings
from hypothesis import strategies as st

E4M3 = Format("e4m3", 4, -6, 448.0, 1, (28, 0, 68))
ROWS = {**PRECISIONS, "e4m3": replace(PRECISIONS["fp16"], operand=E4M3)}
FP32_PATTERNS = st.integers(0, 2**32 - 1)


def floats(patterns):
    return np.array(patterns, np.uint32).view(np.float32)


def rounded_fraction(x, significand, min_exponent, mode):
    """|x| to a format without an upper limit, by exact rational arithmetic."""
    value = abs(Fraction(float(x)))
    if value == 0:
        return value
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if value < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, min_exponent) - significand + 1)
    quotient, rest = divmod(value, unit)
    if mode == "toward_zero":
        return quotient * unit
    up = rest * 2 > unit or (rest * 2 == unit and (mode == "half_ulp_truncate" or quotient % 2))
    return (quotient + up) * unit


def check_against_fractions(x, precision, mode):
    row = ROWS[precision].with_rounding(mode)
    got = split(x, row)[0]
    largest = Fraction(row.operand.largest)
    for value, found in zip(x, got, strict=True):
        if np.isnan(value):
            assert np.isnan(found)
            continue
        if np.isinf(value):
            assert found == value
            continue
        expected = rounded_fraction(value, row.operand.significand, row.operand.min_exponent, mode)
        assert np.signbit(found) == np.signbit(value)
        if expected > largest:
            assert np.isinf(found), (value, found)
        else:
            assert Fraction(float(abs(found))) == expected, (value, found)


CASES = [
    ("tf32", "toward_zero"), ("tf32", "nearest_even"), ("tf32", "half_ulp_truncate"),
    ("bf16", "nearest_even"), ("fp16", "nearest_even"), ("e4m3", "nearest_even"),
]  # fmt: skip


@pytest.mark.parametrize(("precision", "mode"), CASES)
@given(st.lists(FP32_PATTERNS, min_size=1, max_size=40))
@settings(max_examples=60, deadline=None)
def test_every_bit_pattern_rounds_as_exact_arithmetic_says(precision, mode, patterns):
    check_against_fractions(floats(patterns), precision, mode)


@pytest.mark.parametrize(("precision", "mode"), CASES)
def test_ties_neighbours_of_ties_and_the_edges_of_the_range(precision, mode):
    form = ROWS[precision].operand
    dropped = 24 - form.significand
    half, patterns = 1 << (dropped - 1), []
    bases = [0, 0x3F800000, 0x3F800000 | 1 << dropped, 0x7F7FFFFF & ~((1 << dropped) - 1)]
    bases += [0x00800000, 0x477FE000, 0x38800000, 0x33800000, 0x33000000, 0x387FC000]
    for base in bases:
        patterns += [base, base | half, base | (half - 1), base | (half + 1)]
        patterns += [base | (1 << dropped) - 1]
    patterns += [p | 0x80000000 for p in patterns] + [0x7F800000, 0xFF800000, 0x7FC00000, 1]
    check_against_fractions(floats(patterns), precision, mode)


@pytest.mark.parametrize("first", ["nearest_even", "half_ulp_truncate"])
def test_a_second_term_may_be_cut_after_a_first_to_nearest(first):
    """The rest has at most 12 bits, of which 11 are kept: either way it is off by one at most."""
    row = PRECISIONS["3xtf32"].with_rounding((first, "toward_zero"))
    patterns = np.random.default_rng(3).integers(0x20000000, 0x60000000, 1 << 16, dtype=np.uint32)
    x = patterns.view(np.float32)
    error = abs(sum(term.astype(float) for term in split(x, row)) - x)
    assert row.u == PRECISIONS["3xtf32"].u
    assert (error <= row.u * x).all()
    assert (error > row.u / 4 * x).any()
    cut = PRECISIONS["3xtf32"].with_rounding("toward_zero")
    assert cut.u == 4 * row.u


def test_a_format_is_encoded_by_its_own_bits():
    halves = np.arange(1 << 16, dtype=np.uint16)
    halves = halves[~np.isnan(halves.view(np.float16))]
    numbers = halves.view(np.float16).astype(np.float32)
    np.testing.assert_array_equal(encode(numbers, PRECISIONS["fp16"].operand), halves)
    some = np.float32([0, -0.0, 2.0**-9, -7 * 2.0**-9, 2.0**-6, 1, -1.125, 448])
    expected = [0, 0x80, 1, 0x87, 0x08, 0x38, 0xB9, 0x7E]  # PTX ISA, e4m3
    np.testing.assert_array_equal(encode(some, E4M3), np.array(expected, np.uint8))
    for name, unused_bits in (("tf32", 0), ("bf16", 16)):
        held = split(numbers, PRECISIONS[name])[0]
        bits = held.view(np.uint32) >> unused_bits
        np.testing.assert_array_equal(encode(held, PRECISIONS[name].operand), bits)


@pytest.mark.parametrize("precision", ["tf32", "bf16", "fp16", "3xtf32", "3xfp16"])
def test_special_values(precision):
    row = PRECISIONS[precision]
    payload = np.array([0x7F800001, 0xFFFFFFFF, 0x7FFFFFFF], np.uint32).view(np.float32)
    x = np.concatenate([np.array([0.0, -0.0, np.inf, -np.inf], np.float32), payload])
    terms = split(x, row)
    np.testing.assert_array_equal(terms[0][:4], x[:4])
    np.testing.assert_array_equal(np.signbit(terms[0][:2]), [False, True])
    assert np.isnan(terms[0][4:]).all()
    for term in terms[1:]:
        np.testing.assert_array_equal(term, 0)
    np.testing.assert_array_equal(round_operand(x, row)[:4], x[:4])


@pytest.mark.parametrize(
    "modes", [("toward_zero",) * 2, ("nearest_even",) * 2, ("half_ulp_truncate",) * 2, None]
)
def test_two_terms_hold_an_operand_to_u(modes):
    row = PRECISIONS["3xtf32"].with_rounding(modes)
    rng = np.random.default_rng(1)
    x = rng.standard_normal(5000).astype(np.float32)
    big, small = split(x, row)
    kept = (big.view(np.uint32) & 0x1FFF) | (small.view(np.uint32) & 0x1FFF)
    assert not kept.any(), "a term has more than 11 significant bits"
    error = np.abs(big.astype(float) + small.astype(float) - x) / np.abs(x.astype(float))
    assert error.max() <= row.u
    assert np.abs(small).max() > 0
    first = np.abs(big.astype(float) - x) / np.abs(x.astype(float))
    assert first.max() <= row.term_roundoffs[0]


def fp16_fractions(values):
    """Values rounded to fp16 by exact arithmetic, ties to even; they are in its range."""
    return [
        rounded_fraction(float(abs(value)), 11, -14, "nearest_even") * (-1 if value < 0 else 1)
        for value in values
    ]


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=40))
@settings(max_examples=60, deadline=None)
def test_two_fp16_terms_are_the_rounded_number_and_the_rounded_remainder(patterns):
    """Bit for bit, of every number that scaling leaves below 2^15, subnormal ones among them."""
    x = floats(patterns)
    x = x[np.isfinite(x) & (np.abs(x) < 2.0**15)]
    hi, lo = split(x, PRECISIONS["3xfp16"])
    exact = [Fraction(float(value)) for value in x]
    expected = fp16_fractions(exact)
    assert [Fraction(float(value)) for value in hi] == expected
    rest = [a - b for a, b in zip(exact, expected, strict=True)]
    assert [Fraction(float(value)) for value in lo] == fp16_fractions(rest)


@pytest.mark.parametrize("size", [1, 65535, 65536, 65537, 200_003])
def test_blocks_do_not_show(size):
    x = np.random.default_rng(2).standard_normal(size).astype(np.float32)
    whole = split(x, PRECISIONS["3xtf32"])
    for part in (slice(0, 1), slice(size // 2, size // 2 + 1), slice(size - 1, size)):
        for term, alone in zip(whole, split(x[part], PRECISIONS["3xtf32"]), strict=True):
            np.testing.assert_array_equal(term[part], alone)


def test_complex_strided_and_foreign_types():
    rng = np.random.default_rng(3)
    z = rng.standard_normal((7, 10, 2)).view(complex)[..., 0]
    row = PRECISIONS["tf32"]
    got = split(z.T[::2], row)[0]
    assert got.dtype == np.complex64
    assert got.flags.c_contiguous
    single = z.astype(np.complex64).T[::2]
    np.testing.assert_array_equal(got.real, split(np.ascontiguousarray(single.real), row)[0])
    np.testing.assert_array_equal(got.imag, split(np.ascontiguousarray(single.imag), row)[0])
    assert split(np.arange(5), row)[0].dtype == np.float32
    before = single.copy()
    split(single, row)
    np.testing.assert_array_equal(single, before)


@pytest.mark.parametrize("precision", ["fp16", "3xfp16"])
def test_scaling_first_is_multiplying_first(precision):
    rng = np.random.default_rng(6)
    x = (rng.standard_normal((3, 40, 50)) * 10.0 ** rng.integers(-20, 20, (3, 40, 50))) * (1 + 2j)
    x = x.astype(np.complex64)
    before = x.copy()
    for axis in (-1, -2):
        s = scale_exponents(x, axis, PRECISIONS[precision].operand)
        expected = split(x * power_of_two(s), PRECISIONS[precision])
        for got, term in zip(split(x, PRECISIONS[precision], s), expected, strict=True):
            np.testing.assert_array_equal(got, term)
    np.testing.assert_array_equal(x, before)


def test_exact_operands_are_taken_as_they_are():
    x = np.ones(3, np.complex64)
    assert split(x, PRECISIONS["fp32"])[0] is x
    assert split(x, PRECISIONS["fp64"])[0].dtype == np.complex128


@given(st.integers(0, 10**6), st.integers(-140, 120), st.sampled_from([-1, -2]))
@settings(max_examples=80, deadline=None)
def test_scaling_brings_the_largest_component_to_the_top_of_fp16(seed, exponent, axis):
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((4, 6)) + 1j * rng.standard_normal((4, 6))) * 2.0**exponent
    x = x.astype(np.complex64)
    x[0, 0] = np.nan
    x[2, 1] = np.inf
    for layout in (x, np.asfortranarray(x), x.astype(complex)):
        s = scale_exponents(layout, axis, PRECISIONS["fp16"].operand)
        assert s.shape == ((4, 1) if axis == -1 else (1, 6))
        parts = np.maximum(np.abs(layout.real), np.abs(layout.imag)).astype(float)
        largest = np.where(np.isfinite(parts), parts, 0).max(axis=axis, keepdims=True)
        scaled = largest * 2.0**s
        free = np.abs(s) < 126
        inside = (scaled >= 2.0**14) & (scaled < 2.0**15)
        assert inside[free & (largest > 0)].all()
        assert (s[largest == 0] == 0).all()
        np.testing.assert_array_equal(power_of_two(s), 2.0**s)
