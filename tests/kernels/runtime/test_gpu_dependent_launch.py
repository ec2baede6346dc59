"""Kernels of one captured graph begin while the one before ends, and read what it wrote (sm_90)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from argand import gemm
from argand.runtime.dependent_launch import launch_dependent

from tests.kernels.gemm.product_cases import normal

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma")]

CALLS = 12
Step = tuple[tuple[int, ...], Callable[[Any, Any], object]]
"""The shape of an operand, and what computes a second array of it from a first."""


def _product(n: int, rows: int, precision: str, **how: Any) -> Callable[..., Step]:
    def made(cp: Any, rng: np.random.Generator) -> Step:
        factor = cp.asarray(normal(rng, n, n) / np.float32(np.sqrt(2 * n)))
        return (rows, n), lambda x, y: gemm(x, factor, precision=precision, out=y, **how)

    return made


STEPS = {
    "mma.sync": _product(79, 200, "tf32"),
    "mma.sync in slices": _product(700, 40, "tf32"),
    "fma": _product(30, 34, "3xfp16"),
    "packed and multiplied": _product(512, 512, "tf32"),
    "scaled, packed and multiplied": _product(512, 512, "3xfp16"),
    "wgmma in slices": _product(1000, 64, "3xfp16", kernels="wgmma"),
    "both packed": _product(65, 600, "tf32", kernels="wgmma"),
}


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The streams of dependent launches, in order."""
    streams: list[int] = []

    def noted(form: Any, stream: int, parameters: int) -> None:
        streams.append(stream)
        launch_dependent(form, stream, parameters)

    monkeypatch.setattr("argand.runtime.kernel.launch_dependent", noted)
    return streams


@pytest.mark.parametrize("name", STEPS)
def test_a_chain_in_a_graph_has_the_bits_of_single_calls(
    cp: Any, rng: np.random.Generator, launches: list[int], name: str
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
        launches.clear()
        chain(x, y)
        graph = stream.end_capture()
        assert launches.count(stream.ptr) >= CALLS
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
