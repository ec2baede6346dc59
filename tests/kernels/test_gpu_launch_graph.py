"""Calls of one form again and again are CUDA graphs, from the third on (an sm_90 GPU)."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from argand import gemm, gpu_timing, pack
from argand.gemm_choice import GemmSizes

from tests.kernels.precisions import TENSOR
from tests.kernels.product_cases import normal
from tests.kernels.wgmma_cases import first_choices, forced

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma")]

CALLS = 5
"""More than come before there is a graph."""
SHAPE = (70, 66, 1100)
"""Rows, columns and a k that is worth cutting."""
HOW: dict[str, Any] = {"precision": "3xfp16", "kernels": "wgmma"}
"""A product of two kernels, one that packs and scales and one that multiplies, or of three."""


@pytest.fixture(autouse=True)
def forgotten(cp: Any) -> Iterator[None]:
    """No call is remembered from other tests, nor from this one."""
    from argand import cuda_calls, cuda_launch

    def forget() -> None:
        cuda_calls._kept.clear()
        cuda_launch._prepared.cache_clear()
        gc.collect()

    forget()
    yield
    forget()


def graphs() -> int:
    from argand import cuda_graph

    return len(cuda_graph._alive)


def operands(cp: Any, rng: np.random.Generator, count: int = 3) -> list[tuple[Any, Any]]:
    m, n, k = SHAPE
    return [tuple(cp.asarray(normal(rng, *x)) for x in ((m, k), (k, n))) for _ in range(count)]


def one_by_one(cp: Any, monkeypatch: pytest.MonkeyPatch, pairs: Any, **how: Any) -> list[Any]:
    """The products from kernels that are started by themselves."""
    with monkeypatch.context() as patch:
        patch.setattr("argand.cuda_graph._CALLS_BEFORE", 1 << 30)
        found = [gemm(a, b, **how) for a, b in pairs]
    cp.cuda.Device().synchronize()
    return found


def same(found: Any, expected: Any) -> bool:
    return bool((found.view("uint32") == expected.view("uint32")).all())


@pytest.mark.parametrize("precision", TENSOR)
def test_graphs_give_the_bits_of_single_launches(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    """Of every role and storage, with k whole and in parts; what the arrays hold changes."""
    m, n, k = SHAPE
    pairs = operands(cp, rng)
    before = graphs()
    for choice in first_choices(cp, precision, GemmSizes(1, m, n, k)):
        with forced(choice):
            expected = one_by_one(cp, monkeypatch, pairs, precision=precision)
            places = [cp.empty((m, n), cp.complex64) for _ in pairs]
            x, y = (cp.empty_like(operand) for operand in pairs[0])
            for _ in range(CALLS):
                for (a, b), product, out in zip(pairs, expected, places, strict=True):
                    out.fill(np.nan)
                    assert same(gemm(a, b, precision=precision, out=out), product)
                    x[...], y[...] = a, b
                    places[0].fill(np.nan)
                    assert same(gemm(x, y, precision=precision, out=places[0]), product)
    assert graphs() > before


@pytest.mark.parametrize("precision", ["tf32", "3xfp16"])
def test_graphs_of_packed_operands(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    """Planes, and what scales them back, are addresses like others."""
    pairs = [(a, pack(b, precision, side="b", kernels="wgmma")) for a, b in operands(cp, rng)]
    expected = one_by_one(cp, monkeypatch, pairs, precision=precision)
    places = [cp.empty_like(x) for x in expected]
    for _ in range(CALLS):
        for (a, b), product, out in zip(pairs, expected, places, strict=True):
            out.fill(np.nan)
            assert same(gemm(a, b, precision=precision, out=out), product)


def test_results_that_are_new_each_time(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take turns in a few places, or lie where nothing has been before."""
    pairs = operands(cp, rng)
    expected = one_by_one(cp, monkeypatch, pairs, **HOW)
    before = graphs()
    for _ in range(2 * CALLS):
        for (a, b), product in zip(pairs, expected, strict=True):
            assert same(gemm(a, b, **HOW), product)
    assert graphs() > before
    kept = []
    for _ in range(2 * CALLS):
        for (a, b), product in zip(pairs, expected, strict=True):
            kept.append(gemm(a, b, **HOW))
            assert same(kept[-1], product)


def test_what_is_captured_is_the_kernels(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream that is being captured takes none of our graphs, nor are there new ones."""
    pairs = operands(cp, rng)
    expected = one_by_one(cp, monkeypatch, pairs, **HOW)
    places = [cp.empty_like(x) for x in expected]
    for calls_before in (1, CALLS):
        with cp.cuda.Stream(non_blocking=True) as stream:
            for _ in range(calls_before):
                gemm(*pairs[0], out=places[0], **HOW)
            before = graphs()
            stream.begin_capture()
            for _ in range(CALLS):
                for (a, b), out in zip(pairs, places, strict=True):
                    gemm(a, b, out=out, **HOW)
            captured = stream.end_capture()
            assert graphs() == before
            for _ in range(2):
                for out in places:
                    out.fill(np.nan)
                captured.launch()
                stream.synchronize()
                assert all(same(*x) for x in zip(places, expected, strict=True))
            for out in places:
                out.fill(np.nan)
            gemm(*pairs[0], out=places[0], **HOW)
            stream.synchronize()
            assert same(places[0], expected[0])


def test_another_thread_may_be_capturing(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the strictest mode: a graph is made beside it."""
    (pair,) = operands(cp, rng, 1)
    (expected,) = one_by_one(cp, monkeypatch, [pair], **HOW)
    out, x = cp.empty_like(expected), cp.zeros(8, np.float32)
    cp.add(x, 1, out=x)
    failed: list[BaseException] = []
    before = graphs()
    capturing, calling = (cp.cuda.Stream(non_blocking=True) for _ in range(2))
    cp.cuda.Device().synchronize()
    with calling:
        gemm(*pair, out=out, **HOW)  # counters and memory of the stream
        calling.synchronize()

    def call() -> None:
        try:
            with calling:
                for _ in range(CALLS):
                    gemm(*pair, out=out, **HOW)
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


def test_streams_do_not_wait_for_each_other(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has graphs of its own: launches of one graph come one after the other.

    All of them are made before: the driver may wait for the device when it makes one.
    """
    from argand import cuda_graph

    (pair,) = operands(cp, rng, 1)
    (expected,) = one_by_one(cp, monkeypatch, [pair], **HOW)
    places = [cp.empty_like(expected) for _ in range(cuda_graph._PLACES)]
    first, second = (cp.cuda.Stream(non_blocking=True) for _ in range(2))
    cp.cuda.Device().synchronize()
    for stream in (first, second):
        with stream:
            for _ in range(CALLS):
                for out in places:
                    gemm(*pair, out=out, **HOW)
            stream.synchronize()
    out = places[0]
    out.fill(np.nan)
    cp.cuda.Device().synchronize()
    hold = gpu_timing._Hold
    with first:
        held = hold()
        for place in places[1:]:
            gemm(*pair, out=place, **HOW)
    try:
        with second:
            gemm(*pair, out=out, **HOW)
            second.synchronize()
        assert same(out, expected)
    finally:
        held.release()
    first.synchronize()
    assert held.lasted  # so the second did not wait for it


def test_the_stream_of_each_thread(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many streams of one handle: they have no graphs."""
    pairs = operands(cp, rng)
    expected = one_by_one(cp, monkeypatch, pairs, **HOW)
    places = [cp.full_like(x, np.nan) for x in expected]
    before = graphs()
    cp.cuda.Device().synchronize()
    with cp.cuda.Stream.ptds:
        for _ in range(CALLS):
            for (a, b), out in zip(pairs, places, strict=True):
                gemm(a, b, out=out, **HOW)
        cp.cuda.Stream.ptds.synchronize()
    assert all(same(*x) for x in zip(places, expected, strict=True))
    assert graphs() == before


@pytest.mark.parametrize("precision", ["tf32", "3xfp16"])
def test_threads_that_call_at_once(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    """On streams of their own and on one stream; none of them has used the device before."""
    how = HOW | {"precision": precision}
    pairs = operands(cp, rng, 8)
    expected = one_by_one(cp, monkeypatch, pairs, **how)
    places = [cp.empty_like(x) for x in expected]
    failed: list[BaseException] = []

    def call(index: int, own: bool) -> None:
        try:
            stream = cp.cuda.Stream(non_blocking=True) if own else cp.cuda.Stream.null
            with stream:
                for _ in range(50):
                    gemm(*pairs[index], out=places[index], **how)
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
@pytest.mark.parametrize("how", [HOW, {"precision": "tf32", "kernels": "mma.sync"}], ids=str)
def test_a_thread_that_has_not_used_its_device(
    cp: Any, rng: np.random.Generator, calls_before: int, how: dict[str, Any]
) -> None:
    """Its first call is one that was made before, by another thread."""
    ((a, b),) = operands(cp, rng, 1)
    out = cp.empty((a.shape[0], b.shape[1]), cp.complex64)
    for _ in range(calls_before):
        gemm(a, b, out=out, **how)
    expected = out.copy()
    out.fill(np.nan)
    cp.cuda.Device().synchronize()
    failed: list[BaseException] = []

    def call() -> None:
        try:
            gemm(a, b, out=out, **how)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    cp.cuda.Device().synchronize()
    assert not failed
    assert same(out, expected)


def test_there_are_not_too_many_graphs(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one form on a stream, of one form on many streams, and in all."""
    from argand import cuda_graph

    (pair,) = operands(cp, rng, 1)
    (expected,) = one_by_one(cp, monkeypatch, [pair], **HOW)
    places = [cp.empty_like(expected) for _ in range(cuda_graph._PLACES + 3)]

    def call_all() -> None:
        for _ in range(CALLS):
            for out in places:
                out.fill(np.nan)
                assert same(gemm(*pair, out=out, **HOW), expected)

    before = graphs()
    call_all()
    assert graphs() == before + cuda_graph._PLACES
    for _ in range(cuda_graph._MOST_STREAMS + 2):
        with cp.cuda.Stream(non_blocking=True) as stream:
            call_all()
            stream.synchronize()
    assert graphs() <= before + cuda_graph._PLACES * cuda_graph._MOST_STREAMS
    monkeypatch.setattr(cuda_graph, "_MOST_GRAPHS", graphs())
    before = graphs()
    (other,) = operands(cp, rng, 1)
    other = (other[0][:60], other[1])
    first = gemm(*other, **HOW)
    for _ in range(CALLS):
        assert same(gemm(*other, **HOW), first)
    assert graphs() == before
