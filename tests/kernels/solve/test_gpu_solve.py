"""The solver on a GPU: sizes of one panel and of many, every kind of matrix, both types."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import numpy as np
import pytest
from argand import gemm, launched, solve
from argand.device import gpu
from argand.solve.cpu import order_of
from argand.solve.library import Exchanges

from tests.kernels.solve.systems import (
    SYSTEMS,
    backward_error,
    bound,
    far_rows,
    normal,
    solved,
    system,
)

pytestmark = pytest.mark.gpu
SIZES = (1, 5, 100, 700, 2100)
TYPES = ("complex64", "complex128")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", SIZES)
def test_sizes(cp: Any, rng: np.random.Generator, n: int, dtype: str) -> None:
    a = normal(rng, n, n).astype(dtype)
    for b in (normal(rng, n), normal(rng, n, 1), normal(rng, n, 3)):
        found = solved(cp, a, b.astype(dtype))
        assert found.x.dtype == dtype


@pytest.mark.parametrize("kind", SYSTEMS)
def test_kinds(cp: Any, rng: np.random.Generator, kind: str) -> None:
    n = 300
    a, b = system(kind, n, rng), normal(rng, n, 2)
    solved(cp, a.astype(complex), b, block=64)
    solved(cp, a.astype(complex), b, block=64, precision="14xint8")


@pytest.mark.parametrize("n", [3, 300])
@pytest.mark.parametrize(
    ("span", "options"), [(664, {}), (664, {"block": 64}), (110, {}), (110, {"precision": "fp32"})]
)
def test_rows_of_far_powers_of_two(
    cp: Any, rng: np.random.Generator, n: int, span: int, options: dict[str, Any]
) -> None:
    """Each row holds with its own power left out; by one power small rows would be 0."""
    dtype = "complex128" if span > 126 else "complex64"
    a, powers, b = far_rows(rng, n, span, dtype)
    far = cp.asarray((np.ldexp(1.0, powers) * a).astype(dtype))
    sides = b * np.ldexp(np.longdouble(1), -powers)
    x = solve(far, cp.asarray(b), **options)
    assert x.dtype == dtype
    assert backward_error(a, x.get(), sides) <= bound(n, dtype)
    assert not solve(far, cp.zeros_like(cp.asarray(b)), **options).any()


@pytest.mark.parametrize("block", [1, 17, 64, 256, 4096])
@pytest.mark.parametrize("precision", ["15xint8", "10xint8", "fp64", "fp32", "3xtf32"])
def test_blocks_and_precisions(
    cp: Any, rng: np.random.Generator, block: int, precision: str
) -> None:
    n = 40 if block == 1 else 520
    a, b = normal(rng, n, n) + 3 * n**0.5 * np.eye(n), normal(rng, n, 5)
    solved(cp, a, b, block=block, precision=precision)
    solved(cp, a, b, block=block, precision=precision, panel=max(1, block // 4))


def test_updates_run_the_kernels_of_exact_products(cp: Any, rng: np.random.Generator) -> None:
    a, b = normal(rng, 1100, 1100), normal(rng, 1100)
    with launched() as names:
        solved(cp, a, b, block=512)
    assert names
    assert all(name.startswith("12 moduli, ") for name in names)


def test_more_moduli_where_refinement_fails(cp: Any, rng: np.random.Generator) -> None:
    n = 600
    left, right = (np.linalg.qr(normal(rng, n, n))[0] for _ in range(2))
    a, b = left * np.geomspace(1, 1e-17, n) @ right, normal(rng, n)
    assert solved(cp, a, b, block=128).precision == "15xint8"
    assert solved(cp, left, b, block=128).precision == "12xint8"


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (40, 1), (700, 64), (9000, 512),
                                               (70_000, 96), (9000, 9000)])  # fmt: skip
@pytest.mark.parametrize("dtype", TYPES)
def test_exchanges_are_those_of_the_pivots(
    cp: Any, rng: np.random.Generator, rows: int, columns: int, dtype: str
) -> None:
    """Panels that fit shared memory, ones whose rows do not, and ones whose moves do not."""
    from argand.solve.exchange_launch import order_launch
    from argand.solve.gpu import GpuLibrary

    pivots = np.array([rng.integers(i, rows) for i in range(columns)], np.int32)
    device = gpu(cp.cuda.Device().id)
    launch, apart = order_launch(rows, columns, device)
    order, moves = cp.empty(rows, np.int64), cp.empty((2 * columns, 2), np.int32)
    scratch, counted = cp.empty(rows, np.int32), cp.asarray(pivots + 1)
    launch({"pivots": counted.data.ptr, "scratch": scratch.data.ptr if apart else 0,
            "order": order.data.ptr, "moves": moves.data.ptr})  # fmt: skip
    expected = order_of(pivots, rows)
    np.testing.assert_array_equal(order.get(), expected)
    whole = normal(rng, rows, 61).astype(dtype)
    found = cp.asarray(whole)
    GpuLibrary().exchange(found[:, 1:], Exchanges(order, moves, None), 22, 41)
    np.testing.assert_array_equal(found[:, :23].get(), np.c_[whole[:, :1], whole[expected, 1:23]])
    np.testing.assert_array_equal(found[:, 23:42].get(), whole[:, 23:42])
    np.testing.assert_array_equal(found[:, 42:].get(), whole[expected, 42:])


@pytest.mark.parametrize("precision", ["15xint8", "fp64"])
def test_a_product_into_columns_beside_its_operand(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    """Columns of one matrix: in place where they are apart, right where they cross."""
    whole, b = cp.asarray(normal(rng, 90, 100)), cp.asarray(normal(rng, 40, 40))
    for at in (50, 20):  # a has the columns 0 to 40
        work = whole.copy()
        a, c = work[:, :40], work[:, at : at + 40]
        expected = gemm(a.copy(), b, c.copy(), alpha=-1, beta=1, precision=precision)
        assert gemm(a, b, c, alpha=-1, beta=1, precision=precision, out=c) is c
        np.testing.assert_array_equal(c.get(), expected.get())
        np.testing.assert_array_equal(work[:, at + 40 :].get(), whole[:, at + 40 :].get())
        np.testing.assert_array_equal(work[:, :at].get(), whole[:, :at].get())


def test_the_same_bits_twice(cp: Any, rng: np.random.Generator) -> None:
    a, b = (cp.asarray(normal(rng, *shape)) for shape in ((700, 700), (700, 2)))
    first, again = (solve(a, b, block=128).get() for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_a_thread_that_solves_again_and_ends_leaves_captures_alone(
    cp: Any, rng: np.random.Generator
) -> None:
    """Handles of CuPy's go with their thread, for which the library waits for the GPU."""
    a, b, counted = cp.asarray(normal(rng, 300, 300)), cp.asarray(normal(rng, 300)), cp.zeros(8)
    captured, other = (cp.cuda.Stream(non_blocking=True) for _ in range(2))
    once, go_on = Event(), Event()
    cp.cuda.Device().synchronize()

    def in_thread() -> list[Any]:
        with other:
            found = [solve(a, b, block=64).get()]
            once.set()
            assert go_on.wait(60)
            return [*found, solve(a, b, block=64).get()]

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(in_thread)
        assert once.wait(60)
        with captured:
            cp.add(counted, 0, out=counted)
            captured.begin_capture(cp.cuda.runtime.streamCaptureModeRelaxed)
            try:
                cp.add(counted, 1, out=counted)
                go_on.set()
                first, again = future.result()
                pool.shutdown()  # the thread is gone
                cp.add(counted, 1, out=counted)
            finally:
                go_on.set()
                graph = captured.end_capture()
            graph.launch(captured)
            captured.synchronize()
    assert bool((counted == 2).all())
    np.testing.assert_array_equal(first, again)


def test_threads_give_the_bits_of_a_call_alone(cp: Any, rng: np.random.Generator) -> None:
    """Two threads share a stream, and so a handle."""
    systems = [(cp.asarray(normal(rng, n, n)), cp.asarray(normal(rng, n, 3))) for n in (120, 520)]
    expected = [solve(a, b, block=64).get() for a, b in systems]
    streams = [cp.cuda.Stream(non_blocking=True) for _ in range(2)]
    cp.cuda.Device().synchronize()

    def solves(stream: Any) -> list[Any]:
        with stream:
            return [solve(a, b, block=64).get() for _ in range(5) for a, b in systems]

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(solves, streams * 2):
            for x, right in zip(found, expected * 5, strict=True):
                np.testing.assert_array_equal(x, right)


def test_layouts(cp: Any, rng: np.random.Generator) -> None:
    n = 150
    a, b = normal(rng, n, n), normal(rng, n, 3)
    expected = solve(cp.asarray(a), cp.asarray(b), block=32).get()
    for left in (cp.asfortranarray(cp.asarray(a)), cp.asarray(np.repeat(a, 2, axis=1))[:, ::2]):
        found = solve(left, cp.asfortranarray(cp.asarray(b)), block=32).get()
        assert backward_error(a, found, b) <= bound(n, "complex128")
        allowed = 4 * np.linalg.cond(a, np.inf) * bound(n, "complex128")
        assert np.abs(found - expected).max() <= allowed * np.abs(expected).max()
    real = solve(cp.asarray(a.real), cp.asarray(b.real))
    assert real.dtype == np.complex128
    assert backward_error(a.real, real.get(), b.real) <= bound(n, "complex128")


def test_what_is_refused(cp: Any, rng: np.random.Generator) -> None:
    eye, ones = cp.eye(40), cp.ones(40)
    with pytest.raises(TypeError, match="all be CuPy arrays, got a of CuPy, b of NumPy"):
        solve(eye, np.ones(40))
    for matrix, column in ((cp.zeros((40, 40)), 0), (cp.ones((40, 40)), 1),
                           (cp.kron(cp.ones((2, 2)), cp.eye(20)), 20)):  # fmt: skip
        with pytest.raises(np.linalg.LinAlgError, match=f"column {column} is 0"):
            solve(matrix, ones, block=16)
    for value in (np.nan, np.inf):
        matrix = cp.eye(40, dtype=complex)
        matrix[7, 3] = value
        with pytest.raises(ValueError, match="a must be finite"):
            solve(matrix, ones)
        with pytest.raises(ValueError, match="b must be finite"):
            solve(eye, matrix[7])
    assert solve(cp.ones((0, 0)), cp.ones((0, 2))).shape == (0, 2)
