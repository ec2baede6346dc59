"""A plan's calls on CUDA tensors of torch, by their addresses alone; no array of CuPy is made."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any, NamedTuple

import cupy
import torch

from argand.frameworks.streams import cupy_stream
from argand.frameworks.torch_checks import TensorChecks
from argand.frameworks.torch_functions import (
    are_followed,
    empty_like,
    is_capturing,
    is_compiling,
    is_grad_enabled,
    is_traced,
    note_written,
    pass_unseen,
    raw_stream,
)
from argand.frameworks.torch_repeats import KINDS, RESULTS, model_of
from argand.runtime.calls.call_cache import ALIGNMENT, SEVERAL, Form, current_device
from argand.runtime.calls.device_call_plan import MAX_KNOWN, DeviceCallPlan
from argand.runtime.calls.kept_call import Addresses, Start, no_start, overlaps
from argand.runtime.calls.staged_call_plan import StagedCallPlan
from argand.runtime.driver.current_stream import OnStream

_TYPES = {kind: dtype for dtype, kind in KINDS.items()}
_Tensor, _Parameter = torch.Tensor, torch.nn.Parameter
_address = _Tensor.data_ptr
_current_stream = cupy.cuda.get_current_stream


class _Seen(NamedTuple):
    """A call that was made: a check of its tensors, all addresses, None for what is missing.

    ``requires_grad`` says whether a tensor requires a gradient; ``addresses`` are those of the
    launch, None without ``out`` or for a run that cannot start at addresses.
    """

    check: Callable[..., bool]
    places: tuple[Any, ...]
    requires_grad: bool
    addresses: tuple[int, ...] | None


def of_tensors(plan: DeviceCallPlan | StagedCallPlan) -> Callable[[tuple[Any, ...]], Any]:
    """Return a function that calls a plan on CUDA tensors of torch.

    That is the plan's own, for CuPy's arrays over their memory, where it stages its array or one
    of its types is none of those here.
    """
    if not isinstance(plan, DeviceCallPlan) or plan.call.output not in RESULTS:
        return plan.queue
    taken = all(form is None or form[0] in _TYPES for form in plan.forms)
    return (TensorPlan(plan) if taken else plan).queue


class TensorPlan:
    """The calls of a plan on tensors of the planned forms, on torch's current stream."""

    def __init__(self, plan: DeviceCallPlan) -> None:
        self._call, self._run, self._memory = plan.call, plan.call.run, plan.memory
        self._device = plan.device.index
        self._forms = [_tensor_form(form, self._device) for form in plan.forms]
        stream_run = plan.call.stream_run
        self._has_memory, self._takes_stream = plan.memory.nbytes > 0, stream_run is not None
        #: The launch at given addresses, and the function that returns those of a call's places.
        self._start: Start = no_start
        self._addresses_of: Addresses | None = None
        if stream_run is not None:
            _, self._start, self._addresses_of = stream_run
        last = len(self._forms) - 1
        present = [at for at, form in enumerate(self._forms[:-1]) if form is not None]
        self._absent = [at for at, form in enumerate(self._forms[:-1]) if form is None]
        # `queue` writes these forms, the most frequent ones, without loops: they double its time.
        self._is_product = present == [0, 1] and self._absent == [2]
        self._is_of_one = present == [0] and not self._absent
        self._with_out = itemgetter(*present, last)
        self._alone = itemgetter(*present) if len(present) > 1 else itemgetter(slice(1))
        self._seen: dict[tuple[int, ...], _Seen] = {}  # by addresses
        self._checks = TensorChecks()
        self._model = model_of(plan.call.shape, plan.call.output, f"cuda:{self._device}")

    def queue(self, every: tuple[Any, ...]) -> Any:
        """Queue the call for the operands and last ``out``, or None, and return the result.

        It returns None, and does nothing, for all but plain tensors of the planned forms.
        """
        if is_traced():
            return None
        out = every[-1]
        try:
            if self._is_product and out is not None:
                a, b, c, _ = every
                if c is not None:
                    return None
                given = a, b, out
                at_all: tuple[int, ...] = _address(a), _address(b), _address(out)
            elif self._is_of_one and out is not None:
                given, at_all = every, (_address(every[0]), _address(out))
            else:
                for at in self._absent:
                    if every[at] is not None:
                        return None
                given = (self._alone if out is None else self._with_out)(every)
                at_all = tuple([_address(x) for x in given])
        except (TypeError, RuntimeError):  # an array of CuPy's; one without memory, as sparse
            return None
        seen = self._seen.get(at_all)
        if seen is None or not seen[0](*given) or pass_unseen(given):
            seen = self._looked(every, given)
            if seen is None:
                return None
            self._remember(at_all, seen)
        _, places, requires_grad, addresses = seen
        if requires_grad and is_grad_enabled():
            return None
        stream = raw_stream(self._device)
        if (stream and is_capturing()) or (SEVERAL and current_device() != self._device):
            return None
        if addresses is not None:
            note_written((out,))
            self._start(addresses, stream)
            return out
        if self._takes_stream or _current_stream(self._device).ptr == stream:
            if out is None or self._has_memory:
                return self._queued(places, out, stream)
            note_written((out,))
            self._run(*places)
            return out
        with OnStream(cupy_stream(stream)):
            return self._queued(places, out, stream)

    def _looked(self, every: tuple[Any, ...], given: tuple[Any, ...]) -> _Seen | None:
        """Return what later calls compare plain tensors of the planned forms with; None for others.

        ``given`` are the tensors among all arguments.
        """
        if is_compiling() or are_followed(every):
            return None
        places: list[Any] = []
        for x, form in zip(every, self._forms, strict=True):
            if type(x) is _Tensor or type(x) is _Parameter:
                place = x.data_ptr()
                if not place:  # of no numbers, or freed
                    return None
                found = (
                    x.dtype, x.shape, x.is_contiguous() or x.stride(), place & ALIGNMENT,
                    x.get_device(),
                )  # fmt: skip
                if found != form or x.is_conj() or x.is_neg():
                    return None
                places.append(place)
            elif x is None and (form is None or len(places) == len(every) - 1):
                places.append(None)
            else:
                return None
        if every[-1] is not None and overlaps(self._call, places):
            return None
        addresses = None
        if self._addresses_of is not None and every[-1] is not None:
            addresses = self._addresses_of(*places)
        check, requires_grad = self._checks.passed_by(given), any(x.requires_grad for x in given)
        return _Seen(check, tuple(places), requires_grad, addresses)

    def _remember(self, places: tuple[int, ...], seen: _Seen) -> None:
        """Keep what was checked, of addresses that may come again."""
        if len(self._seen) >= MAX_KNOWN:
            self._seen.clear()
        self._seen[places] = seen

    def _queued(self, places: tuple[Any, ...], out: Any, stream: int) -> Any:
        if out is None:
            out = empty_like(self._model)
            places = (*places[:-1], out.data_ptr())
        else:
            note_written((out,))
        if self._takes_stream:
            self._run(*places, stream)
        elif self._has_memory:
            self._memory.run(self._run, places, stream)
        else:
            self._run(*places)
        return out


def _tensor_form(form: Form | None, device: int) -> tuple[Any, ...] | None:
    if form is None:
        return None
    dtype, shape, strides, alignment, _ = form
    steps = True if strides is None else tuple(step // dtype.itemsize for step in strides)
    return _TYPES[dtype], torch.Size(shape), steps, alignment, device
