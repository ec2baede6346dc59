"""Kernels begin while the one before ends, and read what it wrote (sm_90)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from argand import gemm
from argand.runtime.driver.driver_bindings import checked, driver_bindings

from tests.kernels.gemm.product_cases import normal

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma")]

CALLS = 12
Step = tuple[tuple[int, ...], Callable[[Any, Any], object]]
"""The shape of an operand, and what computes a second array of it from a first."""


def _product(n: int, rows: int, precision: str, **how: Any) -> Callable[..., Step]:
    def step(cp: Any, rng: np.random.Generator) -> Step:
        factor = cp.asarray(normal(rng, n, n) / np.float32(np.sqrt(2 * n)))
        return (rows, n), lambda x, y: gemm(x, factor, precision=precision, out=y, **how)

    return step


STEPS = {
    "mma.sync": _product(79, 200, "tf32"),
    "mma.sync in slices": _product(700, 40, "tf32"),
    "fma": _product(30, 34, "3xfp16"),
    "packed and multiplied": _product(512, 512, "tf32"),
    "scaled, packed and multiplied": _product(512, 512, "3xfp16"),
    "wgmma in slices": _product(1000, 64, "3xfp16", kernels="wgmma"),
    "both packed": _product(65, 600, "tf32", kernels="wgmma"),
}


def _programmatic_edges(graph: Any) -> int:
    """The edges of a captured graph whose kernel waits itself for the one before."""
    driver = driver_bindings()
    edges = getattr(driver, "cuGraphGetEdges_v2", driver.cuGraphGetEdges)
    handle = driver.CUgraph(graph.graph)
    error, *_, count = edges(handle, 0)
    checked((error,))
    error, _, _, kinds, _ = edges(handle, count)
    checked((error,))
    dependent = driver.CUgraphDependencyType.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
    return sum(one.type == int(dependent) for one in kinds)


@pytest.mark.parametrize("name", STEPS)
def test_a_chain_in_a_graph_has_the_bits_of_single_calls(
    cp: Any, rng: np.random.Generator, name: str
) -> None:
    """Each call reads what the one before wrote, and writes where the one before that read."""
    shape, step = STEPS[name](cp, rng)
    start = cp.asarray(normal(rng, *shape))

    def chain(x: Any, y: Any) -> None:
        for _ in range(CALLS // 2):
            step(x, y)
            step(y, x)

    x, y = start.copy(), start.copy()
    chain(x, y)
    expected = x.get()
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        chain(x, y)  # what a first call on a stream allocates
        stream.begin_capture()
        chain(x, y)
        graph = stream.end_capture()
        assert _programmatic_edges(graph) >= CALLS - 1
        for _ in range(3):
            x[...], y[...] = start, start
            graph.launch(stream)
            stream.synchronize()
            assert np.array_equal(x.get().view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("before", ["memset", "copy", "foreign kernel", "another stream"])
def test_what_comes_before_may_be_anything(cp: Any, rng: np.random.Generator, before: str) -> None:
    """A graph's edges from a copy, or from two nodes, are the driver's own."""
    a, b = (cp.asarray(normal(rng, *shape)) for shape in ((200, 79), (79, 60)))
    expected = gemm(a, b, precision="tf32")
    x, out = cp.empty_like(a), cp.empty_like(expected)
    main, other = (cp.cuda.Stream(non_blocking=True) for _ in range(2))
    with main:
        gemm(x, b, precision="tf32", out=out)
        main.begin_capture()
        if before == "memset":
            x.data.memset_async(0, x.nbytes)
        elif before == "copy":
            x.data.copy_from_device_async(a.data, a.nbytes)
        else:
            cp.multiply(a, 2, out=x)
        if before == "another stream":
            other.wait_event(main.record())
            with other:
                cp.multiply(x, 2, out=x)
            main.wait_event(other.record())
        gemm(x, b, precision="tf32", out=out)
        graph = main.end_capture()
        x.fill(np.nan)
        out.fill(np.nan)
        graph.launch(main)
        main.synchronize()
    factor = {"memset": 0, "copy": 1, "foreign kernel": 2, "another stream": 4}[before]
    assert np.array_equal(out.get(), factor * expected.get())


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("where", ["legacy", "per thread", "own", "alternating"])
def test_what_is_overwritten_meanwhile(
    cp: Any, rng: np.random.Generator, name: str, where: str
) -> None:
    """Without a wait of the host, between kernels and copies that change operand and result.

    A power of two times an operand has that power times the result, in every bit.
    """
    shape, step = STEPS[name](cp, rng)
    start = cp.asarray(normal(rng, *shape))
    x, y = start.copy(), cp.empty_like(start)
    step(x, y)
    expected = y.get()
    scales = np.float32(2) ** rng.integers(-4, 5, 16)
    results = cp.full((16, *shape), np.nan, start.dtype)
    streams = {
        "legacy": [cp.cuda.Stream.null],
        "per thread": [cp.cuda.Stream.ptds],
        "own": [cp.cuda.Stream(non_blocking=True)],
        "alternating": [cp.cuda.Stream(non_blocking=True) for _ in range(2)],
    }[where]
    cp.cuda.Device().synchronize()
    for _ in range(8):
        results.fill(np.nan)
        cp.cuda.Device().synchronize()
        done = None
        for number, (scale, result) in enumerate(zip(scales, results, strict=True)):
            with streams[number % len(streams)] as stream:
                if done is not None:
                    stream.wait_event(done)
                cp.multiply(start, scale, out=x)
                step(x, y)
                if number % 2:
                    x.fill(np.nan)
                result.data.copy_from_device_async(y.data, y.nbytes)
                y.data.memset_async(255, y.nbytes)
                done = stream.record() if len(streams) > 1 else None
        cp.cuda.Device().synchronize()
        for scale, result in zip(scales, results.get(), strict=True):
            assert np.array_equal(result, scale * expected)
