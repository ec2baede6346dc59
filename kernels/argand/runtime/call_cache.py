"""Call cache: the launches of earlier calls, by the form of their arguments.

Checking and planning take the host longer than a small problem takes the card. So a call's launches
are kept under the shapes, strides, types and alignments of its arrays and under its options. A
later call of the same form only passes its addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import cupy
import numpy as np

from argand.runtime.plan_override import PlanOverride
from argand.runtime.tuned_plans import TunedPlans

Key = tuple[Any, ...]
Run = Callable[..., Any]
"""Queues a call's work on the current stream, given its operands and then its result.

It returns NotImplemented, and does nothing, where it does not serve these operands.
"""
Extent = tuple[int, int]
"""The first byte that an array touches and one past the last, from its address."""
Form = tuple[Any, ...]
"""The traits by which operands share launches: layout, type, alignment; the device is last."""

ALIGNMENT = 31
"""Low bits of an address that a plan may depend on."""
MOST_CALLS = 4096
"""Most entries; then all are dropped, because a program of so many forms repeats few of them."""
MOST_BYTES = 256 << 20
"""Most device memory that entries keep, tables and matrices; then all are dropped."""
_ndarray = cupy.ndarray
_current_device = cupy.cuda.runtime.getDevice


def _device_count() -> int:
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0


_SEVERAL = _device_count() > 1
"""Whether arrays and calls can be on different devices; where not, their device is not asked."""


class NoFormError(TypeError):
    """An operand's form is unknown, so calls with it are never kept."""


class _Call(NamedTuple):
    """A kept call: how to run it again, and the checks that each repetition makes.

    ``extents`` are those of the operands that the result must not overlap, each with the operand's
    index and whether it may be the result; ``result_extent`` is None where callers give no result.
    """

    run: Run
    shape: tuple[int, ...]
    output: str | np.dtype[Any]
    extents: tuple[tuple[int, Extent, bool], ...]
    result_extent: Extent | None


class CallCache:
    """The call cache of one operation.

    Args:
        override: the operation's plan override, part of each key.
        table: its tuned plans; a change of them invalidates the calls before.
        form_of: the form of an operand that is no CuPy array; raises NoFormError.
        empty: makes a result of a shape and a type, which is a name of no NumPy type or a dtype.
        in_place: indices of the operands that may be the result where both have one form.
    """

    def __init__(
        self,
        override: PlanOverride[Any] | None = None,
        table: TunedPlans[Any] | None = None,
        *,
        form_of: Callable[[Any], Form] | None = None,
        empty: Callable[[tuple[int, ...], Any], Any] = _ndarray,
        in_place: tuple[int, ...] = (),
    ) -> None:
        self._override: PlanOverride[Any] = PlanOverride() if override is None else override
        self._table = table
        self._form_of = _no_form if form_of is None else form_of
        self._empty = empty
        self._in_place = in_place
        self._calls: dict[Key, _Call] = {}
        self._bytes = 0

    def key(self, operands: tuple[Any, ...], options: tuple[Any, ...]) -> Key | None:
        """Return what identifies calls of one form; None for calls that are never kept.

        ``operands`` are the arrays and last the result, None where one is missing; ``options`` are
        all other arguments.
        """
        try:
            # CuPy makes new tuples of shape and strides at each look, which takes longer than all
            # else here. The strides of contiguous arrays follow from their shape.
            forms = [
                None if x is None
                else (x.dtype, x.shape, None if x._c_contiguous else x.strides,
                      x.data.ptr & ALIGNMENT, x.data.device_id if _SEVERAL else 0)
                if type(x) is _ndarray
                else self._form_of(x)
                for x in operands
            ]  # fmt: skip
        except NoFormError:
            return None
        override, table = self._override, self._table
        return (
            *forms, options, _current_device() if _SEVERAL else 0, override.active, override.value,
            0 if table is None else table.generation,
        )  # fmt: skip

    def repeat(
        self, operands: tuple[Any, ...], out: Any, options: tuple[Any, ...]
    ) -> tuple[Key | None, Any]:
        """Repeat a call of a form that was kept; return the call's key and its result.

        The result is None where no call was kept, where the kept one does not serve these operands,
        or where ``out`` overlaps one of them; the caller then computes it and may `keep` the call.
        """
        key = self.key((*operands, out), options)
        if key is None:
            return None, None
        try:
            call = self._calls.get(key)
        except TypeError:  # an option that is given as a list
            return key, None
        if call is None:
            return key, None
        if out is None:
            out = self._empty(call.shape, call.output)
        elif call.extents and _overlaps(call, operands, out):
            return key, None
        return key, None if call.run(*operands, out) is NotImplemented else out

    def keep(
        self,
        key: Key | None,
        run: Run,
        operands: tuple[Any, ...],
        out: Any,
        shape: tuple[int, ...],
        output: str,
        nbytes: int = 0,
    ) -> None:
        """Keep a call that read its operands and wrote its result in place.

        Args:
            key: from `key`; nothing is kept without one.
            run: queues the work of any call of this form.
            operands, out: those of the key.
            shape, output: of the result and its type, as ``empty`` takes them.
            nbytes: device memory that ``run`` holds.
        """
        if key is None:
            return
        *forms, result = key[: len(operands) + 1]
        device = key[len(operands) + 2]
        # A form ends with its device. Launches go to the current one.
        if any(form is not None and form[-1] != device for form in (*forms, result)):
            return
        extents = [
            (number, reach, number in self._in_place and forms[number] == result)
            for number, reach in enumerate(map(extent, operands))
            if reach is not None
        ]
        # A type's name takes CuPy longer to look up than the launch of a kernel.
        kind = output if output not in np.sctypeDict else np.dtype(output)
        call = _Call(run, shape, kind, tuple(extents), extent(out))
        if len(self._calls) >= MOST_CALLS or self._bytes + nbytes > MOST_BYTES:
            self.clear()
        try:
            self._calls[key] = call
            self._bytes += nbytes
        except TypeError:  # an option that is given as a list
            return

    def clear(self) -> None:
        """Drop all calls."""
        self._calls.clear()
        self._bytes = 0


def _overlaps(call: _Call, operands: tuple[Any, ...], out: Any) -> bool:
    """Return whether a call would write what it has yet to read."""
    assert call.result_extent is not None
    at = _array(out).data.ptr
    low, high = call.result_extent
    for number, (first, end), in_place in call.extents:
        x = operands[number]
        distance = (x if type(x) is _ndarray else _array(x)).data.ptr - at
        if low - end < distance < high - first and not (in_place and distance == 0):
            return True
    return False


def extent(x: Any) -> Extent | None:
    """Return the extent of an array, or of an object's ``array``; None of anything else."""
    array = _array(x)
    if type(array) is not _ndarray:
        return None
    low = high = 0
    for length, stride in zip(array.shape, array.strides, strict=True):
        if stride < 0:
            low += (length - 1) * stride
        else:
            high += (length - 1) * stride
    return low, high + int(array.itemsize)


def _array(x: Any) -> Any:
    return x if type(x) is _ndarray else getattr(x, "array", x)


def _no_form(x: Any) -> Form:
    raise NoFormError(type(x).__name__)
