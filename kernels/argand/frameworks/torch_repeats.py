"""Repeated calls on CUDA tensors of torch, from the call cache by their addresses alone.

The cache is that of calls on CuPy's arrays. None of those is made here: to make one takes the host
longer than a small product takes the card.
"""

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
from argand.frameworks.torch_streams import on_stream_of
from argand.frameworks.torch_tensors import TYPES
from argand.runtime.calls.call_cache import (
    ALIGNMENT,
    MAX_CALLS,
    SEVERAL,
    CallCache,
    Key,
    NoFormError,
    current_device,
    key_of_array,
)
from argand.runtime.calls.kept_call import KeptCall, Run, overlaps
from argand.runtime.driver.current_stream import OnStream

_NAMES = ("float32", "float64", "complex64", "complex128")
KINDS = {dtype: kind for dtype, kind in TYPES.items() if kind.name in _NAMES}
"""Types for which calls on tensors give the same results as calls on CuPy's arrays."""
RESULTS = {kind.name: dtype for dtype, kind in KINDS.items()}
"""Types of results as the call cache names them."""
_Tensor, _Parameter = torch.Tensor, torch.nn.Parameter
_current_stream = cupy.cuda.get_current_stream


class _TensorCall(NamedTuple):
    """How a call runs, a tensor like its result, and what the cache keeps of it.

    ``take`` returns the tensors among all arguments, on the GPU of index ``device``; ``checks``
    tell whether tensors at known addresses have the call's form.
    """

    run: Run
    model: Any
    kept: KeptCall
    takes_stream: bool
    device: int
    take: Callable[[Any], tuple[Any, ...]]
    checks: TensorChecks


_Seen = tuple[_TensorCall, Callable[..., bool], bool]
"""A call whose tensors were checked one by one, which takes as long as to launch: a check whether
others at their addresses are like them, and whether one requires a gradient."""


class TensorCalls:
    """Calls of a cache's operation on CUDA tensors.

    They have keys of their own, because types of torch as they are take the host less time.
    """

    def __init__(self, cache: CallCache) -> None:
        self._cache = cache
        self._calls: dict[Key, _TensorCall] = cache.on_tensors
        self._seen: dict[Key, _Seen] = cache.seen_tensors  # by addresses
        self._once: set[int] = set()  # hashes of addresses that came once

    def repeat(
        self, operands: tuple[Any, ...], out: Any, options: tuple[Any, ...]
    ) -> tuple[None, Any]:
        """Repeat a call that was kept; return None, in place of its key, and its result.

        Arguments are those of `CallCache.repeat`. The result is None where the call has to be made
        again, which keeps it.
        """
        if is_traced():
            return None, None
        cache = self._cache
        override, table = cache.override, cache.table
        generation = 0 if table is None else table.generation
        every = (*operands, out)
        name: Key | None
        try:
            at: tuple[int | None, ...]
            if len(every) == 4 and every[2] is every[3] is None:
                # A product of two tensors, the most frequent call: a loop takes twice as long.
                at = every[0].data_ptr(), every[1].data_ptr(), None, None
            else:
                at = tuple([x if x is None else x.data_ptr() for x in every])
            name = at, options, override.both, generation
            seen = self._seen.get(name)
        except (AttributeError, TypeError, RuntimeError):  # no tensor, or memory; a list as option
            name = seen = None
        if seen is not None:
            call, check, requires_grad = seen
            if check(*call.take(every)) and not pass_unseen(operands):
                if requires_grad and is_grad_enabled():
                    return None, None
                return None, _queued(call, [*at], out)
        if is_compiling() or are_followed(operands):
            return None, None
        key: list[Any] = [options, override.both, generation]
        places, device = self._looked(every, key)
        if device is None:
            return None, None
        if SEVERAL:
            key.append(device)
        looked_up = self._found(key, every, device)
        if looked_up is None:
            return None, None
        found = _queued(looked_up, places, out)
        if found is not None and name is not None:
            met = hash(name)
            if met in self._once:
                self._remember(name, looked_up, every)
            else:
                if len(self._once) >= MAX_CALLS:
                    self._once.clear()
                self._once.add(met)
        return None, found

    def _looked(self, every: tuple[Any, ...], key: list[Any]) -> tuple[list[Any], int | None]:
        """Return the places of operands and last ``out``, and the GPU of the tensors among them.

        Their traits are added to the key. The GPU is None where no kept call may serve them.
        """
        places: list[Any] = []
        at: int | None = None
        for x in every:
            if type(x) is _Tensor or type(x) is _Parameter:
                if x.is_conj() or x.is_neg() or (x.requires_grad and is_grad_enabled()):
                    return places, None
                index = x.get_device()
                if index != at:
                    if index < 0 or at is not None:  # on the CPU, or on two GPUs
                        return places, None
                    at = index
                try:
                    place = x.data_ptr()
                except RuntimeError:  # it has no memory of its own, as a sparse one
                    return places, None
                if not place:  # of no numbers, or freed
                    return places, None
                key += x.dtype, x.shape, x.is_contiguous() or x.stride(), place & ALIGNMENT
                places.append(place)
            elif x is None:
                key.append(None)
                places.append(None)
            else:
                try:
                    key.append(self._cache.form_of(x))
                except NoFormError:
                    return places, None
                places.append(x)
        return places, at

    def _remember(self, name: Key, call: _TensorCall, every: tuple[Any, ...]) -> None:
        """Keep a call whose tensors were checked, at addresses that came again."""
        given = call.take(every)
        check = call.checks.passed_by(given)
        if len(self._seen) >= MAX_CALLS:
            self._seen.clear()
        self._seen[name] = call, check, True in [x.requires_grad for x in given]

    def _found(self, key: list[Any], every: tuple[Any, ...], device: int) -> _TensorCall | None:
        """Return a call that was kept; None where there is none."""
        try:
            call = self._calls.get(tuple(key))
        except TypeError:  # an option that is given as a list
            return None
        if call is not None:
            return call
        with cupy.cuda.Device(device):
            return self._looked_up(key, every, device)

    def _looked_up(self, key: list[Any], every: tuple[Any, ...], device: int) -> _TensorCall | None:
        """Return the call that the cache keeps of CuPy's arrays, and keep it under this key too.

        It is None where the cache keeps none, and where results are pairs.
        """
        of_arrays: list[Any] = [key[0]]
        for x in every:
            if type(x) is not _Tensor and type(x) is not _Parameter:
                of_arrays.append(None if x is None else self._cache.form_of(x))
                continue
            kind = KINDS.get(x.dtype)
            if kind is None:
                return None
            strides = x.is_contiguous() or tuple([step * kind.itemsize for step in x.stride()])
            of_arrays += key_of_array(kind, x.shape, strides, x.data_ptr(), x.get_device())
        kept = self._cache.find(of_arrays)[1]
        if kept is None or (every[-1] is None and kept.output not in RESULTS):
            return None
        model = None
        if every[-1] is None:
            model = model_of(kept.shape, kept.output, every[0].device)
        if len(self._calls) >= MAX_CALLS:
            self._calls.clear()
        present = [number for number, x in enumerate(every) if x is not None]
        take = itemgetter(*present) if len(present) > 1 else itemgetter(slice(1))
        found = self._calls[tuple(key)] = _TensorCall(
            kept.run, model, kept, kept.stream_run is not None, device, take, TensorChecks()
        )
        return found


def model_of(shape: tuple[int, ...], output: str, device: Any) -> Any:
    """Return a tensor like a result, without memory.

    From a tensor torch makes another one in half the time that it takes to read a shape, a type
    and a device.
    """
    found = torch.empty(shape, dtype=RESULTS[output], device=device)
    found.untyped_storage().resize_(0)
    return found


def _queued(call: _TensorCall, places: list[Any], out: Any) -> Any:
    """Repeat a call on torch's current stream of its GPU; return its result, None without one."""
    device = call.device
    stream = raw_stream(device)
    # Nobody can capture the legacy stream, which is 0.
    if (stream and is_capturing()) or (SEVERAL and current_device() != device):
        with on_stream_of(torch.device("cuda", device)):
            return _repeated(call, places, out, stream)
    if call.takes_stream or _current_stream(device).ptr == stream:
        return _repeated(call, places, out, stream)
    with OnStream(cupy_stream(stream)):
        return _repeated(call, places, out, stream)


def _repeated(call: _TensorCall, places: list[Any], out: Any, stream: int) -> Any:
    """Repeat a call on a stream of torch's, which is CuPy's current one or given to the call."""
    if out is None:
        out = empty_like(call.model)
        places[-1] = out.data_ptr()
    elif overlaps(call.kept, places):
        return None
    else:
        note_written((out,))
    if call.takes_stream:
        places.append(stream)
    return None if call.run(*places) is NotImplemented else out
