"""Hermitian systems on the CPU whose memory and steps are kept from call to call."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from argand import solve_hermitian
from argand.hermitian import cpu_batched, cpu_posv

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
