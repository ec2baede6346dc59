"""The call cache of products, also of pairs and of packed operands."""

from __future__ import annotations

from threading import get_ident
from typing import Any

import cupy

from argand.gemm import tuned
from argand.gemm.pack.packed import Packed
from argand.gemm.pairs import PAIR_FORMATS, Pairs
from argand.gemm.prepare import PLAN_OVERRIDE
from argand.precision import HALF_FORMATS
from argand.runtime.calls.call_cache import ALIGNMENT, SEVERAL, CallCache, Form, Key, NoFormError
from argand.runtime.calls.kept_call import Run, StreamRun

_ndarray = cupy.ndarray
_current_stream = cupy.cuda.get_current_stream
_current_device = cupy.cuda.runtime.getDevice
_repeat = CallCache.repeat  # found once


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


class ProductCalls(CallCache):
    """The call cache of products, which finds the most frequent of them without a loop.

    Those are of two arrays, without C and ``out``: `CallCache.repeat` takes the host half as long
    again to find them.
    """

    def repeat(
        self, operands: tuple[Any, ...], out: Any, options: tuple[Any, ...]
    ) -> tuple[Key | None, Any]:
        """Repeat a call of a form that was kept, as `CallCache.repeat`; its key is the same."""
        a, b, c = operands
        if out is not None or c is not None or not type(a) is type(b) is _ndarray:
            return _repeat(self, operands, out, options)
        at_a, at_b = a.data.ptr, b.data.ptr
        of_a = of_b = current = 0
        if SEVERAL:
            of_a, of_b, current = a.data.device_id, b.data.device_id, _current_device()
        key = (
            options,
            a.dtype, a.shape, a._c_contiguous or a.strides, at_a & ALIGNMENT, of_a,
            b.dtype, b.shape, b._c_contiguous or b.strides, at_b & ALIGNMENT, of_b,
            None, None, self.override.both, tuned.TABLE.generation, current,
        )  # fmt: skip
        try:
            call = self._calls.get(key)
        except TypeError:  # an option that is given as a list
            return key, None
        if call is None or (self._planning and get_ident() in self._planning):
            return key, None
        out, at = self.result_of(call)
        return key, None if call.run(at_a, at_b, None, at) is NotImplemented else out


CALLS = ProductCalls(PLAN_OVERRIDE, tuned.TABLE, form_of=form_of, empty=empty, in_place=(2,))
