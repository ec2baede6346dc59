"""Calls that XLA makes on a GPU, repeated from the call cache by addresses of buffers alone.

The cache is that of calls on CuPy's arrays. Only the first call of a form makes some: to make them,
and to have CuPy work on XLA's stream, takes the host longer than to launch the kernels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import cupy

from argand.frameworks.captured_calls import captured
from argand.frameworks.streams import cupy_stream
from argand.frameworks.xla_body import Body
from argand.frameworks.xla_buffers import cupy_array
from argand.frameworks.xla_ffi import Buffer
from argand.runtime.calls.call_cache import (
    ALIGNMENT,
    MAX_CALLS,
    SEVERAL,
    CallCache,
    current_device,
)
from argand.runtime.calls.kept_call import Run
from argand.runtime.driver.current_stream import OnStream

_is_capturing = cupy.cuda.runtime.streamIsCapturing


class _Repeated(NamedTuple):
    """The function that makes a call, and the indices of arguments that the call lacks."""

    run: Run
    absent: tuple[int, ...]
    takes_stream: bool


def queue(body: Body, operands: list[Buffer], result: Buffer, stream: int) -> None:
    """Queue a call on XLA's stream of the current device."""
    # The legacy stream, which is 0, cannot be captured.
    if stream and _is_capturing(stream):
        with OnStream(cupy_stream(stream)), captured():
            _make(body, operands, result)
    elif body.calls is None:
        with OnStream(cupy_stream(stream)):
            _make(body, operands, result)
    else:
        _repeat(body, body.calls(), operands, result, stream)


def _make(body: Body, operands: list[Buffer], result: Buffer) -> list[Any]:
    """Make a call on CuPy's current stream; return its arrays, the result last."""
    device = current_device()
    arrays = [cupy_array(x, device) for x in (*operands, result)]
    body.make(arrays[:-1], arrays[-1])
    return arrays


def _repeat(
    body: Body, cache: CallCache, operands: list[Buffer], result: Buffer, stream: int
) -> None:
    """Repeat a call, or make it where none of its form was made before."""
    override, table = cache.override, cache.table
    key: list[Any] = [body, override.both, 0 if table is None else table.generation]
    if SEVERAL:
        key.append(current_device())
    places: list[Any] = []
    bits = 0
    for address, kind, shape in (*operands, result):
        key += kind, shape
        places.append(address)
        bits |= address
    form = None if bits & ALIGNMENT else tuple(key)
    call = cache.on_tensors.get(form) if form else _ALONE
    if call is None:
        with OnStream(cupy_stream(stream)):
            _remember(form, body, cache, operands, result)
        return
    if call is not _ALONE:
        # XLA's result overlaps no operand of a call.
        for at in call.absent:
            places.insert(at, None)
        if call.takes_stream:
            done = call.run(*places, stream)
        else:
            with OnStream(cupy_stream(stream)):
                done = call.run(*places)
        if done is not NotImplemented:
            return
    with OnStream(cupy_stream(stream)):
        _make(body, operands, result)


def _remember(
    form: Any, body: Body, cache: CallCache, operands: list[Buffer], result: Buffer
) -> None:
    """Make a call, and keep what the cache keeps of it where that is the call on these arrays."""
    with cache.planning() as kept:
        arrays = _make(body, operands, result)
    found = _ALONE
    if kept:
        forms, call = kept[-1]
        looked, _ = cache.look(tuple(arrays))
        absent = tuple(at for at, x in enumerate(forms) if x is None)
        whole = call.shape == arrays[-1].shape
        if whole and [x for x in forms if x is not None] == looked:
            found = _Repeated(call.run, absent, call.stream_run is not None)
    if len(cache.on_tensors) >= MAX_CALLS:
        cache.on_tensors.clear()
    cache.on_tensors[form] = found


_ALONE = _Repeated(lambda *_: NotImplemented, (), takes_stream=False)
"""It stands for a call that the cache does not keep."""
