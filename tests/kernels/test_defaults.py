"""Calls that name no precision take that of their data; precisions may be dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import Pairs, channelise, dft, gemm, get_precision, herk, log_softmax, pack, softmax
from argand.defaults import ON_GPU, default_precision
from scipy import fft, special

DOUBLE = (np.float64, np.complex128, np.int32, np.int64)
SINGLE = (np.float16, np.float32, np.complex64, np.int8, np.int16, np.bool_)


@pytest.mark.parametrize("dtype", [*DOUBLE, *SINGLE])
def test_what_numpy_computes_in_fp64_is(dtype: Any) -> None:
    x, narrow = np.ones((4, 4), dtype), np.ones((4, 4), np.complex64)
    for operation, on_gpu in ON_GPU.items():
        for arrays in ((x,), (narrow, x), (x, None)):
            wide = dtype in DOUBLE
            found = default_precision(operation, arrays, on_gpu=True)
            assert found == ("fp64" if wide else on_gpu)
            found = default_precision(operation, arrays, on_gpu=False)
            assert found == ("fp64" if wide else "fp32")


def test_what_numpy_makes_an_array_of_has_its_type() -> None:
    """Such as pandas' tables, which have no type of their own."""

    class Table:
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
            return np.full((2, 2), 0.1)

    for given in (Table(), memoryview(np.full((2, 2), 0.1)), [[0.1, 0.1], [0.1, 0.1]]):
        found = gemm(given, np.eye(2, dtype=np.float32))
        np.testing.assert_array_equal(found, np.full((2, 2), 0.1 + 0j))


@pytest.mark.parametrize("dtype", [np.longdouble, np.clongdouble])
def test_wider_types_need_a_precision(dtype: Any) -> None:
    if np.finfo(dtype).nmant <= np.finfo(np.float64).nmant:
        pytest.skip("long double has the digits of fp64 here")
    x = np.eye(4, dtype=dtype)
    calls: list[Any] = [lambda x, **named: gemm(x, x, **named), herk, dft]
    for call in calls:
        with pytest.raises(TypeError, match=f"the digits of {x.dtype}: name one"):
            call(x)
        assert call(x, precision="fp64").dtype == np.complex128


def test_results_have_the_type_of_the_data(rng: np.random.Generator) -> None:
    x = rng.standard_normal((12, 12)) + 1j * rng.standard_normal((12, 12))
    calls: list[tuple[Any, Any]] = [
        (lambda x: gemm(x, x), lambda x: x @ x),
        (herk, lambda x: x @ x.conj().T),
        (dft, np.fft.fft),
        (lambda x: softmax(x.real), lambda x: special.softmax(x.real, axis=-1)),
        (lambda x: channelise(x, 4, 2), lambda x: channelise(x, 4, 2, precision="fp64")),
    ]
    for call, expected in calls:
        np.testing.assert_allclose(call(x), expected(x), rtol=1e-12, atol=1e-12)
        assert call(x).dtype == expected(x).dtype
        assert call(x.astype(np.complex64)).dtype.itemsize * 2 == expected(x).dtype.itemsize


def test_out_decides_where_it_is_given(rng: np.random.Generator) -> None:
    x = rng.standard_normal((5, 5)).astype(np.complex64)
    for dtype in (np.complex64, np.complex128):
        out = np.empty((5, 5), dtype)
        assert gemm(x, x, out=out) is out
        assert dft(x.astype(complex), out=out) is out
    np.testing.assert_allclose(out, np.fft.fft(x.astype(complex)), atol=1e-12)


def test_a_packed_operand_has_its_own(rng: np.random.Generator) -> None:
    x = rng.standard_normal((6, 6)).astype(np.complex64)
    packed = pack(x, "bf16", side="b")
    np.testing.assert_array_equal(gemm(x, packed), gemm(x, x, precision="bf16"))
    exact = pack(x, "7xint8")
    np.testing.assert_array_equal(gemm(exact, x), gemm(x, x, precision="7xint8"))


def test_pairs_are_narrow() -> None:
    pairs = Pairs(np.ones((3, 3, 2), np.int8), "int8")
    assert gemm(pairs, pairs).dtype == np.complex64


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (np.float64, "fp64"), (np.complex128, "fp64"), ("complex64", None), (np.float32, "fp32"),
        (np.dtype("c8"), "fp32"), (np.float16, "fp16"),
    ],
)  # fmt: skip
def test_precisions_may_be_dtypes(dtype: Any, name: str | None) -> None:
    if name is None:  # a name is that of a precision
        with pytest.raises(ValueError, match="precision must be one of"):
            get_precision(dtype)
        return
    assert get_precision(dtype).name == name
    x = np.ones((3, 3), np.complex64)
    np.testing.assert_array_equal(gemm(x, x, precision=dtype), gemm(x, x, precision=name))


@pytest.mark.parametrize("given", [np.int32, object(), 3])
def test_others_are_no_precisions(given: Any) -> None:
    with pytest.raises(TypeError, match=r"precision must be one of .* got"):
        gemm(np.ones((2, 2)), np.ones((2, 2)), precision=given)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_softmax_along_an_axis(rng: np.random.Generator, axis: int) -> None:
    x = rng.standard_normal((3, 4, 5))
    np.testing.assert_allclose(softmax(x, axis), special.softmax(x, axis), rtol=1e-14)
    found = np.full_like(x, np.nan)
    assert log_softmax(x, axis, out=found) is found
    np.testing.assert_allclose(found, special.log_softmax(x, axis), rtol=1e-13)
    from argand import logsumexp

    np.testing.assert_allclose(logsumexp(x, axis), special.logsumexp(x, axis), rtol=1e-14)
    held = x.copy()
    np.testing.assert_allclose(softmax(held, axis, out=held), special.softmax(x, axis), rtol=1e-14)


@pytest.mark.parametrize("axis", [3, -4])
def test_an_axis_that_is_not_there(axis: int) -> None:
    with pytest.raises(ValueError, match=f"axis must be one of x's 3 axes, got {axis}"):
        softmax(np.zeros((2, 3, 4)), axis)


def test_out_of_another_shape_is_refused_before_its_axes_are_exchanged() -> None:
    with pytest.raises(ValueError, match=r"out must have shape \(2, 3\)"):
        softmax(np.zeros((2, 3)), 0, out=np.zeros((3, 2)))


def test_the_backend_of_scipy_is_scipy_itself_on_a_cpu(rng: np.random.Generator) -> None:
    import argand

    x = rng.standard_normal((4, 509)).astype(np.complex64)
    expected = fft.fft(x)
    with fft.set_backend(argand.fft_backend, only=True):
        np.testing.assert_array_equal(fft.fft(x), expected)
