"""Small Hermitian systems on a GPU: every size, odd numbers of systems, every element checked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from argand import launched, solve_hermitian
from argand.device import gpu
from argand.hermitian.plan import LARGEST_N, kernel_source, plan_hermitian
from argand.runtime.compile.loading import compile_later

from tests.covers import EXHAUSTIVE
from tests.kernels.hermitian.covariances import TYPES, covariances, excess
from tests.normal import wide_normal

pytestmark = pytest.mark.gpu
SIZES = range(1, LARGEST_N + 1) if EXHAUSTIVE else (1, 2, 3, 7, 8, 16, 17, 31, 32, 64, 65, 128)
NAN = complex(np.nan, np.nan)


@pytest.fixture(scope="module", autouse=True)
def _compiled_together() -> None:
    """Kernels of all sizes are compiled at a time, on all cores."""
    device = gpu(0)
    for dtype in TYPES:
        for n in SIZES:
            for columns in (1, 4):
                plan = plan_hermitian(n, columns, dtype, device.require_arch())
                compile_later(kernel_source(plan, dtype), device.target)


def solved(cp: Any, r: Any, b: Any, x: Any = None) -> Any:
    """Solve into poisoned memory and check each residual; a wrong element would be seen."""
    shape = (*np.broadcast_shapes(r.shape[:-2], b.shape[:-2]), *b.shape[-2:])
    out = cp.full(shape, NAN, np.result_type(r, b)) if x is None else x
    info = cp.full(shape[:-2], -1, np.int32)
    assert solve_hermitian(cp.asarray(r), cp.asarray(b), out=out, info=info) is out
    assert not info.any()
    found = out.get()
    assert excess(r, b, found) <= 1
    worst = np.unravel_index(np.abs(found).argmax(), found.shape)
    wrong = found.copy()
    wrong[worst] *= 1.01
    assert not excess(r, b, wrong) <= 1
    return found


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", SIZES)
def test_every_size(cp: Any, rng: np.random.Generator, n: int, dtype: str) -> None:
    systems = 37 + n % 5
    r = covariances(rng, systems, n=n, dtype=dtype)
    for columns in (1, 4, 3 if n % 2 else 9):
        solved(cp, r, wide_normal(rng, systems, n, columns).astype(dtype))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [1, 8, 16, 24, 64, 100])
def test_many_right_hand_sides(cp: Any, rng: np.random.Generator, n: int, dtype: str) -> None:
    r = covariances(rng, 3, n=n, dtype=dtype)
    solved(cp, r, wide_normal(rng, 3, n, 131).astype(dtype))


@pytest.mark.parametrize("systems", [1, 2, 31, 33, 100_003])
@pytest.mark.parametrize("n", [4, 16, 20])
def test_numbers_of_systems(cp: Any, rng: np.random.Generator, n: int, systems: int) -> None:
    r = covariances(rng, min(systems, 1001), n=n, dtype="complex64")
    b = wide_normal(rng, len(r), n, 2).astype("complex64")
    some = solved(cp, r, b)
    if systems > len(r):
        index = np.arange(systems) % len(r)
        np.testing.assert_array_equal(solved(cp, r[index], b[index]), some[index])


def test_strides_broadcasts_and_vectors(cp: Any, rng: np.random.Generator) -> None:
    r, b = covariances(rng, 3, 1, n=21, dtype="complex64"), wide_normal(rng, 4, 21, 2)
    b = b.astype("complex64")
    x = solved(cp, r, b)
    assert x.shape == (3, 4, 21, 2)
    there, sides = cp.asarray(r), cp.asarray(b)
    for matrices, right in (
        (cp.asfortranarray(there), sides),
        (cp.repeat(there, 2, axis=0)[::2], cp.repeat(sides, 2, axis=2)[..., ::2]),
        (there, cp.asfortranarray(sides)),
    ):
        np.testing.assert_array_equal(solve_hermitian(matrices, right).get(), x)
    one = solve_hermitian(there, cp.ascontiguousarray(sides[0, :, 0])).get()
    np.testing.assert_array_equal(one[:, 0], x[:, 0, :, 0])
    real = solve_hermitian(there.real.astype(np.float32), sides[0])
    assert real.dtype == np.complex64


def test_only_the_lower_triangle_is_read(cp: Any, rng: np.random.Generator) -> None:
    for n in (5, 16, 40):
        r = covariances(rng, 3, n=n, dtype="complex64")
        b = wide_normal(rng, 3, n, 1).astype("complex64")
        other = r.copy()
        other[(slice(None), *np.triu_indices(n, 1))] = np.nan
        other.imag[:, np.arange(n), np.arange(n)] = np.nan
        np.testing.assert_array_equal(solved(cp, r, b), solve_hermitian(
            cp.asarray(other), cp.asarray(b)).get())  # fmt: skip


def test_out_may_be_an_operand(cp: Any, rng: np.random.Generator) -> None:
    r, b = (covariances(rng, 9, n=12, dtype="complex64"),
            wide_normal(rng, 9, 12, 12).astype("complex64"))  # fmt: skip
    expected = solved(cp, r, b)
    sides = cp.asarray(b)
    assert solve_hermitian(cp.asarray(r), sides, out=sides) is sides
    np.testing.assert_array_equal(sides.get(), expected)
    matrices = cp.asarray(r)
    solve_hermitian(matrices, cp.asarray(b), out=matrices)
    np.testing.assert_array_equal(matrices.get(), expected)
    shifted = cp.empty((10, 12, 12), "complex64")
    shifted[:9] = cp.asarray(b)
    solve_hermitian(cp.asarray(r), shifted[:9], out=shifted[1:])
    np.testing.assert_array_equal(shifted[1:].get(), expected)
    apart = cp.full((9, 12, 24), NAN, "complex64")
    solve_hermitian(cp.asarray(r), cp.asarray(b), out=apart[..., ::2])
    np.testing.assert_array_equal(apart[..., ::2].get(), expected)
    assert cp.isnan(apart[..., 1::2]).all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("value", [-1.0, 0.0, np.nan, np.inf, 1e-39, 3e38])
@pytest.mark.parametrize("n", [6, 16, 33, 128])
def test_what_is_not_definite_is_reported(
    cp: Any, rng: np.random.Generator, n: int, value: float, dtype: str
) -> None:
    if dtype == "complex128" and value in (1e-39, 3e38):
        value = {1e-39: 1e-310, 3e38: 1e308}[value]
    r, b = covariances(rng, 5, 7, n=n, dtype=dtype), wide_normal(rng, 5, 7, n, 3).astype(dtype)
    expected = solved(cp, r, b)
    row = n - 2
    r[1, 2], r[4, 6] = np.eye(n), np.eye(n)
    r[1, 2, row, row] = r[4, 6, 0, 0] = value
    info = cp.full((5, 7), -1, np.int32)
    found = solve_hermitian(cp.asarray(r), cp.asarray(b), info=info).get()
    marks = np.zeros((5, 7), np.int32)
    marks[1, 2], marks[4, 6] = row + 1, 1
    np.testing.assert_array_equal(info.get(), marks)
    assert np.isnan(found[marks > 0].real).all()
    assert np.isnan(found[marks > 0].imag).all()
    np.testing.assert_array_equal(found[marks == 0], expected[marks == 0])


def test_infinity_below_the_diagonal(cp: Any, rng: np.random.Generator) -> None:
    r, b = covariances(rng, 3, n=10, dtype="complex64"), np.ones((3, 10, 1), "complex64")
    r[1, 7, 2] = np.inf
    info = cp.zeros(3, np.int32)
    found = solve_hermitian(cp.asarray(r), cp.asarray(b), info=info).get()
    np.testing.assert_array_equal(info.get(), [0, 8, 0])
    assert np.isnan(found[1]).all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [5, 100, 128])
def test_factors_in_global_memory(cp: Any, rng: np.random.Generator, n: int, dtype: str) -> None:
    plan = plan_hermitian(n, 4, dtype, gpu(0).require_arch())
    r, b = covariances(rng, 700, n=n, dtype=dtype), wide_normal(rng, 700, n, 4).astype(dtype)
    expected = solved(cp, r, b)
    from argand.hermitian.gpu import PLAN_OVERRIDE

    with PLAN_OVERRIDE.use(replace(plan, in_global=True)):
        np.testing.assert_array_equal(solved(cp, r, b), expected)


def test_calls_are_kept(cp: Any, rng: np.random.Generator) -> None:
    r, b = (
        covariances(rng, 9, n=8, dtype="complex64"),
        wide_normal(rng, 9, 8, 2).astype("complex64"),
    )
    matrices, sides = cp.asarray(r), cp.asarray(b)
    with launched() as names:
        first, again = (solve_hermitian(matrices, sides).get() for _ in range(2))
    assert names == ["hermitian_complex64_8_2x1_fused"]
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(solve_hermitian(2 * matrices, sides).get() * 2, first)


def test_what_is_refused(cp: Any) -> None:
    eye, ones = cp.eye(4), cp.ones((4, 1))
    with pytest.raises(TypeError, match="all be NumPy arrays or all be CuPy arrays"):
        solve_hermitian(eye, np.ones((4, 1)))
    with pytest.raises(TypeError, match="all be NumPy arrays or all be CuPy arrays"):
        solve_hermitian(eye, ones, info=np.zeros((), np.int32))
    with pytest.raises(ValueError, match="at most 128 rows"):
        solve_hermitian(cp.eye(129), cp.ones(129))
    assert solve_hermitian(cp.empty((0, 3, 3)), cp.ones((3, 2))).shape == (0, 3, 2)
    info = cp.ones(2, np.int32)
    assert solve_hermitian(cp.empty((2, 0, 0)), cp.ones((0, 2)), info=info).shape == (2, 0, 2)
    assert not info.any()
