"""Batches of Hermitian systems on the CPU: kept memory and steps, and bad systems beside others."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from argand import solve_hermitian
from argand.hermitian import cpu, cpu_banded, cpu_batched, cpu_posv

from tests.kernels.hermitian.covariances import TYPES, covariances, excess
from tests.normal import wide_normal


def test_systems_are_copied_in_parts(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_posv, "_NUMBERS", 200)
    r, b = covariances(rng, 11, n=7, dtype="complex128"), wide_normal(rng, 11, 7, 2)
    whole = cpu_posv.each_by_posv(11, 7, 2, "complex128")(r, b)
    parts = [
        cpu_posv.each_by_posv(1, 7, 2, "complex128")(x[None], y[None])
        for x, y in zip(r, b, strict=True)
    ]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    assert excess(r, b, whole) <= 1
    for place in (0, 5, 10):  # in the first, another and the last part
        bad = r.copy()
        bad[place, 3, 3] = -1
        assert cpu_posv.each_by_posv(11, 7, 2, "complex128")(bad, b) is None


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("way", ["calls", "steps"])
def test_repeated_calls_leave_earlier_results_as_they_are(
    rng: np.random.Generator, way: str, dtype: str
) -> None:
    """The memory that is kept is another call's as soon as one is done, of other threads too."""
    solver = (cpu_posv.each_by_posv if way == "calls" else cpu_batched.together)(6, 5, 3, dtype)
    systems = [(covariances(rng, 6, n=5, dtype=dtype), wide_normal(rng, 6, 5, 3).astype(dtype))
               for _ in range(8)]  # fmt: skip
    expected = [solver(*x) for x in systems]
    copies = [x.copy() for x in expected]
    assert solver(np.full((6, 5, 5), np.nan, dtype), systems[0][1]) is None  # is not read later
    with ThreadPoolExecutor(4) as pool:
        for found, x in zip(pool.map(lambda x: solver(*x), systems * 50), copies * 50, strict=True):
            np.testing.assert_array_equal(found, x)
    np.testing.assert_array_equal(expected, copies)


def test_large_systems_are_left_to_scipys_copies(rng: np.random.Generator) -> None:
    r, b = covariances(rng, 2, n=30, dtype="complex64"), wide_normal(rng, 2, 30, 3000)
    assert cpu_posv.each_by_posv(2, 30, 3000, "complex64")(r, b.astype("complex64")) is None
    assert excess(r, b, solve_hermitian(r, b)) <= 1


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
    r, b = covariances(rng, 7000, n=4, dtype="complex64"), wide_normal(rng, 7000, 4, 1)
    assert cpu._step(7000, 4, 1) == 2334
    b, info = b.astype("complex64"), np.empty(7000, np.int32)
    expected = solve_hermitian(r, b)
    r[3000, 2, 2] = -1
    found = solve_hermitian(r, b, info=info)
    np.testing.assert_array_equal(np.flatnonzero(info), 3000)
    assert info[3000] == 3
    apart = np.arange(7000) != 3000
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
