"""Blocks of rows in which a GPU computes triangles, within a limit of workspace (no GPU)."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from weakref import ref

import numpy as np
import pytest
from argand.herk.problem import herk_problem

from tests.kernels.herk.herk_cases import Array
from tests.kernels.without_device import without_device


@pytest.fixture(scope="module")
def modules() -> Iterator[Any]:
    with without_device("herk.gpu_triangle") as (_, triangle):
        limit = import_module("argand.runtime.memory.workspace_limit")
        yield SimpleNamespace(triangle=triangle, limit=limit)


def blocks(modules: Any, batch: int, n: int, limit: int | None, product: int = 0) -> list[Any]:
    """Return the blocks of a call, whose products need so many bytes for each of their rows."""
    problem = herk_problem((batch, n, 9), precision=None, dtype="complex64", form="triangle")
    target = np.empty(problem.shape, np.complex64)
    found: list[Any] = []
    arrays: list[ref[Array]] = []

    class Noted(modules.triangle.Triangle):  # type: ignore[misc]
        def _product(self, products: slice, rows: slice) -> Array:
            assert not any(array() is not None for array in arrays)  # one block's at a time
            matrices = np.empty((products.stop - products.start, rows.stop - rows.start))
            arrays.append(ref(matrices))
            needed = (rows.stop - rows.start) * product
            allowed = modules.limit.allowed_workspace()
            if allowed is not None and needed > allowed:
                # A frame that an exception has, and which has the exception, is garbage.
                error = modules.limit.workspace_error("a product", needed, allowed)
                raise error
            return matrices

        def _gather(self, products: slice, rows: slice, _: Array) -> None:
            found.append((products, rows))

    with modules.limit.workspace_limit(limit):
        call = Noted(problem, np.empty((batch, n, 9), np.complex64), None, target, None)
        call.compute(slice(0, batch), slice(0, n))
    return found


@pytest.mark.parametrize(
    ("batch", "n", "limit"),
    [(1, 1, 100), (1, 1000, None), (1, 1000, 2 << 20), (1, 1000, 16 << 20), (9, 300, 1 << 20),
     (9, 300, 5 << 20), (300, 5, 10_000)],
)  # fmt: skip
@pytest.mark.parametrize("product", [0, 1000])
def test_each_row_is_in_one_block(
    modules: Any, batch: int, n: int, limit: int | None, product: int
) -> None:
    times = np.zeros((batch, n), int)
    try:
        found = blocks(modules, batch, n, limit, product)
    except modules.limit.WorkspaceError as error:
        found = blocks(modules, batch, n, error.needed, product)
    for products, rows in found:
        times[products, rows] += 1
        assert rows.stop - rows.start >= min(n, 64)
    assert (times == 1).all()
    assert len(found) == 1 or limit is not None


@pytest.mark.parametrize("limit", [None, 1 << 40])
@pytest.mark.parametrize(("n", "count"), [(4096, 4), (7000, 7)])
def test_without_a_small_limit_matrices_are_whole(
    modules: Any, n: int, count: int, limit: int | None
) -> None:
    """Some at a time, in at most 256 MiB, or one that takes more."""
    found = blocks(modules, 7, n, limit)
    assert all(rows == slice(0, n) for _, rows in found)
    assert len(found) == count


@pytest.mark.parametrize(("batch", "n"), [(1, 1000), (9, 300), (300, 5)])
@pytest.mark.parametrize("product", [0, 100, 100_000])
def test_what_is_refused_needs_what_its_error_says(
    modules: Any, batch: int, n: int, product: int
) -> None:
    with pytest.raises(modules.limit.WorkspaceError, match="form='triangle'") as error:
        blocks(modules, batch, n, 10, product)
    needed = error.value.needed
    least = min(n, 127)
    assert needed <= 8 * least * n + least * product
    for more in (0, 1, needed // 3, needed, 5 * needed):
        blocks(modules, batch, n, needed + more, product)
    with pytest.raises(modules.limit.WorkspaceError):
        blocks(modules, batch, n, needed - 1, product)
