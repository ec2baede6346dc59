"""Transforms on a GPU: arrays to rows, their launch, and the call cache."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import cupy

from argand.device import gpu
from argand.dft import cufft, tuned
from argand.dft.heuristics import Choice
from argand.dft.launch import DftLaunch
from argand.dft.legality import WIDE_BYTES, check_dft_plan, wide_fits
from argand.dft.multi_kernel_launch import MultiKernelLaunch, MultiKernelPlan
from argand.dft.plan import KernelPlan, Plan, kernel_names
from argand.dft.plan_words import LIBRARY
from argand.dft.problem import DftProblem, dft_problem, fitted
from argand.precision import Precision
from argand.runtime.calls.call_cache import CallCache, Key
from argand.runtime.calls.kept_call import Chosen, Run
from argand.runtime.calls.layout import clashes, device_of, row_stride
from argand.runtime.memory.workspace_limit import allowed_workspace
from argand.runtime.plans.plan_override import PlanOverride

PLAN_OVERRIDE: PlanOverride[Plan | None] = PlanOverride()
"""Within ``PLAN_OVERRIDE.use(plan)`` every transform takes this plan, or cuFFT for None."""
CALLS = CallCache(PLAN_OVERRIDE, tuned.TABLE, in_place=(0,))


def plan_of(
    x: Any,
    axis: int = -1,
    *,
    n: int | None = None,
    inverse: bool = False,
    norm: str = "backward",
    precision: str | Precision = "3xfp16",
    rounding: Sequence[str] | str | None = None,
    out: Any = None,
) -> Choice:
    """Return the plan of a call of `argand.dft` with these arguments, and why it is taken."""
    problem, axis, _ = dft_problem(x, axis, n, inverse, norm, precision, rounding)
    with device_of(x):
        rows = _rows_of(problem, x, axis)
        return _choice(problem, rows, _target(rows, axis, out)[0])


def dft(problem: DftProblem, x: Any, axis: int, out: Any, key: Key | None = None) -> Any:
    """Solve a DftProblem for an array on its GPU; ``out`` is checked.

    ``key`` is that of the call cache. Raises CompileError where NVRTC fails.
    """
    with device_of(x, out):
        rows = _rows_of(problem, x, axis)
        target, usable = _target(rows, axis, out)
        found = cupy.moveaxis(target, -1, axis)
        choice = _choice(problem, rows, target)
        if target.size:
            run, nbytes = _computed(problem, choice.plan, rows, target)
            # The call cache allocates results in C order.
            plain = usable if out is not None else axis == x.ndim - 1
            if run is not None and plain and rows.data.ptr == x.data.ptr:
                output = problem.precision.output
                chosen = _chosen(problem, choice.plan, rows, target)
                CALLS.keep(key, run, (x,), out, found.shape, output, nbytes, chosen)
        if out is None or usable:
            return found if out is None else out
        out[...] = found
        return out


def _chosen(problem: DftProblem, plan: Plan | None, x: Any, target: Any) -> Chosen:
    """Return the plan or the library that computes the transforms, for records."""
    if plan is None and problem.length == 1:
        return Chosen("copy")
    kept = cufft.kept_bytes(problem, x.device.id) if plan is None else 0
    if problem.method is None:
        return Chosen(LIBRARY, library_bytes=kept)
    wide = all(_wide(array, problem, problem.method.kind) for array in (x, target))
    entry = tuned.key(problem.rows, problem.length, problem.precision, wide=wide)
    if plan is None:
        return Chosen(LIBRARY, None, entry, kept)
    return Chosen(", ".join(kernel_names(plan, problem.precision)), plan, entry)


def _rows_of(problem: DftProblem, x: Any, axis: int) -> Any:
    """Return x with the transformed axis last, in the result's type, by rows of one stride."""
    moved = cupy.moveaxis(fitted(x, axis, problem.length), axis, -1)
    moved = moved.astype(problem.precision.output, copy=False)
    return moved if _stride(moved) is not None else cupy.ascontiguousarray(moved)


def _target(rows: Any, axis: int, out: Any) -> tuple[Any, bool]:
    """Return the array that kernels write, the transformed axis last, and whether it is ``out``."""
    if out is not None:
        goal = cupy.moveaxis(out, axis, -1)
        if _stride(goal) is not None and not clashes(rows, goal):
            return goal, True
    return cupy.empty(rows.shape, rows.dtype), False


def _stride(x: Any) -> int | None:
    return row_stride(x, x.ndim - 1)


def _choice(problem: DftProblem, x: Any, target: Any) -> Choice:
    """Return the plan override, the tuned plan or the choice for rows and their result."""
    arch = gpu(x.device.id).require_arch()
    method = problem.method
    plan = PLAN_OVERRIDE.value
    kind: str = "dense" if method is None else method.kind
    if plan is not None:
        kind = plan.kind
    wide = all(_wide(array, problem, kind) for array in (x, target))
    if PLAN_OVERRIDE.active:
        if plan is not None:
            if plan.length != problem.length:
                raise ValueError(f"the plan is for {plan.length}, x has {problem.length}")
            check_dft_plan(plan, problem.precision, arch)
            if plan.wide_copies and not wide:
                raise ValueError("wide copies need even strides on 16 bytes")
        return Choice(plan, "by a plan override")
    return tuned.chosen(problem, gpu(x.device.id), wide=wide)


def _wide(x: Any, problem: DftProblem, kind: str) -> bool:
    """Return whether plans of a kind can copy the rows of an array by 16 bytes."""
    stride = problem.length if problem.rows <= 1 else _stride(x)
    assert stride is not None
    return x.data.ptr % WIDE_BYTES == 0 and wide_fits(kind, problem.length, stride)


def _computed(
    problem: DftProblem, plan: Plan | None, x: Any, target: Any
) -> tuple[Run | None, int]:
    """Compute the transforms. Returns a call that repeats it, and the bytes that the call holds.

    The call is None where the arrays had to be copied for a library.
    """
    if plan is None:
        return cufft.transform(problem, x, target), 0
    strides = (_between(problem, x), _between(problem, target))
    launch = _launch_for(problem, plan, strides, x.device.id)
    launch(x.data.ptr, target.data.ptr)
    return launch.__call__, launch.nbytes  # a bound method takes less time than the object


def _between(problem: DftProblem, x: Any) -> int:
    """Return the elements from row to row, the same for all problems of one row."""
    return problem.length if problem.rows <= 1 else int(_stride(x) or 0)


def _launch_for(
    problem: DftProblem, plan: Plan, strides: tuple[int, int], device: int
) -> DftLaunch | MultiKernelLaunch:
    if isinstance(plan, MultiKernelPlan):
        return _multi_kernel_launch(problem, plan, strides, device, allowed_workspace())
    return _single_kernel_launch(problem, plan, strides, device)


@lru_cache(maxsize=1024)
def _single_kernel_launch(
    problem: DftProblem, plan: KernelPlan, strides: tuple[int, int], device: int
) -> DftLaunch:
    return DftLaunch(problem, plan, strides, device)


@lru_cache(maxsize=16)
def _multi_kernel_launch(
    problem: DftProblem, plan: MultiKernelPlan, strides: tuple[int, int], device: int,
    allowed: int | None,
) -> MultiKernelLaunch:  # fmt: skip
    return MultiKernelLaunch(problem, plan, strides, device, allowed)
