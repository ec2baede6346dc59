"""Calls in place on a CUDA tensor of torch that comes again, by an array of CuPy kept over it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy
import torch

from argand.frameworks.streams import cupy_stream
from argand.frameworks.torch_functions import (
    are_followed,
    check_of,
    is_capturing,
    is_traced,
    note_written,
    pass_unseen,
    raw_stream,
)
from argand.runtime.calls.call_cache import SEVERAL, current_device
from argand.runtime.driver.current_stream import OnStream

_current_stream = cupy.cuda.get_current_stream


class TensorInPlace:
    """A call that writes to one tensor: repeated on the last one that it was made for.

    Args:
        apply: queues the call on CuPy's current stream, for an array of CuPy.
    """

    def __init__(self, apply: Callable[[Any], None]) -> None:
        self._apply = apply
        # The tensor's address, a check, its array and its GPU: threads may call beside each other.
        self._last: tuple[int, Callable[..., bool], Any, int] | None = None

    def repeat(self, x: Any) -> bool:
        """Queue the call on torch's current stream; return False, and do nothing, for another x."""
        last = self._last
        if is_traced() or last is None:
            return False
        place, check, array, device = last
        try:
            if x.data_ptr() != place or not check(x) or pass_unseen((x,)):
                return False
        except (AttributeError, RuntimeError):  # not a tensor; one without memory
            return False
        stream = raw_stream(device)
        # In a capture the memory that a call takes is torch's.
        if (stream and is_capturing()) or (SEVERAL and current_device() != device):
            return False
        note_written((x,))
        if _current_stream(device).ptr == stream:
            self._apply(array)
        else:
            with OnStream(cupy_stream(stream)):
                self._apply(array)
        return True

    def remember(self, x: Any, dtype: Any) -> None:
        """Keep a plain tensor without a gradient that the call was made for; forget the one before.

        Its numbers are contiguous and of NumPy's ``dtype``.
        """
        if type(x) is not torch.Tensor or x.requires_grad or are_followed((x,)):
            return
        device = x.get_device()
        place = x.data_ptr()
        # Without an owner: the array is used where a tensor of this memory is given.
        memory = cupy.cuda.UnownedMemory(place, x.nbytes, None, device)
        array = cupy.ndarray(tuple(x.shape), dtype, cupy.cuda.MemoryPointer(memory, 0))
        self._last = place, check_of((x,)), array, device
