"""CuPy's current stream is what the program has made it, behind every call (a GPU)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from argand import contract, dft, gemm

pytestmark = pytest.mark.gpu


def in_a_capture(call: Callable[[Any], Any]) -> Callable[[Any], None]:
    def captured(x: Any) -> None:
        import cupy

        call(x)  # which compiles its kernels
        stream = cupy.cuda.get_current_stream()
        stream.begin_capture()
        try:
            call(x)
        finally:
            stream.end_capture()

    return captured


def table(_: Any) -> Any:
    from argand.runtime.memory.device_table import device_table

    return device_table(np.arange(64.0))


def of_torch(x: Any) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.from_dlpack(x)
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(3):
            gemm(tensor, tensor, precision="tf32")
        torch.cuda.synchronize()


def again(call: Callable[[Any], Any]) -> Callable[[Any], None]:
    """The call at the same addresses, which is a graph then."""

    def made(x: Any) -> None:
        for _ in range(6):  # each result lies where the one before the last did
            call(x)

    return made


CALLS: dict[str, Callable[[Any], None]] = {
    "graphs of cuBLAS": again(lambda x: gemm(x, x, precision="fp32")),
    "graphs of cuFFT": again(lambda x: dft(x, precision="fp32")),
    "the kernels of cuFFT": lambda x: dft(x),
    "a table": in_a_capture(table),
    "an array of NumPy's": in_a_capture(
        lambda x: contract("ab,bc->ac", x, x, scale=np.arange(60.0, dtype=np.float32))
    ),
    "tensors": of_torch,
}
"""Calls that work on another stream meanwhile: they capture there, or copy beside a capture."""


@pytest.fixture
def used(cp: Any) -> Iterator[Any]:
    """A stream that is current by its ``use``, without a context around it."""
    stream = cp.cuda.Stream(non_blocking=True)
    stream.use()
    yield stream
    cp.cuda.Stream.null.use()


@pytest.mark.parametrize("name", CALLS)
def test_a_stream_in_use_stays_so(cp: Any, used: Any, rng: np.random.Generator, name: str) -> None:
    x = cp.asarray((rng.normal(size=(60, 60)) + 1j * rng.normal(size=(60, 60))).astype("complex64"))
    CALLS[name](x)
    assert cp.cuda.get_current_stream().ptr == used.ptr
    used.synchronize()
