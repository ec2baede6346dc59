"""cuFFT's plans: shared by threads and streams, given up while kernels are queued and captured."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from argand import dft

pytestmark = pytest.mark.gpu
LENGTHS = (64, 100, 243, 250, 343, 512, 600, 1000, 1024, 2000)


def rows(cp: Any, length: int) -> Any:
    parts = np.random.default_rng(length).standard_normal((40, length, 2), np.float32)
    return cp.asarray(parts.view(np.complex64)[..., 0])


def transformed(x: Any) -> Any:
    return dft(x, precision="fp32")


@pytest.fixture
def one_plan(cp: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """One plan is kept, so each length gives up the plan of the one before."""
    from argand.dft import cufft, cufft_plans

    plans = lru_cache(maxsize=1)(cufft_plans._plan.__wrapped__)
    monkeypatch.setattr(cufft_plans, "_plan", plans)
    queues = lru_cache(maxsize=1)(cufft._on_stream.__wrapped__)
    monkeypatch.setattr(cufft, "_on_stream", queues)
    yield cufft_plans
    cp.cuda.Device().synchronize()


def spin(cp: Any) -> None:
    """Occupy the current stream for some 0.15 s."""
    kernel = cp.RawKernel(
        'extern "C" __global__ void spin() { long long s = clock64(); '
        "while (clock64() - s < 300000000) {} }", "spin",
    )  # fmt: skip
    kernel((1,), (1,), ())


def test_plans_that_are_given_up_behind_a_busy_stream(cp: Any, one_plan: Any) -> None:
    given = [rows(cp, length) for length in LENGTHS]
    alone = [transformed(x) for x in given]
    spin(cp)  # which also loads it
    cp.cuda.Device().synchronize()
    for stream in (cp.cuda.Stream(non_blocking=True), cp.cuda.Stream.null):
        with stream:
            spin(cp)
            found = [transformed(x) for x in given]
            stream.synchronize()
        for ours, expected in zip(found, alone, strict=True):
            cp.testing.assert_array_equal(ours, expected)
    transformed(given[0])
    assert len(one_plan._left) <= 1


@pytest.mark.parametrize("length", [1000, 1009])
def test_a_plan_that_is_given_up_behind_its_graph(cp: Any, one_plan: Any, length: int) -> None:
    """Its memory, and that of its workspace, goes to others only after the launches."""
    from argand.dft import cufft

    x = rows(cp, length)
    expected, out, clean = transformed(x), cp.empty_like(x), cp.cuda.Stream(non_blocking=True)
    with cp.cuda.Stream(non_blocking=True) as stream:
        spin(cp)
        for _ in range(3):
            dft(x, precision="fp32", out=out)
        stream.synchronize()
        out.fill(0)
        spin(cp)
        dft(x, precision="fp32", out=out)
    for cache in (cufft._on_stream, one_plan._plan):
        cache.cache_clear()
    with one_plan._lock:
        one_plan._destroy()
    taken = [cp.cuda.runtime.malloc(1 << power) for power in [*range(9, 24)] * 8]
    for address, power in zip(taken, [*range(9, 24)] * 8, strict=True):
        cp.cuda.runtime.memsetAsync(address, 0xFF, 1 << power, clean.ptr)
    stream.synchronize()
    cp.testing.assert_array_equal(out, expected)
    for address in taken:
        cp.cuda.runtime.free(address)


def test_a_plan_is_destroyed_while_another_gpu_is_current(cp: Any, one_plan: Any) -> None:
    count = cp.cuda.runtime.getDeviceCount()
    if count < 2:
        pytest.skip(f"two GPUs are needed, there are {count}")
    for own, other in ((0, 1), (1, 0)):
        with cp.cuda.Device(own):
            x = rows(cp, 1000)
            expected = transformed(x)
            transformed(rows(cp, 512))  # in whose place the plan of x is given up
            cp.cuda.Device().synchronize()
        with cp.cuda.Device(other), one_plan._lock:
            one_plan._destroy()
            assert not one_plan._left
            assert cp.cuda.Device().id == other
        with cp.cuda.Device(own):
            cp.testing.assert_array_equal(transformed(x), expected)


@pytest.mark.parametrize("shared", [True, False])
def test_threads(cp: Any, request: Any, shared: bool) -> None:
    """They share plans, or each call makes its own; and threads end."""
    if not shared:
        request.getfixturevalue("one_plan")
    given = [rows(cp, length) for length in LENGTHS]
    alone = [transformed(x) for x in given]
    cp.cuda.Device().synchronize()

    def worker(first: int) -> bool:
        with cp.cuda.Stream(non_blocking=True) as stream:
            order = [*range(first, len(given)), *range(first)] * 8
            found = [(place, transformed(given[place])) for place in order]
            stream.synchronize()
            return all(bool((x == alone[place]).all()) for place, x in found)

    for _ in range(3):
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(worker, range(8)))


@pytest.mark.parametrize("length", [1000, 1009])
def test_a_graph_of_a_program_keeps_its_plan(cp: Any, one_plan: Any, length: int) -> None:
    """As long as it lives, whatever is transformed meanwhile; 1009 takes a workspace."""
    x, other = rows(cp, length), rows(cp, 77)
    expected, out = transformed(x), cp.empty_like(x)
    stream = cp.cuda.Stream(non_blocking=True)

    def captured(x: Any, out: Any) -> Any:
        dft(x, precision="fp32", out=out)
        stream.begin_capture()
        dft(x, precision="fp32", out=out)
        return stream.end_capture()

    with stream:
        graph = captured(x, out)
        for another in LENGTHS[:4]:
            transformed(rows(cp, another))
        cp.cuda.Device().synchronize()
        transformed(other)  # which destroys what is done
        for _ in range(3):
            out.fill(0)
            graph.launch(stream=stream)
            cp.testing.assert_array_equal(out, expected)
        assert length in captured_lengths(one_plan)
        del graph
        gc.collect()
        stream.synchronize()
        # CUDA says from a thread of its own, some time later, that a graph is gone.
        for _ in range(100):
            captured(other, cp.empty_like(other))  # which looks for graphs that are gone
            if length not in captured_lengths(one_plan):
                break
            time.sleep(0.05)
        assert length not in captured_lengths(one_plan)


@pytest.mark.parametrize("where", ["in it", "on another thread"])
def test_a_new_length_while_a_blocking_stream_is_captured(
    cp: Any, one_plan: Any, where: str
) -> None:
    """cuFFT makes no plan then. The error says what to do, and the capture goes on."""
    x, other = rows(cp, 243), rows(cp, 250)
    expected, out = transformed(x), cp.empty_like(x)

    def refused(stream: Any) -> None:
        with stream, pytest.raises(RuntimeError, match=r"40 transforms of length 250 .*: make"):
            transformed(other)

    stream, beside = cp.cuda.Stream(), cp.cuda.Stream(non_blocking=True)
    cp.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        dft(x, precision="fp32", out=out)
        if where == "in it":
            refused(stream)
        else:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(refused, beside).result()
        graph = stream.end_capture()
        out.fill(0)
        graph.launch(stream=stream)
        cp.testing.assert_array_equal(out, expected)
    transformed(other)


def captured_lengths(plans: Any) -> set[int]:
    """Return the lengths of plans that captures keep."""
    from argand.runtime.memory.captured_memory import _captures

    kept = [owner for capture in _captures.values() for owner in capture._objects]
    return {plan._plan.nx for plan in kept if isinstance(plan, plans.CufftPlan)}


def test_graphs_of_one_plan_on_two_streams(cp: Any) -> None:
    """They run beside each other, so they share no workspace."""
    x = [cp.asarray(np.random.default_rng(place).standard_normal((16, 10007, 2), np.float32)
                    .view(np.complex64)[..., 0]) for place in range(2)]  # fmt: skip
    expected = [transformed(y) for y in x]
    cp.cuda.Device().synchronize()
    graphs, outs = [], [cp.empty_like(y) for y in x]
    streams = [cp.cuda.Stream(non_blocking=True) for _ in x]
    for y, out, stream in zip(x, outs, streams, strict=True):
        with stream:
            dft(y, precision="fp32", out=out)
            stream.begin_capture()
            dft(y, precision="fp32", out=out)
            graphs.append(stream.end_capture())
    for _ in range(20):
        for out, stream, graph in zip(outs, streams, graphs, strict=True):
            with stream:
                out.fill(0)
                graph.launch(stream=stream)
        cp.cuda.Device().synchronize()
        for out, result in zip(outs, expected, strict=True):
            cp.testing.assert_array_equal(out, result)
