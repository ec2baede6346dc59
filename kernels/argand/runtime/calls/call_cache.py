"""Call cache: the launches of earlier calls, by the form of their arguments.

Checking and planning take the host longer than a small problem takes the card. So a call's launches
are kept under the shapes, strides, types and alignments of its arrays and under its options. A
later call of the same form only passes its addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from threading import get_ident
from typing import Any

import cupy
import numpy as np

from argand.runtime.calls.kept_call import (
    UNKNOWN,
    Chosen,
    KeptCall,
    Run,
    StreamRun,
    bytes_of,
    extent,
    overlaps,
)
from argand.runtime.cpu.numpy_calls import may_change
from argand.runtime.plans.plan_override import PlanOverride
from argand.runtime.plans.tuned_plans import TunedPlans

Key = tuple[Any, ...]
Form = tuple[Any, ...]
"""The traits by which operands share launches: layout, type, alignment; the device is last."""

ALIGNMENT = 31
"""Low bits of an address that a plan may depend on."""
MAX_CALLS = 4096
"""Most entries; then all are dropped, because a program of so many forms repeats few of them."""
MAX_BYTES = 256 << 20
"""Most device memory that entries keep, tables and matrices; then all are dropped."""
_ndarray = cupy.ndarray
_new = _ndarray.__mro__[1].__new__
_CAN_FILL = hasattr(_ndarray, "_init")
"""Whether CuPy's arrays can be made empty and then filled, without a public name for it. That takes
the host half as long as the constructor, which hands its arguments on."""
_alloc = cupy.cuda.alloc
current_device = cupy.cuda.runtime.getDevice


def _device_count() -> int:
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0


SEVERAL = _device_count() > 1
"""Whether arrays and calls can be on different devices; where not, their device is not asked."""


class NoFormError(TypeError):
    """An operand's form is unknown, so calls with it are never kept."""


class CallCache:
    """The call cache of one operation.

    Args:
        override: the operation's plan override, part of each key.
        table: its tuned plans; a change of them invalidates the calls before.
        form_of: the form of an operand that is no CuPy array; raises NoFormError.
        empty: makes a result of a shape and a type.
        in_place: indices of the operands that may be the result where both have one form.
    """

    def __init__(
        self,
        override: PlanOverride[Any] | None = None,
        table: TunedPlans[Any] | None = None,
        *,
        form_of: Callable[[Any], Form] | None = None,
        empty: Callable[[tuple[int, ...], str], Any] = _ndarray,
        in_place: tuple[int, ...] = (),
    ) -> None:
        #: The operation's plan override.
        self.override: PlanOverride[Any] = PlanOverride() if override is None else override
        #: The operation's tuned plans.
        self.table = table
        #: The form of an operand that is no array.
        self.form_of = _no_form if form_of is None else form_of
        #: Makes a result of a shape and a type.
        self.empty = empty
        self._in_place = in_place
        #: Calls on another library's arrays, by what is read of those.
        self.on_tensors: dict[Key, Any] = {}
        #: Calls by the addresses of arrays that have been checked.
        self.seen_tensors: dict[Key, Any] = {}
        self._calls: dict[Key, KeptCall] = {}
        self._bytes = 0
        self._planning: dict[int, list[tuple[list[Form | None], KeptCall]]] = {}  # by thread

    def look(self, operands: tuple[Any, ...]) -> tuple[list[Form | None], list[Any]]:
        """Return the forms of operands and their places; None where one is missing.

        The place of an array is its address, that of anything else itself. Raises NoFormError.
        """
        forms: list[Form | None] = []
        places: list[Any] = []
        for x in operands:
            if type(x) is _ndarray:
                # CuPy makes new tuples of shape and strides at each look, which takes longer than
                # all else here. The strides of contiguous arrays follow from their shape.
                strides = None if x._c_contiguous else x.strides
                at = x.data.ptr
                device = x.data.device_id if SEVERAL else 0
                forms.append((x.dtype, x.shape, strides, at & ALIGNMENT, device))
                places.append(at)
            else:
                forms.append(None if x is None else self.form_of(x))
                places.append(x)
        return forms, places

    @contextmanager
    def planning(self) -> Iterator[list[tuple[list[Form | None], KeptCall]]]:
        """Plan this thread's calls again in this context; kept ones are appended to the list.

        Each has the forms of its operands and its ``out`` beside it.
        """
        thread = get_ident()
        found = self._planning[thread] = []
        try:
            yield found
        finally:
            del self._planning[thread]

    def repeat(
        self, operands: tuple[Any, ...], out: Any, options: tuple[Any, ...]
    ) -> tuple[Key | None, Any]:
        """Repeat a call of a form that was kept; return the call's key and its result.

        ``options`` are all arguments but the operands and ``out``. The key is None for calls that
        are never kept. The result is None where no call was kept, where the kept one does not serve
        these operands, or where ``out`` overlaps one of them; the caller then computes it and may
        `keep` the call.
        """
        # `key_of_array` in line: a call of it, or a list within the key, takes longer than to look.
        key: list[Any] = [options]
        places: list[Any] = []
        for x in (*operands, out):
            if type(x) is _ndarray:
                at = x.data.ptr
                device = x.data.device_id if SEVERAL else 0
                key += x.dtype, x.shape, x._c_contiguous or x.strides, at & ALIGNMENT, device
                places.append(at)
            elif x is None:
                key.append(None)
                places.append(None)
            else:
                try:
                    key.append(self.form_of(x))
                except NoFormError:
                    return None, None
                places.append(x)
        found, call = self.find(key)
        if call is None:
            return found, None
        if out is None:
            out, places[-1] = self.result_of(call)
        elif overlaps(call, places):
            return found, None
        return found, None if call.run(*places) is NotImplemented else out

    def find(self, key: list[Any]) -> tuple[Key, KeptCall | None]:
        """Return the whole key of a call, given that of its arguments, and the call.

        The call is None where none was kept, or where this thread plans again.
        """
        override, table = self.override, self.table
        generation, device = 0 if table is None else table.generation, 0
        if SEVERAL:
            device = current_device()
        key += override.both, generation, device
        found = tuple(key)
        try:
            call = self._calls.get(found)
        except TypeError:  # an option that is given as a list
            return found, None
        return found, None if self._planning and get_ident() in self._planning else call

    def result_of(self, call: KeptCall) -> tuple[Any, Any]:
        """Return memory for a call's result, and its place."""
        if call.result_bytes:
            # CuPy takes longer to find the size itself, and the address.
            memory = _alloc(call.result_bytes)
            if not _CAN_FILL:
                return _ndarray(call.shape, call.output, memory), memory.ptr
            out = _new(_ndarray)
            out._init(call.shape, call.output, memory)
            return out, memory.ptr
        out = self.empty(call.shape, call.output)
        return out, out.data.ptr if type(out) is _ndarray else out

    def keep(
        self,
        key: Key | None,
        run: Run | StreamRun,
        operands: tuple[Any, ...],
        out: Any,
        shape: tuple[int, ...],
        output: str,
        nbytes: int = 0,
        chosen: Chosen = UNKNOWN,
    ) -> None:
        """Keep a call that read its operands and wrote its result in place.

        Args:
            key: the key from `repeat`. Nothing is kept without one, or after a change of plans or
                limits.
            run: queues the work of any call of this form.
            operands, out: the arrays of the key.
            shape, output: the shape of the result and its type, as ``empty`` takes them.
            nbytes: device memory that ``run`` holds.
            chosen: what it runs, for records.
        """
        if key is None or may_change(key[0]):
            return
        if self.table is not None and key[-2] is not self.table.generation:
            return
        *forms, result = _forms_in(key, len(operands) + 1)
        # A form ends with its device. Launches go to the current one, with which the key ends.
        if any(form is not None and form[-1] != key[-1] for form in (*forms, result)):
            return
        forbidden = self.forbidden(operands, forms, out, result)
        stream_run = None
        if isinstance(run, StreamRun):
            stream_run, run = run, run.run
        result_bytes = bytes_of(shape, output)
        call = KeptCall(run, shape, output, forbidden, chosen, result_bytes, stream_run)
        if self._planning and get_ident() in self._planning:
            self._planning[get_ident()].append(([*forms, result], call))
        if len(self._calls) >= MAX_CALLS or self._bytes + nbytes > MAX_BYTES:
            self.clear()
        try:
            self._calls[key] = call
            self._bytes += nbytes
        except TypeError:  # an option that is given as a list
            return

    def forbidden(
        self, operands: tuple[Any, ...], forms: Sequence[Form | None], out: Any, form: Form | None
    ) -> tuple[tuple[int, int, int, bool], ...]:
        """Return `KeptCall.forbidden` of operands and a result, given with their forms."""
        written = extent(out)
        if written is None:
            return ()
        low, high = written
        return tuple(
            (number, low - read[1], high - read[0], number in self._in_place and own == form)
            for number, (own, read) in enumerate(zip(forms, map(extent, operands), strict=True))
            if read is not None
        )

    def clear(self) -> None:
        """Drop all calls."""
        self._calls.clear()
        self.on_tensors.clear()
        self.seen_tensors.clear()
        self._bytes = 0


def key_of_array(
    dtype: np.dtype[Any], shape: Sequence[int], strides: Any, address: int, device: int
) -> list[Any]:
    """Return an array's part of a key, as `CallCache.repeat` makes it and `_forms_in` reads it.

    ``strides`` are in bytes, or True where the array is C-contiguous.
    """
    return [dtype, shape, strides, address & ALIGNMENT, device if SEVERAL else 0]


def _forms_in(key: Key, count: int) -> list[Form | None]:
    """Return the forms, as `CallCache.look` has them, from which `CallCache.repeat` made a key."""
    forms: list[Form | None] = []
    parts = iter(key[1:])
    for first in islice(parts, count):
        if not isinstance(first, np.dtype):
            forms.append(first)
            continue
        shape, strides, at, device = islice(parts, 4)
        forms.append((first, shape, None if strides is True else strides, at, device))
    return forms


def _no_form(x: Any) -> Form:
    raise NoFormError(type(x).__name__)
