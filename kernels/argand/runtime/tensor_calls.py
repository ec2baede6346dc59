"""Repeated calls on CUDA tensors of torch, from the call cache by their addresses alone.

The cache is that of calls on CuPy's arrays, of which none is made here: to make one takes the host
longer than a small product takes the card.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import cupy
import torch

from argand.frameworks.streams import cupy_stream
from argand.frameworks.torch_internals import INTERNALS
from argand.frameworks.torch_streams import on_stream_of
from argand.frameworks.torch_tensors import TYPES
from argand.runtime.call_cache import (
    ALIGNMENT,
    MOST_CALLS,
    SEVERAL,
    CallCache,
    Key,
    NoFormError,
    current_device,
    key_of_array,
)
from argand.runtime.kept_call import KeptCall, Run, overlaps, takes_stream

_NAMES = ("float32", "float64", "complex64", "complex128")
KINDS = {dtype: kind for dtype, kind in TYPES.items() if kind.name in _NAMES}
"""Types of which calls on tensors give the same results as calls on CuPy's arrays."""
RESULTS = {kind.name: dtype for dtype, kind in KINDS.items()}
"""Types of results as the call cache names them."""
_Tensor, _Parameter = torch.Tensor, torch.nn.Parameter
_empty_like = torch.empty_like
_is_compiling = torch.compiler.is_compiling
_is_grad_enabled = torch.is_grad_enabled
_are_followed = INTERNALS.are_followed
_raw_stream = INTERNALS.raw_stream
_is_capturing = INTERNALS.is_capturing
_note_written = INTERNALS.note_written
_current_stream = cupy.cuda.get_current_stream


class _TensorCall(NamedTuple):
    """How a call runs, a tensor like its result, and what the cache keeps of it."""

    run: Run
    model: Any
    kept: KeptCall
    takes_stream: bool


class TensorCalls:
    """Calls of a cache's operation on CUDA tensors.

    They have keys of their own, because types of torch as they are take the host less time.
    """

    def __init__(self, cache: CallCache) -> None:
        self._cache = cache
        self._calls: dict[Key, _TensorCall] = cache.on_tensors

    def repeat(
        self, operands: tuple[Any, ...], out: Any, options: tuple[Any, ...]
    ) -> tuple[None, Any]:
        """Repeat a call that was kept; return None, in place of its key, and its result.

        Arguments are those of `CallCache.repeat`. The result is None where the call has to be made
        anew, which keeps it.
        """
        if _is_compiling() or _are_followed(operands):
            return None, None
        cache = self._cache
        override, table = cache.override, cache.table
        generation = 0 if table is None else table.generation
        key: list[Any] = [options, override.active, override.value, generation]
        places: list[Any] = []
        at: Any = None  # the GPU of the tensors
        for x in operands if out is None else (*operands, out):
            if type(x) is _Tensor or type(x) is _Parameter:
                if x.is_conj() or x.is_neg() or (x.requires_grad and _is_grad_enabled()):
                    return None, None
                index = x.get_device()
                if index != at:
                    if index < 0 or at is not None:  # on the CPU, or on two GPUs
                        return None, None
                    at = index
                try:
                    place = x.data_ptr()
                except RuntimeError:  # it has no memory of its own, as a sparse one
                    return None, None
                if not place:  # of no numbers, or freed
                    return None, None
                key += x.dtype, x.shape, x.is_contiguous() or x.stride(), place & ALIGNMENT
                places.append(place)
            elif x is None:
                key.append(None)
                places.append(None)
            else:
                try:
                    key.append(cache.form_of(x))
                except NoFormError:
                    return None, None
                places.append(x)
        stream = _raw_stream(at)
        if SEVERAL:
            key.append(at)
        # Nobody can capture the legacy stream, which is 0.
        if (stream and _is_capturing()) or (SEVERAL and current_device() != at):
            with on_stream_of(torch.device("cuda", at)):
                call = self._found(key, operands, out)
                return None, None if call is None else _repeated(call, places, out, stream)
        call = self._found(key, operands, out)
        if call is None:
            return None, None
        if call.takes_stream or _current_stream(at).ptr == stream:
            return None, _repeated(call, places, out, stream)
        with cupy_stream(stream):
            return None, _repeated(call, places, out, stream)

    def _found(self, key: list[Any], operands: tuple[Any, ...], out: Any) -> _TensorCall | None:
        """Return a call that was kept; None where there is none."""
        try:
            call = self._calls.get(tuple(key))
        except TypeError:  # an option that is given as a list
            return None
        return self._looked_up(key, operands, out) if call is None else call

    def _looked_up(self, key: list[Any], operands: tuple[Any, ...], out: Any) -> _TensorCall | None:
        """Return what the cache keeps of this call on CuPy's arrays; it has the key from now on.

        It is None where the cache keeps none, and where results are pairs.
        """
        of_arrays: list[Any] = [key[0]]
        for x in (*operands, out):
            if type(x) is not _Tensor and type(x) is not _Parameter:
                of_arrays.append(None if x is None else self._cache.form_of(x))
                continue
            kind = KINDS.get(x.dtype)
            if kind is None:
                return None
            strides = x.is_contiguous() or tuple([step * kind.itemsize for step in x.stride()])
            of_arrays += key_of_array(kind, x.shape, strides, x.data_ptr(), x.get_device())
        kept = self._cache.find(of_arrays)[1]
        if kept is None or (out is None and kept.output not in RESULTS):
            return None
        model = None
        if out is None:
            # Without memory: from a tensor torch makes another one in half the time that it takes
            # to read a shape, a type and a device.
            model = torch.empty(kept.shape, dtype=RESULTS[kept.output], device=operands[0].device)
            model.untyped_storage().resize_(0)
        if len(self._calls) >= MOST_CALLS:
            self._calls.clear()
        found = self._calls[tuple(key)] = _TensorCall(kept.run, model, kept, takes_stream(kept.run))
        return found


def _repeated(call: _TensorCall, places: list[Any], out: Any, stream: int) -> Any:
    """Repeat a call on a stream of torch's, which is CuPy's current one or given to the call."""
    if out is None:
        out = _empty_like(call.model)
        places.append(out.data_ptr())
    elif overlaps(call.kept, places):
        return None
    else:
        _note_written((out,))
    if call.takes_stream:
        places.append(stream)
    return None if call.run(*places) is NotImplemented else out
