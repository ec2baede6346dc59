"""Exact products on a GPU in pieces, which a small workspace or too little memory asks for."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from argand import gemm, launched, pack
from argand.gemm.modular.problem import Piece

from tests.covers import examples
from tests.kernels.gemm.modular.test_gpu_modular import (
    FAMILIES,
    TYPES,
    modular_launch,
    numbers,
    same_bits,
    smallest_pieces,
)
from tests.kernels.gemm.product_cases import stored

pytestmark = pytest.mark.gpu
__all__ = ["modular_launch", "smallest_pieces"]


@pytest.mark.parametrize("dtype", TYPES)
def test_blocks_of_products_and_of_batches(
    cp: Any, rng: np.random.Generator, dtype: Any, smallest_pieces: None
) -> None:
    for shape_a, shape_b in (((300, 200), (200, 1100)), ((7, 60, 90), (7, 90, 130)),
                             ((60, 90), (7, 90, 130)), ((7, 60, 90), (90, 130)),
                             ((3, 140, 90), (3, 90, 130)), ((140, 600), (3, 600, 130)),
                             ((3, 140, 600), (600, 130))):  # fmt: skip
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
                             ((60, 90), (5, 90, 130)), ((300, 600), (600, 270)),
                             ((2, 140, 300), (2, 300, 150))):  # fmt: skip
        a, b = (numbers(rng, *shape, dtype="complex128") for shape in (shape_a, shape_b))
        expected = gemm(a, b, precision="16xint8")
        packed = pack(cp.asarray(a), "16xint8"), pack(cp.asarray(b), "16xint8", side="b")
        for x, y in ((packed[0], cp.asarray(b)), (cp.asarray(a), packed[1]), packed):
            out = cp.full(expected.shape, np.nan, expected.dtype)
            gemm(x, y, precision="16xint8", out=out, kernels=family)
            np.testing.assert_array_equal(out.get(), expected)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", TYPES)
def test_parts_of_k(
    cp: Any, rng: np.random.Generator, modular_launch: Any, monkeypatch: pytest.MonkeyPatch,
    dtype: Any, family: str,
) -> None:  # fmt: skip
    """Each part has exponents of whole lines; residues of all parts and their slices are added."""
    from argand.gemm.modular.kept_launches import launch_for

    parts = [2]

    def pieces(problem: Any, *_: Any) -> list[Piece]:
        rows, columns = problem.a.rows, problem.b.rows
        return [Piece(i, 1, 0, rows, 0, columns, parts[0]) for i in range(problem.batch)]

    monkeypatch.setattr(modular_launch, "choose_pieces", pieces)
    for parts[0], (m, n, k) in ((2, (150, 141, 700)), (3, (64, 257, 2100)), (9, (70, 30, 2305))):
        launch_for.cache_clear()
        for op_a, op_b in itertools.product("NTC", "NTC"):
            a = stored(numbers(rng, 2, m, k, dtype=dtype, spread=2.0), op_a)
            b = stored(numbers(rng, 2, k, n, dtype=dtype, spread=2.0), op_b)
            same_bits(cp, a, b, op_a=op_a, op_b=op_b, precision="9xint8", kernels=family)
            same_bits(cp, a, b, op_a=op_a, op_b=op_b, precision="9xint8", kernels=family,
                      check=True)  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", TYPES)
def test_residues_overwrite_planes_of_a(
    cp: Any, rng: np.random.Generator, modular_launch: Any, monkeypatch: pytest.MonkeyPatch,
    dtype: Any, family: str,
) -> None:  # fmt: skip
    """Panels of rows, whose planes are multiplied in groups; the last calls are graphs."""

    def pieces(problem: Any, *_: Any) -> list[Piece]:
        rows, columns = problem.a.rows, problem.b.rows
        return [
            Piece(product, 1, row, min(256, rows - row), 0, columns, plane_groups=4)
            for product in range(problem.batch)
            for row in range(0, rows, 256)
        ]

    monkeypatch.setattr(modular_launch, "choose_pieces", pieces)
    for batch, m, n, k in (((2,), 600, 300, 700), ((2,), 257, 1300, 40), ((2,), 300, 129, 1100),
                           ((), 200, 300, 90)):  # fmt: skip
        a, b = numbers(rng, *batch, m, k, dtype=dtype), numbers(rng, 2, k, n, dtype=dtype)
        expected = gemm(a, b, precision="9xint8")
        for check in (False, True):
            left, right = cp.asarray(a), cp.asarray(b)
            for _ in range(5):
                out = cp.full(expected.shape, np.nan, dtype)
                with launched() as names:
                    gemm(left, right, precision="9xint8", out=out, kernels=family, check=check)
                np.testing.assert_array_equal(out.get(), expected)
                assert all("4 groups of planes" in name for name in names)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("by_columns", [False, True])
def test_blocks_of_rows_and_columns(
    cp: Any, rng: np.random.Generator, modular_launch: Any, monkeypatch: pytest.MonkeyPatch,
    dtype: Any, family: str, by_columns: bool,
) -> None:  # fmt: skip
    """Whose k is in parts or not."""
    from argand.gemm.modular.kept_launches import launch_for
    from argand.gemm.modular.pieces import _pieces

    form = [128, 128, 1]

    def pieces(problem: Any, *_: Any) -> list[Piece]:
        return _pieces(problem, 1, *form, by_columns=by_columns)

    monkeypatch.setattr(modular_launch, "choose_pieces", pieces)
    m, n, k = 300, 390, 600
    for form[:], op_a, op_b in (([128, 256, 1], "N", "C"), ([128, 128, 3], "T", "N")):
        launch_for.cache_clear()
        a = stored(numbers(rng, m, k, dtype=dtype, spread=2.0), op_a)
        b = stored(numbers(rng, k, n, dtype=dtype, spread=2.0), op_b)
        c = numbers(rng, m, n, dtype=dtype)
        same_bits(cp, a, b, op_a=op_a, op_b=op_b, precision="9xint8", kernels=family)
        same_bits(cp, a, b, c, op_a=op_a, op_b=op_b, beta=0.5, precision="9xint8", kernels=family)


def test_parts_of_a_long_k_are_taken(cp: Any, rng: np.random.Generator) -> None:
    """A call that would take more workspace than its operands, with a graph from the third on."""
    a, b = (numbers(rng, *shape, dtype="complex64") for shape in ((300, 100_000), (100_000, 130)))
    expected = gemm(a, b, precision="7xint8")
    left, right = cp.asarray(a), cp.asarray(b)
    with launched() as names:
        for check in (False, True, False, False, True):
            out = cp.full(expected.shape, np.nan, "complex64")
            gemm(left, right, precision="7xint8", out=out, check=check)
            np.testing.assert_array_equal(out.get(), expected)
    assert all("parts" in name for name in names)


def test_no_call_takes_more_workspace_than_its_operands(
    cp: Any, rng: np.random.Generator, modular_launch: Any
) -> None:
    from argand.device import gpu
    from argand.runtime.calls.layout import Layout

    device, inside = gpu(cp.cuda.Device().id), 0
    for _ in range(examples(60)):
        m, n, k = (int(np.exp(rng.uniform(np.log(200), np.log(20_000)))) for _ in range(3))
        batch, item = int(rng.choice([1, 3])), int(rng.choice([8, 16]))
        a, b, out = (
            Layout(rows, columns, *strides, rows * columns, item, 32)
            for rows, columns, strides in ((m, k, (k, 1)), (n, k, (1, n)), (m, n, (n, 1)))
        )
        problem = modular_launch.ModularProblem(
            "complex64" if item == 8 else "complex128", int(rng.integers(7, 17)), batch, a, b,
            None, out, False, False, 1, 0, None, rng.choice([None, "row"]),
        )  # fmt: skip
        found = modular_launch.ModularLaunch(problem, device)
        assert found.nbytes <= max(problem.nbytes, 1 << 28)
        inside += found.nbytes > 1 << 28
    assert inside


def test_too_little_memory_is_an_error(cp: Any, rng: np.random.Generator) -> None:
    a, b = numbers(rng, 300, 200, dtype="complex128"), numbers(rng, 200, 1100, dtype="complex128")
    left, right = cp.asarray(a), cp.asarray(b)
    out = cp.empty((300, 1100), "complex128")
    pool = cp.cuda.MemoryPool()
    pool.set_limit(1 << 20)
    with cp.cuda.using_allocator(pool.malloc), pytest.raises(MemoryError):
        gemm(left, right, precision="16xint8", out=out)
