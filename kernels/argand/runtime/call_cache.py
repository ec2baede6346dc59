"""Call cache: the launches of earlier calls, by the form of their arguments.

Checking and planning take the host longer than a small problem takes the card. So a call's launches
are kept under the shapes, strides, types and alignments of its arrays and under its options. A
later call of the same form only passes its addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from threading import get_ident
from types import ModuleType
from typing import Any

import cupy

from argand.runtime.kept_call import UNKNOWN, Chosen, KeptCall, Run, bytes_of, extent, overlaps
from argand.runtime.plan_override import PlanOverride
from argand.runtime.tuned_plans import TunedPlans

Key = tuple[Any, ...]
Form = tuple[Any, ...]
"""The traits by which operands share launches: layout, type, alignment; the device is last."""

ALIGNMENT = 31
"""Low bits of an address that a plan may depend on."""
MOST_CALLS = 4096
"""Most entries; then all are dropped, because a program of so many forms repeats few of them."""
MOST_BYTES = 256 << 20
"""Most device memory that entries keep, tables and matrices; then all are dropped."""
_ndarray = cupy.ndarray
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
        self._override: PlanOverride[Any] = PlanOverride() if override is None else override
        #: Its tuned plans.
        self.table = table
        self._form_of = _no_form if form_of is None else form_of
        #: Makes a result of a shape and a type.
        self.empty = empty
        self._in_place = in_place
        self._calls: dict[Key, KeptCall] = {}
        self._bytes = 0
        self._planning: dict[int, list[tuple[Key, KeptCall]]] = {}  # by thread

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
                forms.append(None if x is None else self._form_of(x))
                places.append(x)
        return forms, places

    @contextmanager
    def planning(self) -> Iterator[list[tuple[Key, KeptCall]]]:
        """Within it this thread's calls are planned anew; those that are kept go into the list."""
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
        try:
            forms, places = self.look((*operands, out))
        except NoFormError:
            return None, None
        key, call = self.kept(forms, options)
        if call is None:
            return key, None
        if out is None:
            out, places[-1] = self.result_of(call)
        elif overlaps(call, places):
            return key, None
        return key, None if call.run(*places) is NotImplemented else out

    def result_of(self, call: KeptCall) -> tuple[Any, Any]:
        """Return memory for a call's result, and its place."""
        if call.result_bytes:
            # CuPy takes longer to find the size itself, and the address.
            memory = _alloc(call.result_bytes)
            return _ndarray(call.shape, call.output, memory), memory.ptr
        out = self.empty(call.shape, call.output)
        return out, out.data.ptr if type(out) is _ndarray else out

    def repeat_on_tensors(
        self, operands: tuple[Any, ...], out: Any, options: tuple[Any, ...]
    ) -> Any:
        """Repeat a call on CUDA tensors of torch, of which `repeat` knows no form.

        Returns its result, None where it has to be made anew.
        """
        return _tensor_calls().repeat_on_tensors(self, operands, out, options)

    def kept(
        self, forms: Sequence[Form | None], options: tuple[Any, ...]
    ) -> tuple[Key, KeptCall | None]:
        """Return the key of a call, its operands and last its result given by forms, and the call.

        The call is None where none was kept, or where this thread plans anew.
        """
        override, table = self._override, self.table
        key = (
            *forms, options, current_device() if SEVERAL else 0, override.active, override.value,
            0 if table is None else table.generation,
        )  # fmt: skip
        try:
            call = self._calls.get(key)
        except TypeError:  # an option that is given as a list
            return key, None
        return key, None if self._planning and get_ident() in self._planning else call

    def keep(
        self,
        key: Key | None,
        run: Run,
        operands: tuple[Any, ...],
        out: Any,
        shape: tuple[int, ...],
        output: str,
        nbytes: int = 0,
        chosen: Chosen = UNKNOWN,
    ) -> None:
        """Keep a call that read its operands and wrote its result in place.

        Args:
            key: from `repeat`; nothing is kept without one.
            run: queues the work of any call of this form.
            operands, out: those of the key.
            shape, output: of the result and its type, as ``empty`` takes them.
            nbytes: device memory that ``run`` holds.
            chosen: what it runs, for records.
        """
        if key is None:
            return
        *forms, result = key[: len(operands) + 1]
        device = key[len(operands) + 2]
        # A form ends with its device. Launches go to the current one.
        if any(form is not None and form[-1] != device for form in (*forms, result)):
            return
        forbidden = self.forbidden(operands, forms, out, result)
        call = KeptCall(run, shape, output, forbidden, chosen, bytes_of(shape, output), {})
        if self._planning and get_ident() in self._planning:
            self._planning[get_ident()].append((key, call))
        if len(self._calls) >= MOST_CALLS or self._bytes + nbytes > MOST_BYTES:
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
        self._bytes = 0


@cache
def _tensor_calls() -> ModuleType:
    """`argand.runtime.tensor_calls`, which imports torch: only calls that have a tensor need it."""
    from argand.runtime import tensor_calls

    return tensor_calls


def _no_form(x: Any) -> Form:
    raise NoFormError(type(x).__name__)
