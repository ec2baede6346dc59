"""Graphs of calls that caches drop while a program captures a stream (a GPU)."""

from __future__ import annotations

import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from argand import dft, gemm

from tests.kernels.runtime.launch.graph_cases import CALLS, HOW, forget_calls, operands

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma", "no_cached_call")]


def forget_transforms() -> None:
    from argand.dft import cufft
    from argand.dft.gpu import CALLS as CACHE

    CACHE.clear()
    cufft._on_stream.cache_clear()
    gc.collect()


MAKE: dict[str, tuple[Callable[[Any, Any], Any], Callable[[], None]]] = {
    "of our kernels": (lambda a, b: gemm(a, b, **HOW), forget_calls),
    "of cuBLAS": (lambda a, b: gemm(a, b, precision="fp32"), forget_calls),
    "of cuFFT": (lambda a, _: dft(a[:, :48], precision="fp32"), forget_transforms),
}
"""Calls that are graphs where their addresses come again, and what drops these."""


@pytest.mark.parametrize("mode", ["Global", "ThreadLocal", "Relaxed"])
@pytest.mark.parametrize("by", ["this thread", "another one"])
@pytest.mark.parametrize("name", MAKE)
def test_they_leave_the_capture_as_it_is(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, name: str, by: str,
    mode: str,
) -> None:  # fmt: skip
    call, forget = MAKE[name]
    (pair,) = operands(cp, rng, 1)
    pair = tuple(cp.ascontiguousarray(x[:, :48]) for x in pair) if name == "of cuFFT" else pair
    launched: list[int] = []
    launch = cp.cuda.runtime.graphLaunch
    with monkeypatch.context() as patch:
        patch.setattr(
            cp.cuda.runtime, "graphLaunch", lambda *given: launched.append(launch(*given))
        )
        for _ in range(4 * CALLS):  # each result lies where the one before the last did
            call(*pair)
            cp.cuda.Device().synchronize()  # a stream that is behind is given no graphs
    assert launched
    y, stream = cp.zeros(8, np.float32), cp.cuda.Stream(non_blocking=True)
    cp.cuda.Device().synchronize()
    with ThreadPoolExecutor(1) as pool, stream:
        cp.add(y, 1, out=y)
        stream.begin_capture(getattr(cp.cuda.runtime, f"streamCaptureMode{mode}"))
        try:
            if by == "this thread":
                forget()
            else:
                pool.submit(forget).result()
            cp.add(y, 1, out=y)
        finally:
            graph = stream.end_capture()
        graph.launch(stream)
        stream.synchronize()
    assert bool((y == 2).all())
