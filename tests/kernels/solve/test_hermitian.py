"""Small Hermitian systems on the CPU: residuals in fp64 within the bound, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import solve_hermitian
from argand.solve.hermitian import backward_bound

TYPES = ("complex64", "complex128")


def normal(rng: np.random.Generator, *shape: int) -> Any:
    return rng.standard_normal((*shape, 2)).view(complex)[..., 0]


def covariances(rng: np.random.Generator, *leading: int, n: int, dtype: str) -> Any:
    """Sample covariances of n + 3 vectors: definite, with conditions up to about 1e3."""
    v = normal(rng, *leading, n, n + 3)
    return (v @ v.conj().swapaxes(-1, -2)).astype(dtype)


def excess(r: Any, b: Any, x: Any) -> float:
    """The largest residual over its bound; beside E, the residual itself rounds in fp64."""
    n, dtype = r.shape[-1], str(x.dtype)
    r, b, x = (np.asarray(y, complex) for y in (r, b, x))
    size = np.linalg.norm(x, axis=-2)
    trace = np.trace(r, axis1=-2, axis2=-1).real[..., None]
    own = 4 * n * 2.0**-53 * (trace * size + np.linalg.norm(b, axis=-2))
    allowed = backward_bound(n, dtype) * trace * size + own
    return float((np.linalg.norm(b - r @ x, axis=-2) / allowed).max())


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 8, 17, 64, 128])
def test_residuals_are_within_the_bound(rng: np.random.Generator, n: int, dtype: str) -> None:
    r = covariances(rng, 2, 3, n=n, dtype=dtype)
    b = normal(rng, 2, 3, n, 4).astype(dtype)
    x = solve_hermitian(r, b)
    assert x.dtype == dtype
    assert excess(r, b, x) <= 1
    wrong = x.copy()
    # Without its largest element, x leaves a residual of about tr(R) |x| / n^1.5. That exceeds the
    # bound while gamma n^1.5 < 1: it is 0.1 at n = 128 in complex64, where 1 % would not be seen.
    wrong[1, 2, np.abs(x[1, 2, :, 3]).argmax(), 3] = 0
    assert excess(r, b, wrong) > 1


def test_strides_broadcasts_and_vectors(rng: np.random.Generator) -> None:
    r = covariances(rng, 3, 1, n=5, dtype="complex128")
    b = normal(rng, 4, 5, 2)
    x = solve_hermitian(r, b)
    assert x.shape == (3, 4, 5, 2)
    given = np.asfortranarray(r)[::-1]
    np.testing.assert_allclose(solve_hermitian(given, b), x[::-1], rtol=1e-10)
    one = solve_hermitian(r, b[0, :, 0])
    assert one.shape == (3, 1, 5)
    np.testing.assert_allclose(one[:, 0], x[:, 0, :, 0], rtol=1e-10)


def test_only_the_lower_triangle_is_read(rng: np.random.Generator) -> None:
    r, b = covariances(rng, n=6, dtype="complex64"), normal(rng, 6, 1).astype("complex64")
    other = r.copy()
    other[np.triu_indices(6, 1)] = np.nan
    np.testing.assert_array_equal(solve_hermitian(other, b), solve_hermitian(r, b))


def test_out_may_be_the_right_hand_sides(rng: np.random.Generator) -> None:
    r, b = covariances(rng, 3, n=7, dtype="complex64"), normal(rng, 3, 7, 2).astype("complex64")
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
    r = covariances(rng, 2, 3, n=6, dtype=dtype)
    r[1, 2, 4, 4] = value
    with pytest.raises(np.linalg.LinAlgError, match=r"r\[1, 2\] .* in row 4"):
        solve_hermitian(r, np.ones((6, 1), dtype))


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


def test_arrays_of_a_gpu_and_words_are_refused() -> None:
    class OnGpu:
        __cuda_array_interface__ = ()

    with pytest.raises(TypeError, match="must be numbers"):
        solve_hermitian(np.array([["a"]]), np.ones(1))
    with pytest.raises(TypeError, match="CPU alone and got CuPy arrays"):
        solve_hermitian(OnGpu(), np.ones(1))
