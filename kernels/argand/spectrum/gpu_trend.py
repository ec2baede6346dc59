"""Trends of segments on a GPU, as the kernels of spectral estimates subtract them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from argand.device import Device
from argand.runtime.launch import kernel_trace
from argand.runtime.launch.kernel import BoundKernel, bound_kernel
from argand.spectrum.plan import THREADS, TREND_ARGUMENTS, trend_name, trend_source
from argand.spectrum.problem import SpectrumProblem

_BLOCKS = 8
"""Most blocks of a multiprocessor: all threads that it holds."""


def trends_of(problem: SpectrumProblem, x: Any, device: Device) -> Any:
    """Return the trends of the segments of all rows, (segments, 4) of fp64; None without detrend.

    ``x`` is contiguous, of samples or pairs of their parts, as the kernels read it.
    """
    if problem.detrend is None:
        return None
    part = np.dtype(x.dtype).type(0).real.dtype.name
    count = problem.rows * problem.segments
    found = cupy.empty((count, 4), np.float64)
    launch = _launch(problem, part, min(count, _BLOCKS * device.sm_count), device)
    launch({"x": x.data.ptr, "trends": found.data.ptr})
    if kernel_trace.watching:
        kernel_trace.note(trend_name(part, real=problem.real))
    return found


@lru_cache(maxsize=64)
def _launch(problem: SpectrumProblem, part: str, blocks: int, device: Device) -> BoundKernel:
    return bound_kernel(
        trend_source(part, real=problem.real), trend_name(part, real=problem.real), blocks, THREADS,
        TREND_ARGUMENTS, device,
        {
            "row_stride": problem.samples, "hop": problem.hop, "segments": problem.segments,
            "count": problem.rows * problem.segments, "length": problem.length,
            "linear": int(problem.detrend == "linear"),
        },
    )  # fmt: skip
