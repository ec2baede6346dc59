"""Calls of XLA's that are repeated by addresses, on a cache whose calls launch nothing (no GPU)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.kernels.without_device import without_device

STREAM, KIND, SHAPE = 7, 15, (4, 6)


class Array:
    """In the place of CuPy's, over a buffer; contiguous."""

    _c_contiguous = True

    def __init__(self, buffer: tuple[int, int, tuple[int, ...]], _device: int = 0) -> None:
        at, _, self.shape = buffer
        self.dtype = np.dtype(np.complex64)
        self.strides: tuple[int, ...] = tuple(np.empty(self.shape, self.dtype).strides)
        self.itemsize, self.data = 8, SimpleNamespace(ptr=at, device_id=0)


def _not_started(*_: Any) -> Any:
    raise AssertionError("XLA's calls run at places")


class Operation:
    """A call of two operands and one that is missing; notes what was made and launched."""

    def __init__(self, modules: tuple[Any, ...], *, with_stream: bool) -> None:
        _, self._repeats, call_cache, self._kept_call = modules
        self.cache = call_cache.CallCache()
        self.launched: list[tuple[Any, ...]] = []
        self.made: list[tuple[int, ...]] = []
        self.serves, self._with_stream = True, with_stream

    def calls(self) -> Any:
        return self.cache

    def make(self, operands: list[Any], result: Any) -> None:
        self.made.append(tuple(x.data.ptr for x in (*operands, result)))
        given = (*operands, None)
        key, found = self.cache.repeat(given, result, ())
        if found is None:

            def run(*places: Any) -> Any:
                self.launched.append(places)
                return None if self.serves else NotImplemented

            kept: Any = run
            if self._with_stream:
                kept = self._kept_call.StreamRun(run, _not_started, _not_started)
            self.cache.keep(key, kept, given, result, result.shape, "complex64")

    def __call__(self, *addresses: int, shape: tuple[int, ...] = SHAPE) -> None:
        *operands, result = ((at, KIND, shape) for at in addresses)
        self._repeats.queue(self, operands, result, STREAM)


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, ...]]:
    names = ("frameworks.xla_repeats", "runtime.calls.call_cache", "runtime.calls.kept_call")
    with without_device(*names) as found:
        _, repeats, call_cache, kept_call = found
        for module in (call_cache, kept_call):
            monkeypatch.setattr(module, "_ndarray", Array)
        monkeypatch.setattr(repeats, "cupy_array", Array)
        monkeypatch.setattr(repeats, "current_device", lambda: 0)
        yield found


def test_a_call_is_made_once_and_then_launched_at_any_addresses(modules: tuple[Any, ...]) -> None:
    call = Operation(modules, with_stream=True)
    for at in (1 << 20, 1 << 21, 1 << 22):
        call(at, at + 1024, at + 2048)
    assert len(call.made) == 1
    assert call.launched == [(at, at + 1024, None, at + 2048, STREAM) for at in (1 << 21, 1 << 22)]
    call(1 << 20, 1 << 21, 1 << 22, shape=(6, 6))
    assert len(call.made) == 2


def test_calls_that_do_not_take_a_stream_have_it_as_cupys(modules: tuple[Any, ...]) -> None:
    call = Operation(modules, with_stream=False)
    for _ in range(3):
        call(1 << 20, 1 << 21, 1 << 22)
    assert len(call.made) == 1
    assert call.launched == [(1 << 20, 1 << 21, None, 1 << 22)] * 2
    streams = modules[0].cuda.Stream.from_external
    assert streams.return_value.use.call_count == 3


def test_other_alignments_plans_and_cleared_caches_are_made_anew(modules: tuple[Any, ...]) -> None:
    call = Operation(modules, with_stream=True)
    for _ in range(2):
        call(1 << 20, 1 << 21, 1 << 22)
    assert len(call.made) == 1
    call(1 << 20, (1 << 21) + 8, 1 << 22)  # launches may depend on it
    assert len(call.made) == 2
    with call.cache.override.use("plan"):
        call(1 << 20, 1 << 21, 1 << 22)
        assert len(call.made) == 3
    call.cache.clear()
    call(1 << 20, 1 << 21, 1 << 22)
    assert len(call.made) == 4
    call(1 << 20, 1 << 21, 1 << 22)
    assert len(call.made) == 4


def test_a_launch_that_does_not_serve_its_operands_is_made(modules: tuple[Any, ...]) -> None:
    call = Operation(modules, with_stream=True)
    call(1 << 20, 1 << 21, 1 << 22)
    call.serves = False
    call(1 << 20, 1 << 21, 1 << 22)
    assert len(call.made) == 2


def test_a_call_on_other_arrays_than_the_buffers_is_made_each_time(
    modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as broadcast ones: what is kept of those does not say how to launch it."""
    call = Operation(modules, with_stream=True)
    make = call.make

    def of_a_part(operands: list[Any], result: Any) -> None:
        rows = Array((operands[0].data.ptr, KIND, SHAPE))
        rows.strides, rows._c_contiguous = (0, 8), False
        make([rows, *operands[1:]], result)

    monkeypatch.setattr(call, "make", of_a_part)
    for _ in range(3):
        call(1 << 20, 1 << 21, 1 << 22)
    assert len(call.made) == 3


def test_a_captured_call_is_made(modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    call = Operation(modules, with_stream=True)
    for _ in range(2):
        call(1 << 20, 1 << 21, 1 << 22)
    monkeypatch.setattr(modules[1], "_is_capturing", lambda stream: True)
    monkeypatch.setattr(modules[1], "captured", nullcontext)
    call(1 << 20, 1 << 21, 1 << 22)
    assert len(call.made) == 2
