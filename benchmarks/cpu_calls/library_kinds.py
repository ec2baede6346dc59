"""Drawn cases of operations that NumPy and SciPy have: products, transforms, softmax, systems."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import prod
from typing import Any

import numpy as np
from argand import dft, gemm, softmax, solve
from scipy import fft, special

from benchmarks.cpu_calls.drawn import Drawn, leading_axes, normal, size


def _gemm(rng: np.random.Generator, batch: int, dtype: str) -> Drawn:
    m, n, k = (size(rng, 2, 128) for _ in range(3))
    leading = leading_axes(batch, m * k + k * n + m * n)
    a, b = normal(rng, dtype, *leading, m, k), normal(rng, dtype, *leading, k, n)
    return Drawn(
        f"{'x'.join(map(str, a.shape))}x{n}", prod(leading), partial(gemm, a, b), lambda: a @ b,
        8 * k,
    )  # fmt: skip


def _dft(rng: np.random.Generator, batch: int, dtype: str) -> Drawn:
    length = size(rng, 8, 4096)
    x = normal(rng, dtype, *leading_axes(batch, 2 * length), length)
    return Drawn(
        "x".join(map(str, x.shape)), prod(x.shape[:-1]), partial(dft, x), partial(fft.fft, x), 0
    )


def _softmax(rng: np.random.Generator, batch: int, dtype: str) -> Drawn:
    columns = size(rng, 2, 4096)
    x = normal(rng, dtype, *leading_axes(batch, 2 * columns), columns).real.copy()
    return Drawn(
        f"{'x'.join(map(str, x.shape))} {x.dtype}", prod(x.shape[:-1]), partial(softmax, x),
        partial(special.softmax, x, axis=-1), 64,
    )  # fmt: skip


def _solve(rng: np.random.Generator, _: int, dtype: str) -> Drawn:
    n, columns = size(rng, 2, 256), size(rng, 1, 16)
    a, b = normal(rng, dtype, n, n), normal(rng, dtype, n, columns)
    condition = float(np.linalg.cond(a))
    return Drawn(
        f"{n}x{columns}", 1, partial(solve, a, b), partial(np.linalg.solve, a, b),
        64 * n * condition,
    )  # fmt: skip


LIBRARY_KINDS: Mapping[str, Callable[[np.random.Generator, int, str], Any]] = {
    "gemm": _gemm,
    "dft": _dft,
    "softmax": _softmax,
    "solve": _solve,
}
"""Functions that draw a case, by operation."""
