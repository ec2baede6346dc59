"""The call cache of products, also of pairs and of packed operands."""

from __future__ import annotations

from typing import Any

import cupy

from argand.gemm import tuned as tuning
from argand.gemm.launch import PLAN_OVERRIDE
from argand.gemm.packed import Packed
from argand.gemm.pairs import PAIR_FORMATS, Pairs
from argand.precision import HALF_FORMATS
from argand.runtime.call_cache import ALIGNMENT, CallCache, Form, NoFormError
from argand.runtime.kept_call import Run, StreamRun

_ndarray = cupy.ndarray
_current_stream = cupy.cuda.get_current_stream
_current_device = cupy.cuda.runtime.getDevice


def empty(shape: tuple[int, ...], output: str) -> Any:
    """Make an uninitialised array of a type, or pairs where the type is ``fp16`` or ``bf16``."""
    if output not in HALF_FORMATS:
        return _ndarray(shape, output)
    return Pairs(_ndarray((*shape, 2), PAIR_FORMATS[output]), output)


def form_of(x: Any) -> Form:
    """Return the form of pairs or of a packed operand; raises NoFormError for anything else."""
    if type(x) is Pairs and type(x.array) is _ndarray:
        array = x.array
        memory = array.data
        return x.format, array.shape, array.strides, memory.ptr & ALIGNMENT, memory.device_id
    if type(x) is Packed:
        form = getattr(x.backend_data, "form", None)
        if form is not None:
            return x.shape, x.precision, x.side, *form
        planes = getattr(x.backend_data, "planes", None)
        if planes is not None:
            device = planes.memory.data.device_id
            return x.shape, x.precision, x.side, planes.batches, planes.copy is None, device
    raise NoFormError(type(x).__name__)


def run_of(launch: Any, operands: tuple[Any, ...], output: str) -> Run | StreamRun:
    """Return a function that queues a launch for operands of these types.

    The launch takes addresses, or planes. Without C it is given the result's address, which it
    does not read. Where a launch has a ``sequence`` that takes the addresses as they are, it is
    started from here, which saves a small product two Python calls, and notes the launch's name.
    """
    if output not in HALF_FORMATS and all(x is None or type(x) is _ndarray for x in operands):
        sequence = getattr(launch, "sequence", None)
        if sequence is not None:
            device, start = _current_device(), sequence.__call__  # found once
            sequence.name = launch.name

            def of_sequence(
                a: int, b: int, c: int | None, out: int, stream: int | None = None
            ) -> None:
                addresses = a, b, out if c is None else c, out, 0, 0
                start(addresses, _current_stream(device).ptr if stream is None else stream)

            return StreamRun(
                of_sequence, start,
                lambda a, b, c, out: (a, b, out if c is None else c, out, 0, 0),
            )  # fmt: skip
        call = launch.__call__  # a bound method takes less time than the object
        return lambda a, b, c, out: call(a, b, out if c is None else c, out)

    def of_any(a: Any, b: Any, c: Any, out: Any) -> None:
        at = _argument(out)
        launch(_argument(a), _argument(b), at if c is None else _argument(c), at)

    return of_any


def _argument(x: Any) -> Any:
    """Return an operand as a launch takes it: an array, packed planes, or the address of pairs."""
    if type(x) is Packed:
        return x.backend_data.planes
    return x.array.data.ptr if type(x) is Pairs else x


CALLS = CallCache(PLAN_OVERRIDE, tuning.TABLE, form_of=form_of, empty=empty, in_place=(2,))
