"""Tables and matrices that calls keep: read on other streams than the first, and in graphs."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from typing import Any

import argand
import numpy as np
import pytest

pytestmark = pytest.mark.gpu
TURN = np.array([[0.6, 0.8j], [0.8j, 0.6]])
CIRCUIT = [(TURN, (qubit,)) for qubit in range(5)]
Call = Callable[[Any], Any]
transform = partial(argand.dft, precision="3xfp16")
CALLS: dict[str, tuple[tuple[int, ...], Call]] = {
    "dense": ((20_000, 83), transform),
    "butterfly": ((4000, 1331), transform),
    "long": ((40, 65_521), transform),
    "two passes": ((20, 47_190), transform),
    "filter bank": ((1, 4096 * 9), lambda x: argand.channelise(x, 256, taps=3)),
    "gate": ((1 << 12,), lambda x: argand.apply_gate(x.copy(), TURN, (3,))),
    "strings": ((1 << 13,), lambda x: argand.expectation(x, ["ZXYIZ" + "I" * 8, "X" * 13])),
}


def drawn(cp: Any, shape: tuple[int, ...], seed: int = 1) -> Any:
    parts = np.random.default_rng(seed).standard_normal((*shape, 2), np.float32)
    return cp.asarray(parts.view(np.complex64)[..., 0])


def forget() -> None:
    """Drop the tables, and the calls that hold them; kernels stay loaded."""
    from argand.channelise import gpu as banks
    from argand.dft import gpu as transforms
    from argand.dft import launch, multi_kernel_launch
    from argand.gates import gpu as gates
    from argand.readout import gpu as readout

    for calls in (transforms.CALLS, gates.CALLS):
        calls.clear()
    for cached in (
        transforms._single_kernel_launch, transforms._multi_kernel_launch,
        multi_kernel_launch._tables, launch._on_device,
        banks._device_twiddles, readout._strings_of,
    ):  # fmt: skip
        cached.cache_clear()
    gc.collect()


@pytest.fixture
def spin(cp: Any) -> Callable[[], None]:
    """Occupy the current stream for some 0.2 s."""
    kernel = cp.RawKernel(
        'extern "C" __global__ void spin(long long n) { long long s = clock64(); '
        "while (clock64() - s < n) {} }", "spin",
    )  # fmt: skip
    kernel((1,), (1,), (np.int64(1),))
    return lambda: kernel((1,), (1,), (np.int64(400_000_000),))


@pytest.mark.parametrize("name", CALLS)
def test_a_stream_beside_the_busy_one_of_the_first_call(
    cp: Any, spin: Callable[[], None], name: str
) -> None:
    shape, call = CALLS[name]
    x, busy, free = drawn(cp, shape), *(cp.cuda.Stream(non_blocking=True) for _ in range(2))
    expected = call(x).get()
    forget()
    cp.get_default_memory_pool().free_all_blocks()
    cp.cuda.Device().synchronize()
    with busy:
        spin()
        call(x)
    with free:
        found = call(x)
        free.synchronize()
        np.testing.assert_array_equal(found.get(), expected)
    busy.synchronize()


def test_a_prepared_circuit_on_another_stream(cp: Any, spin: Callable[[], None]) -> None:
    plan, state = argand.plan_circuit(12, CIRCUIT), drawn(cp, (1 << 12,))
    expected = argand.PreparedCircuit(plan, state)(state.copy()).get()
    busy, free = (cp.cuda.Stream(non_blocking=True) for _ in range(2))
    given = state.copy()
    cp.cuda.Device().synchronize()
    with busy:
        spin()
        made = argand.PreparedCircuit(plan, state)
        spin()
    with free:
        found = made(given)
        free.synchronize()
        np.testing.assert_array_equal(found.get(), expected)
    busy.synchronize()


IN_GRAPHS: dict[str, tuple[tuple[int, ...], tuple[int, ...], Callable[[Any, Any], Any]]] = {
    **{name: (CALLS[name][0], CALLS[name][0], lambda x, out: transform(x, out=out))
       for name in ("dense", "butterfly", "long", "two passes")},
    "gate": ((1,), (1 << 12,), lambda x, out: argand.apply_gate(out, TURN, (3,))),
    "filter bank": (
        (1, 256 * 146), (1, 144, 256), lambda x, out: argand.channelise(x, 256, taps=3, out=out)
    ),
    "spectrum": (
        (1, 256 * 144), (1, 287, 256), lambda x, out: argand.spectrum(x, 256, out=out)
    ),
}  # fmt: skip
"""Shapes of the operand and the result, and calls."""


@pytest.mark.parametrize("name", IN_GRAPHS)
def test_a_graph_keeps_the_tables_that_it_reads(cp: Any, name: str) -> None:
    """Though they are forgotten, and their memory is written if it was given back."""
    shape, result, call = IN_GRAPHS[name]
    x, before = drawn(cp, shape), drawn(cp, result, seed=2)
    if name == "spectrum":
        before = before.real.copy()
    expected, out = before.copy(), before.copy()
    call(x, expected)
    cp.cuda.Device().synchronize()
    with cp.cuda.Stream(non_blocking=True) as stream:
        call(x, out)
        stream.begin_capture()
        call(x, out)
        graph = stream.end_capture()
        forget()
        written = [cp.full(1 << power, 0xFF, cp.uint8) for power in [*range(9, 24)] * 4]
        out[...] = before
        graph.launch(stream=stream)
        stream.synchronize()
    np.testing.assert_array_equal(out.get(), expected.get())
    del written
