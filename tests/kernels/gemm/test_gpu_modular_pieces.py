"""Exact products on a GPU in pieces, which a small workspace or too little memory asks for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import gemm, pack

from tests.kernels.gemm.test_gpu_modular import (
    FAMILIES,
    TYPES,
    modular_launch,
    numbers,
    same_bits,
    smallest_pieces,
)

pytestmark = pytest.mark.gpu
__all__ = ["modular_launch", "smallest_pieces"]


@pytest.mark.parametrize("dtype", TYPES)
def test_pieces_of_columns_and_of_batches(
    cp: Any, rng: np.random.Generator, dtype: Any, smallest_pieces: None
) -> None:
    for shape_a, shape_b in (((300, 200), (200, 1100)), ((7, 60, 90), (7, 90, 130)),
                             ((60, 90), (7, 90, 130)), ((7, 60, 90), (90, 130))):  # fmt: skip
        a, b = numbers(rng, *shape_a, dtype=dtype), numbers(rng, *shape_b, dtype=dtype)
        same_bits(cp, a, b, precision="16xint8")


def test_graphs_of_pieces_side_by_side(
    cp: Any, rng: np.random.Generator, smallest_pieces: None
) -> None:
    """From the third call on a graph runs, whose kernels wait only for what they need."""
    for shape_a, shape_b in (((9, 300, 700), (9, 700, 260)), ((300, 700), (9, 700, 260))):
        a, b = (numbers(rng, *shape, dtype="complex64") for shape in (shape_a, shape_b))
        expected = gemm(a, b, precision="7xint8")
        left, right = cp.asarray(a), cp.asarray(b)
        for _ in range(7):
            out = cp.full(expected.shape, np.nan, "complex64")
            gemm(left, right, precision="7xint8", out=out)
            np.testing.assert_array_equal(out.get(), expected)


@pytest.mark.parametrize("family", FAMILIES)
def test_packed_operands_in_pieces(
    cp: Any, rng: np.random.Generator, family: str, smallest_pieces: None
) -> None:
    for shape_a, shape_b in (((60, 200), (200, 900)), ((5, 60, 90), (5, 90, 130)),
                             ((60, 90), (5, 90, 130))):  # fmt: skip
        a, b = (numbers(rng, *shape, dtype="complex128") for shape in (shape_a, shape_b))
        expected = gemm(a, b, precision="16xint8")
        for x, y in ((pack(cp.asarray(a), "16xint8"), cp.asarray(b)),
                     (cp.asarray(a), pack(cp.asarray(b), "16xint8", side="b"))):  # fmt: skip
            out = cp.full(expected.shape, np.nan, expected.dtype)
            gemm(x, y, precision="16xint8", out=out, kernels=family)
            np.testing.assert_array_equal(out.get(), expected)


def test_memory_for_pieces_alone(
    cp: Any, rng: np.random.Generator, modular_launch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a call gets no memory for the whole it goes in pieces, and so do those after it."""
    monkeypatch.setattr(modular_launch, "workspace_limit", lambda *_: 1 << 40)
    monkeypatch.setattr(modular_launch, "least_limit", lambda _: 0)
    a, b = numbers(rng, 300, 200, dtype="complex128"), numbers(rng, 200, 1100, dtype="complex128")
    expected = gemm(a, b, precision="16xint8")
    left, right = cp.asarray(a), cp.asarray(b)
    out = cp.empty(expected.shape, expected.dtype)
    pool = cp.cuda.MemoryPool()
    pool.set_limit(12 << 20)  # planes and residues are 23 MB, of 128 columns 5 MB
    with cp.cuda.using_allocator(pool.malloc):
        for _ in range(5):
            out.fill(np.nan)
            gemm(left, right, precision="16xint8", out=out)
            np.testing.assert_array_equal(out.get(), expected)
        assert 0 < pool.total_bytes() <= 12 << 20
        pool.set_limit(1 << 20)
        pool.free_all_blocks()
        with pytest.raises(MemoryError):
            gemm(left, right, precision="16xint8", out=out)
