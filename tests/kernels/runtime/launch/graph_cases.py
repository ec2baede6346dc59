"""Products that are made again and again, for tests of the CUDA graphs that start them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from argand import gemm

from tests.kernels.gemm.product_cases import normal

CALLS = 5
"""More than come before there is a graph."""
SHAPE = (70, 66, 1100)
"""Rows, columns and a k that is worth cutting."""
HOW: dict[str, Any] = {"precision": "3xfp16", "kernels": "wgmma"}
"""A product of two kernels, one that packs and scales and one that multiplies, or of three."""


def forget_calls() -> None:
    """The next call of any form is prepared again."""
    from argand.gemm import gpu_calls as cuda_calls
    from argand.gemm import prepare as cuda_prepare
    from argand.gemm.modular.kept_launches import launch_for

    cuda_calls.CALLS.clear()
    cuda_prepare._prepare_within_limit.cache_clear()
    launch_for.cache_clear()
    gc.collect()


@pytest.fixture
def no_cached_call(cp: Any) -> Iterator[None]:
    """The call cache is empty before and after the test."""
    forget_calls()
    yield
    forget_calls()


def graphs() -> int:
    from argand.runtime.launch import graph as cuda_graph

    return len(cuda_graph._alive)


def operands(cp: Any, rng: np.random.Generator, count: int = 3) -> list[tuple[Any, Any]]:
    m, n, k = SHAPE
    return [tuple(cp.asarray(normal(rng, *x)) for x in ((m, k), (k, n))) for _ in range(count)]


def one_by_one(cp: Any, monkeypatch: pytest.MonkeyPatch, pairs: Any, **how: Any) -> list[Any]:
    """The products from kernels that are started by themselves."""
    with monkeypatch.context() as patch:
        patch.setattr("argand.runtime.launch.graph._CALLS_BEFORE", 1 << 30)
        found = [gemm(a, b, **how) for a, b in pairs]
    cp.cuda.Device().synchronize()
    return found


def same(found: Any, expected: Any) -> bool:
    return bool((found.view("uint32") == expected.view("uint32")).all())
