"""Memory that calls on the CPU keep is counted with the objects of Python in it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from argand import herk
from argand.hermitian.cpu_batched import together
from argand.hermitian.cpu_posv import each_by_posv
from argand.runtime.cpu import kept_memory

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
