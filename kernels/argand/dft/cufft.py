"""Transforms by cuFFT, where it is the faster and at fp32 and fp64.

The times that constants are fitted to are in docs/experiments/2026-11-30-fitted-constants.md.
"""

from __future__ import annotations

from functools import lru_cache
from threading import get_ident
from typing import Any

import cupy
from cupy.cuda import cufft

from argand.device import gpu
from argand.dft.cufft_plans import CufftPlan, plan_of
from argand.dft.problem import DftProblem
from argand.dft.scale import (
    SCALE_ARGUMENTS,
    SCALE_KERNEL,
    SCALE_THREADS,
    SCALED_BY_BLOCK,
    scale_source,
)
from argand.runtime.calls.kept_call import Run
from argand.runtime.launch.captured_graph import CapturedCalls
from argand.runtime.launch.kernel import BoundKernel, bound_kernel
from argand.runtime.memory.captured_memory import is_captured
from argand.runtime.memory.workspace import parts_of_call
from argand.runtime.memory.workspace_limit import allowed_workspace, workspace_error

_current_stream = cupy.cuda.get_current_stream
_runtime = cupy.cuda.runtime
_memcpy = _runtime.memcpyAsync
_SHORT_BYTES = 16_000_000
"""Bytes read and written up to which calls are graphs: such transforms take an H200 no longer than
the host takes without a graph. Longer ones hide the host in any case, and behind another kernel a
graph of cuFFT's begins later."""
_MAX_QUEUES = 32
"""Forms on streams and threads that are kept, short ones with graphs and a workspace, which is
about as large as x or larger."""


def transform(problem: DftProblem, x: Any, target: Any) -> Run | None:
    """Write the transforms of rows of x into those of target, which may be x.

    Returns what does the same for arrays like these, None where one of them had to be copied.
    """
    run: Run  # a bound method, which takes less time than an object
    run = (NumbersCopy(x.nbytes) if problem.length == 1 else ContiguousTransform(problem)).__call__
    rows = cupy.ascontiguousarray(x)
    if target.flags.c_contiguous:
        run(rows.data.ptr, target.data.ptr)
        return run if rows.data.ptr == x.data.ptr else None
    found = cupy.empty(target.shape, target.dtype)
    run(rows.data.ptr, found.data.ptr)
    target[...] = found
    return None


def kept_bytes(problem: DftProblem, device: int) -> int:
    """Return the workspace of a problem's calls that its stream keeps; 0 where calls bring it."""
    kind, length, rows, _, _ = _form(problem, device)
    if length == 1 or not _is_short(kind, length, rows):
        return 0
    needed, allowed = plan_of(kind, length, rows, device).workspace_bytes, allowed_workspace()
    return needed if allowed is None or needed <= allowed else 0


def _form(problem: DftProblem, device: int) -> tuple[int, int, int, str, int]:
    """Return the type of transforms for cuFFT, length, rows, type of results and device."""
    output = problem.precision.output
    kind = cufft.CUFFT_Z2Z if output == "complex128" else cufft.CUFFT_C2C
    return kind, problem.length, problem.rows, output, device


def _is_short(kind: int, length: int, rows: int) -> bool:
    """Return whether calls are graphs, whose workspace their stream keeps."""
    return 2 * length * rows * (16 if kind == cufft.CUFFT_Z2Z else 8) <= _SHORT_BYTES


class NumbersCopy:
    """Transforms of one number each, which is its own transform by every norm: a copy.

    Arrays are contiguous and on the current device.
    """

    def __init__(self, nbytes: int) -> None:
        self._nbytes, self._device = nbytes, cupy.cuda.Device().id

    def __call__(self, x: int, out: int) -> None:
        """Queue the copy on the current stream, for arrays at these addresses."""
        if x != out:
            stream = _current_stream(self._device).ptr
            _memcpy(out, x, self._nbytes, _runtime.memcpyDeviceToDevice, stream)


class _Queue:
    """A plan with the factor of its norm, on one stream and queued by one thread.

    ``results`` are the type and number of results and the device.
    """

    def __init__(self, plan: CufftPlan, results: tuple[str, int, int]) -> None:
        self._plan, self._results = plan, results
        self._memory: Any = None

    def __call__(self, x: int, out: int, direction: int, factor: float, stream: int) -> None:
        """Queue the transforms on the stream, which is current."""
        memory = self._memory
        if memory is None or is_captured(stream):
            self._plan.queue(x, out, direction, stream)
        else:
            self._plan.queue_with(x, out, direction, stream, int(memory.ptr))
        self._scale(out, factor)

    def keep_workspace(self) -> None:
        """Take a workspace for the calls and graphs of the stream, which follow one another."""
        if self._memory is None and self._plan.workspace_bytes:
            self._memory = cupy.cuda.alloc(self._plan.workspace_bytes)

    def in_graph(self, x: int, out: int, direction: int, factor: float) -> None:
        """Queue the transforms on the current stream, which is captured."""
        workspace = 0 if self._memory is None else int(self._memory.ptr)
        self._plan.queue_in_own_graph(x, out, direction, _current_stream().ptr, workspace)
        self._scale(out, factor)

    def _scale(self, out: int, factor: float) -> None:
        """Multiply the results by the norm's factor."""
        if factor != 1:
            _scale_launch(*self._results, factor)({"x": out})


class ContiguousTransform:
    """Transforms of arrays whose rows lie one after another, on the current device."""

    def __init__(self, problem: DftProblem) -> None:
        self._device = cupy.cuda.Device().id
        self._form = _form(problem, self._device)
        self._direction = cufft.CUFFT_INVERSE if problem.inverse else cufft.CUFFT_FORWARD
        self._factor = problem.factor
        # Rows that are computed one part after another, where one call's workspace is too large.
        self._parts = _parts(*self._form)

    def __call__(self, x: int, out: int) -> None:
        """Queue them on the current stream, for arrays at these addresses.

        Raises CompileError where NVRTC, for a factor's kernel, fails.
        """
        stream = _current_stream(self._device).ptr
        if self._parts:
            with parts_of_call() as begin:
                for at, queue in self._parts:
                    begin()
                    queue(x + at, out + at, self._direction, self._factor, stream)
            return
        queue, graphs = _on_stream(*self._form, stream, get_ident())
        call = x, out, self._direction, self._factor
        if graphs is None or not graphs.launch(call, stream):
            queue(*call, stream)


def _parts(kind: int, length: int, rows: int, output: str, device: int) -> list[tuple[int, _Queue]]:
    """Return queues of as many rows as the workspace limit allows, and where each begins in bytes.

    There are none where the limit allows all rows at once. Raises WorkspaceError where it does not
    allow one.
    """
    allowed = allowed_workspace()
    if allowed is None:
        return []
    some = rows
    while (needed := plan_of(kind, length, some, device).workspace_bytes) > allowed:
        if some == 1:
            raise workspace_error(f"a transform of {length} by cuFFT", needed, allowed)
        some = -(-some // 2)
    item = 16 if kind == cufft.CUFFT_Z2Z else 8
    found = []
    for first in range(0, rows, some) if some < rows else ():
        count = min(some, rows - first)
        plan = plan_of(kind, length, count, device)
        found.append((item * first * length, _Queue(plan, (output, length * count, device))))
    return found


def transform_real(x: Any, target: Any) -> None:
    """Write the bins 0 to n / 2 of transforms of real rows of x, which may be overwritten.

    Args:
        x: (..., n), float32 or float64, contiguous.
        target: (..., n // 2 + 1), contiguous, of the complex type of x.
    """
    if x.shape[-1] == 1:  # which is its own transform, as `NumbersCopy` has it
        target[...] = x
        return
    kind = cufft.CUFFT_D2Z if x.dtype.itemsize == 8 else cufft.CUFFT_R2C
    length, device = x.shape[-1], cupy.cuda.Device().id
    plan = plan_of(kind, length, x.size // length, device)
    plan.queue(x.data.ptr, target.data.ptr, cufft.CUFFT_FORWARD, _current_stream(device).ptr)


@lru_cache(maxsize=_MAX_QUEUES)
def _on_stream(
    kind: int, length: int, rows: int, output: str, device: int, stream: int, thread: int
) -> tuple[_Queue, CapturedCalls | None]:
    """Return the queue of a form's transforms on a stream, and the graphs of short ones."""
    queue = _Queue(plan_of(kind, length, rows, device), (output, length * rows, device))
    if not _is_short(kind, length, rows):
        return queue, None
    if not is_captured(stream):
        queue.keep_workspace()
    return queue, CapturedCalls(queue.in_graph, queue.keep_workspace)


@lru_cache(maxsize=64)
def _scale_launch(output: str, count: int, device: int, factor: float) -> BoundKernel:
    """Return the launch that multiplies results of a type by a factor."""
    return bound_kernel(
        scale_source(output), SCALE_KERNEL, -(-count // SCALED_BY_BLOCK), SCALE_THREADS,
        SCALE_ARGUMENTS, gpu(device), {"count": count, "factor": factor},
    )  # fmt: skip
