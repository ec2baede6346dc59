"""Repeated calls on CUDA tensors of torch, from the call cache by their addresses alone.

The cache is that of calls on CuPy's arrays, of which none is made here: to make one takes the host
longer than a small product takes the card.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cupy
import torch

from argand.frameworks.torch_internals import INTERNALS
from argand.frameworks.torch_tensors import TYPES, on_stream_of
from argand.runtime.call_cache import ALIGNMENT, SEVERAL, CallCache, Form, NoFormError
from argand.runtime.kept_call import overlaps

_NAMES = ("float32", "float64", "complex64", "complex128")
_KINDS = {dtype: kind for dtype, kind in TYPES.items() if kind.name in _NAMES}
"""Types of which calls on tensors give the same results as calls on CuPy's arrays."""
_RESULTS = {kind.name: dtype for dtype, kind in _KINDS.items()}
_Tensor = torch.Tensor
_empty_like = torch.empty_like
_is_grad_enabled = torch.is_grad_enabled
_are_followed = INTERNALS.are_followed
_raw_stream = INTERNALS.raw_stream
_is_capturing = INTERNALS.is_capturing
_current_stream = cupy.cuda.get_current_stream


def repeat_on_tensors(
    cache: CallCache, operands: tuple[Any, ...], out: Any, options: tuple[Any, ...]
) -> Any:
    """Repeat a call that was kept and return its result; None where it has to be made anew.

    Arguments are those of `CallCache.repeat`, with CUDA tensors for some arrays; torch compiles
    none of them.
    """
    if _are_followed(operands):
        return None
    forms: list[Form | None] = []
    places: list[Any] = []
    at = -1  # the GPU of the tensors
    for x in (*operands, out):
        if x is None:
            forms.append(None)
            places.append(None)
        elif type(x) is _Tensor:
            kind, place, index = _KINDS.get(x.dtype), x.data_ptr(), x.get_device()
            if (
                kind is None
                or x.is_conj()
                or x.is_neg()
                or (x.requires_grad and _is_grad_enabled())
            ):
                return None
            if index != at:
                if index < 0 or at >= 0:  # on the CPU, or on two GPUs
                    return None
                at = index
            strides = None if x.is_contiguous() else _strides(x, kind.itemsize)
            forms.append((kind, x.shape, strides, place & ALIGNMENT, index if SEVERAL else 0))
            places.append(place)
        else:
            try:
                (form,), (place,) = cache.look((x,))
            except NoFormError:
                return None
            forms.append(form)
            places.append(place)
    stream = _raw_stream(at)
    # Nobody can capture the legacy stream, which is 0.
    if SEVERAL or _current_stream(at).ptr != stream or (stream and _is_capturing()):
        with on_stream_of(torch.device("cuda", at)):
            return _repeated(cache, forms, places, out, options, at)
    return _repeated(cache, forms, places, out, options, at)


def _repeated(
    cache: CallCache,
    forms: list[Form | None],
    places: list[Any],
    out: Any,
    options: tuple[Any, ...],
    index: int,
) -> Any:
    """Repeat a call on CuPy's current stream, which is that of the tensors on a GPU."""
    call = cache.kept(forms, options)[1]
    if call is None:
        return None
    if out is None:
        model = call.models.get(index)
        if model is None:
            if call.output not in _RESULTS:  # Pairs
                return None
            model = call.models[index] = _element(call.output, index).expand(call.shape)
        # From a tensor with one element in memory: torch.empty, which reads a type and a device,
        # takes the host twice as long.
        out = _empty_like(model)
        places[-1] = out.data_ptr()
    elif overlaps(call, places):
        return None
    return None if call.run(*places) is NotImplemented else out


def _strides(x: Any, item: int) -> tuple[int, ...]:
    """Return the strides of a tensor in bytes."""
    return tuple([step * item for step in x.stride()])


@lru_cache(maxsize=64)
def _element(output: str, index: int) -> Any:
    return torch.empty((), dtype=_RESULTS[output], device=torch.device("cuda", index))
