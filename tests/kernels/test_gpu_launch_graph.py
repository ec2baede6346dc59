"""Calls of one form again and again: from the third on a stream they are CUDA graphs (a GPU)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from argand import gemm, pack
from argand.gemm_choice import GemmSizes

from tests.kernels.precisions import TENSOR
from tests.kernels.product_cases import normal
from tests.kernels.wgmma_cases import first_choices, forced

pytestmark = pytest.mark.gpu

CALLS = 6
"""Of one form on a stream: more than come before there is a graph."""
SHAPE = (70, 66, 1100)
"""Rows, columns and a k that is worth cutting."""


@pytest.fixture(autouse=True)
def forgotten(cp: Any) -> Iterator[None]:
    """No call is remembered from other tests, nor from this one."""
    from argand import cuda_calls, cuda_launch

    def forget() -> None:
        cuda_calls._kept.clear()
        cuda_launch._prepared.cache_clear()

    forget()
    yield
    forget()


def graphs() -> int:
    from argand import cuda_graph

    return len(cuda_graph._alive)


def operands(cp: Any, rng: np.random.Generator, count: int = CALLS) -> list[tuple[Any, Any]]:
    m, n, k = SHAPE
    return [tuple(cp.asarray(normal(rng, *x)) for x in ((m, k), (k, n))) for _ in range(count)]


def one_by_one(cp: Any, monkeypatch: pytest.MonkeyPatch, pairs: Any, precision: str) -> list[Any]:
    """The products from kernels that are started by themselves."""
    with monkeypatch.context() as patch:
        patch.setattr("argand.cuda_graph._CALLS_BEFORE", 1 << 30)
        return [gemm(a, b, precision=precision) for a, b in pairs]


def same(found: Any, expected: Any) -> bool:
    return bool((found.view("uint32") == expected.view("uint32")).all())


@pytest.mark.parametrize("precision", TENSOR)
def test_graphs_give_the_bits_of_single_launches(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    """Of every role and storage, with k whole and in parts, and of mma.sync; the arrays change."""
    m, n, k = SHAPE
    pairs = operands(cp, rng)
    ways = [None, *first_choices(cp, precision, GemmSizes(1, m, n, k))]
    for choice in ways:
        with nullcontext() if choice is None else forced(choice):
            expected = one_by_one(cp, monkeypatch, pairs, precision)
            before = graphs()
            for _ in range(2):
                for (a, b), product in zip(pairs, expected, strict=True):
                    out = cp.full((m, n), np.nan, cp.complex64)
                    assert same(gemm(a, b, precision=precision, out=out), product)
            assert graphs() > before


@pytest.mark.parametrize("precision", ["tf32", "3xfp16"])
def test_graphs_of_packed_operands(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    """Planes lie elsewhere in each call, and what scales them back."""
    pairs = [(a, pack(b, precision, side="b")) for a, b in operands(cp, rng)]
    expected = one_by_one(cp, monkeypatch, pairs, precision)
    for _ in range(2):
        for (a, b), product in zip(pairs, expected, strict=True):
            assert same(gemm(a, b, precision=precision), product)


def test_what_is_captured_is_the_kernels(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream that is being captured takes none of our graphs, nor are there new ones."""
    pairs = operands(cp, rng)
    expected = one_by_one(cp, monkeypatch, pairs, "tf32")
    places = [cp.empty_like(x) for x in expected]
    cp.cuda.Device().synchronize()
    for calls_before in (1, CALLS):
        with cp.cuda.Stream(non_blocking=True) as stream:
            for _ in range(calls_before):
                gemm(*pairs[0], precision="tf32", out=places[0])
            stream.begin_capture()
            for (a, b), out in zip(pairs, places, strict=True):
                gemm(a, b, precision="tf32", out=out)
            captured = stream.end_capture()
            for _ in range(2):
                for out in places:
                    out.fill(np.nan)
                captured.launch()
                stream.synchronize()
                assert all(same(*x) for x in zip(places, expected, strict=True))
            # The stream's own graph still holds what it held.
            gemm(*pairs[0], precision="tf32", out=places[-1])
            stream.synchronize()
            assert same(places[-1], expected[0])


def test_streams_have_graphs_of_their_own(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One stream that waits does not keep the others waiting; more streams than keep graphs."""
    from argand import cuda_graph

    (pair,) = operands(cp, rng, 1)
    (expected,) = one_by_one(cp, monkeypatch, [pair], "tf32")
    streams = [cp.cuda.Stream(non_blocking=True) for _ in range(cuda_graph._MOST_STREAMS + 3)]
    places = [cp.empty_like(expected) for _ in streams]
    cp.cuda.Device().synchronize()
    for stream, out in zip(streams, places, strict=True):
        with stream:
            for _ in range(CALLS):
                gemm(*pair, precision="tf32", out=out)
    cp.cuda.Device().synchronize()
    assert all(same(out, expected) for out in places)
    first, second = streams[-2:]
    for out in places:
        out.fill(np.nan)
    cp.cuda.Device().synchronize()
    event = cp.cuda.Event()
    with second:
        event.record()
    # The first stream's product comes after one of the second that is made later.
    with second:
        gemm(*pair, precision="tf32", out=places[-1])
        event.record()
    first.wait_event(event)
    with first:
        gemm(*pair, precision="tf32", out=places[-2])
    cp.cuda.Device().synchronize()
    assert all(same(out, expected) for out in places[-2:])


def test_the_stream_of_each_thread(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many streams of one handle: they have no graphs."""
    pairs = operands(cp, rng)
    expected = one_by_one(cp, monkeypatch, pairs, "tf32")
    before = graphs()
    cp.cuda.Device().synchronize()
    with cp.cuda.Stream.ptds:
        found = [gemm(a, b, precision="tf32") for a, b in pairs]
        cp.cuda.Stream.ptds.synchronize()
    assert all(same(*x) for x in zip(found, expected, strict=True))
    assert graphs() == before


@pytest.mark.parametrize("precision", ["tf32", "3xfp16"])
def test_threads_that_call_at_once(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    """On streams of their own and on one stream; none of them has used the device before."""
    pairs = operands(cp, rng, 8)
    expected = one_by_one(cp, monkeypatch, pairs, precision)
    places = [cp.empty_like(x) for x in expected]
    cp.cuda.Device().synchronize()
    failed: list[BaseException] = []

    def call(index: int, own: bool) -> None:
        try:
            stream = cp.cuda.Stream(non_blocking=True) if own else cp.cuda.Stream.null
            with stream:
                for _ in range(50):
                    gemm(*pairs[index], precision=precision, out=places[index])
                stream.synchronize()
        except BaseException as error:
            failed.append(error)

    for own in (True, False):
        for out in places:
            out.fill(np.nan)
        cp.cuda.Device().synchronize()
        threads = [threading.Thread(target=call, args=(i, own)) for i in range(len(pairs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed
        assert all(same(*x) for x in zip(places, expected, strict=True))


@pytest.mark.parametrize("calls_before", [1, CALLS])
def test_a_thread_that_has_not_used_its_device(
    cp: Any, rng: np.random.Generator, calls_before: int
) -> None:
    """Its first call is one that was made before, by another thread."""
    ((a, b),) = operands(cp, rng, 1)
    out = cp.empty((a.shape[0], b.shape[1]), cp.complex64)
    for _ in range(calls_before):
        expected = gemm(a, b, precision="tf32", out=out).copy()
    out.fill(np.nan)
    cp.cuda.Device().synchronize()
    failed: list[BaseException] = []

    def call() -> None:
        try:
            gemm(a, b, precision="tf32", out=out)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    cp.cuda.Device().synchronize()
    assert not failed
    assert same(out, expected)


def test_another_thread_may_be_capturing(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of any mode: a graph is made beside it."""
    (pair,) = operands(cp, rng, 1)
    (expected,) = one_by_one(cp, monkeypatch, [pair], "tf32")
    out, x = cp.empty_like(expected), cp.zeros(8, np.float32)
    cp.add(x, 1, out=x)
    failed: list[BaseException] = []
    before = graphs()
    cp.cuda.Device().synchronize()
    capturing, calling = (cp.cuda.Stream(non_blocking=True) for _ in range(2))
    with calling:
        gemm(*pair, precision="tf32", out=out)  # counters and memory of the stream
        calling.synchronize()

    def call() -> None:
        try:
            with calling:
                for _ in range(CALLS):
                    gemm(*pair, precision="tf32", out=out)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=call)
    with capturing:
        capturing.begin_capture(cp.cuda.runtime.streamCaptureModeGlobal)
        cp.add(x, 1, out=x)
        thread.start()
        thread.join()
        captured = capturing.end_capture()
        captured.launch()
        cp.cuda.Device().synchronize()
    assert not failed
    assert graphs() > before
    assert same(out, expected)
    assert bool((x == 2).all())


def test_there_are_not_too_many_graphs(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = graphs()
    monkeypatch.setattr("argand.cuda_graph._MOST_GRAPHS", before + 2)
    for n in (20, 22, 24, 26):
        a, b = cp.asarray(normal(rng, 18, n)), cp.asarray(normal(rng, n, 16))
        first = gemm(a, b, precision="tf32")
        for _ in range(CALLS):
            assert same(gemm(a, b, precision="tf32"), first)
    assert graphs() == before + 2
