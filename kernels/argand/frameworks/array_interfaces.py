"""Arrays of any library that has DLPack or ``__cuda_array_interface__``, in place of its own.

Data on a GPU is read on CuPy's current stream, which waits for the producer's stream where the
protocol names it; the host waits for neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from argand.device import require_cupy
from argand.framework import framework_of
from argand.frameworks.results import converted
from argand.frameworks.rules import ForeignCall
from argand.frameworks.streams import let_wait

_CPU_DEVICES = (1, 3)
"""DLPack's kDLCPU and kDLCUDAHost."""
_GPU_DEVICES = (2, 13)
"""DLPack's kDLCUDA and kDLCUDAManaged."""


def call_on_interfaces(
    call: ForeignCall, arrays: Mapping[str, Any], options: Mapping[str, Any]
) -> Any:
    """Return the result of a call as an array of the caller's library.

    That is the library's namespace of the array API, if it has one with ``from_dlpack``; else
    the result is a NumPy or a CuPy array.

    Raises TypeError for an array on a device that is neither a CPU nor a CUDA GPU, DeviceError for
    one on a GPU where CuPy is not installed.
    """
    given: dict[str, Any] = {}
    foreign = {name: x for name, x in arrays.items() if framework_of(x) is not None}
    for name, x in arrays.items():
        given[name] = _array(x) if name in foreign else x
    found = call.function(**given, **options)
    if call.written in foreign:
        goal = foreign[call.written]
        _let_producer_wait(goal, given[call.written])
        return converted(found, lambda _: goal)
    if call.pairs is not None and isinstance(found, call.pairs):
        return found
    model = next(iter(foreign.values()))
    return converted(found, lambda x: _like(model, x))


def _array(x: Any) -> Any:
    """Return an array over the memory of another library's."""
    if hasattr(x, "__dlpack_device__"):
        kind, _ = x.__dlpack_device__()
        if int(kind) in _CPU_DEVICES:
            return np.from_dlpack(x)
        if int(kind) not in _GPU_DEVICES:
            raise TypeError(
                f"arrays must be on a CPU or a CUDA GPU, got DLPack's device type {int(kind)}"
            )
    cupy = require_cupy()

    if hasattr(x, "__dlpack_device__"):
        return cupy.from_dlpack(x)
    interface = dict(x.__cuda_array_interface__)
    producer = interface.pop("stream", None)
    found = cupy.asarray(_Interface(interface, x))
    if producer is not None:
        with found.device:  # each has a current stream of its own, on which the call runs
            let_wait(cupy.cuda.get_current_stream(), producer)
    return found


class _Interface:
    """An array by its interface, without the stream: CuPy would have the host wait for that."""

    def __init__(self, interface: dict[str, Any], owner: Any) -> None:
        self.__cuda_array_interface__ = interface
        self._owner = owner


def _let_producer_wait(x: Any, array: Any) -> None:
    """Let the stream that x's interface names wait for what was queued for its array here."""
    if hasattr(x, "__dlpack_device__"):
        return
    import cupy

    stream = x.__cuda_array_interface__.get("stream")
    if stream is not None:
        with array.device:
            event = cupy.cuda.Event(disable_timing=True)
            event.record()
            cupy.cuda.runtime.streamWaitEvent(stream, event.ptr)


def _like(x: Any, found: Any) -> Any:
    """Return a result as an array of x's library, by the array API."""
    if not hasattr(x, "__array_namespace__"):
        return found
    convert = getattr(x.__array_namespace__(), "from_dlpack", None)
    return found if convert is None else convert(found)
