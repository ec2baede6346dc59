"""Repeated calls on CUDA tensors of torch, from the call cache by their addresses alone.

The cache is that of calls on CuPy's arrays, of which none is made here: to make one takes the host
longer than a small product takes the card.
"""

from __future__ import annotations

from typing import Any

import torch

from argand.frameworks.torch_tensors import TYPES, on_stream_of
from argand.runtime.call_cache import ALIGNMENT, SEVERAL, CallCache, NoFormError, overlaps

_NAMES = ("float32", "float64", "complex64", "complex128")
_KINDS = {dtype: kind for dtype, kind in TYPES.items() if kind.name in _NAMES}
"""Types of which calls on tensors give the same results as calls on CuPy's arrays."""
_RESULTS = {kind.name: dtype for dtype, kind in _KINDS.items()}


def repeat_on_tensors(
    cache: CallCache, operands: tuple[Any, ...], out: Any, options: tuple[Any, ...]
) -> Any:
    """Repeat a call that was kept and return its result; None where it has to be made anew.

    Arguments are those of `CallCache.repeat`, with CUDA tensors for some arrays.
    """
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return None
    forms, places, device = [], [], None
    with_gradients = torch.is_grad_enabled()
    for x in (*operands, out):
        if type(x) is not torch.Tensor:
            try:
                (form,), (place,) = cache.look((x,))
            except NoFormError:
                return None
        else:
            kind = _KINDS.get(x.dtype)
            if kind is None or x.is_conj() or x.is_neg() or (with_gradients and x.requires_grad):
                return None
            place, item, index = x.data_ptr(), kind.itemsize, x.get_device()
            strides = None if x.is_contiguous() else tuple([step * item for step in x.stride()])
            form = kind, x.shape, strides, place & ALIGNMENT, index if SEVERAL else 0
            if device is None:
                device = x.device
            elif index != device.index:  # of another GPU, or -1 of the CPU
                return None
        forms.append(form)
        places.append(place)
    with on_stream_of(device):
        call = cache.kept(forms, options)[1]
        if call is None:
            return None
        if out is None:
            dtype = _RESULTS.get(call.output)
            if dtype is None:  # Pairs
                return None
            out = torch.empty(call.shape, dtype=dtype, device=device)
            places[-1] = out.data_ptr()
        elif overlaps(call, places):
            return None
        return None if call.run(*places) is NotImplemented else out
