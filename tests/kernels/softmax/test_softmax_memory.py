"""Memory that a softmax takes on the CPU beside its input."""

from __future__ import annotations

import tracemalloc

import argand
import numpy as np
import pytest
from argand.device import available_cores
from argand.softmax.cpu import BLOCK_VALUES

SHAPES = [(2048, 4096), (256, 32_768), (2, 1 << 22)]
_SMALL = 1 << 20
"""Bytes for the rows' maxima and sums, and for Python's own objects."""


def peak_bytes(name: str, x: np.ndarray, out: np.ndarray | None) -> int:
    """The most that a call has allocated at a time, of what NumPy reports to tracemalloc."""
    tracemalloc.start()
    try:
        getattr(argand, name)(x, out=out)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", SHAPES)
def test_no_more_than_the_result_and_a_tile_a_thread(
    rng: np.random.Generator, name: str, shape: tuple[int, int]
) -> None:
    x = rng.standard_normal(shape, dtype=np.float32)
    tiles = available_cores() * BLOCK_VALUES * x.itemsize
    assert peak_bytes(name, x, None) <= x.nbytes + tiles + _SMALL
    assert peak_bytes(name, x, np.empty_like(x)) <= tiles + _SMALL
    assert peak_bytes(name, x.copy(), x) <= tiles + _SMALL


def test_what_is_counted_is_not_nothing(rng: np.random.Generator) -> None:
    x = rng.standard_normal((1024, 1024), dtype=np.float32)
    assert peak_bytes("softmax", x, None) >= x.nbytes
