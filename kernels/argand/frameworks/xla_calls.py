"""Calls as foreign functions of XLA, which its programs know by numbers, and XLA's stream.

XLA hands a call its buffers, on a GPU with its stream, on which the call queues its work.
"""

from __future__ import annotations

import atexit
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from threading import Lock
from typing import Any

import jax
import numpy as np

from argand.device import require_cupy
from argand.frameworks import xla_ffi
from argand.frameworks.streams import cupy_stream, let_wait
from argand.frameworks.xla_body import Body
from argand.frameworks.xla_buffers import numpy_array
from argand.frameworks.xla_ffi import Buffer

TARGETS = ("argand_call", "argand_captured_call")
"""The names of the call for XLA; the second may be captured into a CUDA graph."""


_numbering = Lock()
_NUMBERS: dict[Hashable, np.int64] = {}
_BODIES: list[Body] = []
"""Bodies of calls by the number that stands for them in XLA's programs."""


def number_of(call: Hashable, body: Body) -> np.int64:
    """Return the number of a call, whose first body it keeps."""
    with _numbering:  # threads may trace beside each other
        if call not in _NUMBERS:
            _NUMBERS[call] = np.int64(len(_BODIES))
            _BODIES.append(body)
        return _NUMBERS[call]


_registering = Lock()


def register() -> list[Any]:
    """Register the calls with XLA, once; return what XLA calls, to keep it alive."""
    with _registering:  # else XLA may keep the functions of one thread, and the cache another's
        return _registered()


@cache
def _registered() -> list[Any]:
    headers = jax.ffi.include_dir()
    found = []
    for traits, target in enumerate(TARGETS):
        for platform in ("cpu", "CUDA"):
            on_gpu = platform == "CUDA"
            function = xla_ffi.handler(
                _on_gpu if on_gpu else _on_cpu, headers, on_gpu=on_gpu, traits=traits
            )
            jax.ffi.register_ffi_target(
                target, jax.ffi.pycapsule(function), platform=platform, traits=traits
            )
            found.append(function)
    atexit.register(_wait_for_calls)
    return found


def _wait_for_calls() -> None:
    """Wait for calls on CPUs that XLA has yet to make.

    Once Python ends it stops threads that call it, and JAX would wait for them for ever. A device
    runs programs in their order, so that one more call comes behind all others.
    """
    with suppress(RuntimeError):  # without a CPU, which the environment may leave away
        for device in jax.local_devices(backend="cpu"):
            _call_of(lambda *_: None, device).block_until_ready()


def _call_of(make: Callable[[list[Any], Any], None], device: Any) -> Any:
    """Return the result, of one number, of a call that XLA makes on a device."""
    x = jax.device_put(np.zeros(1, np.float32), device)
    made = jax.ffi.ffi_call(TARGETS[0], jax.ShapeDtypeStruct(x.shape, x.dtype))
    return made(x, number=number_of(make, Body(make)))


@contextmanager
def raising_own_errors() -> Iterator[None]:
    """Raise errors of calls that XLA makes in this context as the calls' own, not as JAX's."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        said = str(error)
        for found in reversed(tuple(_raised)):
            if f"{type(found).__name__}: {found}" in said:
                with suppress(ValueError):  # another thread raises the same
                    _raised.remove(found)  # or it would keep the caller's variables
                raise found from error
        raise


_raised: deque[Exception] = deque(maxlen=16)
"""Errors of the latest calls that failed; `xla_ffi.handler` takes their tracebacks away."""


def _called(make: Callable[..., None], *arguments: Any) -> None:
    """Make a call, and note its error."""
    try:
        make(*arguments)
    except Exception as error:
        _raised.append(error)
        raise


def _on_cpu(number: int, operands: list[Buffer], result: Buffer, _stream: int | None) -> None:
    _called(_BODIES[number].make, [numpy_array(x) for x in operands], numpy_array(result))


def _on_gpu(number: int, operands: list[Buffer], result: Buffer, stream: int | None) -> None:
    _called(_queue(), _BODIES[number], operands, result, stream or 0)


@cache
def _queue() -> Callable[..., None]:
    """Return the function that makes calls on a GPU, which needs CuPy."""
    require_cupy()
    from argand.frameworks.xla_repeats import queue

    return queue


def on_stream_of_xla(call: Callable[[], Any], arrays: Mapping[str, Any]) -> Any:
    """Return the result of a call on arrays, with CuPy on XLA's stream where they are on a GPU.

    XLA gives memory of deleted arrays to what it runs next on that stream, and does not know of
    other streams that read it. Where operands are CuPy's own, XLA's stream waits for what CuPy has
    queued; where the result is CuPy's, CuPy's stream waits for XLA's.

    Raises TypeError for arrays of JAX on several devices, since each device has a stream.
    """
    placed = {name: x.devices() for name, x in arrays.items() if isinstance(x, jax.Array)}
    devices = set().union(*placed.values())
    if len(devices) > 1:
        found = ", ".join(
            f"{name} on {' and '.join(sorted(map(str, of)))}" for name, of in placed.items()
        )
        raise TypeError(
            f"arrays of JAX must be on one device, got {found}: move them with jax.device_put"
        )
    (device,) = devices
    if device.platform != "gpu":
        return call()
    cupy = require_cupy()
    from argand.runtime.driver.current_stream import OnStream

    address = _stream_of(device)
    with cupy.cuda.Device(device.local_hardware_id):
        own = cupy.cuda.get_current_stream()
        with OnStream(cupy_stream(address)) as stream:
            if not all(x is None or isinstance(x, jax.Array) for x in arrays.values()):
                let_wait(stream, own.ptr)
            found = call()
        if not isinstance(found, jax.Array | tuple):
            let_wait(own, address)
        return found


@cache
def _stream_of(device: Any) -> int:
    """Return the address of the stream on which XLA runs programs on a GPU."""
    import cupy

    register()
    noted: list[int] = []

    def note(_: list[Any], __: Any) -> None:
        noted.append(cupy.cuda.get_current_stream().ptr)

    _call_of(note, device).block_until_ready()
    return noted[0]
