"""Calls by the thousand hold no memory, and threads beside each other get the same bits."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import argand
import numpy as np
import pytest

from tests.covers import examples

THREADS = 8
CALLS = 10_000
Call = Callable[[Any], Any]
OPERATIONS: dict[str, Call] = {
    "product": lambda x: argand.gemm(x, x, op_b="C", precision="3xfp16"),
    "exact product": lambda x: argand.gemm(x, x, op_b="C", precision="7xint8"),
    "transform": lambda x: argand.dft(x, precision="3xfp16"),
    "rows": lambda x: argand.softmax(x.real, precision="fp16"),
    "gate": lambda x: argand.apply_gate(x.ravel()[:64].copy(), [[0.6, 0.8j], [0.8j, 0.6]], (3,)),
    "Hermitian product": lambda x: argand.herk(x, precision="tf32"),
}


def operand(rng: np.random.Generator, rows: int) -> np.ndarray[Any, Any]:
    parts = rng.standard_normal((rows, 40, 2), np.float32)
    return parts.view(np.complex64)[..., 0]


@pytest.mark.parametrize("name", OPERATIONS)
def test_threads_get_the_same_bits(rng: np.random.Generator, name: str) -> None:
    """Each works at sizes of its own order, so that calls of one form meet those of others."""
    call = OPERATIONS[name]
    given = [operand(rng, rows) for rows in range(3, 3 + THREADS)]
    alone = [call(x) for x in given]

    def worker(first: int) -> bool:
        order = [*range(first, THREADS), *range(first)] * 3
        return all(np.array_equal(call(given[place]), alone[place]) for place in order)

    with ThreadPoolExecutor(THREADS) as pool:
        assert all(pool.map(worker, range(THREADS)))


@pytest.mark.parametrize("name", OPERATIONS)
def test_calls_hold_no_memory(rng: np.random.Generator, name: str) -> None:
    """The memory kept of calls of one form does not grow with their number."""
    call, x, some = OPERATIONS[name], operand(rng, 8), examples(100)

    def held() -> int:
        for _ in range(some):
            call(x)
        gc.collect()  # frees the tuples too that Python keeps for reuse, 2000 of each length
        return tracemalloc.get_traced_memory()[0]

    call(x)
    gc.collect()
    gc.freeze()  # what is there by now is not looked through again
    tracemalloc.start()
    try:
        after = [held() for _ in range(4)]
    finally:
        tracemalloc.stop()
    # A leak grows every time; what is kept once does not. A result takes more.
    assert min(b - a for a, b in pairwise(after)) < some * 128


@pytest.mark.gpu
@pytest.mark.parametrize("name", OPERATIONS)
def test_streams_of_threads_get_the_same_bits(cp: Any, rng: np.random.Generator, name: str) -> None:
    call = OPERATIONS[name]
    given = [cp.asarray(operand(rng, rows)) for rows in range(30, 30 + THREADS)]
    alone = [call(x) for x in given]
    cp.cuda.Device().synchronize()

    def worker(first: int) -> bool:
        with cp.cuda.Stream(non_blocking=True) as stream:
            order = [*range(first, THREADS), *range(first)] * 20
            results = [(place, call(given[place])) for place in order]
            stream.synchronize()
            return all(bool((result == alone[place]).all()) for place, result in results)

    with ThreadPoolExecutor(THREADS) as pool:
        assert all(pool.map(worker, range(THREADS)))


@pytest.mark.gpu
@pytest.mark.parametrize("name", OPERATIONS)
def test_ten_thousand_calls_take_no_memory_of_the_pool(
    cp: Any, rng: np.random.Generator, name: str
) -> None:
    call, x = OPERATIONS[name], cp.asarray(operand(rng, 64))
    call(x)
    cp.cuda.Device().synchronize()
    pool = cp.get_default_memory_pool()
    before = pool.total_bytes(), pool.used_bytes()
    for number in range(CALLS):
        call(x)
        if number % 1000 == 0:  # so that no queue of launches holds memory
            cp.cuda.Device().synchronize()
    cp.cuda.Device().synchronize()
    assert (pool.total_bytes(), pool.used_bytes()) == before
