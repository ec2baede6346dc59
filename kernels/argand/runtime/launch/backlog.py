"""The backlog of a stream: whether it is behind the host, by which launches are chosen.

The driver's launch of a kernel takes the host longer than that of a graph, and an idle GPU answers
it later. But a kernel that is launched by itself begins while the one before ends, and nothing of a
graph begins so early. So a GPU that waits for the host is given graphs, and one that has work for
some more calls is given kernels (docs/experiments/2026-11-28-launches-on-a-busy-stream.md).

To ask at each call whether the stream is idle would not do: it is not for some microseconds after
each launch, also where the GPU waits for the next one. All forms of calls on a stream share its
marks, because kernels do not overlap where a mark is between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import count
from threading import Lock
from typing import Any, Protocol

from argand.runtime.driver.launch_config import driver_function, pointer

BEHIND_SECONDS = 30e-6
"""Seconds after which the GPU has reached a mark where it does not lag: a launch takes up to 12 us
until its kernel has ended, and nothing else is before the mark then."""
HOLDS_SECONDS = 100e-6
"""Seconds for which an answer holds, and how late a mark that is reached still answers: after a
longer pause of the host the GPU has reached it whatever it does now."""
_REFUSED_SECONDS = 1.0
"""Seconds until the next try where the driver refuses a mark, as in a thread without a context."""
_WORDS = 1024
"""Marks with a word of their own. Where two share a word, one may seem to lag for one answer."""
_MAX_STREAMS = 256
"""Streams whose backlogs are kept for further forms of calls."""


class Mark(Protocol):
    """A place in the work of a stream."""

    def record(self) -> bool:
        """Put the mark behind the work queued on the stream; return False where that fails."""

    def is_reached(self) -> bool:
        """Return whether the work before the mark is done."""


class Backlog:
    """Whether one stream lags behind the host, asked for by `look` whenever it is due.

    Without a mark it is never due, and the stream never behind. Threads that look at the same time
    put a mark too many or take an answer that the other one took.
    """

    def __init__(self, mark: Mark | None) -> None:
        self._mark = mark
        self._recorded = False
        #: When `look` is due, in seconds of `time.monotonic`.
        self.due = math.inf if mark is None else 0.0
        #: Whether a mark was not reached in time.
        self.behind = False

    def look(self, now: float) -> None:
        """Record a mark, or check whether the stream has reached the one that was recorded."""
        assert self._mark is not None
        if self._recorded:
            self._recorded, self.behind = False, not self._mark.is_reached()
            if self.behind or now < self.due + HOLDS_SECONDS:
                self.due = now + HOLDS_SECONDS
                return
        self._recorded = self._mark.record()
        self.due = now + (BEHIND_SECONDS if self._recorded else _REFUSED_SECONDS)


class WordMark:
    """A number that the GPU writes to the host's memory when the stream comes to it.

    An event would have to be asked for by the driver, which takes longer, and which may end a
    capture of another thread.
    """

    def __init__(self, stream: int) -> None:
        number = next(_marks) % _WORDS
        address, words = _words()
        self._words, self._number = words, number
        self._write: Callable[..., int] = driver_function("cuStreamWriteValue32_v2")
        self._place = pointer(stream), pointer(address + 4 * number)
        self._value = 0

    def record(self) -> bool:
        """Put the mark behind the work queued on the stream; return False where that fails."""
        self._value = next(_values) & 0x7FFFFFFF
        return self._write(*self._place, self._value, 0) == 0

    def is_reached(self) -> bool:
        """Return whether the work before the mark is done."""
        return bool(self._words[self._number] == self._value)


NEVER_BEHIND = Backlog(None)
"""The backlog of launches that begin no sooner without a graph."""
_of_streams: dict[tuple[int, int], Backlog] = {}


def backlog_of(stream: int) -> Backlog:
    """Return the backlog of a stream of the current GPU, which all launches on it share."""
    import cupy

    key = cupy.cuda.runtime.getDevice(), stream
    found = _of_streams.get(key)
    if found is None:
        if len(_of_streams) >= _MAX_STREAMS:
            _of_streams.clear()
        found = _of_streams[key] = Backlog(WordMark(stream))
    return found


_marks, _values = count(), count(1)
_making = Lock()


def _words() -> tuple[int, memoryview]:
    """Return the words of all marks, whose memory is kept: a GPU may yet write to any of them."""
    with _making:
        return _made_words()


@cache
def _made_words() -> tuple[int, memoryview]:
    import cupy
    import numpy as np

    from argand.runtime.memory.graph_memory import relaxed_capture

    with relaxed_capture():
        memory: Any = cupy.cuda.alloc_pinned_memory(4 * _WORDS)
    words: Any = np.frombuffer(memory, np.uint32, _WORDS)
    words[:] = 0
    return int(memory.ptr), memoryview(words)
