"""CUDA graphs of products on several streams, from several threads, beside a capture (sm_90)."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from argand import gemm
from argand.runtime.launch.backlog import BEHIND_SECONDS
from argand.runtime.measuring import timing as gpu_timing

from tests.kernels.runtime.launch.graph_cases import CALLS, HOW, graphs, one_by_one, operands, same

_HELD_AGAIN = 10

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma", "no_cached_call")]


def test_another_thread_may_be_capturing(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the strictest mode: beside it a graph is made, and a stream asked if it is behind."""
    answers = _asking_at_each_call(monkeypatch)
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
    assert answers
    assert same(out, expected)
    assert bool((x == 2).all())


def _asking_at_each_call(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Have each call record a mark or ask for it; return the answers, which are yet to come.

    The memory of marks is allocated again.
    """
    from argand.runtime.launch import backlog

    monkeypatch.setattr(backlog, "BEHIND_SECONDS", 0.0)
    monkeypatch.setattr(backlog, "HOLDS_SECONDS", 0.0)
    backlog._made_words.cache_clear()
    ask, answers = backlog.WordMark.is_reached, []

    def noted(self: Any) -> bool:
        answers.append(ask(self))
        return answers[-1]

    monkeypatch.setattr(backlog.WordMark, "is_reached", noted)
    return answers


@pytest.mark.parametrize("how", [HOW, {"precision": "tf32", "kernels": "mma.sync"}], ids=str)
def test_a_stream_that_is_behind_is_given_kernels(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]
) -> None:
    """One that is held is; one whose every call the host waits for is given graphs again."""
    from argand.runtime.launch import graph as cuda_graph

    (pair,) = operands(cp, rng, 1)
    (expected,) = one_by_one(cp, monkeypatch, [pair], **how)
    out = cp.empty_like(expected)
    runtime = cp.cuda.runtime
    launched: list[int] = []

    def launch(graph: int, stream: int) -> None:
        launched.append(graph)
        runtime.graphLaunch(graph, stream)

    counting = SimpleNamespace(graphLaunch=launch, streamIsCapturing=runtime.streamIsCapturing)
    monkeypatch.setattr(cuda_graph, "_runtime", counting)
    with cp.cuda.Stream(non_blocking=True) as stream:

        def call(count: int, *, wait: bool) -> int:
            launched.clear()
            for _ in range(count):
                gemm(*pair, out=out, **how)
                if wait:
                    stream.synchronize()
                time.sleep(BEHIND_SECONDS)
            return len(launched)

        call(2 * CALLS, wait=True)
        assert call(CALLS, wait=True) == CALLS
        held = gpu_timing._Hold()
        call(2 * CALLS, wait=False)
        graphs_behind = call(CALLS, wait=False)
        held.release()
        stream.synchronize()
        assert graphs_behind == 0 or not held.lasted
        call(CALLS, wait=True)
        assert call(CALLS, wait=True) == CALLS
    assert same(out, expected)


def test_streams_do_not_wait_for_each_other(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has graphs of its own: launches of one graph come one after the other.

    All of them are made before: the driver may wait for the device when it makes one. The first is
    held for half a second at most, which others at work may need: then it is held once more.
    """
    from argand.runtime.launch import graph as cuda_graph

    (pair,) = operands(cp, rng, 1)
    (expected,) = one_by_one(cp, monkeypatch, [pair], **HOW)
    places = [cp.empty_like(expected) for _ in range(cuda_graph._GRAPHS_PER_STREAM)]
    first, second = (cp.cuda.Stream(non_blocking=True) for _ in range(2))
    cp.cuda.Device().synchronize()
    for stream in (first, second):
        with stream:
            for _ in range(CALLS):
                for out in places:
                    gemm(*pair, out=out, **HOW)
            stream.synchronize()
    out = places[0]
    hold = gpu_timing._Hold

    def second_goes_on() -> bool:
        out.fill(np.nan)
        cp.cuda.Device().synchronize()
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
        return held.lasted

    assert any(second_goes_on() for _ in range(_HELD_AGAIN))  # one that waits never does


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
