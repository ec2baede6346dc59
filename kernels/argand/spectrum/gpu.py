"""Spectral estimates on a GPU: the kernel that keeps spectra in shared memory, and its launch."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from argand.channelise.gpu import chunks_of, device_twiddles
from argand.channelise.plan import COMPONENTS, UNITS, read_as
from argand.channelise.signal import written_array
from argand.device import Device, gpu
from argand.dft.plan_words import plan_words
from argand.dft.problem import DftProblem
from argand.dft.tuned import chosen
from argand.gemm.pairs import Pairs
from argand.runtime.calls.layout import device_of
from argand.runtime.launch import kernel_trace
from argand.runtime.launch.kernel import BoundKernel, bound_kernel
from argand.runtime.memory.device_table import stream_table
from argand.runtime.plans.plan_override import PlanOverride
from argand.spectrum.gpu_trend import trends_of
from argand.spectrum.gpu_unfused import add_terms, unfused
from argand.spectrum.plan import (
    KERNEL_ARGUMENTS,
    SpectrumPlan,
    bin_factors,
    check_plan,
    kernel_name,
    kernel_source,
    plan_spectrum,
    without_spills,
)
from argand.spectrum.problem import SpectrumProblem

PLAN_OVERRIDE: PlanOverride[SpectrumPlan | None] = PlanOverride()
"""Within ``PLAN_OVERRIDE.use(plan)`` every call takes this plan; None is unfused."""
KERNEL = "kernel"
"""Answer of `algorithm`, which bounds read, where one kernel computes."""


def spectrum(problem: SpectrumProblem, x: Any, coefficients: np.ndarray[Any, Any], out: Any) -> Any:
    """Return the means of a problem whose arguments are checked, on the GPU that holds ``x``.

    Raises ValueError where ``out`` overlaps ``x``, PlanError for a plan override that is not legal,
    and CompileError where NVRTC fails.

    Memory beside the operands: a copy where samples are not contiguous, or of a type that no kernel
    reads (fp32, int8 and int16 are read; fp64 at fp64); sums of the chunks of a group in fp64; 32
    bytes of a segment's trend; and without the kernel at most 256 MiB, or one segment, of windowed
    segments and their transforms, and what cuFFT asks for.
    """
    array = x.array if isinstance(x, Pairs) else x
    with device_of(array, out):
        target = written_array(x, out, problem.shape, problem.dtype)
        if target.size:
            device = gpu(cupy.cuda.Device().id)
            plan = _plan(problem, device)
            if plan is None:
                unfused(problem, x, coefficients, target, device)
            else:
                _in_one_kernel(problem, plan, x, coefficients, target, device)
        return target


def algorithm(problem: SpectrumProblem, device: Device) -> tuple[str, str]:
    """Return the kernels in words, and for the bound: `KERNEL`, or the plan of the transforms."""
    plan = _plan(problem, device)
    if plan is not None:
        return str(plan), KERNEL
    if problem.real:
        return "window, then cuFFT of real rows, then squares", plan_words(None)
    rows = problem.rows * problem.segments
    choice = chosen(DftProblem(rows, problem.length, False, "backward", problem.precision), device)
    return f"window, then {choice}, then squares", plan_words(choice.plan)


def _plan(problem: SpectrumProblem, device: Device) -> SpectrumPlan | None:
    arch = device.require_arch()
    if not PLAN_OVERRIDE.active:
        return plan_spectrum(problem, arch)
    if PLAN_OVERRIDE.value is not None:
        check_plan(PLAN_OVERRIDE.value, arch)
    return PLAN_OVERRIDE.value


def _in_one_kernel(
    problem: SpectrumProblem, plan: SpectrumPlan, x: Any, coefficients: Any, target: Any,
    device: Device,
) -> None:  # fmt: skip
    """Window, transform and sum squares by one kernel, and add the sums of its parts."""
    given, component, stride = _units(problem, x)
    aligned = not problem.real or (
        given.data.ptr % UNITS[component][1] == 0 and stride % 2 == 0 and problem.hop % 2 == 0
    )
    if not PLAN_OVERRIDE.active:
        plan = without_spills(plan, component, device.target, aligned=aligned)
    one = plan.transforms
    each = problem.rows * (1 if plan.summed else problem.groups)
    chunks, batches = chunks_of(
        problem.segments if plan.summed else problem.average, each, one,
        device.sm_count * one.blocks * one.groups,
    )  # fmt: skip
    items = each * chunks
    partial = None
    if not plan.summed and chunks > 1:
        partial = cupy.empty((each, chunks, plan.computed), np.float64)
    window = stream_table(coefficients.astype(np.float32))
    trends = trends_of(problem, given, device)
    launch = _launch(problem, plan, component, aligned, -(-items // one.groups), device)
    launch({
        "x": given.data.ptr, "out": target.data.ptr,
        "partial": 0 if partial is None else partial.data.ptr,
        "window": window.data.ptr, "twiddles": device_twiddles(one, device.index),
        "trends": 0 if trends is None else trends.data.ptr, "row_stride": stride,
        "hop": problem.hop, "groups": problem.groups, "average": problem.average,
        "items": items, "chunks": chunks, "batches": batches,
    })  # fmt: skip
    if kernel_trace.watching:
        kernel_trace.note(kernel_name(plan, component, aligned=aligned))
    if partial is not None:
        add_terms(problem, partial, target.reshape(each, problem.bins), device)


def _units(problem: SpectrumProblem, x: Any) -> tuple[Any, str, int]:
    """Return the samples as the kernel reads them, the type of components, and samples of a row."""
    if isinstance(x, Pairs):
        x = x.array if x.format in COMPONENTS else x.to_complex64()
    if str(x.dtype) not in COMPONENTS:
        x = x.astype(np.float32 if problem.real else np.complex64, copy=False)
    component = "float32" if x.dtype.kind == "c" else str(x.dtype)
    x = cupy.ascontiguousarray(x)
    if not problem.real and x.data.ptr % COMPONENTS[component][1]:
        x = x.copy()
    return x, read_as(component, conjugate=problem.conjugate), problem.samples


@lru_cache(maxsize=64)
def _launch(
    problem: SpectrumProblem, plan: SpectrumPlan, component: str, aligned: bool, blocks: int,
    device: Device,
) -> BoundKernel:  # fmt: skip
    one = plan.transforms
    return bound_kernel(
        kernel_source(plan, component, aligned=aligned),
        kernel_name(plan, component, aligned=aligned), blocks, one.block_threads, KERNEL_ARGUMENTS,
        device, bin_factors(problem), one.shared_bytes,
    )  # fmt: skip
