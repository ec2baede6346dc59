"""Batches of products of few rows or columns on the CPU: their values and bits, in any layout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import gemm, pack
from argand.gemm import api, cpu_skinny
from argand.gemm.problem import gemm_problem
from argand.runtime.complex_types import UNIT_ROUNDOFF

Array = npt.NDArray[Any]
SIZES = [(2, 2, 2), (2, 7, 33), (3, 64, 20), (5, 20, 130), (9, 33, 2), (60, 60, 3), (7, 500, 3)]
"""m, k and n, of which the first ones are products by rows, the others by columns."""


@pytest.fixture(autouse=True)
def by_avx512(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The choice by OpenBLAS's kernels for AVX-512, whatever BLAS and CPU are here."""
    monkeypatch.setattr(cpu_skinny, "has_avx512_kernels", lambda: True)
    monkeypatch.setattr(cpu_skinny, "is_of_amd", lambda: False)
    api._CPU_CALLS.clear()
    yield
    api._CPU_CALLS.clear()


def normal(rng: np.random.Generator, dtype: str, *shape: int) -> Array:
    found: Array = rng.standard_normal((*shape, 2)).view(complex)[..., 0].astype(dtype)
    return found


def columns(x: Array) -> Array:
    return x.mT.copy().mT


def pitched(x: Array) -> Array:
    wide = np.full((*x.shape[:-1], x.shape[-1] + 3), np.nan, x.dtype)
    wide[..., 1:-2] = x
    return wide[..., 1:-2]


def strided(x: Array) -> Array:
    wide = np.zeros((*x.shape[:-2], 2 * x.shape[-2], 3 * x.shape[-1]), x.dtype)
    wide[..., ::2, ::3] = x
    return wide[..., ::2, ::3]


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "rows": lambda x: x,
    "columns": columns,
    "pitched": pitched,
    "pitched columns": lambda x: pitched(x.mT).mT,
    "strided": strided,
    "reversed": lambda x: x[..., ::-1, ::-1].copy()[..., ::-1, ::-1],
    "batch last": lambda x: np.moveaxis(np.moveaxis(x, 0, -1).copy(), -1, 0),
    "one for all": lambda x: np.broadcast_to(x[:1], x.shape),
    "columns for all": lambda x: np.broadcast_to(columns(x[:1]), x.shape),
}


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("layout_a", LAYOUTS)
@pytest.mark.parametrize("layout_b", LAYOUTS)
def test_values_and_bits(
    sizes: tuple[int, int, int], dtype: str, layout_a: str, layout_b: str
) -> None:
    """Packed operands, an out and parts of a batch leave the bits of a product."""
    rng, (m, k, n) = np.random.default_rng(sum(sizes)), sizes
    a = LAYOUTS[layout_a](normal(rng, dtype, 3, m, k))
    b = LAYOUTS[layout_b](normal(rng, dtype, 3, k, n))
    got = gemm(a, b)
    assert got.dtype == dtype
    assert got.flags.c_contiguous
    exact = a.astype(np.clongdouble) @ b.astype(np.clongdouble)
    # Each part is a sum of 2 k products.
    bound = 2 * (2 * k + 2) * UNIT_ROUNDOFF[dtype] * (np.abs(a) @ np.abs(b))
    assert (np.abs(got - exact) <= bound).all()
    precision = "fp64" if dtype == "complex128" else "fp32"
    left, right = pack(a, precision, side="a"), pack(b, precision, side="b")
    for x, y in ((a, b), (left, b), (a, right), (left, right)):
        np.testing.assert_array_equal(gemm(x, y), got)
        out = np.full(got.shape, np.nan, dtype)
        np.testing.assert_array_equal(gemm(x, y, out=out), got)
    if not layout_a.startswith("batch") and not layout_b.startswith("batch"):
        np.testing.assert_array_equal(gemm(a[1:2], b[1:2]), got[1:2])


@pytest.mark.parametrize("sizes", [(4, 4, 4), (17, 17, 3)])
@pytest.mark.parametrize("op", ["N", "T", "C"])
def test_ops_scalars_and_operands_that_are_the_result(sizes: tuple[int, int, int], op: Any) -> None:
    rng, (m, k, n) = np.random.default_rng(7), sizes
    a, b, c = (rng.integers(-9, 9, (3, *x, 2)).astype(float).view(complex)[..., 0]
               for x in ((m, k), (k, n), (m, n)))  # fmt: skip
    stored = {"N": b, "T": b.mT, "C": b.mT.conj()}[op]
    expected = 2j * (a @ b) - 3 * c
    for out in (None, np.empty_like(c), c.copy(), c.copy(order="F")):
        own = c if out is None else out
        own[...] = c
        np.testing.assert_array_equal(
            gemm(a, stored, own, alpha=2j, beta=-3, op_b=op, out=out), expected
        )
    if m == n == k:
        for side in "ab":
            own = {"a": a.copy(), "b": stored.copy()}
            np.testing.assert_array_equal(gemm(**own, op_b=op, out=own[side]), a @ b)


@pytest.mark.parametrize(("m", "k", "n"), [(3, 5, 6), (6, 20, 3)])
def test_shared_operands_and_empty_batches(m: int, k: int, n: int) -> None:
    rng = np.random.default_rng(8)
    a, b = normal(rng, "complex64", 4, 1, m, k), normal(rng, "complex64", 3, k, n)
    got = gemm(a, b)
    np.testing.assert_array_equal(got[2], gemm(a[2, 0], b))
    np.testing.assert_array_equal(got[:, 1], gemm(a[:, 0], b[1]))
    assert gemm(a[:0], b).shape == (0, 3, m, n)


def test_infinities_and_nan_are_where_matmul_has_them() -> None:
    rng = np.random.default_rng(9)
    with np.errstate(invalid="ignore"):
        for m, k, n in SIZES:
            a, b = normal(rng, "complex64", 2, m, k), normal(rng, "complex64", 2, k, n)
            a[0, 0, 0], b[1, -1, -1] = complex(np.inf, 1), complex(0, np.nan)
            got, expected = gemm(a, b), a @ b
            np.testing.assert_array_equal(np.isnan(got.real), np.isnan(expected.real))
            np.testing.assert_array_equal(np.isnan(got.imag), np.isnan(expected.imag))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 5), (5, 6)),  # a single matrix
        ((3, 6, 20), (3, 20, 4)), ((3, 6, 15), (3, 15, 3)),  # too many columns, too short a k
        ((3, 2, 64), (3, 64, 64)), ((3, 64, 64), (3, 64, 2)),  # products with vectors by threads
        ((3, 2, 1), (3, 1, 9)), ((3, 1, 9), (3, 9, 9)), ((3, 9, 9), (3, 9, 1)),  # vectors
    ],
)  # fmt: skip
def test_what_is_left_to_matmul(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    assert cpu_skinny.multiplication(gemm_problem(a, b)) is np.matmul


@pytest.mark.parametrize(
    ("k", "is_of_amd", "is_by_rows"),
    [(2, False, True), (47, False, True), (47, True, False), (48, True, True)],
)
def test_rows_of_a_short_k_are_multiplied_where_gemm_is_waited_for(
    k: int, is_of_amd: bool, is_by_rows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_skinny, "is_of_amd", lambda: is_of_amd)
    problem = gemm_problem((9, 4, k), (9, k, 20))
    assert (cpu_skinny.multiplication(problem) is cpu_skinny._by_rows) is is_by_rows
