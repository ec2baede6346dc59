"""CTA throttle of the wgmma family: the same bits, counters left zero, no endless wait."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
import pytest
from argand import gemm
from argand.gemm.question import GemmSizes

from tests.kernels.gemm.product_cases import normal
from tests.kernels.gemm.sm90.wgmma_cases import first_choices, overridden
from tests.kernels.runtime.launch.graph_cases import forget_calls

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma", "no_cached_call")]
SHAPE = (2000, 2300, 300)
"""Ragged: some 290 tiles of 128 x 128, two waves on an H200 and a rest that is split."""
THROTTLES = [(1, 0), (4, 1), (7, 6), (1000, 3)]
"""Interval and maximum lead in k-tiles; the last interval is longer than any tile."""
OCCUPY = """
extern "C" __global__ void occupy(volatile unsigned int* stop) {
    while (*stop == 0) __nanosleep(1000);
}
"""
"""Keeps multiprocessors from starting a block that needs shared memory."""


def products(cp: Any, precision: str, left: Any, right: Any) -> list[Any]:
    """By the largest tile of each storage and role."""
    found = []
    for choice in first_choices(cp, precision, GemmSizes(1, *SHAPE)):
        with overridden(choice):
            found.append(gemm(left, right, precision=precision))
    return found


@pytest.mark.parametrize("precision", ["3xtf32", "3xfp16", "tf32", "bf16"])
def test_the_same_bits_with_any_throttle(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    from argand.runtime.memory import workspace as cuda_workspace

    m, n, k = SHAPE
    left, right = cp.asarray(normal(rng, m, k)), cp.asarray(normal(rng, k, n))
    expected = products(cp, precision, left, right)
    for throttle in THROTTLES:
        monkeypatch.setattr(
            sys.modules["argand.gemm.sm90.launch"],
            "find_throttle",
            lambda *_, throttle=throttle: throttle,
        )
        for _ in range(2):
            forget_calls()
            for found, first in zip(products(cp, precision, left, right), expected, strict=True):
                assert bool((found == first).all())
            assert not any(bool(counters.any()) for counters in cuda_workspace._arrays)


def test_blocks_that_start_late_are_not_waited_for(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the multiprocessors are taken: their blocks start when the others have ended."""
    m, n, k = SHAPE
    left, right = cp.asarray(normal(rng, m, k)), cp.asarray(normal(rng, k, n))
    how: dict[str, Any] = {"precision": "3xfp16", "kernels": "wgmma"}
    expected = gemm(left, right, **how)
    monkeypatch.setattr(sys.modules["argand.gemm.sm90.launch"], "find_throttle", lambda *_: (4, 1))
    forget_calls()
    device = cp.cuda.Device()
    taken, shared = device.attributes["MultiProcessorCount"] // 2, 200 << 10
    occupy = cp.RawKernel(OCCUPY, "occupy")
    occupy.max_dynamic_shared_size_bytes = shared
    stop = cp.cuda.alloc_pinned_memory(4)
    flag = np.frombuffer(stop, np.uint32, 1)
    flag[:] = 0
    with cp.cuda.Stream(non_blocking=True) as beside:
        occupy((taken,), (32,), (np.uint64(stop.ptr),), shared_mem=shared)
    with cp.cuda.Stream(non_blocking=True) as stream:
        found = gemm(left, right, **how)
    time.sleep(
        0.05
    )  # far longer than the others wait; of split tiles they then wait for partial tiles
    flag[:] = 1
    stream.synchronize()
    beside.synchronize()
    assert bool((found == expected).all())
