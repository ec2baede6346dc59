"""Filter banks of few channels on a GPU: the launch of the kernel whose threads have a spectrum."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from argand.channelise.gpu_unfused import filtered_samples
from argand.channelise.problem import ChanneliseProblem
from argand.channelise.single_thread_plan import (
    SINGLE_THREAD_ARGUMENTS,
    SingleThreadPlan,
    single_thread_name,
    single_thread_source,
)
from argand.device import Device
from argand.runtime.launch import kernel_trace
from argand.runtime.launch.kernel import BoundKernel, bound_kernel
from argand.runtime.memory.device_table import stream_table


def by_single_threads(
    problem: ChanneliseProblem, plan: SingleThreadPlan, x: Any, coefficients: Any, target: Any,
    device: Device,
) -> None:  # fmt: skip
    """Write the spectra of checked samples to ``target``, which is contiguous.

    Raises CompileError where NVRTC fails.
    """
    given, component = filtered_samples(problem, x)
    taps = stream_table(coefficients.astype(np.float32))
    chunks = -(-problem.spectra // plan.spectra)
    launch = _launch(plan, component, problem.rows * chunks, device)
    launch({
        "x": given.data.ptr, "out": target.data.ptr, "coefficients": taps.data.ptr,
        "samples": problem.samples, "spectra": problem.spectra, "chunks": chunks,
    })  # fmt: skip
    if kernel_trace.watching:
        kernel_trace.note(single_thread_name(plan, component))


@lru_cache(maxsize=64)
def _launch(plan: SingleThreadPlan, component: str, blocks: int, device: Device) -> BoundKernel:
    return bound_kernel(
        single_thread_source(plan, component, device.require_arch()),
        single_thread_name(plan, component), blocks, plan.spectra, SINGLE_THREAD_ARGUMENTS, device,
        shared_bytes=plan.shared_bytes,
    )  # fmt: skip
