"""The part of a plan that a GPU needs: a kept call, the forms of its arrays and its memory."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import cupy

from argand.device import gpu
from argand.runtime.calls.call_cache import (
    SEVERAL,
    CallCache,
    Form,
    NoFormError,
    current_device,
)
from argand.runtime.calls.kept_call import Addresses, KeptCall, Run, Start, no_start, overlaps
from argand.runtime.memory.workspace import PlanMemory
from argand.runtime.plans.tuned_plans import TunedPlans

_ndarray = cupy.ndarray
_current_stream = cupy.cuda.get_current_stream


_Places = tuple[tuple[Any, ...], tuple[int, ...] | None]
"""The places of a call, and with ``out`` the addresses of a launch that starts at such."""
MAX_KNOWN = 64
"""Most sets of arrays whose places a plan keeps: a loop alternates between few."""


class DeviceCallPlan:
    """A call that the call cache of an operation kept, for arrays of the same forms.

    Args:
        cache: the cache of the operation.
        call: the operation, made once.
        arrays: its operands.
        run_of: the run of the plan, of the kept one, where they are not the same.

    Raises ValueError where the cache keeps no such call.
    """

    def __init__(
        self,
        cache: CallCache,
        call: Callable[..., Any],
        arrays: tuple[Any, ...],
        run_of: Callable[[Any], Run] | None = None,
    ) -> None:
        device = cupy.cuda.Device().id
        self.device = gpu(device)
        #: Memory of calls, besides their operands.
        self.memory = PlanMemory()
        with cache.planning() as kept:
            result = self.memory.run(call, arrays, _current_stream().ptr)
        self._alone, _ = cache.look((*arrays, None))
        # A call may pass on a view of an operand, or return a view of what was computed.
        if not kept or not _as_given(*kept[-1], self._alone, result):
            raise ValueError(
                "a plan needs operands that kernels read in place, at least one element, and "
                f"{self.device.name} as the current device; a call with these converts or copies "
                "one of them"
            )
        self._cache, self._look = cache, cache.look
        #: Forms of the operands and of the result.
        self.forms, _ = cache.look((*arrays, result))
        *forms, form = self.forms
        # As if it had been called with ``out``.
        forbidden = cache.forbidden(arrays, forms, result, form)
        found = kept[-1][1]
        self._has_memory = self.memory.nbytes > 0
        # Another run, or one in the plan's memory, cannot start at addresses alone.
        stream_run = found.stream_run if run_of is None and not self._has_memory else None
        run = found.run if run_of is None else run_of(found.run)
        #: The kept call.
        self.call: KeptCall = found._replace(forbidden=forbidden, run=run, stream_run=stream_run)
        self.chosen, self._run = self.call.chosen, run
        self._result_of, self._index = cache.result_of, device
        #: The launch at given addresses, and the function that returns those of a call's places.
        self._start: Start = no_start
        self._addresses_of: Addresses | None = None
        if stream_run is not None:
            _, self._start, self._addresses_of = stream_run
        # By the identities of arrays: while they live, nothing but their shape can change.
        self._known: dict[tuple[int, ...], _Places] = {}
        self._references: dict[tuple[int, ...], list[Any]] = {}

    def queue(self, every: tuple[Any, ...]) -> Any:
        """Queue the call for the operands and last ``out``, or None, and return the result.

        It returns None, and does nothing, where they are not of the planned forms or overlap.
        Python calls a bound method in less time than an object with `__call__`.
        """
        if SEVERAL and current_device() != self.device.index:
            raise ValueError(f"the plan is for GPU {self.device.index}, got another current one")
        if len(every) == 4:  # of a product, the most frequent form: a loop takes twice the time
            a, b, c, out = every
            names: tuple[int, ...] = id(a), id(b), id(c), id(out)
        else:
            names, out = tuple([id(x) for x in every]), every[-1]
        known = self._known.get(names) or self._looked(names, every)
        if known is None:
            return None
        places, addresses = known
        if addresses is not None:
            self._start(addresses, _current_stream(self._index).ptr)
            return out
        if out is None:
            out, place = self._result_of(self.call)
            places = (*places[:-1], place)
        if self._has_memory:
            self.memory.run(self._run, places, _current_stream().ptr)
        else:
            self._run(*places)
        return out

    def _looked(self, names: tuple[int, ...], every: tuple[Any, ...]) -> _Places | None:
        """Return the places of what a call may take, and remember those of arrays."""
        try:
            forms, places = self._look(every)
        except NoFormError:
            return None
        if every[-1] is None:
            if forms != self._alone:
                return None
        elif forms != self.forms or overlaps(self.call, places):
            return None
        addresses = None
        if self._addresses_of is not None and every[-1] is not None:
            addresses = self._addresses_of(*places)
        found = tuple(places), addresses
        if all(x is None or type(x) is _ndarray for x in every):
            self._remember(names, every, found)
        return found

    def _remember(self, names: tuple[int, ...], every: tuple[Any, ...], places: _Places) -> None:
        """Keep the places of arrays as long as all of them live."""
        known, references = self._known, self._references
        if len(known) >= MAX_KNOWN:
            known.clear()
            references.clear()

        def forget(_: Any) -> None:
            known.pop(names, None)
            references.pop(names, None)

        references[names] = [weakref.ref(x, forget) for x in every if x is not None]
        known[names] = places

    def mismatch(self, names: tuple[str, ...], every: tuple[Any, ...]) -> str:
        """Return why a call is not this plan's, whose operands have the planned shapes."""
        try:
            forms, _ = self._look(every)
        except NoFormError as error:
            return f"operands and out must be on {self.device.name}, got {error}"
        for name, found, expected in zip((*names, "out"), forms, self.forms, strict=True):
            if found is not None and found != expected:
                return (
                    f"{name} must have the planned type, shape, strides (None: contiguous), "
                    f"address modulo 32 and device {expected}, got {found}"
                )
        return "out must not overlap an operand"

    @property
    def nbytes(self) -> int:
        """Bytes of a call beside its arrays."""
        return self.memory.nbytes + self.chosen.library_bytes

    def tuned(self) -> dict[str, Any] | None:
        """Return the tuned plan that the call took, as a table keeps it; None where it has none."""
        table, entry = self._cache.table, self.chosen.entry
        if table is None or entry is None:
            return None
        choice = table.find(entry, self.device.index)
        if choice is None:
            return None
        return {**table.measured_on(self.device.index), "name": entry, "choice": asdict(choice)}


def _as_given(
    kept: list[Form | None], call: KeptCall, forms: list[Form | None], result: Any
) -> bool:
    """Return whether a call, kept with its forms, read these and wrote the whole result."""
    array = getattr(result, "array", result)
    whole = tuple(result.shape) == tuple(call.shape) and array.flags.c_contiguous
    made = result.dtype if array is result else result.format
    return whole and kept == forms and call.output == str(made)


def adopt(table: TunedPlans[Any] | None, tuned: dict[str, Any]) -> None:
    """Take the tuned plan of a file into a table of the current device, for this process.

    Raises ValueError for a plan of another card, driver or version, or one that is not legal.
    """
    if table is None:
        raise ValueError("this operation has no tuned plans")
    table.adopt(cupy.cuda.Device().id, tuned)
