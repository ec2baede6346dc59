"""Filter banks on a GPU: the kernel of filter and transform, or a filter and `argand.dft`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from argand.channelise.gpu_single_thread import by_single_threads
from argand.channelise.gpu_unfused import filter_then_transform
from argand.channelise.plan import (
    COMPONENTS,
    KERNEL_ARGUMENTS,
    ChannelisePlan,
    check_plan,
    kernel_name,
    kernel_source,
    plan_channelise,
    read_as,
    twiddle_tables,
    without_spills,
)
from argand.channelise.problem import ChanneliseProblem
from argand.channelise.signal import written_array
from argand.channelise.single_thread_plan import (
    FEW_POINTS,
    SingleThreadPlan,
    check_single_thread_plan,
    single_thread_plan,
)
from argand.channelise.sm90_plan import (
    SpecializedPlan,
    check_specialized_plan,
    specialized,
    specialized_name,
    specialized_source,
    specialized_tables,
)
from argand.device import Device, gpu
from argand.dft.plan_words import plan_words
from argand.dft.problem import DftProblem
from argand.dft.tuned import chosen
from argand.gemm.pairs import Pairs
from argand.runtime.calls.layout import device_of
from argand.runtime.compile.loading import load
from argand.runtime.launch import kernel_trace
from argand.runtime.launch.kernel import BoundKernel, bound_kernel, max_active_clusters
from argand.runtime.memory.captured_memory import keep_in_graph
from argand.runtime.memory.device_table import device_table, stream_table
from argand.runtime.plans.plan_override import PlanOverride

PLAN_OVERRIDE: PlanOverride[ChannelisePlan | SingleThreadPlan | None] = PlanOverride()
"""Within ``PLAN_OVERRIDE.use(plan)`` every call takes this plan; None is a filter and a DFT."""
WAVES = 4
"""Waves that several rows or phases are cut into; a single one is one wave of equal chunks."""
_MAX_FRAMES = 1 << 30
"""Most frames of a chunk: kernels count them in 32 bits."""


def channelise(
    problem: ChanneliseProblem, x: Any, coefficients: np.ndarray[Any, Any], out: Any
) -> Any:
    """Return the spectra of a problem whose arguments are checked, on the GPU that holds ``x``.

    Raises ValueError where ``out`` overlaps ``x``, PlanError for a plan override that is not legal,
    and CompileError where NVRTC fails.

    Memory beside the operands: a copy where samples are not contiguous, of a type that no kernel
    reads (fp32, int8 and int16 are read; fp64 at fp64), or real ones in several rows of an odd
    length; and without the kernel, of real samples, 256 MiB at most of filtered ones.
    """
    array = x.array if isinstance(x, Pairs) else x
    with device_of(array, out):
        target = written_array(x, out, problem.shape, problem.dtype)
        if target.size:
            device = gpu(cupy.cuda.Device().id)
            plan = _plan(problem, device)
            if plan is None:
                filter_then_transform(problem, x, coefficients, target, device)
            elif isinstance(plan, SingleThreadPlan):
                by_single_threads(problem, plan, x, coefficients, target, device)
            else:
                _in_one_kernel(problem, plan, x, coefficients, target, device)
        return target


def algorithm(problem: ChanneliseProblem, device: Device) -> tuple[str, str]:
    """Return the kernels in words, and for the bound: ``kernel``, or the plan of `argand.dft`."""
    plan = _plan(problem, device)
    if plan is not None:
        return str(plan), "kernel"
    rows = problem.rows * problem.spectra
    choice = chosen(
        DftProblem(rows, problem.channels, False, "backward", problem.precision), device
    )
    return f"filter, then {choice}", plan_words(choice.plan)


def _plan(problem: ChanneliseProblem, device: Device) -> ChannelisePlan | SingleThreadPlan | None:
    arch = device.require_arch()
    if not PLAN_OVERRIDE.active:
        short = single_thread_plan(problem, arch)
        if short is not None and short.points <= FEW_POINTS:
            return short
        return plan_channelise(problem, arch) or short
    plan = PLAN_OVERRIDE.value
    if isinstance(plan, SingleThreadPlan):
        check_single_thread_plan(plan, arch)
    elif isinstance(plan, SpecializedPlan):
        check_specialized_plan(plan, arch)
    elif plan is not None:
        check_plan(plan, arch)
    return plan


def _in_one_kernel(
    problem: ChanneliseProblem, plan: ChannelisePlan, x: Any, coefficients: Any, target: Any,
    device: Device,
) -> None:  # fmt: skip
    """Filter and transform by one kernel."""
    given, component = _units(problem, x)
    if not PLAN_OVERRIDE.active:
        found = None
        if _in_vectors(problem, given):
            found = specialized(plan, component, device.require_arch())
        plan = found or without_spills(plan, component, device.target)
    unit = 2 if problem.real else 1
    chunks, batches = chunks_of(
        -(-problem.spectra // problem.phases), problem.rows * problem.phases, plan,
        _resident(plan, component, device),
    )  # fmt: skip
    items = problem.rows * chunks * problem.phases
    taps = stream_table(coefficients.astype(np.float32))
    blocks = items * _cluster(plan) if plan.groups == 1 else -(-items // plan.groups)
    launch = _kernel_launch(plan, component, blocks, device)
    launch({
        "x": given.data.ptr, "out": target.data.ptr, "coefficients": taps.data.ptr,
        "twiddles": device_twiddles(plan, device.index),
        "row_stride": given.size // problem.rows // (1 if given.dtype.kind == "c" else 2),
        "spectra": problem.spectra, "items": items,
        "chunks": chunks, "batches": batches, "hop": problem.hop // unit,
    })  # fmt: skip
    if kernel_trace.watching:
        kernel_trace.note(_kernel_of(plan, component)[1])


def _in_vectors(problem: ChanneliseProblem, given: Any) -> bool:
    """Return whether each row, and each frame of a specialised kernel, begins at 16 bytes."""
    return given.data.ptr % 16 == 0 and (
        problem.rows == 1 or given.nbytes // problem.rows % 16 == 0
    )


def _units(problem: ChanneliseProblem, x: Any) -> tuple[Any, str]:
    """Return samples as the kernel reads them, contiguous and aligned, and the components' type."""
    if isinstance(x, Pairs):
        x = x.array if x.format in COMPONENTS else x.to_complex64()
    if str(x.dtype) not in COMPONENTS:
        x = x.astype(np.float32 if problem.real else np.complex64, copy=False)
    if problem.real and problem.rows > 1 and problem.samples % 2:
        x = x[..., : problem.samples - 1]  # in no spectrum: frames have even lengths
    component = "float32" if x.dtype.kind == "c" else str(x.dtype)
    x = cupy.ascontiguousarray(x)
    if x.data.ptr % COMPONENTS[component][1]:
        x = x.copy()
    return x, read_as(component, conjugate=problem.conjugate)


def _cluster(plan: ChannelisePlan) -> int:
    """Return the blocks that share a chunk."""
    return plan.cluster if isinstance(plan, SpecializedPlan) else 1


@lru_cache(maxsize=64)
def _resident(plan: ChannelisePlan, component: str, device: Device) -> int:
    """Return how many chunks of spectra the device works on at a time."""
    cluster = _cluster(plan)
    if cluster == 1:
        return device.sm_count * plan.blocks * plan.groups
    source, name = _kernel_of(plan, component)
    kernel = load(source, device.target, name, plan.shared_bytes)
    found = max_active_clusters(kernel.ptr, cluster, plan.block_threads, plan.shared_bytes)
    return found or max(1, device.sm_count * plan.blocks // cluster)


def chunks_of(count: int, apart: int, plan: ChannelisePlan, resident: int) -> tuple[int, int]:
    """Return the number of chunks that cut ``count`` spectra in a row, and a chunk's batches.

    There are ``apart`` such rows, and the device works on ``resident`` chunks at a time.
    """
    batches = -(-count // plan.batch)
    target_blocks = max(1, resident if apart == 1 else -(-WAVES * resident // apart))
    most = max(1, _MAX_FRAMES // (plan.batch * plan.frames))
    of_chunk = min(max(1, -(-batches // target_blocks)), most)
    return -(-batches // of_chunk), of_chunk


def _kernel_of(plan: ChannelisePlan, component: str) -> tuple[str, str]:
    """Return the source of a plan's kernel, and its name."""
    if isinstance(plan, SpecializedPlan):
        return specialized_source(plan, component), specialized_name(plan, component)
    return kernel_source(plan, component), kernel_name(plan, component)


@lru_cache(maxsize=64)
def _kernel_launch(
    plan: ChannelisePlan, component: str, blocks: int, device: Device
) -> BoundKernel:
    return bound_kernel(
        *_kernel_of(plan, component), blocks, plan.block_threads, KERNEL_ARGUMENTS, device,
        shared_bytes=plan.shared_bytes,
    )  # fmt: skip


def device_twiddles(plan: ChannelisePlan, device: int) -> int:
    """Return the address of `twiddle_tables` on a device, copied there once."""
    table = _device_twiddles(plan, device)
    keep_in_graph(table.data)
    return int(table.data.ptr)


@lru_cache(maxsize=16)
def _device_twiddles(plan: ChannelisePlan, device: int) -> Any:
    special = isinstance(plan, SpecializedPlan)
    return device_table(specialized_tables(plan) if special else twiddle_tables(plan))
