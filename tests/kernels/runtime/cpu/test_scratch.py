"""Memory that a thread keeps for conjugates."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from argand.runtime.cpu import scratch
from argand.runtime.cpu.quiet import quietly

X = (np.arange(12) + 1j).reshape(3, 4)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "LEAST_KEPT_BYTES", 0)


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
