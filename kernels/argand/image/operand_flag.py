"""The flag that kernels raise at wrong operands of an image: a word in memory of the host.

A kernel that writes it takes less time than a copy of what it found. The host reads it once the
call's launches have ended.
"""

from __future__ import annotations

from collections import deque

import cupy
import numpy as np

_runtime = cupy.cuda.runtime


class OperandFlag:
    """A flag, which one call at a time uses."""

    def __init__(self) -> None:
        self._memory = cupy.cuda.alloc_pinned_memory(4)
        self._word = np.frombuffer(self._memory, np.uint32, 1)
        self._word[0] = 0
        #: The address that kernels write it to.
        self.address = int(self._memory.ptr)

    def is_raised(self, stream: int) -> bool:
        """Wait for a stream; return whether a kernel raised the flag, and free it for others."""
        # Where waiting is interrupted a kernel may still write it, so no other call gets it.
        _runtime.streamSynchronize(stream)
        raised = bool(self._word[0])
        self._word[0] = 0
        _unused.append(self)
        return raised


_unused: deque[OperandFlag] = deque()
"""Flags that no call under way uses."""


def new_flag() -> OperandFlag:
    """Return a flag that is not raised, for one call."""
    try:
        return _unused.pop()
    except IndexError:
        return OperandFlag()
