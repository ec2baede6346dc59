"""Enter the GPU of a call's arrays, if they are on one, before any of them is converted."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from argand.device import is_cupy_array


def context_of(*arrays: Any) -> AbstractContextManager[Any]:
    """Return the context of `runtime.calls.layout.device_of`; an empty one without CuPy's arrays.

    In it an array that is converted is one of its own GPU, and in a capture the graph's: what lies
    in the pool would be another array's at the next replay. Raises TypeError for arrays on several
    GPUs.
    """
    found = [x for x in arrays if is_cupy_array(x)]
    if not found:
        return nullcontext()
    from argand.runtime.calls.layout import device_of

    context: AbstractContextManager[Any] = device_of(*found)
    return context
