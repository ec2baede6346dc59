"""Arrays of libraries that argand does not know, by DLPack and by CUDA's array interface."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from argand import DeviceError, apply_gate, contract, dft, gemm, softmax
from argand.framework import framework_of

from tests.normal import wide_normal


class ByDlpack:
    """An array of a library that speaks DLPack alone."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class WithNamespace(ByDlpack):
    """The same of a library that has the array API's namespace."""

    def __array_namespace__(self) -> Any:
        return WithNamespace

    @staticmethod
    def from_dlpack(array: Any) -> WithNamespace:
        return WithNamespace(array)


class ByInterface:
    """An array of a library that speaks CUDA's array interface, and names its stream."""

    def __init__(self, array: Any, stream: int) -> None:
        self.array, self.stream = array, stream

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.array.__cuda_array_interface__, "stream": self.stream}


def test_arrays_on_a_cpu_are_read_and_written_in_place(rng: np.random.Generator) -> None:
    x = wide_normal(rng, 6, 6)
    np.testing.assert_array_equal(gemm(ByDlpack(x), x.T), x @ x.T)
    np.testing.assert_array_equal(dft(ByDlpack(x[::2]), 0), dft(x[::2], 0))
    np.testing.assert_array_equal(softmax(ByDlpack(x.real), 0), softmax(x.real, 0))
    out = ByDlpack(np.full((6, 6), np.nan + 0j))
    assert gemm(x, ByDlpack(x), out=out) is out
    np.testing.assert_array_equal(out.array, x @ x)
    made = contract("ij,jk->ki", x, ByDlpack(x), scale=ByDlpack(x), conj=True, out=out)
    assert made is out
    np.testing.assert_array_equal(out.array, contract("ij,jk->ki", x, x, scale=x, conj=True))
    state = np.eye(1, 4, dtype=complex)[0]
    apply_gate(ByDlpack(state), np.array([[0, 1], [1, 0]]), [1])
    assert state[2] == 1


def test_an_interface_may_be_an_attribute_of_an_object() -> None:
    class Holder:
        def __init__(self) -> None:
            self.__cuda_array_interface__ = {"shape": (2, 2)}

    assert framework_of(Holder()) == "exchange"


def test_other_devices_are_refused() -> None:
    class Elsewhere(ByDlpack):
        def __dlpack_device__(self) -> Any:
            return 7, 0  # Vulkan

    with pytest.raises(TypeError, match="on a CPU or a CUDA GPU, got DLPack's device type 7"):
        dft(Elsewhere(np.ones(4)))


def test_a_result_is_of_the_callers_library(rng: np.random.Generator) -> None:
    found = dft(WithNamespace(wide_normal(rng, 4)))
    assert type(found) is WithNamespace


@pytest.mark.gpu
@pytest.mark.parametrize("by", ["dlpack", "interface"])
@pytest.mark.parametrize("kind", ["legacy", "per-thread", "own"])
def test_delayed_producers_are_waited_for(
    cp: Any, rng: np.random.Generator, by: str, kind: str
) -> None:
    """By the GPU, while the host goes on."""
    x = cp.asarray(wide_normal(rng, 300, 300), "complex64")
    expected = (x @ x).get()
    streams = {"legacy": cp.cuda.Stream.null, "per-thread": cp.cuda.Stream.ptds}
    producer = streams.get(kind) or cp.cuda.Stream(non_blocking=True)
    consumer = cp.cuda.Stream(non_blocking=True)
    address = {"legacy": 1, "per-thread": 2}.get(kind, producer.ptr)

    def exchanged(array: Any) -> Any:
        return ByInterface(array, address) if by == "interface" else OnStream(array, producer)

    with consumer:  # compiles, and takes memory, for which the driver may wait
        gemm(exchanged(x), exchanged(x))
    waited = []  # a busy machine may take a call longer than the producer takes
    for _ in range(5):
        y = cp.zeros_like(x)
        cp.cuda.Device().synchronize()
        with producer:
            delay(cp)
            y[...] = x
        given = exchanged(y)
        with consumer:
            found = gemm(given, given)
            waited.append(producer.done)
        np.testing.assert_allclose(found.get(stream=consumer), expected, rtol=0, atol=1e-3)
    assert not all(waited), "the host has waited for the producer in each turn"


@pytest.mark.gpu
def test_an_out_that_names_its_stream_is_waited_for(cp: Any, rng: np.random.Generator) -> None:
    x = cp.asarray(wide_normal(rng, 300, 300), "complex64")
    expected = (x @ x).get()
    reader, own = cp.cuda.Stream(non_blocking=True), cp.cuda.Stream(non_blocking=True)
    y = cp.zeros_like(x)
    cp.cuda.Device().synchronize()
    with own:
        delay(cp)
        gemm(x, x, out=ByInterface(y, reader.ptr))
    np.testing.assert_allclose(y.get(stream=reader), expected, rtol=0, atol=1e-3)


class OnStream(ByDlpack):
    """An array that its library made on a stream, which it has the consumer wait for."""

    def __init__(self, array: Any, producer: Any) -> None:
        super().__init__(array)
        self.producer = producer

    def __dlpack__(self, **options: Any) -> Any:
        with self.producer:
            return self.array.__dlpack__(**options)


def delay(cp: Any) -> None:
    """Keep the current stream busy for some 20 ms."""
    spin = cp.RawKernel(
        r"""extern "C" __global__ void spin() {
            const long long start = clock64();
            while (clock64() - start < 40000000) { __nanosleep(1000); }
        }""",
        "spin",
    )
    spin((1,), (1,), ())


def test_an_array_on_a_gpu_without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    class OnGpu(ByDlpack):
        def __dlpack_device__(self) -> Any:
            return 2, 0

    monkeypatch.setitem(sys.modules, "cupy", None)  # as if it were not installed
    x = OnGpu(np.eye(3))
    for wrong in (x, ByInterface(x, 1)):
        with pytest.raises(DeviceError, match=r'which is not installed: pip install "argand\[cuda'):
            gemm(wrong, np.eye(3))
