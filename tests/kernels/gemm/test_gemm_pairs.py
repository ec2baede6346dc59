"""Products of pairs on the CPU: operands, complex-half results, devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, Pairs, gemm, pack, pairs, to_pairs
from argand.gemm.pairs import PAIR_FORMATS
from argand.gemm.problem import allowed_outputs, gemm_problem
from argand.precision import HALF_FORMATS
from test_pairs import random_pairs

from workflow.accuracy.matrix_product_accuracy import assess_product
from workflow.accuracy.references import product_reference


@pytest.mark.each_value
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("format", PAIR_FORMATS)
def test_a_product_of_pairs_is_that_of_their_numbers(precision: str, format: str) -> None:
    rng = np.random.default_rng(4)
    a, b = random_pairs(rng, format, 2, 9, 13), random_pairs(rng, format, 7, 13)
    c = random_pairs(rng, format, 2, 9, 7)
    how: dict[str, Any] = {"op_b": "C", "alpha": 0.5 - 2j, "beta": 1.5j}
    wide = [x.to_complex64() for x in (a, b, c)]
    found = gemm(a, b, c, precision=precision, **how)
    np.testing.assert_array_equal(found, gemm(*wide, precision=precision, **how))
    row = PRECISIONS[precision]
    accuracy = assess_product(product_reference(*wide, **how), found, row, backend="cpu")
    assert accuracy.verified, accuracy.reason


@pytest.mark.parametrize("format", HALF_FORMATS)
def test_halves_are_not_rounded_again_by_their_own_precision(format: str) -> None:
    """Then only the sums of fp32 are left, as at precision fp32: gamma(2 k) of |a| |b|."""
    rng = np.random.default_rng(5)
    a, b = random_pairs(rng, format, 20, 64), random_pairs(rng, format, 64, 15)
    x, y = (z.to_complex64().astype(complex) for z in (a, b))
    found = gemm(a, b, precision=format)
    allowed = (2 * 64 * 2.0**-24) / (1 - 2 * 64 * 2.0**-24) * (np.abs(x) @ np.abs(y))
    for error in ((found - x @ y).real, (found - x @ y).imag):
        assert (np.abs(error) <= allowed).all()


def test_structured_operands_and_lists() -> None:
    stored = np.zeros((3, 3), [("r", "i1"), ("i", "i1")])
    stored["r"], stored["i"] = np.arange(9).reshape(3, 3), 1
    expected = gemm(stored["r"] + 1j * stored["i"], np.eye(3))
    np.testing.assert_array_equal(gemm(stored, np.eye(3).tolist()), expected)
    np.testing.assert_array_equal(gemm(np.eye(3), np.eye(3), stored, beta=1) - np.eye(3), expected)
    with pytest.raises(ValueError, match="fields"):
        gemm(np.zeros((3, 3), [("re", "f4"), ("im", "f4")]), np.eye(3))


@pytest.mark.parametrize("format", HALF_FORMATS)
@pytest.mark.parametrize("how", [{}, {"alpha": 0.5j, "beta": -2}, {"alpha": 0, "beta": 1}])
def test_complex_half_is_the_result_rounded_once(format: str, how: dict[str, Any]) -> None:
    rng = np.random.default_rng(6)
    a, b, c = (random_pairs(rng, format, *shape) for shape in ((5, 8), (8, 6), (5, 6)))
    wide = gemm(a, b, c, precision=format, **how)
    found = gemm(a, b, c, precision=format, output="complex-half", **how)
    assert isinstance(found, Pairs)
    assert (found.format, found.shape) == (format, (5, 6))
    np.testing.assert_array_equal(found.array, to_pairs(wide, format).array)
    again = gemm(a, b, c, precision=format, output="complex-half", out=c, **how)
    assert again is c
    np.testing.assert_array_equal(c.array, found.array)
    big = np.zeros((5, 6, 4), found.array.dtype)
    strided = Pairs(big[..., 1:3], format)
    gemm(a, b, precision=format, output="complex-half", out=strided)
    assert big[..., 1:3].any()
    assert not big[..., ::3].any()


def test_complex_half_overflows_to_an_infinity_and_takes_any_operands() -> None:
    a = np.full((1, 4), 300, np.complex64)
    found = gemm(a, a.T, precision="fp16", output="complex-half").to_complex64()
    assert found == np.complex64(np.inf)
    assert gemm(a, a.T, precision="bf16", output="complex-half").to_complex64() == 360448


def test_c_is_not_read_where_beta_is_zero() -> None:
    nan = Pairs(np.full((3, 3, 2), np.nan, np.float16), "fp16")
    eye = np.eye(3)
    np.testing.assert_array_equal(gemm(eye, eye, nan, precision="fp16"), eye)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_outputs(precision: str) -> None:
    row = PRECISIONS[precision]
    a = np.ones((2, 2))
    assert gemm_problem((2, 2), (2, 2), precision=precision).output == row.output
    assert gemm(a, a, precision=precision, output=row.output).dtype == row.output
    assert ("complex-half" in allowed_outputs(row)) == (precision in ("fp16", "bf16"))
    for name in {"complex64", "complex128", "complex-half"} - set(allowed_outputs(row)):
        with pytest.raises(ValueError, match=f"output at {precision} must be one of .*'{name}'"):
            gemm(a, a, precision=precision, output=name)


def test_the_problem_names_the_formats() -> None:
    problem = gemm_problem((2, 3), (3, 4), precision="fp16", a_format="fp16")
    assert (problem.a_format, problem.b_format, problem.output) == ("fp16", "complex", "complex64")


@pytest.mark.parametrize(
    ("out", "output", "message"),
    [
        (np.zeros((2, 2), np.complex64), "complex-half", "type Pairs of fp16, got .* complex64"),
        (pairs(np.zeros((2, 2, 2), np.float16)), None, "type complex64, got .* Pairs of fp16"),
        (Pairs(np.zeros((2, 2, 2), np.uint16), "bf16"), "complex-half", "got .* Pairs of bf16"),
        (pairs(np.zeros((2, 3, 2), np.float16)), "complex-half", r"shape \(2, 2\)"),
        (pack(np.eye(2), "fp16"), None, "type complex64, got .* Packed"),
    ],
)
def test_wrong_out(out: Any, output: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gemm(np.eye(2), np.eye(2), precision="fp16", output=output, out=out)


def test_arrays_on_different_devices() -> None:
    class OnGpu:
        """As much of a CuPy array as says where it lives."""

        __cuda_array_interface__ = None
        shape, dtype, ndim = (2, 2, 2), np.dtype(np.float16), 3

    elsewhere = Pairs(OnGpu(), "fp16")
    assert elsewhere.on_gpu
    with pytest.raises(TypeError, match="must all be on the CPU"):
        gemm(elsewhere, np.eye(2))
    with pytest.raises(TypeError, match="must all be on the CPU"):
        gemm(np.eye(2), np.eye(2), precision="fp16", output="complex-half", out=elsewhere)
