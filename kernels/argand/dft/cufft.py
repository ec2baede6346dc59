"""Transforms by cuFFT, where it is the faster and at fp32 and fp64."""

from __future__ import annotations

from functools import lru_cache
from threading import get_ident
from typing import Any

import cupy
import numpy as np
from cupy.cuda import cublas, cufft

from argand.dft.problem import DftProblem
from argand.runtime.captured_graph import CapturedCalls

_current_stream = cupy.cuda.get_current_stream
_MOST_SCALED = 2**31 - 1
"""Numbers that a call of cuBLAS scales."""


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

    def __init__(self, length: int, rows: int, kind: int) -> None:
        self._plan = cufft.Plan1d(length, kind, rows)
        self._transform = cufft.execZ2Z if kind == cufft.CUFFT_Z2Z else cufft.execC2C
        self._on_stream = False
        self._captured = CapturedCalls(self._on_current_stream)

    def __call__(self, x: int, out: int, direction: int, stream: int) -> None:
        """Queue the transforms on a stream, which is current and the same at every call."""
        if self._captured.launch((x, out, direction), stream):
            return
        if self._on_stream:
            self._transform(self._plan.handle, x, out, direction)
        else:
            self._on_current_stream(x, out, direction)
            self._on_stream = True

    def _on_current_stream(self, x: int, out: int, direction: int) -> None:
        self._plan.fft(_At(x), _At(out), direction)
        self._on_stream = False  # unless it is the stream of calls


class ContiguousTransform:
    """Transforms of arrays whose rows lie one after another, on the current device."""

    def __init__(self, problem: DftProblem) -> None:
        double = problem.precision.output == "complex128"
        self._form = (
            problem.length, problem.rows, cufft.CUFFT_Z2Z if double else cufft.CUFFT_C2C
        )  # fmt: skip
        self._direction = cufft.CUFFT_INVERSE if problem.inverse else cufft.CUFFT_FORWARD
        self._factor = problem.factor
        self._on_host = np.array([problem.factor], "float64" if double else "float32")
        self._scale = cublas.zdscal if double else cublas.csscal
        self._size, self._item = problem.length * problem.rows, 16 if double else 8
        self._device = cupy.cuda.Device().id

    def __call__(self, x: int, out: int) -> None:
        """Queue them on the current stream, for arrays at these addresses."""
        stream = _current_stream(self._device).ptr
        plan = _plan(*self._form, self._device, stream, get_ident())
        plan(x, out, self._direction, stream)
        if self._factor != 1:
            self._scaled(out)

    def _scaled(self, out: int) -> None:
        """Multiply the results by the norm's factor."""
        handle = cupy.cuda.device.get_cublas_handle()
        mode = cublas.getPointerMode(handle)
        cublas.setPointerMode(handle, cublas.CUBLAS_POINTER_MODE_HOST)
        try:
            for first in range(0, self._size, _MOST_SCALED):
                count = min(_MOST_SCALED, self._size - first)
                at = out + self._item * first
                self._scale(handle, count, self._on_host.ctypes.data, at, 1)
        finally:
            cublas.setPointerMode(handle, mode)


@lru_cache(maxsize=4)
def _plan(length: int, rows: int, kind: int, device: int, stream: int, thread: int) -> _StreamPlan:
    """cuFFT's plan. Its workspace, as large as x or larger, is one stream's and one thread's."""
    return _StreamPlan(length, rows, kind)
