"""Transforms on the CPU against fp64: errors within a-priori bounds, shapes, scales, options."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS, DftProblem, dft
from argand.dft.cpu import dft as model
from argand.dft.method import (
    LARGEST_LENGTH,
    bluestein,
    convolution_length,
    generator,
    is_prime,
    method_for,
    product,
    rader,
    two_factors,
)
from argand.dft.tables import roots

from tests.kernels.precisions import TENSOR
from tests.normal import normal
from workflow.accuracy.transform_bounds import dft_bound

Array = npt.NDArray[Any]
LENGTHS = (
    1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 64, 97, 100, 127, 128, 129, 251, 256, 360, 509, 512, 521,
    1000, 1009, 1018, 1024, 2039, 4093, 4096, 8191, 10007, 12000,
)  # fmt: skip


def row_errors(found: Array, exact: Array) -> Array:
    return np.linalg.norm(found - exact, axis=-1) / np.linalg.norm(exact, axis=-1)


@pytest.mark.pairwise
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("length", LENGTHS)
def test_errors_are_within_the_bound(
    rng: np.random.Generator, length: int, precision: str, inverse: bool
) -> None:
    x = normal(rng, 4, length)
    x[1, 1:] = 0  # an impulse
    x[2] = 1
    x[3] = roots(np.arange(length) * (length // 3), length)
    exact = (np.fft.ifft if inverse else np.fft.fft)(x.astype(complex), norm="ortho")
    found = dft(x, inverse=inverse, norm="ortho", precision=precision)
    row = PRECISIONS[precision]
    assert found.dtype == row.output
    bound = dft_bound(row, method_for(length), "cpu")
    assert row_errors(found, exact).max() <= bound
    if precision in ("3xfp16", "3xtf32"):
        assert row_errors(found, exact)[0] <= 4e-7


@pytest.mark.slow
@pytest.mark.parametrize("length", [16_384, 65_536, 65_537, 131_072, 1_000_000, 1 << 20])
def test_long_ones(rng: np.random.Generator, length: int) -> None:
    x = normal(rng, 1, length)
    found = dft(x)
    error = row_errors(found, np.fft.fft(x.astype(complex))).max()
    assert error <= min(1e-6, dft_bound(PRECISIONS["3xfp16"], method_for(length), "cpu"))


OF_EACH_KIND = {
    "powers of two": [2**k for k in range(4, 19)],
    "dense": [17, 31, 67, 97, 127, 131, 199, 251, 383, 509, 719],
    "products": [132, 260, 360, 1000, 1023, 2040, 5000, 10_080, 12_000],
    "three factors": [20_000, 50_000, 100_000, 200_000],
    "convolutions": [
        521 * 2, 773, 1009, 1511, 2039, 3001, 4093, 6007, 8191, 10_007, 12_011, 13_001,
    ],
}  # fmt: skip


@pytest.mark.parametrize("precision", ["3xfp16", "3xtf32"])
@pytest.mark.parametrize("kind", OF_EACH_KIND)
def test_errors_grow_no_faster_than_the_logarithm(
    rng: np.random.Generator, kind: str, precision: str
) -> None:
    """The library adds up here; `test_dft_growth` has the sums of tensor cores."""
    errors = []
    for length in OF_EACH_KIND[kind]:
        x = normal(rng, max(1, 8192 // length), length)
        found, exact = dft(x, precision=precision), np.fft.fft(x.astype(complex))
        errors.append(float(np.linalg.norm(found - exact) / np.linalg.norm(exact)))
    slope = np.polyfit(np.log(np.log2(OF_EACH_KIND[kind])), np.log(errors), 1)[0]
    assert slope <= 1


@pytest.mark.parametrize("precision", ["3xfp16", "fp16"])
@pytest.mark.parametrize("length", [7, 128, 1009, 1024, 2039])
def test_amplitude_does_not_matter(rng: np.random.Generator, length: int, precision: str) -> None:
    x = normal(rng, 3, length)
    plain = dft(x, precision=precision, norm="ortho")
    for power in (-110, -60, 60, 110):
        scaled = x * np.float32(2.0**power)
        found = dft(scaled, precision=precision, norm="ortho")
        np.testing.assert_array_equal(found, plain * np.float32(2.0**power))
    mixed = x.copy()
    mixed[0] *= np.float32(2.0**100)
    mixed[2] = 0
    found = dft(mixed, precision=precision, norm="ortho")
    np.testing.assert_array_equal(found[1], plain[1])
    np.testing.assert_array_equal(found[0], plain[0] * np.float32(2.0**100))
    assert (found[2] == 0).all()


@pytest.mark.parametrize("length", [5, 100, 1009, 1024])
def test_what_is_not_finite_stays_in_its_row(rng: np.random.Generator, length: int) -> None:
    x = normal(rng, 4, length)
    plain = dft(x)
    x[1, 3], x[2, 0] = np.nan, np.inf
    found = dft(x)
    assert not np.isfinite(found[1:3]).any()
    np.testing.assert_array_equal(found[[0, 3]], plain[[0, 3]])


@pytest.mark.pairwise
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 5, 12])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_axes_lengths_and_norms(
    rng: np.random.Generator, axis: int, n: int | None, norm: Any
) -> None:
    x = normal(rng, 7, 8, 9)[:, ::-1]
    for inverse in (False, True):
        exact = (np.fft.ifft if inverse else np.fft.fft)(x.astype(complex), n, axis, norm)
        for precision in ("fp32", "3xfp16", "3xtf32"):
            found = dft(x, axis, n=n, inverse=inverse, norm=norm, precision=precision)
            np.testing.assert_allclose(found, exact, atol=2e-6 * np.abs(exact).max())
        wide = dft(x, axis, n=n, inverse=inverse, norm=norm, precision="fp64")
        assert wide.dtype == np.complex128
        np.testing.assert_allclose(wide, exact, atol=1e-14 * np.abs(exact).max())


@pytest.mark.parametrize(
    "dtype", [np.bool_, np.int8, np.uint16, np.float16, np.float64, np.complex128]
)
def test_other_types(rng: np.random.Generator, dtype: Any) -> None:
    x = (4 * rng.random((3, 20))).astype(dtype)
    found = dft(x, precision="3xfp16")
    assert found.dtype == np.complex64
    exact = np.fft.fft(x.astype(np.complex64).astype(complex))
    assert row_errors(found, exact).max() < 3e-7


def test_in_place(rng: np.random.Generator) -> None:
    x = normal(rng, 6, 100)
    expected = dft(x, 0)
    spread = np.full((6, 200), np.nan, np.complex64)[:, ::2]
    assert dft(x, 0, out=spread) is spread
    np.testing.assert_array_equal(spread, expected)
    assert dft(x, 0, out=x) is x
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 0}, r"n must be from 1 to 67108864, got 0"),
        ({"n": LARGEST_LENGTH + 1}, "got 67108865"),
        ({"axis": 2}, "axis must be one of x's 2 axes, got 2"),
        ({"norm": "none"}, r"norm must be one of \['backward', 'ortho', 'forward'\], got 'none'"),
        ({"precision": "fp7"}, "precision must be one of"),
        ({"out": np.zeros((3, 4), np.float64)}, "out must have shape"),
        ({"out": np.zeros((4, 3), np.complex64)}, "out must have shape"),
    ],
)
def test_mistakes_are_said(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dft(np.zeros((3, 4), np.complex64), **change)


def test_what_has_no_numbers_or_axes_is_refused() -> None:
    with pytest.raises(TypeError, match="x must be numbers, got <U1"):
        dft(np.array(["a"]))
    with pytest.raises(ValueError, match="axis must be one of x's 0"):
        dft(np.array(1.0))


@pytest.mark.parametrize(
    "method",
    [
        product(2, product(3, 5)), product(16, 15), rader(31, product(6, 5)),
        rader(31, product(3, 10)),
        bluestein(30, product(8, 8)), bluestein(30, product(6, 5)),
        bluestein(29, product(7, 6)), bluestein(31, method_for(61)),
        product(bluestein(3, product(2, 3)), 4),
    ],
    ids=str,
)  # fmt: skip
def test_any_method_gives_the_transform(rng: np.random.Generator, method: Any) -> None:
    x = normal(rng, 5, method.length)
    for name in ("3xfp16", "3xtf32"):
        problem = DftProblem(5, method.length, False, "backward", PRECISIONS[name])
        found = model(problem, x, method)
        error = row_errors(found, np.fft.fft(x.astype(complex))).max()
        assert error <= dft_bound(PRECISIONS[name], method, "cpu")
        assert error < 1e-6


def test_methods() -> None:
    assert str(method_for(97)) == "97"
    assert str(method_for(1024)) == "32 x 32"
    assert str(method_for(1009)) == "rader(36 x 28)"
    assert str(method_for(2039)) == "bluestein(64 x 64)"
    assert str(method_for(10_007)) == "bluestein(112 x 90)"
    assert method_for(10_007).halves == 2
    assert method_for(2039).halves == 1
    assert method_for(1009).stages == (36, 28, 28, 36)
    for length in range(1, 3000):
        method = method_for(length)
        assert method.length == length
        if not method.convolves:
            assert math.prod(method.stages) == length
    assert two_factors(12_000) == (120, 100)
    assert two_factors(16_385) is None
    for length in (2, 3, 100, 2039, 10_007):
        assert 2 * length - 1 <= convolution_length(length) <= 4 * length


def test_generators() -> None:
    for prime in (3, 5, 17, 509, 1009, 8191, 65_537):
        assert is_prime(prime)
        found = generator(prime)
        assert len({pow(found, k, prime) for k in range(prime - 1)}) == prime - 1
