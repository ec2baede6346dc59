"""cuFFT's plans that are given up while their kernels are queued, by one thread and by many."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from argand import dft

pytestmark = pytest.mark.gpu
LENGTHS = (64, 100, 243, 250, 343, 512, 600, 1000, 1024, 2000)
"""More than a thread keeps plans of."""


def rows(cp: Any, length: int) -> Any:
    parts = np.random.default_rng(length).standard_normal((40, length, 2), np.float32)
    return cp.asarray(parts.view(np.complex64)[..., 0])


def test_plans_that_are_given_up_behind_a_busy_stream(cp: Any) -> None:
    given = [rows(cp, length) for length in LENGTHS]
    alone = [dft(x, precision="fp32") for x in given]
    spin = cp.RawKernel(
        'extern "C" __global__ void spin() { long long s = clock64(); '
        "while (clock64() - s < 300000000) {} }", "spin",
    )  # fmt: skip
    spin((1,), (1,), ())
    cp.cuda.Device().synchronize()
    for stream in (cp.cuda.Stream(non_blocking=True), cp.cuda.Stream.null):
        with stream:
            spin((1,), (1,), ())
            found = [dft(x, precision="fp32") for x in given]
            stream.synchronize()
        for ours, expected in zip(found, alone, strict=True):
            cp.testing.assert_array_equal(ours, expected)


def test_plans_of_threads_that_give_them_up(cp: Any) -> None:
    """And of threads that end."""
    given = [rows(cp, length) for length in LENGTHS]
    alone = [dft(x, precision="fp32") for x in given]
    cp.cuda.Device().synchronize()

    def worker(first: int) -> bool:
        with cp.cuda.Stream(non_blocking=True) as stream:
            order = [*range(first, len(given)), *range(first)] * 8
            found = [(place, dft(given[place], precision="fp32")) for place in order]
            stream.synchronize()
            return all(bool((x == alone[place]).all()) for place, x in found)

    for _ in range(3):
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(worker, range(8)))
