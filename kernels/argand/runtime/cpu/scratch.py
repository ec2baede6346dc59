"""Memory of a thread for NumPy's steps, which is kept from call to call.

Memory of some hundred KiB that each call allocates goes back to the system after it, and to fault
its pages in again takes as long as to fill it several times.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
MIN_KEPT_BYTES, _MAX_KEPT_BYTES = 1 << 16, 1 << 22
"""Bytes of an array from which, and up to which, memory is kept for it."""


class _Kept(threading.local):
    """A thread's memory, None where there is none or a step uses it."""

    memory: Array | None = None


_KEPT = _Kept()


def with_conjugates(step: Callable[..., object], x: Array, *others: Any) -> None:
    """Call ``step(conjugates, x, *others)``; the conjugates of x are gone after it.

    A call within the step, such as one by a signal's handler, has other memory.
    """
    if not MIN_KEPT_BYTES <= x.nbytes <= _MAX_KEPT_BYTES:
        step(np.conjugate(x), x, *others)
        return
    memory, _KEPT.memory = _KEPT.memory, None
    if memory is None or memory.size < x.nbytes:
        memory = np.empty(1 << (x.nbytes - 1).bit_length(), np.uint8)
    step(np.conjugate(x, out=np.ndarray(x.shape, x.dtype, memory)), x, *others)
    _KEPT.memory = memory
