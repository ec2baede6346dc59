"""cuFFT's plans: one a form and device, which all threads and streams share.

To make a plan takes 0.3 ms and waits for the device, where to queue it takes 10 us. Plans have
no workspace of their own: each call brings memory of its stream. One lock is held while a plan is
made, queued or destroyed, because cuFFT lets no two threads use a plan at once. A plan that is
given up is destroyed when the streams that it was queued on and the programs' graphs that captured
it are done with it. A call's own graph goes with the queue that keeps the plan, and for its last
launches cuFFT waits when it destroys the plan.
"""

from __future__ import annotations

import ctypes
from collections import deque
from functools import lru_cache
from threading import Lock
from typing import Any

import cupy
from cupy.cuda import cufft

from argand.runtime.launch.captured_graph import CAPTURING
from argand.runtime.libraries.library_routine import library_routine
from argand.runtime.memory.captured_memory import capture_of
from argand.runtime.memory.graph_memory import relaxed_capture
from argand.runtime.memory.workspace import call_memory, stream_key

_MAX_PLANS, _MAX_LONG_PLANS = 64, 4
"""Plans that are kept. Each holds tables of cuFFT's, up to 0.2 MB of 4000 numbers and 115 MB of
four million (H200), and no workspace."""
_LONG = 1 << 16
"""Length from which on plans are long."""
_CAPTURE_IMPLICIT = 906
"""CUDA's error cudaErrorStreamCaptureImplicit."""
_MAX_EVENTS = 32
"""Events of a plan from which on those that have passed are dropped."""
_EXECUTE = {
    cufft.CUFFT_C2C: cufft.execC2C,
    cufft.CUFFT_Z2Z: cufft.execZ2Z,
    cufft.CUFFT_R2C: lambda plan, x, out, _: cufft.execR2C(plan, x, out),
    cufft.CUFFT_D2Z: lambda plan, x, out, _: cufft.execD2Z(plan, x, out),
}
_NO_MEMORY = cupy.cuda.PythonFunctionAllocator(lambda *_: 256, lambda *_: None).malloc
"""Allocates nothing: CuPy's plans take an address, where calls bring the workspace."""
_runtime = cupy.cuda.runtime
_event_record = _runtime.eventRecord
_lock = Lock()
_left: deque[tuple[Any, int, dict[tuple[int, int], Any]]] = deque()
"""Plans (CuPy's) that were given up, their devices, and the events behind which they go."""


class CufftPlan:
    """cuFFT's plan of contiguous rows on one device. `plan_of` makes it.

    Attributes:
        workspace_bytes: what each call needs, which may be 0.
    """

    def __init__(self, plan: Any, device: int) -> None:
        self._plan, self._handle, self._device = plan, plan.handle, device
        self._execute = _EXECUTE[plan.fft_type]
        self._stream = self._workspace = 0
        self._events: dict[tuple[int, int], Any] = {}  # of the last call, by `stream_key`
        self.workspace_bytes = int(plan.work_area.mem.size)

    def __del__(self, left: deque[Any] = _left) -> None:
        """Leave cuFFT's plan to `_destroy`. It may run within the lock, so it takes none."""
        left.append((self._plan, self._device, self._events))

    def queue(self, x: int, out: int, direction: int, stream: int) -> None:
        """Queue the transforms on CuPy's current stream, given its address."""
        memory = call_memory(self.workspace_bytes) if self.workspace_bytes else None
        self.queue_with(x, out, direction, stream, 0 if memory is None else int(memory.ptr))

    def queue_with(self, x: int, out: int, direction: int, stream: int, workspace: int) -> None:
        """Queue them with a workspace, given its address, that is the stream's until they end."""
        capture = capture_of(stream)
        if capture is not None:
            capture.keep(self)
        with _lock:
            self._queue(x, out, direction, stream, workspace)
            if capture is None:
                self._record(stream)

    def queue_in_own_graph(
        self, x: int, out: int, direction: int, stream: int, workspace: int
    ) -> None:
        """Queue them on a captured stream, for a graph that is launched no more without the plan.

        An object that the graph keeps would take the host longer at each launch.
        """
        with _lock:
            self._queue(x, out, direction, stream, workspace)

    def _queue(self, x: int, out: int, direction: int, stream: int, workspace: int) -> None:
        if stream != self._stream:
            _set("cufftSetStream", self._handle, stream)
            self._stream = stream
        if workspace != self._workspace:
            _set("cufftSetWorkArea", self._handle, workspace)
            self._workspace = workspace
        self._execute(self._handle, x, out, direction)

    def _record(self, stream: int) -> None:
        key = stream_key(stream)
        event = self._events.get(key)
        if event is None:
            if len(self._events) >= _MAX_EVENTS:
                with relaxed_capture():
                    self._events = {key: x for key, x in self._events.items() if not x.done}
            event = self._events[key] = cupy.cuda.Event(disable_timing=True)
        _event_record(event.ptr, stream)


def plan_of(kind: int, length: int, rows: int, device: int) -> CufftPlan:
    """Return the plan of rows of a length on the current device, given its index.

    ``kind`` is CuPy's number of a type of transforms: CUFFT_C2C, Z2Z, R2C or D2Z. Raises
    RuntimeError where a plan has to be made while a blocking stream is captured.
    """
    with CAPTURING, _lock:
        return (_long_plan if length >= _LONG else _plan)(kind, length, rows, device)


@lru_cache(maxsize=_MAX_PLANS)
def _plan(kind: int, length: int, rows: int, device: int) -> CufftPlan:
    with relaxed_capture(), cupy.cuda.using_allocator(_NO_MEMORY):
        _refuse_blocking_capture(length, rows)
        _destroy()
        try:
            plan = cufft.Plan1d(length, kind, rows)
        except cufft.CuFFTError as error:
            raise RuntimeError(
                f"cuFFT cannot plan {rows} transforms of length {length}: {error}. It waits for "
                "the GPU at some lengths, which fails while a stream is captured, and ends the "
                "capture: make such a call before"
            ) from error
        # Without this wait, kernels of streams that do not wait for the legacy one ended in illegal
        # accesses, as if their plan's tables were not there yet.
        _runtime.streamSynchronize(0)
        return CufftPlan(plan, device)


_long_plan = lru_cache(maxsize=_MAX_LONG_PLANS)(_plan.__wrapped__)


def _refuse_blocking_capture(length: int, rows: int) -> None:
    """Raise RuntimeError where some thread captures a stream that waits for the legacy one.

    cuFFT copies its tables by the legacy stream: it would fail, and the capture with it.
    """
    try:
        _runtime.streamIsCapturing(0)
    except _runtime.CUDARuntimeError as error:
        if error.status != _CAPTURE_IMPLICIT:
            raise
        raise RuntimeError(
            f"cuFFT cannot plan {rows} transforms of length {length} while a blocking stream is "
            "captured: make such a call before the capture, or capture a stream that does not "
            "wait for the legacy one, such as cupy.cuda.Stream(non_blocking=True)"
        ) from error


def _destroy() -> None:
    """Destroy plans that were given up, each as its device's, as far as that is done with them."""
    for _ in range(len(_left)):
        plan, device, events = _left.popleft()
        if not all(event.done for event in events.values()):
            _left.append((plan, device, events))
            continue
        with cupy.cuda.Device(device):
            del plan


def _set(name: str, plan: int, value: int) -> None:
    """Call a function of cuFFT's on a plan and an address."""
    library_routine("cufft", name, ctypes.c_int, ctypes.c_void_p)(plan, value)
