"""Graphs that a program captures on one stream: replayed in any order, at once, and given back."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from argand import DftPlan, GemmPlan, contract, dft, gemm, herk, pairs, softmax, solve_hermitian
from argand.device import gpu
from argand.hermitian.plan import plan_hermitian

from tests.normal import normal

pytestmark = pytest.mark.gpu


SHAPES = {"slices": (64, 8000), "planes": (300, 1000), "tiles": (2048, 1009), "staged": (64, 96)}
ROW = np.arange(1.0, 65.0, dtype=np.float32)


def of_integers(x: Any, kind: str) -> Any:
    return pairs(x.view(kind).reshape(*x.shape[:-1], -1, 2))


CALLS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "slices": lambda x: GemmPlan(x, x, op_b="C", precision="3xtf32"),
    "planes": lambda x: GemmPlan(x, x, op_b="C", precision="3xfp16"),
    "tiles": lambda x: DftPlan(x),
    "staged": lambda x: DftPlan(x, 0, precision="tf32"),
    "product": lambda x: lambda y, z, out: gemm(y, z, op_b="C", precision="3xtf32", out=out),
    "library": lambda x: lambda y, z, out: gemm(y, z, op_b="C", precision="fp32", out=out),
    "real product": lambda x: (
        lambda y, z, out: gemm(y.real, z, op_b="C", precision="3xtf32", out=out)
    ),
    "real rows": lambda x: lambda y, out: dft(y.real, precision="fp32", out=out),
    "columns": lambda x: lambda y, out: dft(y, 0, out=out),
    "softmax of columns": lambda x: lambda y, out: softmax(y.real, 0, out=out),
    "softmax of integers": lambda x: lambda y, out: softmax(y.view("int8"), out=out),
    "exact product of reals": lambda x: (
        lambda y, z, out: gemm(y.real, z.real, op_b="C", precision="7xint8", out=out)
    ),
    "product of integers in pairs": lambda x: (
        lambda y, z, out: gemm(
            of_integers(y, "int16"), of_integers(z, "int16"), op_b="C", precision="fp32", out=out
        )
    ),
    "power": lambda x: (
        lambda y, z, out: gemm(y, z, op_b="C", precision="fp16", output="power", out=out)
    ),
    "contraction of sums": lambda x: lambda y, z, out: contract("ij,kl->ik", y, z, out=out),
    "contraction with arrays": lambda x: (
        lambda y, z, out: contract("ij,kj->ik", y, z, scale=ROW, bias=ROW, out=out)
    ),
    "power of a contraction": lambda x: (
        lambda y, z, out: contract("ij,kj->ik", y, z, bias=ROW, power=True, out=out)
    ),
}
"""Calls with counters, workspace or memory of their own, some as plans, and some that convert or
copy an operand; two of one array."""
TWO = (
    "slices", "planes", "product", "library", "real product", "exact product of reals",
    "product of integers in pairs", "power", "contraction of sums", "contraction with arrays",
    "power of a contraction",
)  # fmt: skip
"""Those of two arrays."""


@pytest.mark.parametrize("name", CALLS)
def test_graphs_of_one_stream_run_at_once(cp: Any, rng: np.random.Generator, name: str) -> None:
    """The stream is new: nothing of it was cleared before, and memory is not zero by chance."""
    from argand.runtime.memory.captured_memory import stream_beside

    two = name in TWO
    given = [cp.asarray(normal(rng, *SHAPES.get(name, (64, 8000)))) for _ in range(2)]
    call = CALLS[name](given[0])
    every = [(x, x) if two else (x,) for x in given]
    expected = [call(*x, out=None) for x in every]
    expected = [x.copy() for x in expected]
    found = [cp.full_like(x, np.nan) for x in expected]
    captured, graphs = cp.cuda.Stream(non_blocking=True), []
    with stream_beside(cp.cuda.Device().id):
        dirty = [cp.full(1 << size, 0xFF, cp.uint8) for size in range(12, 24)]
        cp.cuda.Device().synchronize()
        del dirty
    for operands, out in zip(every, found, strict=True):
        with captured:
            captured.begin_capture()
            call(*operands, out=out)
            graphs.append(captured.end_capture())
    with captured:  # what the capture gave back would be theirs
        others = [cp.full(1 << size, 3, cp.uint8) for size in range(9, 21) for _ in range(16)]
    streams = [cp.cuda.Stream(non_blocking=True) for _ in graphs]
    for order in ((1,), (0, 1), (1, 0), (0, 1) * 4):
        for out in found:
            out.fill(np.nan)
        cp.cuda.Device().synchronize()
        for which in order:
            graphs[which].launch(stream=streams[which])
        for stream in streams:
            stream.synchronize()
        for which in set(order):
            assert bool((found[which] == expected[which]).all()), (order, which)
    assert all(bool((x == 3).all()) for x in others)


@pytest.mark.parametrize("name", ["integers", "systems"])
def test_a_kept_call_in_a_capture_takes_memory_of_the_graph(
    cp: Any, rng: np.random.Generator, name: str
) -> None:
    """Where the call gave its workspace back, the stream has others' arrays."""
    from argand.hermitian.gpu import PLAN_OVERRIDE

    n = 100
    x, b = cp.asarray(normal(rng, 300, n, 120)), cp.asarray(normal(rng, 300, n, 1))
    r = x @ x.conj().swapaxes(-1, -2) + n * cp.eye(n, dtype=cp.complex64)
    given = of_integers(x, "int8")
    call: Callable[..., Any] = {
        "integers": lambda out: herk(given, precision="exact", out=out),
        "systems": lambda out: solve_hermitian(r, b, out=out),
    }[name]
    arch = gpu(0).require_arch()
    in_global = replace(plan_hermitian(n, 1, "complex64", arch), in_global=True)
    with PLAN_OVERRIDE.use(in_global):
        expected = call(None).copy()
        out, stream = cp.empty_like(expected), cp.cuda.Stream(non_blocking=True)
        call(out)  # it is kept from here on
        cp.cuda.Device().synchronize()
        with stream:
            stream.begin_capture()
            call(out)
            graph = stream.end_capture()
            others = [cp.full(1 << size, 3, cp.uint8) for size in range(9, 25) for _ in range(4)]
            out.fill(np.nan)
            graph.launch(stream=stream)
        stream.synchronize()
    assert bool((out == expected).all())
    assert all(bool((x == 3).all()) for x in others)


def addresses_of(capture: Any) -> list[int]:
    """Return the addresses of memory that the graph of a capture holds, also of a staged plan."""
    from argand.runtime.calls import staged_call_plan

    kept = [x for x in capture._objects.values() if isinstance(x, staged_call_plan._Memory)]
    arrays = [array for memory in kept for array in (memory.rows, memory.result)]
    return [int(x.ptr) for x in capture._held] + [int(x.data.ptr) for x in arrays]


@pytest.mark.parametrize("name", ["slices", "real product", "columns", "staged"])
def test_a_graph_takes_no_memory_that_the_stream_has_given_back(
    cp: Any, rng: np.random.Generator, name: str
) -> None:
    """Kernels of the stream may yet write there while the graph runs on another one."""
    from argand.runtime.memory import captured_memory

    x = cp.asarray(normal(rng, *SHAPES.get(name, (64, 8000))))
    call, stream = CALLS[name](x), cp.cuda.Stream(non_blocking=True)
    operands = (x, x) if name in TWO else (x,)
    expected = call(*operands, out=None).copy()
    out = cp.empty_like(expected)
    cp.cuda.Device().synchronize()
    with stream:
        blocks = [cp.empty(1 << size, cp.uint8) for size in range(9, 24) for _ in range(2)]
        places = [range(block.data.ptr, block.data.ptr + block.nbytes) for block in blocks]
        blocks.clear()
        before = set(captured_memory._captures)
        stream.begin_capture()
        call(*operands, out=out)
        graph = stream.end_capture()
    (capture,) = (x for number, x in captured_memory._captures.items() if number not in before)
    taken = addresses_of(capture)
    assert taken
    assert not any(address in place for address in taken for place in places)
    graph.launch(stream=stream)
    stream.synchronize()
    assert bool((out == expected).all())


def test_memory_of_graphs_that_are_gone_is_given_back(cp: Any, rng: np.random.Generator) -> None:
    """The driver says it some time after the last launch."""
    from argand.runtime.memory import captured_memory

    x = cp.asarray(normal(rng, 64, 8000))
    plan, out = GemmPlan(x, x, op_b="C", precision="3xtf32"), cp.empty((64, 64), cp.complex64)
    stream = cp.cuda.Stream(non_blocking=True)
    cp.cuda.Device().synchronize()

    def capture() -> Any:
        with stream:
            stream.begin_capture()
            for _ in range(3):
                plan(x, x, out=out)
            return stream.end_capture()

    lives = capture()
    before = set(captured_memory._captures)
    for _ in range(20):
        capture().launch(stream=stream)
        stream.synchronize()
    end = time.monotonic() + 10
    while len(captured_memory._captures) > len(before) + 1 and time.monotonic() < end:
        time.sleep(0.01)
        capture()
    assert len(captured_memory._captures) <= len(before) + 1
    out.fill(0)
    cp.cuda.Device().synchronize()
    lives.launch(stream=stream)
    stream.synchronize()
    assert bool((out == plan(x, x)).all())
