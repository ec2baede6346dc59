"""Small Hermitian systems on the CPU: residuals in fp64 within the bound, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import solve_hermitian
from argand.hermitian import cpu, cpu_banded, cpu_batched, cpu_choice
from argand.hermitian.bounds import backward_bound, probable_bound, residual_bound

from tests.kernels.hermitian.covariances import TYPES, covariances, excess
from tests.normal import wide_normal


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 8, 16, 17, 64, 128])
def test_residuals_are_within_the_bound(rng: np.random.Generator, n: int, dtype: str) -> None:
    """Few systems, and enough that their steps are taken together."""
    for systems, columns in ((2, 4), (90, 4), (90, 1)) if n <= 16 else ((2, 4),):
        r = covariances(rng, systems, 3, n=n, dtype=dtype)
        b = wide_normal(rng, systems, 3, n, columns).astype(dtype)
        x = solve_hermitian(r, b)
        assert x.dtype == dtype
        assert excess(r, b, x) <= 1
        wrong = x.copy()
        wrong[1, 2, np.abs(x[1, 2, :, -1]).argmax(), -1] *= 1.01
        assert excess(r, b, wrong) > 1
        assert excess(r[1, 2], b[1, 2], solve_hermitian(r[1, 2], b[1, 2])) <= 1


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [1, 8, 128])
def test_the_probable_bound_is_the_sharper_one(n: int, dtype: str) -> None:
    probable, worst = probable_bound(n, dtype, 1.0, 1.0), backward_bound(n, dtype)
    assert (probable < worst) == (n > 1)  # of few errors all may be at their worst


def test_strides_broadcasts_and_vectors(rng: np.random.Generator) -> None:
    r = covariances(rng, 3, 1, n=5, dtype="complex128")
    b = wide_normal(rng, 4, 5, 2)
    x = solve_hermitian(r, b)
    assert x.shape == (3, 4, 5, 2)
    given = np.asfortranarray(r)[::-1]
    np.testing.assert_allclose(solve_hermitian(given, b), x[::-1], rtol=1e-10)
    one = solve_hermitian(r, b[0, :, 0])
    assert one.shape == (3, 1, 5)
    np.testing.assert_allclose(one[:, 0], x[:, 0, :, 0], rtol=1e-10)


def test_only_the_lower_triangle_is_read(rng: np.random.Generator) -> None:
    for leading in ((), (3,), (90,)):
        r = covariances(rng, *leading, n=6, dtype="complex64")
        b = wide_normal(rng, *leading, 6, 1).astype("complex64")
        for value in (np.nan, 1e38):
            other = r.copy()
            other[(..., *np.triu_indices(6, 1))] = value
            np.testing.assert_allclose(solve_hermitian(other, b), solve_hermitian(r, b), rtol=1e-4)


def test_out_may_be_the_right_hand_sides(rng: np.random.Generator) -> None:
    r, b = (
        covariances(rng, 3, n=7, dtype="complex64"),
        wide_normal(rng, 3, 7, 2).astype("complex64"),
    )
    expected = solve_hermitian(r, b)
    assert solve_hermitian(r, b, out=b) is b
    np.testing.assert_array_equal(b, expected)
    with pytest.raises(ValueError, match="out must have shape"):
        solve_hermitian(r, b, out=np.empty((3, 7, 2), complex))


@pytest.mark.parametrize("shapes", [((0, 3, 3), (0, 3, 2)), ((2, 0, 0), (2, 0, 4)),
                                    ((2, 3, 3), (2, 3, 0)), ((0, 3, 3), (3,))])  # fmt: skip
def test_empty(shapes: Any) -> None:
    r = np.broadcast_to(np.eye(shapes[0][-1]), shapes[0])
    b = np.ones(shapes[1])
    x = solve_hermitian(r, b)
    assert x.size == 0
    assert x.dtype == np.complex64 or x.dtype == np.complex128


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("value", [-1.0, 0.0, np.nan, np.inf])
def test_what_is_not_definite_is_named(rng: np.random.Generator, value: float, dtype: str) -> None:
    for systems in (2, 30):
        r = covariances(rng, systems, 3, n=6, dtype=dtype)
        r[1, 2, 4, 4] = value
        with pytest.raises(np.linalg.LinAlgError, match=r"r\[1, 2\] .* in row 4"):
            solve_hermitian(r, np.ones((6, 1), dtype))
        with pytest.raises(np.linalg.LinAlgError, match=r"^r is .* in row 4"):
            solve_hermitian(r[1, 2], np.ones((6, 1), dtype))


@pytest.mark.parametrize("systems", [1, 5])
def test_infinities_among_many_numbers(rng: np.random.Generator, systems: int) -> None:
    """Squares of solutions are beyond the type, and BLAS would take threads for so many numbers."""
    r, b = covariances(rng, systems, n=8, dtype="complex64"), wide_normal(rng, systems, 8, 2000)
    b = (1e25 * b).astype("complex64")
    x = solve_hermitian(r, b)
    assert excess(r, b, x) <= 1
    b[0, 3, 1500] = np.inf
    info = np.full(systems, -1, np.int32)
    found = solve_hermitian(r, b, info=info)
    assert not info.any()
    assert not np.isfinite(found[0, :, 1500]).all()
    np.testing.assert_array_equal(np.delete(found, 1500, -1), np.delete(x, 1500, -1))
    r[0, 5, 5] = np.inf
    with pytest.raises(np.linalg.LinAlgError, match="in row 5"):
        solve_hermitian(r, b)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_systems_of_one_band(rng: np.random.Generator, n: int, dtype: str) -> None:
    """Residuals are within the bound; what is above a diagonal is not read."""
    r, b = covariances(rng, 7, n=n, dtype=dtype), wide_normal(rng, 7, n, 3).astype(dtype)
    other = r + np.triu(np.full((n, n), 1e9, dtype), 1)
    x = cpu_banded.solve_banded(other, b)
    assert excess(r, b, x) <= 1
    assert x.flags.c_contiguous


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("exponent", [-100, -70, 62, 100])
def test_steps_leave_pivots_far_from_one_to_lapack(
    rng: np.random.Generator, exponent: int, dtype: str
) -> None:
    """Residuals are within the bound: reciprocals of pivots are not below the normal numbers."""
    scale = 2.0 ** (exponent if dtype == "complex64" else 10 * exponent)
    r, b = covariances(rng, 300, n=3, dtype=dtype), wide_normal(rng, 300, 3, 2).astype(dtype)
    assert cpu_choice.fastest(300, 3, 2, dtype) == "steps"
    scaled = (r * scale).astype(dtype)
    solve = cpu_batched.together(300, 3, 2, dtype)
    assert solve(scaled, b) is None
    x = solve_hermitian(scaled, b)
    assert excess(r, b, x * scale) <= 1
    assert solve(r, (b * scale).astype(dtype)) is not None


@pytest.mark.parametrize("dtype", TYPES)
def test_steps_keep_systems_and_right_hand_sides_apart(
    rng: np.random.Generator, dtype: str
) -> None:
    r, b = covariances(rng, 300, n=5, dtype=dtype), wide_normal(rng, 300, 5, 4).astype(dtype)
    assert cpu_choice.fastest(300, 5, 4, dtype) == "steps"
    x = solve_hermitian(r, b)
    b[7, 2, 1] = np.inf
    found = solve_hermitian(r, b)
    assert not np.isfinite(found[7, :, 1]).any()
    found[7, :, 1] = x[7, :, 1]
    np.testing.assert_array_equal(found, x)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("systems", "n", "columns", "way"), [
    (3, 20, 4, "calls"), (30, 2, 1, "band"), (500, 2, 1, "steps"), (500, 32, 1, "calls"),
    (8, 0, 3, "band"), (0, 3, 1, "band"),
])  # fmt: skip
def test_a_way_is_estimated(systems: int, n: int, columns: int, way: str, dtype: str) -> None:
    assert n * systems == 0 or cpu_choice.fastest(systems, n, columns, dtype) == way
    assert solve_hermitian(
        np.broadcast_to(np.eye(n, dtype=dtype), (systems, n, n)), np.ones((systems, n, columns))
    ).shape == (systems, n, columns)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("systems", "n"), [(2, 1), (2, 8), (5, 3), (16, 1)])
def test_few_systems_by_posv_by_its_address(
    rng: np.random.Generator, systems: int, n: int, dtype: str
) -> None:
    """Residuals are within the bound; what is above a diagonal is not read."""
    assert n == 1 or cpu_choice.fastest(systems, n, 3, dtype) == "calls"
    r, b = (
        covariances(rng, systems, n=n, dtype=dtype),
        wide_normal(rng, systems, n, 3).astype(dtype),
    )
    x = solve_hermitian(r + np.triu(np.full((n, n), np.nan, dtype), 1), b)
    assert excess(r, b, x) <= 1
    assert x.flags.c_contiguous
    r[-1, -1, -1] = -1
    with pytest.raises(np.linalg.LinAlgError, match=rf"r\[{systems - 1}\] .* in row {n - 1}"):
        solve_hermitian(r, b)


@pytest.mark.parametrize(
    ("n", "columns", "alone"), [(32, 1, False), (33, 1, True), (64, 5, True), (128, 99, False)]
)
def test_systems_that_are_not_worth_threads_are_on_one_core(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, n: int, columns: int, alone: bool
) -> None:
    r, b = covariances(rng, 3, n=n, dtype="complex128"), wide_normal(rng, 3, n, columns)
    calls = []

    def watched(how: Any, *arguments: Any) -> Any:
        calls.append(how)
        return how(*arguments)

    monkeypatch.setattr(cpu, "available_cores", lambda: 2)
    monkeypatch.setattr(cpu, "scipy_on_one_core", watched)
    for leading in ((), (3,)):
        some = slice(None) if leading else 0
        found = cpu.prepared(r[some], b[some], "complex128", leading)(r[some], b[some], None, None)
        assert excess(r[some], b[some], found) <= 1
    assert len(calls) == (2 if alone else 0)


def test_squares_of_a_solution_may_be_beyond_its_type() -> None:
    x = solve_hermitian(np.eye(2, dtype="complex64"), np.array([1e30, 2e30j], "complex64"))
    np.testing.assert_array_equal(x, np.array([1e30, 2e30j], "complex64"))


@pytest.mark.parametrize("scale", [1e-180, 1e-160, 1e160])
def test_the_bound_of_solutions_whose_squares_are_out_of_range(
    rng: np.random.Generator, scale: float
) -> None:
    r = covariances(rng, 5, n=3, dtype="complex128")
    b = scale * wide_normal(rng, 5, 3, 2)
    x = solve_hermitian(r, b)
    unscaled = residual_bound(r, b / scale, x / scale, "complex128")
    np.testing.assert_allclose(residual_bound(r, b, x, "complex128"), scale * unscaled)


@pytest.mark.parametrize(
    ("r", "b", "said"),
    [
        (np.ones((3, 4)), np.ones(3), r"\(\.\.\., n, n\), got \(3, 4\)"),
        (np.eye(3), np.ones(4), r"b must have shape \(3,\)"),
        (np.eye(129), np.ones(129), "at most 128 rows, got 129"),
        (np.ones((2, 1, 1)), np.ones((3, 1, 1)), "must broadcast"),
    ],
)
def test_shapes_that_do_not_fit(r: Any, b: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        solve_hermitian(r, b)


def test_info_tells_and_does_not_raise(rng: np.random.Generator) -> None:
    r = covariances(rng, 2, 3, n=6, dtype="complex64")
    b = wide_normal(rng, 2, 3, 6, 2).astype("complex64")
    info = np.full((2, 3), -1, np.int32)
    expected = solve_hermitian(r, b, info=info)
    assert not info.any()
    r[1, 2, 4, 4], r[0, 1, 0, 0] = -1, np.nan
    found = solve_hermitian(r, b, info=info)
    np.testing.assert_array_equal(info, [[0, 1, 0], [0, 0, 5]])
    assert np.isnan(found[info > 0]).all()
    np.testing.assert_allclose(found[info == 0], expected[info == 0], rtol=1e-4)
    for wrong in (np.zeros((2, 3), np.int64), np.zeros((3, 2), np.int32)):
        with pytest.raises(ValueError, match="info must be a contiguous array of int32"):
            solve_hermitian(r, b, info=wrong)


def test_arrays_of_both_and_words_are_refused() -> None:
    class OnGpu:
        __module__ = "cupy"
        __cuda_array_interface__ = ()

    with pytest.raises(TypeError, match="must be numbers"):
        solve_hermitian(np.array([["a"]]), np.ones(1))
    with pytest.raises(TypeError, match="all be CuPy arrays, got r of NumPy, b of CuPy"):
        solve_hermitian(np.ones((1, 1)), OnGpu())
