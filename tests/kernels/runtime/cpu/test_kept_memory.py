"""Memory that calls on the CPU keep, and that a thread keeps for conjugates."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from argand import herk
from argand.hermitian.cpu_batched import together
from argand.hermitian.cpu_posv import each_by_posv
from argand.runtime.cpu import kept_memory, scratch
from argand.runtime.cpu.quiet import quietly

from tests.kernels.hermitian.covariances import covariances
from tests.normal import normal


@pytest.mark.parametrize("shape", [(1, 2), (2, 5), (16, 4, 3)])
def test_a_gather_takes_what_is_counted(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    _check_count(lambda: herk(normal(rng, *shape)))


@pytest.mark.parametrize("solver", [each_by_posv, together])
@pytest.mark.parametrize("sizes", [(2, 1, 1), (1000, 2, 1), (16, 8, 1), (2, 24, 4)])
def test_a_solver_takes_what_is_counted(
    solver: Any, sizes: tuple[int, int, int], rng: np.random.Generator
) -> None:
    systems, n, columns = sizes
    r = covariances(rng, systems, n=n, dtype="complex64")
    _check_count(lambda: solver(*sizes, "complex64")(r, normal(rng, systems, n, columns)))


def _check_count(call: Callable[[], Any]) -> None:
    """Check what the memory of a call's form takes against its count."""
    with pytest.MonkeyPatch.context() as patch:
        forms: list[Any] = []
        patch.setattr(kept_memory, "_FORMS", forms)
        call()
    (kept,) = forms
    kept.make()  # ctypes keeps the types of its arrays
    tracemalloc.start()
    try:
        memory = kept.make()
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(memory) > 1
    assert taken <= kept.nbytes


X = (np.arange(12) + 1j).reshape(3, 4)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "MIN_KEPT_BYTES", 0)


def test_a_step_within_a_step_has_other_memory() -> None:
    def outer(conjugates: Any, x: Any) -> None:
        scratch.with_conjugates(inner, 2 * x)
        np.testing.assert_array_equal(conjugates, x.conj())

    def inner(conjugates: Any, x: Any) -> None:
        np.testing.assert_array_equal(conjugates, x.conj())

    for _ in range(2):
        scratch.with_conjugates(outer, X.T)


def test_threads_have_memory_of_their_own_and_it_is_kept() -> None:
    def places(_: int) -> set[int]:
        found: set[int] = set()
        for size in (12, 3, 12):
            values = np.full(size, 1j)
            scratch.with_conjugates(lambda c, x: found.add(c.ctypes.data), values)
        return found

    with ThreadPoolExecutor(1) as pool:
        (here,), (there,) = places(0), pool.submit(places, 0).result()
    assert here != there


def test_an_error_leaves_the_next_call_as_it_was() -> None:
    def failing(conjugates: Any, x: Any) -> None:
        raise KeyError

    with pytest.raises(KeyError):
        scratch.with_conjugates(failing, X)
    scratch.with_conjugates(lambda c, x: np.testing.assert_array_equal(c, x.conj()), X)


@pytest.mark.filterwarnings("error")
def test_quiet_steps_report_no_error_and_others_do() -> None:
    infinite = np.full(3, np.inf)
    assert np.isnan(quietly(np.subtract, infinite, infinite)).all()
    with pytest.raises(RuntimeWarning):
        np.subtract(infinite, infinite)
