"""Pairs: their formats exactly, rounding to them, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS, Pairs, pairs, to_pairs
from argand.gemm.pairs import PAIR_FORMATS
from argand.precision import HALF_FORMATS
from argand.rounding import round_operand
from hypothesis import given, settings
from hypothesis import strategies as st

Array = npt.NDArray[Any]


def random_pairs(rng: np.random.Generator, format: str, *shape: int) -> Pairs:
    """Pairs of any value that the format has, but moderate exponents."""
    if format.startswith("int"):
        limits = np.iinfo(format)
        parts = rng.integers(limits.min, limits.max, (*shape, 2), endpoint=True).astype(format)
        return pairs(parts)
    values = rng.standard_normal((*shape, 2), dtype=np.float32)
    if format == "bf16":
        return Pairs((values.view(np.uint32) >> 16).astype(np.uint16), format)
    return pairs(values.astype(PAIR_FORMATS[format]))


def every_pattern(format: str) -> tuple[Pairs, list[float]]:
    """Every 16-bit pattern of a format as real parts, and what it means by Python's arithmetic."""
    bits = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
    parts = np.stack([bits, bits[::-1]], axis=-1).view(PAIR_FORMATS[format])
    exponent_bits, fraction_bits = {"fp16": (5, 10), "bf16": (8, 7)}[format]
    bias, meant = (1 << (exponent_bits - 1)) - 1, []
    for pattern in range(1 << 16):
        sign = -1 if pattern >> 15 else 1
        exponent = (pattern >> fraction_bits) & ((1 << exponent_bits) - 1)
        fraction = pattern & ((1 << fraction_bits) - 1)
        if exponent == (1 << exponent_bits) - 1:
            meant.append(sign * float("inf") if fraction == 0 else float("nan"))
        else:
            whole = fraction + ((1 << fraction_bits) if exponent else 0)
            power = max(exponent, 1) - bias - fraction_bits
            meant.append(math.ldexp(sign * whole, power))  # exact in fp64
    return Pairs(parts, format), meant


@pytest.mark.parametrize("format", HALF_FORMATS)
def test_every_half_is_the_number_that_it_means(format: str) -> None:
    halves, meant = every_pattern(format)
    found = halves.to_complex64()
    assert found.dtype == np.complex64
    np.testing.assert_array_equal(found.real, np.array(meant, np.float32))
    np.testing.assert_array_equal(found.imag, np.array(meant[::-1], np.float32))


@pytest.mark.parametrize("format", HALF_FORMATS)
def test_halves_come_back_bit_for_bit(format: str) -> None:
    halves, _ = every_pattern(format)
    back = to_pairs(halves.to_complex64(), format)
    bits, again = halves.array.view(np.uint16), back.array.view(np.uint16)
    nan = np.isnan(halves.to_complex64().view(np.float32).reshape(-1, 2))
    np.testing.assert_array_equal(again[~nan], bits[~nan])
    assert np.isnan(back.to_complex64().view(np.float32).reshape(-1, 2)[nan]).all()


@pytest.mark.parametrize("format", ["int8", "int16"])
def test_every_integer_is_itself(format: str) -> None:
    limits = np.iinfo(format)
    values = np.arange(limits.min, limits.max + 1).astype(format)
    found = pairs(np.stack([values, values[::-1]], axis=-1)).to_complex64()
    np.testing.assert_array_equal(found.real.astype(np.int64), values)
    np.testing.assert_array_equal(found.imag.astype(np.int64), values[::-1])


def test_single_pairs_are_complex64_without_a_copy() -> None:
    parts = np.random.default_rng(0).standard_normal((3, 4, 2)).astype(np.float32)
    found = pairs(parts).to_complex64()
    np.testing.assert_array_equal(found, parts[..., 0] + 1j * parts[..., 1])
    assert np.shares_memory(found, parts)


@pytest.mark.parametrize("format", PAIR_FORMATS)
def test_shapes_and_strides(format: str) -> None:
    rng = np.random.default_rng(1)
    whole = random_pairs(rng, format, 6, 8, 10)
    expected = whole.to_complex64()
    assert whole.shape == (6, 8, 10)
    assert whole.ndim == 3
    assert not whole.on_gpu
    for index in (np.s_[::2, ::-1, 1::3], np.s_[:, 3], np.s_[2:2], np.s_[1, 2, 3]):
        part = Pairs(whole.array[index], format)
        assert part.shape == expected[index].shape
        np.testing.assert_array_equal(part.to_complex64(), expected[index])
    turned = Pairs(np.swapaxes(whole.array, -2, -3), format)
    np.testing.assert_array_equal(turned.to_complex64(), np.swapaxes(expected, -1, -2))
    planes = Pairs(np.moveaxis(np.moveaxis(whole.array, -1, 0).copy(), 0, -1), format)
    assert planes.array.strides[-1] > planes.array.strides[-2]
    np.testing.assert_array_equal(planes.to_complex64(), expected)


@pytest.mark.parametrize("format", HALF_FORMATS)
@given(st.lists(st.integers(0, 2**32 - 1), min_size=2, max_size=40))
@settings(max_examples=80, deadline=None)
def test_rounding_is_that_of_the_precision(format: str, patterns: list[int]) -> None:
    """`round_operand` has its own tests against exact arithmetic."""
    values = np.array(patterns[: len(patterns) // 2 * 2], np.uint32).view(np.complex64)
    found = to_pairs(values, format).to_complex64()
    expected = round_operand(values, PRECISIONS[format])
    np.testing.assert_array_equal(found.view(np.float32), expected.view(np.float32))
    np.testing.assert_array_equal(
        np.signbit(found.real[~np.isnan(values.real)]),
        np.signbit(values.real[~np.isnan(values.real)]),
    )


@pytest.mark.parametrize(
    ("format", "value", "bits"),
    [
        ("fp16", 65519.99, 0x7BFF), ("fp16", 65520.0, 0x7C00), ("fp16", 1 + 2.0**-11, 0x3C00),
        ("fp16", 1 + 3 * 2.0**-11, 0x3C02), ("fp16", 2.0**-25, 0), ("fp16", 3 * 2.0**-26, 1),
        ("bf16", 1 + 2.0**-8, 0x3F80), ("bf16", 1 + 3 * 2.0**-8, 0x3F82),
        ("bf16", 1 + 2.0**-8 + 2.0**-23, 0x3F81), ("bf16", 3.4e38, 0x7F80),
        ("bf16", 2.0**-134, 0), ("bf16", 3 * 2.0**-135, 1),
    ],
)  # fmt: skip
def test_ties_go_to_even_and_too_large_is_an_infinity(format: str, value: float, bits: int) -> None:
    found = to_pairs(np.array([value, -value], np.complex64) * np.complex64(1), format).array
    np.testing.assert_array_equal(found.view(np.uint16)[:, 0], [bits, bits | 0x8000])


def test_nan_stays_nan_whatever_its_bits() -> None:
    payloads = np.array([0x7F800001, 0xFFFFFFFF, 0x7FFFFFFF, 0xFF800001], np.uint32)
    for format in HALF_FORMATS:
        found = to_pairs(payloads.view(np.complex64), format).to_complex64()
        assert np.isnan(found.real).all()
        assert np.isnan(found.imag).all()


@pytest.mark.parametrize("strides", [np.s_[:], np.s_[::2, ::-1], np.s_[:, 1], np.s_[0:0]])
def test_to_pairs_of_views(strides: Any) -> None:
    x = np.random.default_rng(2).standard_normal((6, 7, 2), dtype=np.float32)
    z = x.view(np.complex64)[..., 0][strides]
    found = to_pairs(z, "fp16")
    assert found.shape == z.shape
    np.testing.assert_array_equal(found.array[..., 0], z.real.astype(np.float16))
    np.testing.assert_array_equal(found.array[..., 1], z.imag.astype(np.float16))


LAYOUTS = {
    "together": lambda kind: np.dtype([("r", kind), ("i", kind)]),
    "imaginary first": lambda kind: np.dtype([("i", kind), ("r", kind)]),
    "big-endian": lambda kind: np.dtype([("r", kind), ("i", kind)]).newbyteorder(">"),
    "padded": lambda kind: np.dtype(
        {"names": ["r", "i"], "formats": [kind, kind], "offsets": [0, 8], "itemsize": 16}
    ),
}


@pytest.mark.parametrize("kind", ["f2", "f4", "i1", "i2"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_structured_arrays(kind: str, layout: str) -> None:
    rng = np.random.default_rng(3)
    stored = np.zeros((5, 6), LAYOUTS[layout](kind))
    stored["r"], stored["i"] = rng.integers(-100, 100, (2, 5, 6))
    for view in (stored, stored.T, stored[::2, ::-1]):
        found = pairs(view)
        assert found.shape == view.shape
        np.testing.assert_array_equal(found.to_complex64().real, view["r"].astype(np.float32))
        np.testing.assert_array_equal(found.to_complex64().imag, view["i"].astype(np.float32))
        natively = np.dtype(kind).itemsize == 1 or layout != "big-endian"
        if layout == "together" and natively:
            assert np.shares_memory(found.array, stored)


def test_big_endian_pairs_and_a_compound_from_a_file(tmp_path: Any) -> None:
    parts = np.arange(24, dtype=">i2").reshape(3, 4, 2)
    np.testing.assert_array_equal(pairs(parts).array, parts)
    assert pairs(parts).array.dtype.isnative
    with h5py.File(tmp_path / "voltages.h5", "w") as file:
        stored = np.zeros((3, 4), [("r", "<f2"), ("i", "<f2")])
        stored["r"], stored["i"] = parts[..., 0], parts[..., 1]
        file["x"] = stored
        found = pairs(file["x"][...])
    assert found.format == "fp16"
    np.testing.assert_array_equal(found.array, parts)


@pytest.mark.parametrize(
    ("array", "format", "message"),
    [
        (np.zeros((3, 2), np.uint16), None, 'need format="bf16"'),
        (np.zeros((3, 2)), None, "pairs must be of .*'float16'.* got float64"),
        (np.zeros((3, 2), np.complex64), None, "got complex64"),
        (np.zeros((3, 2), np.float16), "bf16", "pairs of bf16 must be an array of uint16, got flo"),
        (np.zeros((3, 2), np.float16), "half", r"format must be one of \['fp16', .*, got 'half'"),
        (np.zeros((2, 3), np.int8), None, r"last axis of length 2 .*got shape \(2, 3\)"),
        (np.zeros((), np.int8), None, r"last axis of length 2 .*got shape \(\)"),
        (np.zeros(3, [("re", "f2"), ("im", "f2")]), None, r"fields \['r', 'i'\], got \['re', 'im'"),
        (np.zeros(3, [("r", "f2"), ("i", "f4")]), None, "one type, got float16 and float32"),
        (np.zeros(3, [("r", "f8"), ("i", "f8")]), None, "got float64"),
    ],
)
def test_mistakes(array: Array, format: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pairs(array, format)


def test_to_pairs_mistakes() -> None:
    with pytest.raises(ValueError, match=r"format must be one of \['fp16', 'bf16'\], got 'int8'"):
        to_pairs(np.zeros(3, np.complex64), "int8")
    with pytest.raises(ValueError, match="x must be complex64, got complex128"):
        to_pairs(np.zeros(3, np.complex128), "fp16")
