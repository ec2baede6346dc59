"""Random operands, made by all cores, and the same whatever their number."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from argand.device import available_cores

from benchmarks.gemm.shapes import Shape

_CHUNK_VALUES = 1 << 22
"""Values of one generator: each chunk has its own, so that threads need not wait for each other."""


def random_operands(shape: Shape, seed: int) -> tuple[Any, Any]:
    """Return a (..., m, k) and B (..., k, n), complex64 with independent standard normal parts."""
    seeds = np.random.SeedSequence(seed).spawn(2)
    sizes = ((shape.m, shape.k), (shape.k, shape.n))
    a, b = (
        normal((*shape.leading, *size, 2), own).view(np.complex64)[..., 0]
        for size, own in zip(sizes, seeds, strict=True)
    )
    return a, b


def normal(shape: tuple[int, ...], seed: np.random.SeedSequence) -> np.ndarray[Any, Any]:
    """Return standard normal float32 of a shape.

    NumPy's generators leave the interpreter's lock.
    """
    found = np.empty(shape, np.float32)
    flat = found.reshape(-1)
    chunks = [flat[start : start + _CHUNK_VALUES] for start in range(0, flat.size, _CHUNK_VALUES)]
    with ThreadPoolExecutor(available_cores()) as threads:
        list(threads.map(_fill, chunks, seed.spawn(len(chunks))))
    return found


def _fill(chunk: np.ndarray[Any, Any], seed: np.random.SeedSequence) -> None:
    np.random.default_rng(seed).standard_normal(out=chunk, dtype=np.float32)
