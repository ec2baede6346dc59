"""Products by cuBLAS: graphs of them at addresses that come again, and captures of programs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, contract, gemm, herk

from tests.kernels.gemm.product_cases import assert_within, magnitude
from workflow.accuracy import bounds

pytestmark = pytest.mark.gpu

KINDS = {"fp32": "complex64", "fp64": "complex128"}
CALLS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], tuple[int, ...]]]] = {
    "matrices": (gemm, ((40, 50), (50, 30))),
    "one row": (lambda a, b, **more: gemm(a, b, alpha=2j, **more), ((1, 50), (50, 30))),
    "a batch": (lambda a, b, **more: gemm(a, b, op_b="C", **more), ((3, 40, 50), (30, 50))),
    "a long sum": (gemm, ((16, 20_000), (20_000, 16))),
}


def drawn(cp: Any, rng: np.random.Generator, precision: str, *shape: int) -> Any:
    return cp.asarray(
        (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(KINDS[precision])
    )


def assert_product(found: Any, a: Any, b: Any, precision: str) -> None:
    """A product on the GPU is within the bound of each part."""
    left, right = a.get(), b.get()
    exact = left.astype(np.complex128) @ right
    bound = bounds.product_bound(PRECISIONS[precision], a.shape[-1], "cuda")
    assert_within(found.get(), exact, bound * magnitude(left, right, None))


@pytest.mark.parametrize("precision", KINDS)
@pytest.mark.parametrize("name", CALLS)
def test_graphs_give_the_bits_of_the_call(cp: Any, rng: Any, name: str, precision: str) -> None:
    """On a stream of the program's and the legacy one, with other data at the same addresses."""
    call, shapes = CALLS[name]
    pairs = [tuple(drawn(cp, rng, precision, *shape) for shape in shapes) for _ in range(3)]
    expected = [call(a, b, precision=precision) for a, b in pairs]
    a, b = (cp.empty_like(x) for x in pairs[0])
    out = cp.empty_like(expected[0])
    for stream in (cp.cuda.Stream.null, cp.cuda.Stream(non_blocking=True)):
        cp.cuda.Device().synchronize()
        with stream:
            for _ in range(3):
                for pair, result in zip(pairs, expected, strict=True):
                    a[...], b[...] = pair
                    out.fill(7)
                    assert call(a, b, precision=precision, out=out) is out
                    assert bool((out == result).all())


@pytest.mark.parametrize("precision", KINDS)
@pytest.mark.parametrize(("m", "n", "k"), [(20, 154, 123), (71, 15, 122), (40, 40, 8), (1, 9, 300)])
def test_products_of_a_batch_in_reverse(
    cp: Any, rng: Any, precision: str, m: int, n: int, k: int
) -> None:
    """The library refuses a stride below 0 between products, by some of its kernels."""
    a, b = drawn(cp, rng, precision, 2, m, k), drawn(cp, rng, precision, 2, n, k).swapaxes(1, 2)
    out = cp.empty((2, m, n), KINDS[precision])
    for x, y, z in itertools.product((a, a[::-1]), (b, b[::-1]), (out, out[::-1])):
        z.fill(np.nan)
        gemm(x, y, precision=precision, out=z)
        assert_product(z, x, y, precision)


@pytest.mark.parametrize("precision", KINDS)
@pytest.mark.parametrize("calls_before", [1, 3])
def test_a_program_captures_products(cp: Any, rng: Any, precision: str, calls_before: int) -> None:
    """With a graph of ours at hand and without; CuPy's products and ours work on afterwards."""
    a, b, x = (drawn(cp, rng, precision, 40, 40) for _ in range(3))
    out, stream = cp.empty_like(a), cp.cuda.Stream(non_blocking=True)
    expected = gemm(gemm(x, b, precision=precision), b, precision=precision)
    cp.cuda.Device().synchronize()
    with stream:
        for _ in range(calls_before):
            gemm(gemm(a, b, precision=precision), b, precision=precision, out=out)
        stream.begin_capture()
        gemm(gemm(a, b, precision=precision), b, precision=precision, out=out)
        graph = stream.end_capture()
        a[...] = x
        for _ in range(2):
            out.fill(7)
            graph.launch(stream=stream)
            assert bool((out == expected).all())
            for found in (cp.matmul(x, b), gemm(x, b, precision=precision)):
                assert_product(found, x, b, precision)


def test_addresses_that_come_twice_each_end_the_graphs(cp: Any, rng: Any) -> None:
    """A graph takes longer to make than a call: calls that do not repeat stay right without."""
    pairs = [[drawn(cp, rng, "fp32", 24, 24) for _ in range(2)] for _ in range(40)]
    for a, b in pairs:
        for _ in range(2):
            assert_product(gemm(a, b, precision="fp32"), a, b, "fp32")


@pytest.mark.parametrize("precision", KINDS)
def test_lower_triangles_beside_products(cp: Any, rng: Any, precision: str) -> None:
    """The handle that both share is set again by each."""
    a = drawn(cp, rng, precision, 30, 70)
    for _ in range(3):
        for found in (gemm(a, a, op_b="C", precision=precision), herk(a, precision=precision)):
            assert_product(found, a, a.conj().T, precision)


SPLIT = [(100, 100, 100), (33, 129, 100), (3, 129, 100), (17, 3, 129), (33, 17, 100)]
"""Shapes for which cuBLAS takes other kernels where several streams share a handle's workspace."""


@pytest.mark.parametrize("precision", KINDS)
@pytest.mark.parametrize("threads", [1, 8])
def test_streams_at_once_give_the_bits_of_a_call_alone(
    cp: Any, rng: Any, precision: str, threads: int
) -> None:
    """Each thread queues on four streams in turn, at addresses that do not come again."""
    pairs = [
        (drawn(cp, rng, precision, m, k), drawn(cp, rng, precision, k, n)) for m, n, k in SPLIT
    ]
    expected = [gemm(a, b, precision=precision) for a, b in pairs]
    cp.cuda.Device().synchronize()

    def made(_: int) -> list[Any]:
        streams = [cp.cuda.Stream(non_blocking=True) for _ in range(4)]
        found = []
        for _ in range(20):
            for number, (a, b) in enumerate(pairs):
                for stream in streams:
                    with stream:
                        found.append((number, gemm(a, b, precision=precision)))
        for stream in streams:
            stream.synchronize()
        return found

    with ThreadPoolExecutor(threads) as pool:
        for found in pool.map(made, range(threads)):
            for number, x in found:
                assert bool((x == expected[number]).all()), SPLIT[number]


FIRST: dict[str, Callable[[Any], Any]] = {
    "product": lambda x: gemm(x, x, precision="fp64"),
    "Hermitian product": lambda x: herk(x, precision="fp64"),
    "contraction": lambda x: contract("ab,b->ba", x, x[0]),
}


@pytest.mark.parametrize("name", FIRST)
def test_the_only_call_of_a_thread_ends_no_capture(cp: Any, rng: Any, name: str) -> None:
    """CuPy's own handle would go with the thread, for which the library waits for the GPU."""
    x, out = drawn(cp, rng, "fp64", 40, 40), cp.zeros(8)
    expected = FIRST[name](x)
    captured, other = (cp.cuda.Stream(non_blocking=True) for _ in range(2))
    cp.cuda.Device().synchronize()

    def in_thread() -> Any:
        with other:
            found = FIRST[name](x)
            other.synchronize()
            return found

    with captured, ThreadPoolExecutor(1) as pool:
        cp.add(out, 0, out=out)
        captured.begin_capture(cp.cuda.runtime.streamCaptureModeRelaxed)
        try:
            cp.add(out, 1, out=out)
            found = pool.submit(in_thread).result()
            pool.shutdown()  # the thread is gone
            cp.add(out, 1, out=out)
        finally:
            graph = captured.end_capture()
        graph.launch(captured)
        captured.synchronize()
    assert bool((out == 2).all())
    assert bool((found == expected).all())
