"""Memory that calls take on a GPU, counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def most_allocated(cp: Any, call: Callable[[], object]) -> int:
    """Return the bytes that a call and its temporaries take at most, beside what is there before.

    They are those of CuPy's pool, whose pieces are of 512 bytes. The call is made once before.
    """
    call()  # counters of the stream, which stay
    return peak_bytes(cp, call)


def peak_bytes(cp: Any, call: Callable[[], object]) -> int:
    """Return the same of a call that may be the first of its stream."""

    class Counted(cp.cuda.MemoryHook):  # type: ignore[misc]
        name = "Counted"
        now = most = 0

        def malloc_postprocess(self, *, mem_size: int, **_: object) -> None:
            self.now += mem_size
            self.most = max(self.most, self.now)

        def free_postprocess(self, *, mem_size: int, **_: object) -> None:
            self.now -= mem_size

    with Counted() as counted:
        call()
    return int(counted.most)
