"""GPU products of any shape, op, layout and place, against the CPU model (product_cases.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS, gemm
from argand.operand_format import ROUNDINGS

from tests.kernels.gemm.product_cases import (
    OPS,
    SHAPES,
    assert_within,
    check,
    magnitude,
    normal,
    stored,
    summation,
)

pytestmark = pytest.mark.gpu
Array = npt.NDArray[Any]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("shape", SHAPES, ids="x".join(["{0[0]}", "{0[1]}", "{0[2]}"]).format)
def test_shapes(
    cp: Any, rng: np.random.Generator, precision: str, shape: tuple[int, int, int]
) -> None:
    m, n, k = shape
    check(cp, normal(rng, m, k), normal(rng, k, n), precision=precision)


@pytest.mark.pairwise
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("op_a", OPS)
@pytest.mark.parametrize("op_b", OPS)
def test_ops_with_alpha_and_beta(
    cp: Any, rng: np.random.Generator, precision: str, op_a: str, op_b: str
) -> None:
    a, b, c = normal(rng, 37, 50), normal(rng, 50, 44), normal(rng, 37, 44)
    check(
        cp, stored(a, op_a), stored(b, op_b), c, op_a=op_a, op_b=op_b, precision=precision,
        alpha=0.5 - 2j, beta=-1.25 + 0.75j,
    )  # fmt: skip


@pytest.mark.parametrize("precision", ["tf32", "3xtf32"])
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_roundings_are_the_models(
    cp: Any, rng: np.random.Generator, precision: str, rounding: str
) -> None:
    """One product of one pair is exact in fp32 for tf32, so the rounding shows bit for bit."""
    a, b = normal(rng, 64, 1), np.ones((1, 1), np.complex64)
    a = np.concatenate([a.real, a.real.view(np.int32).__or__(0xFFF).view(np.float32)])
    a = a.astype(np.complex64)
    model = gemm(a, b, precision=precision, rounding=rounding)
    found = gemm(cp.asarray(a), cp.asarray(b), precision=precision, rounding=rounding).get()
    if precision == "tf32":
        np.testing.assert_array_equal(found, model)
    else:  # big + small has 22 bits: a truncating sum may lose the last of 24
        np.testing.assert_allclose(found, model, rtol=2.0**-22)
    check(cp, normal(rng, 40, 100), normal(rng, 100, 24), precision=precision, rounding=rounding)


def test_the_two_fp16_terms_are_the_models(cp: Any, rng: np.random.Generator) -> None:
    """A row of one number that is multiplied by one: hi + lo, scaled back, comes out.

    hi + lo takes 24 bits at most and a truncating sum may lose the last. A second number that sets
    the scale, and that zero multiplies, shows what falls below fp16's range: it is the model's.
    """
    values = np.ldexp(rng.uniform(1, 2, 4000), rng.integers(-45, 0, 4000)).astype(np.float32)
    a = np.stack([values, np.full(4000, 1.5, np.float32)], axis=1).astype(np.complex64)
    b = np.array([[1], [0]], np.complex64)
    model = gemm(a, b, precision="3xfp16")
    found = gemm(cp.asarray(a), cp.asarray(b), precision="3xfp16", kernels="mma.sync").get()
    np.testing.assert_allclose(found, model, rtol=2.0**-22)
    assert (np.abs(model - a[:, :1]) > 2.0**-22 * np.abs(a[:, :1])).any()


def views(cp: Any, x: Array) -> dict[str, Callable[[], Any]]:
    rows, columns = x.shape

    def strided() -> Any:
        wide = cp.zeros((2 * rows, 3 * columns), x.dtype)
        wide[::2, ::3] = cp.asarray(x)
        return wide[::2, ::3]

    def odd_pitch() -> Any:
        wide = cp.zeros((rows, columns + 1), x.dtype)
        wide[:, 1:] = cp.asarray(x)
        return wide[:, 1:]

    return {
        "fortran": lambda: cp.asfortranarray(cp.asarray(x)),
        "reversed": lambda: cp.asarray(np.ascontiguousarray(x[::-1, ::-1]))[::-1, ::-1],
        "strided": strided,
        "odd pitch": odd_pitch,
    }


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("layout", ["fortran", "reversed", "strided", "odd pitch"])
def test_layouts_give_the_same_bits(
    cp: Any, rng: np.random.Generator, precision: str, layout: str
) -> None:
    """cuBLAS alone has other kernels for other layouts, so there it is the same to rounding."""
    a, b = normal(rng, 67, 90), normal(rng, 90, 131)
    plain = gemm(cp.asarray(a), cp.asarray(b), precision=precision).get()
    moved = gemm(views(cp, a)[layout](), views(cp, b)[layout](), precision=precision).get()
    if not PRECISIONS[precision].exact_operands:
        np.testing.assert_array_equal(moved, plain)
    assert_within(moved, plain, 2 * summation(90, precision) * magnitude(a, b, None))


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    ("left", "right"),
    [((5,), (5,)), ((1,), (4,)), ((3, 1), (1, 2)), ((2, 3), ()), ((), (2, 2)), ((0,), (1,))],
)
def test_batches(
    cp: Any, rng: np.random.Generator, precision: str, left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    check(cp, normal(rng, *left, 19, 33), normal(rng, *right, 33, 21), precision=precision)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("shape", [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)])
def test_empty(
    cp: Any, rng: np.random.Generator, precision: str, shape: tuple[int, int, int]
) -> None:
    m, n, k = shape
    a, b, c = normal(rng, m, k), normal(rng, k, n), normal(rng, m, n)
    check(cp, a, b, precision=precision)
    check(cp, a, b, c, beta=2j, precision=precision)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_c_is_not_read_where_beta_is_zero(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    a, b = cp.asarray(normal(rng, 20, 30)), cp.asarray(normal(rng, 30, 40))
    c = cp.full((20, 40), np.nan, np.complex64)
    assert bool(cp.isfinite(gemm(a, b, c, precision=precision)).all())


@pytest.mark.parametrize("precision", [*PRECISIONS, "7xint8"])
def test_alpha_zero_does_not_form_the_product(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    a, b = cp.full((20, 30), np.nan, np.complex64), cp.asarray(normal(rng, 30, 40))
    np.testing.assert_array_equal(gemm(a, b, alpha=0, precision=precision).get(), 0)
    c = cp.asarray(normal(rng, 20, 40))
    found = gemm(a, b, c, alpha=0, beta=2, precision=precision)
    np.testing.assert_array_equal(found.get(), 2 * c.get())


@pytest.mark.parametrize("precision", PRECISIONS)
def test_out_may_be_c_or_an_operand(cp: Any, rng: np.random.Generator, precision: str) -> None:
    dtype = PRECISIONS[precision].output
    a, b, c = (cp.asarray(normal(rng, 150, 150)).astype(dtype) for _ in range(3))
    expected = gemm(a, b, c, beta=0.5j, precision=precision).get()
    target = c.copy()
    assert gemm(a, b, target, beta=0.5j, precision=precision, out=target) is target
    np.testing.assert_array_equal(target.get(), expected)
    target = a.copy()
    gemm(target, b, c, beta=0.5j, precision=precision, out=target)
    np.testing.assert_array_equal(target.get(), expected)
    turned = cp.empty((150, 150), dtype).T
    gemm(a, b, c, beta=0.5j, precision=precision, out=turned)
    np.testing.assert_array_equal(turned.get(), expected)
    shifted = c.T  # overlaps its transpose, element by element elsewhere
    gemm(a, b, shifted, beta=0.5j, precision=precision, out=c)
    assert bool(cp.isfinite(c).all())


@pytest.mark.parametrize("precision", PRECISIONS)
def test_cached_calls(cp: Any, rng: np.random.Generator, precision: str) -> None:
    """Calls of one form at other addresses, where arrays overlap, and with C of another type."""
    dtype = PRECISIONS[precision].output
    a, b, c = (normal(rng, 24, 24).astype(dtype) for _ in range(3))
    other = "complex64" if dtype == "complex128" else "complex128"
    plain, added = gemm(a, b, precision=precision), gemm(a, b, c, beta=0.5, precision=precision)
    slack = summation(24, precision) * magnitude(a, b, c, beta=0.5)
    for _ in range(3):
        x, y, z = (cp.array(value) for value in (a, b, c))
        assert_within(gemm(x, y, precision=precision).get(), plain, slack)
        out = cp.full_like(z, np.nan)
        for addend in (z, z.astype(other)):
            assert gemm(x, y, addend, beta=0.5, precision=precision, out=out) is out
            assert_within(out.get(), added, slack)
        gemm(x, y, precision=precision, out=out)
        assert_within(out.get(), plain, slack)
        gemm(x, y, z, beta=0.5, precision=precision, out=z)
        assert_within(z.get(), added, slack)
        gemm(x, y, precision=precision, out=x)
        assert_within(x.get(), plain, slack)


def test_out_is_c_transposed(cp: Any, rng: np.random.Generator) -> None:
    a, b, c = (cp.asarray(normal(rng, 150, 150)) for _ in range(3))
    expected = gemm(a, b, c.T.copy(), beta=1, precision="tf32").get()
    np.testing.assert_array_equal(gemm(a, b, c.T, beta=1, precision="tf32", out=c).get(), expected)


@pytest.mark.parametrize("precision", ["fp32", "tf32", "fp16"])
def test_other_types_are_cast(cp: Any, rng: np.random.Generator, precision: str) -> None:
    a, b = rng.standard_normal((20, 30)), rng.integers(-5, 6, (30, 10))
    found = gemm(cp.asarray(a), cp.asarray(b), precision=precision)
    model = gemm(a, b, precision=precision)
    assert found.dtype == model.dtype == np.complex64
    slack = summation(30, precision) * magnitude(a.astype(complex), b.astype(complex), None)
    assert_within(found.get(), model, slack)
