"""Softmax on the CPU: kinds of elements, scale and power, logsumexp, in place, memory, options."""

import tracemalloc
from dataclasses import replace

import argand
import numpy as np
import pytest
from argand import PRECISIONS, SoftmaxProblem, logsumexp, softmax
from argand.device import available_cores
from argand.rounding import round_operand
from argand.softmax import cpu as numpy_softmax
from argand.softmax.api import FUNCTIONS
from argand.softmax.cpu import BLOCK_VALUES
from argand.softmax.formats import OPERATIONS, REAL_KINDS
from scipy import special

from tests.kernels.precisions import SOFTMAX
from tests.kernels.softmax import softmax_cases
from tests.kernels.softmax.softmax_cases import EXACT, HALF_ULP, nasty_rows, numbers, stored

TILE = numpy_softmax.TILE_COLUMNS
SMALLEST = {**softmax_cases.SMALLEST, "bf16": 2.0**-133}
"""A CPU has bf16's subnormal numbers."""


@pytest.mark.pairwise
@pytest.mark.parametrize("kind", REAL_KINDS)
@pytest.mark.parametrize("output", REAL_KINDS)
@pytest.mark.parametrize("columns", [5, TILE + 3])
def test_kinds(kind, output, columns):
    x = stored(np.random.default_rng(9).normal(0, 3, (3, columns)).astype(np.float32), kind)
    given = {"format": "bf16" if kind == "bf16" else None, "output": output}
    precision = "fp64" if kind == output == "fp64" else "fp32"
    got = softmax(x, precision=precision, **given)
    assert got.dtype == REAL_KINDS[output]
    exact = special.softmax(numbers(x, kind), axis=-1)
    # Exponents of up to 32, rounded twice, in the type that is computed in; then the output's.
    rtol = 100 * HALF_ULP[precision] + HALF_ULP[output]
    np.testing.assert_allclose(numbers(got, output), exact, rtol=rtol, atol=SMALLEST[output])
    total = numbers(logsumexp(x, precision=precision, **given), output)
    np.testing.assert_allclose(total, special.logsumexp(numbers(x, kind), axis=-1), rtol=rtol)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("columns", [6, TILE + 1])
@pytest.mark.parametrize("scale", [0.3, 1.0, 5.0])
def test_scale_and_power(operation, columns, scale):
    rng = np.random.default_rng(10)
    z = (rng.normal(size=(3, columns)) + 1j * rng.normal(size=(3, columns))).astype(np.complex64)
    x = scale * np.abs(z.astype(complex)) ** 2
    exact, function = EXACT[operation](x, axis=-1), FUNCTIONS[operation]
    # Three roundings of an exponent as large as the largest power; absolute in a logarithm.
    rtol = (4 * x.max() + 50) * 2.0**-24
    atol = 1e-37 if operation == "softmax" else rtol
    for got in (function(z, power=True, scale=scale), function(np.abs(z) ** 2, scale=scale)):
        np.testing.assert_allclose(got, exact, rtol=rtol, atol=atol)


@pytest.mark.pairwise
@pytest.mark.parametrize("precision", SOFTMAX)
@pytest.mark.parametrize("columns", [3, 40, TILE + 2, 2 * TILE + 1])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_infinities_and_nan_are_where_scipy_has_them(operation, columns, precision):
    x = nasty_rows(columns)[:: 1 if columns < TILE else 17]
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = EXACT[operation](x.astype(float), axis=-1)
    found = FUNCTIONS[operation](x, precision=precision)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("columns", [3000, TILE + 1])
def test_in_place(columns):
    x = np.random.default_rng(11).normal(0, 2, (50, columns)).astype(np.float32)
    expected = softmax(x)
    assert softmax(x, out=x) is x
    np.testing.assert_array_equal(x, expected)
    half = stored(expected, "fp16")
    allocated = softmax(half, output="fp16")
    assert softmax(half, output="fp16", out=half) is half
    np.testing.assert_array_equal(half, allocated)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"scale": 0.0}, "scale must be from"),
        ({"scale": -1.0}, "scale must be from"),
        ({"scale": np.nan}, "scale must be from"),
        ({"output": "int8"}, "output must be one of"),
        ({"format": "bf16"}, "format must be that of x"),
        ({"power": True}, "x must be complex64"),
    ],
)
def test_wrong_options(given, message):
    with pytest.raises(ValueError, match=message):
        softmax(np.zeros(3, np.float32), **given)


@pytest.mark.parametrize("kind", ["fp16", "bf16"])
@pytest.mark.parametrize("precision", SOFTMAX)
def test_a_precision_that_holds_the_data_rounds_nothing(kind, precision):
    x = stored(np.random.default_rng(5).normal(0, 4, (3, 77)).astype(np.float32), kind)
    given = {"format": "bf16" if kind == "bf16" else None}
    problem = SoftmaxProblem(x.shape, "softmax", PRECISIONS[precision], kind, "fp32")
    bits = PRECISIONS[kind].operand.significand
    held = bits <= PRECISIONS[precision].operand.significand and precision != "fp64"
    assert problem.rounding.exact_operands == (held or precision == "fp64")
    if held:
        expected = softmax(x, precision="fp32", **given)
        np.testing.assert_array_equal(softmax(x, precision=precision, **given), expected)


@pytest.mark.parametrize("precision", SOFTMAX)
def test_rounding_keeps_order(precision):
    """The maximum of rounded values is the rounded maximum, which is all that kernels round."""
    bits = np.random.default_rng(11).integers(0, 1 << 32, 1 << 16, dtype=np.uint32)
    near = (bits[:4096, None] & np.uint32(0xFFFFE000)) + np.uint32([0, 0xFFF, 0x1000, 0x1001])
    x = np.concatenate([bits, near.reshape(-1)]).view(np.float32)
    x = np.sort(np.append(x[~np.isnan(x)], np.float32([np.inf, -np.inf, 0, 3.4028235e38])))
    row = SoftmaxProblem((1, 1), "softmax", PRECISIONS[precision], "fp32", "fp32").rounding
    held = round_operand(x, row)
    assert (held[1:] >= held[:-1]).all()


def test_a_scaled_precision_without_a_counterpart_is_refused() -> None:
    row = replace(PRECISIONS["fp16"], name="e4m3", counterpart=None)
    with pytest.raises(ValueError, match=r"must be one of \['fp64', .*'bf16'.*\], got 'e4m3'"):
        _ = SoftmaxProblem((1, 1), "softmax", row, "fp32", "fp32").rounding


SHAPES = [(2048, 4096), (256, 32_768), (2, 1 << 22)]
_SMALL = 1 << 20
"""Bytes for the rows' maxima and sums, and for Python's own objects."""


def peak_bytes(name: str, x: np.ndarray, out: np.ndarray | None) -> int:
    """The most that a call has allocated at a time, of what NumPy reports to tracemalloc."""
    tracemalloc.start()
    try:
        getattr(argand, name)(x, out=out)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", SHAPES)
def test_no_more_than_the_result_and_a_tile_a_thread(
    rng: np.random.Generator, name: str, shape: tuple[int, int]
) -> None:
    x = rng.standard_normal(shape, dtype=np.float32)
    tiles = available_cores() * BLOCK_VALUES * x.itemsize
    assert peak_bytes(name, x, None) <= x.nbytes + tiles + _SMALL
    assert peak_bytes(name, x, np.empty_like(x)) <= tiles + _SMALL
    assert peak_bytes(name, x.copy(), x) <= tiles + _SMALL


def test_what_is_counted_is_not_nothing(rng: np.random.Generator) -> None:
    x = rng.standard_normal((1024, 1024), dtype=np.float32)
    assert peak_bytes("softmax", x, None) >= x.nbytes
