"""Hermitian systems that are not finite or not definite beside others, on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
from argand import solve_hermitian
from argand.hermitian import cpu, cpu_banded

from tests.kernels.hermitian.covariances import TYPES, covariances, excess
from tests.normal import wide_normal


@pytest.mark.parametrize(("row", "column"), [(0, 0), (1, 0), (1, 1)])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_band_of_pairs_is_left_to_others_where_one_is_not_finite(
    rng: np.random.Generator, row: int, column: int, value: float
) -> None:
    r, b = covariances(rng, 20, n=2, dtype="complex128"), wide_normal(rng, 20, 2, 1)
    assert excess(r, b, cpu_banded.solve_banded(r, b)) <= 1
    r[7, row, column] = value
    assert cpu_banded.solve_banded(r, b) is None


def test_one_system_of_many_chunks_is_not_definite(rng: np.random.Generator) -> None:
    r, b = covariances(rng, 3000, n=4, dtype="complex64"), wide_normal(rng, 3000, 4, 1)
    assert cpu._step(3000, 4, 1) < 1500
    b, info = b.astype("complex64"), np.empty(3000, np.int32)
    expected = solve_hermitian(r, b)
    r[1700, 2, 2] = -1
    found = solve_hermitian(r, b, info=info)
    np.testing.assert_array_equal(np.flatnonzero(info), 1700)
    assert info[1700] == 3
    apart = np.arange(3000) != 1700
    assert excess(r[apart], b[apart], found[apart]) <= 1
    np.testing.assert_array_equal(found[:500], expected[:500])  # of another chunk
    np.testing.assert_array_equal(found[-500:], expected[-500:])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("systems", [4, 20])
def test_a_system_leaves_its_neighbours_as_they_are(
    rng: np.random.Generator, systems: int, dtype: str
) -> None:
    """One that is not finite or has no factor would reach those of the same diagonal or band."""
    r = covariances(rng, systems, n=2, dtype=dtype)
    b = wide_normal(rng, systems, 2, 1).astype(dtype)
    x = solve_hermitian(r, b)
    info = np.full(systems, -1, np.int32)
    apart = np.delete(np.arange(systems), (1, 2))
    for value in (np.nan, np.inf, -1.0):
        broken, sides = r.copy(), b.copy()
        broken[1, 1, 1], sides[2, 0, 0] = value, np.nan
        found = solve_hermitian(broken, sides, info=info)
        np.testing.assert_array_equal(np.flatnonzero(info), [1])
        assert info[1] == 2
        assert np.isnan(found[1:3]).any(axis=(1, 2)).all()
        np.testing.assert_allclose(found[apart], x[apart], rtol=1e-5)
