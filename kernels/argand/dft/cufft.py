"""Transforms by cuFFT, where it is the faster and at fp32 and fp64."""

from __future__ import annotations

from functools import lru_cache
from threading import get_ident
from typing import Any

import cupy
from cupy.cuda import cufft

from argand.device import gpu
from argand.dft.problem import DftProblem
from argand.dft.scale import SCALE_DTYPE, SCALE_KERNEL, SCALE_THREADS, SCALED_BY_BLOCK, scale_source
from argand.runtime.arguments import Arguments
from argand.runtime.captured_graph import CapturedCalls
from argand.runtime.kernel import BoundKernel
from argand.runtime.loading import load

_current_stream = cupy.cuda.get_current_stream
_SHORT_BYTES = 16_000_000
"""Bytes read and written up to which calls are graphs: such transforms take an H200 up to 6 us
(1024 of 1000), as long as the host takes without a graph. Longer ones hide the host in any case,
and behind another kernel a graph of cuFFT's begins up to 1.7 us later."""


def transform(problem: DftProblem, x: Any, target: Any) -> ContiguousTransform | None:
    """Write the transforms of rows of x into those of target, which may be x.

    Returns what does the same for arrays like these, None where one of them had to be copied.
    """
    if problem.length == 1:
        cupy.multiply(x, target.real.dtype.type(problem.factor), out=target)
        return None
    run = ContiguousTransform(problem)
    rows = cupy.ascontiguousarray(x)
    if target.flags.c_contiguous:
        run(rows.data.ptr, target.data.ptr)
        return run if rows.data.ptr == x.data.ptr else None
    found = cupy.empty(target.shape, target.dtype)
    run(rows.data.ptr, found.data.ptr)
    target[...] = found
    return None


class _At:
    """An address as CuPy's plans look for it in an array."""

    __slots__ = ("ptr",)

    def __init__(self, ptr: int) -> None:
        self.ptr = ptr

    @property
    def data(self) -> _At:
        return self


class _StreamPlan:
    """cuFFT's plan for one stream and one thread, to which its workspace belongs.

    CuPy sets the stream at every call; here the first one sets it.
    """

    def __init__(self, length: int, rows: int, output: str, device: int) -> None:
        double = output == "complex128"
        self._plan = cufft.Plan1d(length, cufft.CUFFT_Z2Z if double else cufft.CUFFT_C2C, rows)
        self._transform = cufft.execZ2Z if double else cufft.execC2C
        self._results = output, length * rows, device
        self._on_stream = False
        moved = 2 * length * rows * (16 if double else 8)
        short = moved <= _SHORT_BYTES
        self._captured = CapturedCalls(self._on_current_stream) if short else None

    def __call__(self, x: int, out: int, direction: int, factor: float, stream: int) -> None:
        """Queue the transforms on a stream, which is current and the same at every call."""
        captured = self._captured
        if captured is not None and captured.launch((x, out, direction, factor), stream):
            return
        if self._on_stream:
            self._transform(self._plan.handle, x, out, direction)
            self._scale(out, factor)
        else:
            self._on_current_stream(x, out, direction, factor)
            self._on_stream = True

    def _on_current_stream(self, x: int, out: int, direction: int, factor: float) -> None:
        self._plan.fft(_At(x), _At(out), direction)
        self._on_stream = False  # unless it is the stream of calls
        self._scale(out, factor)

    def _scale(self, out: int, factor: float) -> None:
        """Multiply the results by the norm's factor."""
        if factor != 1:
            _scale_launch(*self._results, factor)({"x": out})


class ContiguousTransform:
    """Transforms of arrays whose rows lie one after another, on the current device."""

    def __init__(self, problem: DftProblem) -> None:
        self._device = cupy.cuda.Device().id
        self._form = problem.length, problem.rows, problem.precision.output, self._device
        self._direction = cufft.CUFFT_INVERSE if problem.inverse else cufft.CUFFT_FORWARD
        self._factor = problem.factor

    def __call__(self, x: int, out: int) -> None:
        """Queue them on the current stream, for arrays at these addresses.

        Raises CompileError where NVRTC, for a factor's kernel, fails.
        """
        stream = _current_stream(self._device).ptr
        plan = _plan(*self._form, stream, get_ident())
        plan(x, out, self._direction, self._factor, stream)


def transform_real(x: Any, target: Any) -> None:
    """Write the bins 0 to n / 2 of transforms of real rows of x, which may be overwritten.

    Args:
        x: (..., n), float32 or float64, contiguous.
        target: (..., n // 2 + 1), contiguous, of the complex type of x.
    """
    kind = cufft.CUFFT_D2Z if x.dtype.itemsize == 8 else cufft.CUFFT_R2C
    length = x.shape[-1]
    device, stream = cupy.cuda.Device().id, _current_stream().ptr
    plan = _real_plan(length, x.size // length, kind, device, stream, get_ident())
    plan.fft(x, target, cufft.CUFFT_FORWARD)


@lru_cache(maxsize=4)
def _real_plan(length: int, rows: int, kind: int, device: int, stream: int, thread: int) -> Any:
    """cuFFT's plan of real rows, one stream's and one thread's as `_plan`."""
    return cufft.Plan1d(length, kind, rows)


@lru_cache(maxsize=4)
def _plan(
    length: int, rows: int, output: str, device: int, stream: int, thread: int
) -> _StreamPlan:
    """cuFFT's plan. Its workspace, as large as x or larger, is one stream's and one thread's."""
    return _StreamPlan(length, rows, output, device)


@lru_cache(maxsize=64)
def _scale_launch(output: str, count: int, device: int, factor: float) -> BoundKernel:
    """Return the launch that multiplies results of a type by a factor."""
    kernel = load(scale_source(output), gpu(device).target, SCALE_KERNEL)
    return BoundKernel(
        kernel, -(-count // SCALED_BY_BLOCK), SCALE_THREADS,
        Arguments(SCALE_DTYPE, {"x": 0, "count": count, "factor": factor}),
    )  # fmt: skip
