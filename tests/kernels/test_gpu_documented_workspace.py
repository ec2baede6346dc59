"""Calls take no more memory beside operands and result than is documented (docs/memory.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from argand import DftPlan, GemmPlan, SoftmaxPlan, dft, gemm, herk, pairs, softmax

from benchmarks.harness.device_memory import peak_bytes
from benchmarks.workspace_documented import by_plan, of_herk
from tests.normal import normal

pytestmark = pytest.mark.gpu

COUNTERS = 64 << 10
"""Bytes of counters that a stream keeps for the calls here."""
PIECES = 4 * 512
"""The pool gives memory in multiples of 512 bytes, for at most four parts of a workspace."""


def taken_on_a_new_stream(cp: Any, call: Callable[[], object]) -> int:
    """Return the most bytes that calls take from the first of a stream on, which may be graphs.

    Tables, which all streams share, are there before.
    """
    call()
    cp.cuda.Device().synchronize()
    with cp.cuda.Stream(non_blocking=True) as stream:
        found = peak_bytes(cp, lambda: [call() for _ in range(4)])
        stream.synchronize()
    return found


@pytest.mark.parametrize(
    "precision", ["tf32", "3xtf32", "fp16", "3xfp16", "fp32", "fp64", "7xint8"]
)
@pytest.mark.parametrize("shape", [(40, 50, 60), (600, 700, 800), (48, 64, 40_000)])
def test_products(
    cp: Any, rng: np.random.Generator, precision: str, shape: tuple[int, int, int]
) -> None:
    m, n, k = shape
    kind = "complex128" if precision == "fp64" else "complex64"
    a, b = cp.asarray(normal(rng, m, k, dtype=kind)), cp.asarray(normal(rng, k, n, dtype=kind))
    out = cp.empty((m, n), kind)
    said = by_plan(GemmPlan, a, b, precision=precision)
    taken = taken_on_a_new_stream(cp, lambda: gemm(a, b, precision=precision, out=out))
    assert taken <= said + COUNTERS + PIECES


@pytest.mark.parametrize("precision", ["fp32", "3xfp16"])
@pytest.mark.parametrize("shape", [(64, 1000), (16, 10_007), (300, 10_007), (2, 1 << 18)])
def test_transforms(
    cp: Any, rng: np.random.Generator, precision: str, shape: tuple[int, int]
) -> None:
    """Short ones by cuFFT keep a workspace for their stream, others bring it."""
    x = cp.asarray(normal(rng, *shape))
    out = cp.empty_like(x)
    said = by_plan(DftPlan, x, precision=precision)
    taken = taken_on_a_new_stream(cp, lambda: dft(x, precision=precision, out=out))
    assert taken <= said + COUNTERS + PIECES


@pytest.mark.parametrize("shape", [(30, 100), (2, 1 << 20)])
def test_softmax(cp: Any, rng: np.random.Generator, shape: tuple[int, int]) -> None:
    x = cp.asarray(rng.normal(size=shape).astype(np.float32))
    out = cp.empty_like(x)
    said = by_plan(SoftmaxPlan, x)
    assert taken_on_a_new_stream(cp, lambda: softmax(x, out=out)) <= said + COUNTERS + PIECES


@pytest.mark.parametrize("precision", ["tf32", "3xfp16", "fp32", "7xint8", "exact"])
@pytest.mark.parametrize("form", ["full", "triangle"])
def test_hermitian_products(cp: Any, rng: np.random.Generator, precision: str, form: Any) -> None:
    n, k = 500, 900
    a: Any = cp.asarray(normal(rng, n, k))
    if precision == "exact":
        a = pairs(cp.asarray(rng.integers(-128, 128, (n, k, 2)).astype(np.int8)))
    out = cp.empty((n, n) if form == "full" else n * (n + 1) // 2, cp.complex64)
    said = of_herk(a, precision, form)
    taken = taken_on_a_new_stream(cp, lambda: herk(a, precision=precision, form=form, out=out))
    assert taken <= said + COUNTERS + PIECES
