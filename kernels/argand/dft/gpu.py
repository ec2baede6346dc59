"""Transforms on a GPU: arrays to rows, launches of ``cuda/dft``, cuFFT where it is faster."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from threading import get_ident
from typing import Any

import cupy
import numpy as np
from cupy.cuda import cufft

from argand.device import gpu
from argand.dft import tuned as dft_tuning
from argand.dft.api import DftProblem, fitted
from argand.dft.api import dft as transform
from argand.dft.butterfly import ButterflyPlan, butterfly_tables
from argand.dft.cluster import ClusterPlan, cluster_tables
from argand.dft.cpu import stage_shift, table_exponent
from argand.dft.fragments import fragments, fused_twiddles
from argand.dft.gpu_three_kernel import by_passes
from argand.dft.hankel import HankelPlan, cores, places
from argand.dft.heuristics import Choice
from argand.dft.legality import WIDE_BYTES, check_dft_plan, wide_fits
from argand.dft.plan import (
    ARGUMENTS,
    DensePlan,
    KernelPlan,
    Plan,
    dft_source,
    kernel_name,
)
from argand.dft.single_cta import WholePlan, whole_table
from argand.dft.three_kernel import PassesPlan
from argand.precision import Precision
from argand.runtime import compiler as nvrtc
from argand.runtime.arguments import Arguments, arguments_dtype
from argand.runtime.kernel import BoundKernel, clusters_at_once
from argand.runtime.layout import one_stride, place
from argand.runtime.plan_override import Forced
from argand.runtime.workspace import zeroed

_DTYPE = arguments_dtype(ARGUMENTS)

forced: Forced[Plan | None] = Forced()
"""The plan of every transform within ``forced.to(plan)``, None for cuFFT: to test and measure."""


def plan_of(x: Any, axis: int = -1, **options: Any) -> Choice:
    """How `argand.dft` would compute a call with these arguments, which are those of `argand.dft`.

    Nothing is computed.
    """
    seen: list[Choice] = []
    _watching.append(seen)
    try:
        transform(x, axis, **options)
    finally:
        _watching.pop()
    return seen[0]


_watching: list[list[Choice]] = []


def dft(problem: DftProblem, x: Any, axis: int, out: Any) -> Any:
    """Solve a DftProblem for an array on its GPU; ``out`` is checked.

    Raises CompileError where NVRTC fails.
    """
    with place(x):
        turned = cupy.moveaxis(fitted(x, axis, problem.length), axis, -1)
        turned = turned.astype(problem.precision.output, copy=False)
        if _rows(turned) is None:
            turned = cupy.ascontiguousarray(turned)
        goal = None if out is None else cupy.moveaxis(out, axis, -1)
        usable = goal is not None and _rows(goal) is not None and not _clashes(turned, goal)
        target = goal if usable else None
        if target is None:
            target = cupy.empty(turned.shape, problem.precision.output)
        choice = _choice(problem, turned, target)
        if _watching:
            _watching[-1].append(choice)
            return None
        if target.size:
            if choice.plan is None:
                _by_library(problem, turned, target)
            else:
                _launch(problem, choice.plan, turned, target)
        if goal is None:
            return cupy.moveaxis(target, -1, axis)
        if target is not goal:
            goal[...] = target
        return out


def _choice(problem: DftProblem, x: Any, target: Any) -> Choice:
    arch = gpu(x.device.id).require_arch()
    method = problem.method
    plan = forced.value
    kind: str = "dense" if method is None else method.kind
    if plan is not None:
        kind = plan.kind
    wide = all(_wide(array, problem, kind) for array in (x, target))
    if forced.active:
        if plan is not None:
            if plan.length != problem.length:
                raise ValueError(f"the plan is for {plan.length}, x has {problem.length}")
            check_dft_plan(plan, problem.precision, arch)
            if plan.wide and not wide:
                raise ValueError("wide copies need even strides on 16 bytes")
        return Choice(plan, "as it was forced")
    return dft_tuning.chosen(problem, gpu(x.device.id), wide=wide)


def _rows(x: Any) -> int | None:
    """Elements from row to row; None where columns are apart or rows have no one stride."""
    if x.shape[-1] > 1 and x.strides[-1] != x.dtype.itemsize:
        return None
    if x.data.ptr % x.dtype.itemsize or any(s % x.dtype.itemsize for s in x.strides):
        return None
    stride = one_stride(x.shape[:-1], x.strides[:-1])
    return None if stride is None else stride // x.dtype.itemsize


def _wide(x: Any, problem: DftProblem, kind: str) -> bool:
    """Whether plans of a kind can copy the rows of an array by 16 bytes."""
    stride = problem.length if problem.rows <= 1 else _rows(x)
    assert stride is not None
    return x.data.ptr % WIDE_BYTES == 0 and wide_fits(kind, problem.length, stride)


def _clashes(x: Any, out: Any) -> bool:
    """Whether writing out would change rows of x not yet read: in place alone is safe."""
    repeats = any(s == 0 and n > 1 for n, s in zip(out.shape, out.strides, strict=True))
    same = out.data.ptr == x.data.ptr and out.strides == x.strides and out.dtype == x.dtype
    return bool(repeats or (not same and cupy.may_share_memory(x, out)))


def _by_library(problem: DftProblem, x: Any, target: Any) -> None:
    """By cuFFT, which writes the result where it goes; a norm is a pass of its own."""
    if problem.length == 1:
        cupy.multiply(x, target.real.dtype.type(problem.factor), out=target)
        return
    rows = cupy.ascontiguousarray(x).reshape(-1, problem.length)
    whole = bool(target.flags.c_contiguous)
    found = target.reshape(rows.shape) if whole else cupy.empty(rows.shape, target.dtype)
    stream = cupy.cuda.get_current_stream().ptr
    plan = _library_plan(
        problem.length, problem.rows, str(target.dtype), x.device.id, stream, get_ident()
    )
    plan.fft(rows, found, cufft.CUFFT_INVERSE if problem.inverse else cufft.CUFFT_FORWARD)
    if problem.factor != 1:
        found *= found.real.dtype.type(problem.factor)
    if not whole:
        target[...] = found.reshape(target.shape)


@lru_cache(maxsize=4)
def _library_plan(length: int, rows: int, dtype: str, device: int, stream: int, thread: int) -> Any:
    """cuFFT's plan. Its workspace, as large as x or larger, is one stream's and one thread's."""
    kind = cufft.CUFFT_Z2Z if dtype == "complex128" else cufft.CUFFT_C2C
    return cufft.Plan1d(length, kind, rows)


@lru_cache(maxsize=256)
def _table(lengths: tuple[int, ...], warps: int, precision: Precision, device: int) -> Any:
    """The folded tables of these lengths, one after the other, on a device."""
    words = [fragments(length, warps, precision).ravel() for length in lengths]
    return cupy.asarray(np.concatenate(words))


@lru_cache(maxsize=256)
def _hankel(plan: HankelPlan, precision: Precision, device: int) -> dict[str, Any]:
    """The members of ``DftArguments`` with a plan's core matrices and places, on a device."""
    return {
        "table": cupy.asarray(cores(plan, precision)), "takes": cupy.asarray(places(plan))
    }  # fmt: skip


@lru_cache(maxsize=256)
def _twiddles(
    first: int, second: int, tile_rows: int, inverse: bool, device: int
) -> dict[str, Any]:
    """The members of ``DftArguments`` with the twiddles between two stages, on a device."""
    found = fused_twiddles(first, second, tile_rows, inverse=inverse)
    return {
        name: cupy.asarray(table) for name, table in zip(("twiddles", "turns"), found, strict=True)
    }


@lru_cache(maxsize=64)
def _butterfly(plan: ButterflyPlan, inverse: bool, device: int) -> tuple[int, dict[str, Any]]:
    """`butterfly_tables` on a device."""
    exponent, found = butterfly_tables(plan, inverse=inverse)
    return exponent, {name: cupy.asarray(table) for name, table in found.items()}


@lru_cache(maxsize=16)
def _whole(plan: WholePlan, device: int) -> Any:
    """`whole_table` on a device."""
    return cupy.asarray(whole_table(plan))


@lru_cache(maxsize=16)
def _cluster(radices: tuple[int, int, int, int], device: int) -> Any:
    """`cluster_tables` on a device."""
    return cupy.asarray(cluster_tables(radices))


def _launch(problem: DftProblem, plan: Plan, x: Any, target: Any) -> None:
    strides = tuple(
        problem.length if problem.rows <= 1 else int(_rows(array) or 0) for array in (x, target)
    )
    if isinstance(plan, PassesPlan):
        by_passes(problem, plan, x, target, strides)
        return
    launch = _prepared(problem, plan, strides, x.device.id)
    launch.kernel({"x": x.data.ptr, "out": target.data.ptr, "counter": zeroed(4)})


@dataclass(frozen=True)
class _Launch:
    """A kernel for arrays of one form at any address, and the tables that it points to."""

    kernel: BoundKernel
    tables: tuple[Any, ...]


@lru_cache(maxsize=1024)
def _prepared(
    problem: DftProblem, plan: KernelPlan, strides: tuple[int, ...], device: int
) -> _Launch:
    precision = problem.precision
    arch, cores = gpu(device).require_arch(), gpu(device).cores
    shared = plan.shared_bytes(precision)
    kernel = nvrtc.load(
        dft_source(plan, precision), arch.target, kernel_name(plan, precision), shared
    )
    values: dict[str, Any] = dict.fromkeys(_DTYPE.names or (), 0)
    values |= {
        "rows": problem.rows, "x_stride": strides[0], "out_stride": strides[1],
        "sign": -1.0 if problem.inverse else 1.0,
    }  # fmt: skip
    unit = factor = problem.factor
    exponent = table_exponent(precision)
    tables: dict[str, Any] = {}
    if isinstance(plan, DensePlan):
        tables["table"] = _table((plan.length,), plan.warps, precision, device)
        factor *= 2.0**-exponent
    elif isinstance(plan, HankelPlan):
        tables |= _hankel(plan, precision, device)
        factor *= 2.0**-exponent
        values["growth"] = plan.growth(precision)
    elif isinstance(plan, ButterflyPlan):
        scaled, more = _butterfly(plan, problem.inverse, device)
        tables |= more
        unit *= 2.0**-scaled
    elif isinstance(plan, WholePlan):
        tables["twiddles"] = _whole(plan, device)
        unit *= values["sign"]
    elif isinstance(plan, ClusterPlan):
        tables["twiddles"] = _cluster(plan.radices, device)
        unit *= values["sign"]
    else:
        factors = (plan.first, plan.second)
        tables["table"] = _table(tuple(dict.fromkeys(factors)), 1, precision, device)
        tables |= _twiddles(*factors, plan.warps * plan.rows, problem.inverse, device)
        unit *= 2.0 ** stage_shift(precision, plan.first)
        factor = unit * 2.0**-exponent
    values |= {name: table.data.ptr for name, table in tables.items()}
    values |= {"unit": unit, "factor": factor}
    blocks = min(cores, -(-problem.rows // plan.transforms))
    if isinstance(plan, ClusterPlan):
        most = clusters_at_once(kernel.ptr, plan.cluster, plan.threads, shared)
        blocks = min(most, problem.rows) * plan.cluster
    bound = BoundKernel(
        kernel, blocks, plan.threads, Arguments(_DTYPE, values), shared_bytes=shared
    )
    return _Launch(bound, tuple(tables.values()))
