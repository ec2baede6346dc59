"""cuFFT's plans: a few a thread, each destroyed when its stream is done with it.

A plan is used by one thread at a time. To destroy one whose kernels are still queued is an illegal
access of theirs, so that plans which a thread gives up wait for an event on their stream.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import cupy

from argand.frameworks.graph_memory import relaxed_capture
from argand.runtime.workspace import PER_THREAD

_MOST = 4
"""Plans that a thread keeps: each has a workspace, as large as its arrays or larger."""
_runtime = cupy.cuda.runtime


class _Kept(NamedTuple):
    """A plan, and what it is queued on: the stream's object lives as long as the plan."""

    plan: Any
    stream: Any
    device: int


_left: deque[_Kept] = deque()
"""Plans that no thread keeps, without an event yet."""
_waiting: list[tuple[Any, _Kept]] = []
"""Those with the event behind which they are destroyed."""
_lock = threading.Lock()


class _ThreadsPlans:
    """The plans of one thread, the most recently used one last."""

    def __init__(self) -> None:
        self.by_form: dict[tuple[Any, ...], _Kept] = {}

    def __del__(self, left: deque[_Kept] = _left) -> None:
        """Leave the plans of a thread that has ended to another one.

        It may run wherever Python collects garbage, so it takes no lock.
        """
        left.extend(self.by_form.values())


class _Threads(threading.local):
    def __init__(self) -> None:
        self.plans = _ThreadsPlans()


_threads = _Threads()


def plan_of(make: Callable[..., Any], form: tuple[Any, ...], device: int, stream: Any) -> Any:
    """Return this thread's plan of a form for CuPy's stream: ``make(*form)``, once for all calls.

    ``device`` is the current one.
    """
    plans = _threads.plans.by_form
    key = make, form, device, stream.ptr
    kept = plans.pop(key, None)
    if kept is None:
        if len(plans) >= _MOST:
            _left.append(plans.pop(next(iter(plans))))
        if _left and not _is_captured(stream):
            _destroy()
        kept = _Kept(make(*form), stream, device)
    plans[key] = kept
    return kept.plan


def _destroy() -> None:
    """Destroy plans that were given up, as far as the device is done with them."""
    with _lock, relaxed_capture():
        for _ in range(len(_left)):
            kept = _left.popleft()
            # The default stream of a thread that may be gone; the legacy one waits for it.
            stream = cupy.cuda.Stream.null if kept.stream.ptr == PER_THREAD else kept.stream
            if _is_captured(stream):
                _left.append(kept)
                continue
            with cupy.cuda.Device(kept.device):
                event = cupy.cuda.Event(disable_timing=True)
                event.record(stream)
            _waiting.append((event, kept))
        _waiting[:] = [(event, kept) for event, kept in _waiting if not event.done]


def _is_captured(stream: Any) -> bool:
    """Return whether somebody captures a stream; nobody can capture 0, the legacy one."""
    return bool(stream.ptr and _runtime.streamIsCapturing(stream.ptr))
