"""Hermitian rank-k products on a GPU: tiles of the lower triangle, then what mirrors them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import cupy
import numpy as np

from argand.device import Device, gpu
from argand.gemm import tuned
from argand.gemm.families import require_family
from argand.gemm.gpu_calls import form_of
from argand.gemm.launch import GemmLaunch
from argand.gemm.modular.moduli import EXACT_ALGORITHM
from argand.gemm.pairs import Pairs
from argand.gemm.pairs_launch import words
from argand.gemm.panel_launch import PanelLaunch
from argand.gemm.prepare import PLAN_OVERRIDE
from argand.herk import cublas
from argand.herk.finish_launch import mirror_launch
from argand.herk.gpu_lower import lower_triangle
from argand.herk.gpu_triangle import Triangle, in_one_batch
from argand.herk.int8_launch import Int8Problem, int8_planes_bytes, launch_for
from argand.herk.kernel_sources import INT8_LARGEST_K
from argand.herk.problem import HerkProblem
from argand.precision import Precision
from argand.runtime.calls.call_cache import CallCache, Key
from argand.runtime.calls.kept_call import Run
from argand.runtime.calls.layout import Batched, batched, device_of, may_overlap, writable
from argand.runtime.launch.kernel import BoundKernel
from argand.runtime.memory.workspace_limit import WorkspaceError, allowed_workspace, workspace_error
from argand.runtime.plan import WGMMA_TARGET

CALLS = CallCache(PLAN_OVERRIDE, tuned.TABLE, form_of=form_of, in_place=(1,))


def herk_algorithm(precision: Precision) -> str:
    """Return how `herk` computes at a precision, for records; `argand.launched` names kernels."""
    if precision.moduli:
        return f"{EXACT_ALGORITHM}, full product"
    if precision.exact_operands:
        return cublas.algorithm(precision.name)
    products = "" if len(precision.products) == 1 else f" ({len(precision.products)} products)"
    return f"{precision.operand.name} 4M{products}, lower triangle"


def herk(
    problem: HerkProblem, a: Any, c: Any, out: Any, key: Key | None = None,
    operands: tuple[Any, Any] = (None, None),
) -> Any:  # fmt: skip
    """Solve a HerkProblem on the GPU that holds its arrays; shapes and ``out`` are checked.

    Args:
        problem: the sizes, op (N or C), scalars and precision.
        a: an array or `Pairs`.
        c: an array, None where beta is 0.
        out: an array or None.
        key: under which the call cache is to keep calls of this form, whose arguments a and c were
            ``operands``.

    Raises PlanError where the architecture has no legal tile, CompileError where NVRTC fails,
    DeviceError where it has not the problem's family of kernels.
    """
    given = a.array if isinstance(a, Pairs) else a
    with device_of(given, c, out):
        device = gpu(cupy.cuda.Device().id)
        require_family(problem.kernels, device)
        # C may be out: the thread that writes an element has read it.
        inputs = [given] if c is out else [given, c]
        addend = None if c is None else c.astype(problem.dtype, copy=False)
        target = out if _may_write(problem, out, inputs) else None
        if target is None:
            target = cupy.empty(problem.shape, problem.dtype)
        run = _solve(problem, a, addend, target, device) if target.size else None
        if run is not None and addend is c and (out is None or target is out):
            CALLS.keep(key, run, operands, out, problem.shape, problem.dtype)
        if out is not None and target is not out:
            out[...] = target
            return out
        return target


def _may_write(problem: HerkProblem, out: Any, inputs: list[Any]) -> bool:
    if out is None:
        return False
    if problem.form == "full":
        return writable(out, inputs)
    overlaps = any(x is not None and may_overlap(out, x) for x in inputs)
    return bool(out.flags.c_contiguous) and not overlaps


def _solve(problem: HerkProblem, a: Any, c: Any, target: Any, device: Device) -> Run | None:
    """Compute a result; return what does so again for a, c and results of the same form, if any."""
    if problem.k == 0 or problem.alpha == 0:
        _write_beta_c(problem, c, target, device)
        return None
    if not _has_int8(problem, a, device):
        return _product(problem, a, c, target, device)
    if _int8_products(problem):
        return _int8(problem, a, c, target, device)
    try:
        return _product(problem, a, c, target, device)
    except WorkspaceError as error:
        planes = int8_planes_bytes(problem.n, problem.k)
        if error.needed <= planes:
            raise
        raise workspace_error("herk of complex int8", planes, error.allowed) from error


def _product(problem: HerkProblem, a: Any, c: Any, target: Any, device: Device) -> Run | None:
    """Compute a result by the kernels of its precision, as `_solve` does."""
    if problem.form == "full":
        product = lower_triangle(problem, a, c, target)
        mirrors = product is not None and product.launch.mirrors
        mirror = None if mirrors else _mirror(problem, target, device)
        if product is not None and product.in_place:
            return _run_of(product.launch, mirror)
    else:
        triangle = Triangle(problem, a, c, target, device)
        triangle.compute(slice(0, problem.batch), slice(0, problem.n))
    return None


def _run_of(
    launch: GemmLaunch | PanelLaunch | cublas.FullLaunch, mirror: BoundKernel | None
) -> Run:
    """Return a function that computes a full result from addresses: of a, c or None, the result."""

    def run(a: int, c: int | None, out: int) -> None:
        launch(a, a, out if c is None else c, out)
        if mirror is not None:
            mirror({"matrix": out})

    return run


def _write_beta_c(problem: HerkProblem, c: Any, target: Any, device: Device) -> None:
    """Compute beta C where there is no product; A is not read."""
    if c is None:
        target.fill(0)
        return
    # A complex factor would turn what is not finite in one part into NaN in the other.
    real = target.real.dtype.type(problem.beta)
    target.real, target.imag = c.real * real, c.imag * real
    if problem.form == "full":
        _mirror(problem, target, device)
    else:
        rows = cupy.arange(problem.n)
        target.imag[..., rows * (rows + 3) // 2] = 0


def _mirror(problem: HerkProblem, target: Any, device: Device) -> BoundKernel:
    """Write what is above the diagonal, make the diagonal real, and return the launch."""
    view = batched(target, problem.batch_shape)
    launch = mirror_launch(view.layout, problem.batch, problem.dtype, device)
    launch({"matrix": view.array.data.ptr})
    return launch


def _has_int8(problem: HerkProblem, a: Any, device: Device) -> bool:
    """Return whether the kernel in s32 may compute a call."""
    return (
        problem.precision is None and isinstance(a, Pairs) and a.format == "int8"
        and problem.k <= INT8_LARGEST_K and device.target == WGMMA_TARGET
    )  # fmt: skip


def _int8_products(problem: HerkProblem) -> int:
    """Return how many products of a batch the limit allows at a time."""
    allowed = allowed_workspace()
    if allowed is None:
        return problem.batch
    return min(problem.batch, allowed // int8_planes_bytes(problem.n, problem.k))


def _int8(problem: HerkProblem, a: Pairs, c: Any, target: Any, device: Device) -> Run | None:
    """Compute a product of int8, some of a batch at a time where the limit asks for it."""
    shape, most = problem.batch_shape, _int8_products(problem)
    if most < problem.batch:
        every = in_one_batch(a, problem.batch).array
        results = target.reshape(problem.batch, *target.shape[len(shape) :])
        addends = None if c is None else c.reshape(results.shape)
        for first in range(0, problem.batch, most):
            some = slice(first, first + most)
            part = replace(problem, batch_shape=every[some].shape[:1])
            addend = None if addends is None else addends[some]
            _int8(part, Pairs(every[some], a.format), addend, results[some], device)
        return None
    view = batched(words(a), shape)
    rows = view if problem.op == "N" else view.transposed
    result = _as_rows(problem, target)
    addend = None if c is None else _as_rows(problem, c)
    launch = launch_for(
        Int8Problem(
            rows.layout, math.prod(shape), problem.op == "C", problem.alpha, problem.beta,
            None if addend is None else addend.layout, result.layout, problem.dtype, problem.form,
        ),
        device,
    )  # fmt: skip
    launch(view.array.data.ptr, (addend or result).array.data.ptr, result.array.data.ptr)
    as_given = view.array.data.ptr == a.array.data.ptr
    if as_given and (addend is None or addend.array.data.ptr == c.data.ptr):
        return lambda a, c, out: launch(a.array.data.ptr, out if c is None else c, out)
    return None


def _as_rows(problem: HerkProblem, x: Any) -> Batched:
    """Return a result as matrices, a triangle as one row each."""
    return batched(x if problem.form == "full" else x[..., np.newaxis, :], problem.batch_shape)
