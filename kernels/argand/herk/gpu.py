"""Hermitian rank-k products on a GPU: tiles of the lower triangle, then what mirrors them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import cupy
import numpy as np

from argand.device import Device, gpu
from argand.gemm import tuned as tuning
from argand.gemm.calls import form_of
from argand.gemm.families import require_family
from argand.gemm.launch import PLAN_OVERRIDE, GemmLaunch, prepare
from argand.gemm.modular.api import modular_gemm
from argand.gemm.modular.moduli import EXACT, EXACT_ALGORITHM
from argand.gemm.operand_form import OperandForm
from argand.gemm.pairs import Pairs
from argand.gemm.panel_launch import PanelLaunch
from argand.gemm.product_form import ProductForm
from argand.herk import cublas
from argand.herk.finish_launch import gather_launch, mirror_launch
from argand.herk.int8_launch import Int8Problem, prepared
from argand.herk.kernel_sources import INT8_LARGEST_K
from argand.herk.problem import HerkProblem
from argand.precision import Precision
from argand.runtime import kernel_trace
from argand.runtime.call_cache import CallCache, Key
from argand.runtime.kept_call import Run
from argand.runtime.kernel import BoundKernel
from argand.runtime.layout import Batched, batched, device_of, may_overlap, writable
from argand.runtime.plan import TARGET
from argand.runtime.workspace_limit import allowed_workspace, require_workspace

_WORKSPACE = 1 << 28
"""Bytes of matrices whose triangles are gathered at a time, at least one of them."""
CALLS = CallCache(PLAN_OVERRIDE, tuning.TABLE, form_of=form_of, in_place=(1,))
FULL_PRODUCT = "full product by gemm, mirrored"
"""The name in records of products without a kernel for triangles."""


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
        _only_addend(problem, c, target, device)
    elif _takes_int8(problem, a, device):
        return _int8(problem, a, c, target, device)
    elif problem.form == "full":
        product = _lower(problem, a, c, target)
        mirrors = product is not None and product.launch.mirrors
        mirror = None if mirrors else _mirror(problem, target, device)
        if product is not None and product.in_place:
            return _run_of(product.launch, mirror)
    else:
        _gathered(problem, a, c, target, device)
    return None


def _run_of(launch: GemmLaunch | PanelLaunch, mirror: BoundKernel | None) -> Run:
    """Return what computes a full result from the addresses of a, c or None, and the result."""

    def run(a: int, c: int | None, out: int) -> None:
        launch(a, a, out if c is None else c, out)
        if mirror is not None:
            mirror({"matrix": out})

    return run


def _only_addend(problem: HerkProblem, c: Any, target: Any, device: Device) -> None:
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


def _gathered(problem: HerkProblem, a: Any, c: Any, target: Any, device: Device) -> None:
    """Compute some matrices at a time in a workspace, and gather their lower triangles."""
    n, batch = problem.n, problem.batch
    if isinstance(a, Pairs):
        a = Pairs(a.array.reshape(batch, *a.array.shape[-3:]), a.format)
    else:
        a = a.reshape(batch, *a.shape[-2:])
    rows = target.reshape(batch, 1, target.shape[-1])
    addend = None if c is None else cupy.ascontiguousarray(c).reshape(rows.shape)
    matrix = n * n * target.itemsize
    require_workspace("herk of form='triangle'", matrix, "take form='full'")
    allowed = allowed_workspace()
    most = _WORKSPACE if allowed is None else min(_WORKSPACE, allowed)
    at_once = min(batch, max(1, most // matrix))
    workspace = cupy.empty((at_once, n, n), problem.dtype)
    for first in range(0, batch, at_once):
        some = slice(first, min(first + at_once, batch))
        matrices = workspace[: some.stop - first]
        part = Pairs(a.array[some], a.format) if isinstance(a, Pairs) else a[some]
        count = (some.stop - first,)
        _lower(replace(problem, batch_shape=count, beta=0.0), part, None, matrices)
        source, to = batched(matrices, count), batched(rows[some], count)
        more = None if addend is None else batched(addend[some], count)
        launch = gather_launch(
            source.layout, to.layout, None if more is None else more.layout, problem.beta,
            count[0], problem.dtype, device,
        )  # fmt: skip
        launch({
            "matrix": source.array.data.ptr, "triangle": to.array.data.ptr,
            "c": 0 if more is None else more.array.data.ptr,
        })  # fmt: skip


class _Product(NamedTuple):
    """The launch of a product, and whether it takes the addresses of a and c as they are."""

    launch: GemmLaunch | PanelLaunch
    in_place: bool


def _lower(problem: HerkProblem, a: Any, c: Any, target: Any) -> _Product | None:
    """Compute the lower triangles of full matrices; return the product by our own kernels, if any.

    Unless its launch mirrors them, what is above the diagonal is left to chance.
    """
    precision = problem.precision
    if precision is None or precision.moduli:
        if kernel_trace.watching:
            kernel_trace.note(FULL_PRODUCT)
        modular_gemm(
            a, a, c, alpha=problem.alpha, beta=problem.beta, op_a=problem.op,
            op_b=problem.other_op, precision=EXACT if precision is None else precision.name,
            tolerance=None, check=False, out=target, kernels=problem.kernels,
        )  # fmt: skip
        return None
    given = a
    a = a.to_complex64() if isinstance(a, Pairs) else a
    a = a.astype(problem.dtype, copy=False)
    if precision.exact_operands:
        _by_cublas(problem, a, c, target)
        return None
    shape = problem.batch_shape
    view, result = batched(a, shape), batched(target, shape)
    addend = None if c is None else batched(c, shape)
    layout = (view if problem.op == "N" else view.transposed).layout
    many = layout.batch_stride != 0
    # Rows of op(A), and columns of op(A)^H as rows: the same, once conjugated and once not.
    left = OperandForm(layout, conjugated=problem.op == "C", batched=many)
    right = OperandForm(layout, conjugated=problem.op == "N", batched=many)
    launch = prepare(
        ProductForm(
            problem.product, left, right, None if addend is None else addend.layout, result.layout
        )
    )
    at = view.array.data.ptr
    launch(at, at, (addend or result).array.data.ptr, result.array.data.ptr)
    as_given = not isinstance(given, Pairs) and at == given.data.ptr
    in_place = as_given and (addend is None or addend.array.data.ptr == c.data.ptr)
    return _Product(launch, in_place)


def _by_cublas(problem: HerkProblem, a: Any, c: Any, target: Any) -> None:
    """Compute lower triangles by cuBLAS, in a matrix of contiguous rows."""
    if kernel_trace.watching:
        kernel_trace.note(cublas.algorithm("fp32" if problem.dtype == "complex64" else "fp64"))
    whole = target
    if target.strides[-1] != target.itemsize or target.strides[-2] < (
        target.shape[-1] * target.itemsize
    ):
        whole = cupy.empty(target.shape, target.dtype)
    if c is not None and c is not whole:
        whole[...] = c
    matrices = cupy.ascontiguousarray(a).reshape(problem.batch, *a.shape[-2:])
    cublas.lower_triangle(problem, matrices, batched(whole, problem.batch_shape))
    if whole is not target:
        target[...] = whole


def _takes_int8(problem: HerkProblem, a: Any, device: Device) -> bool:
    """Return whether the kernel in s32 computes a call."""
    return (
        problem.precision is None and isinstance(a, Pairs) and a.format == "int8"
        and problem.k <= INT8_LARGEST_K and device.target == TARGET
    )  # fmt: skip


def _int8(problem: HerkProblem, a: Pairs, c: Any, target: Any, device: Device) -> Run | None:
    shape = problem.batch_shape
    # The kernel reads both parts of a number as one of 16 bits, so parts that begin at an odd
    # address are copied even where they are contiguous.
    parts = a.array if _in_words(a.array) else a.array.copy(order="C")
    view = batched(parts.view("uint16")[..., 0], shape)
    rows = view if problem.op == "N" else view.transposed
    result = _as_rows(problem, target)
    addend = None if c is None else _as_rows(problem, c)
    launch = prepared(
        Int8Problem(
            rows.layout, math.prod(shape), problem.op == "C", problem.alpha, problem.beta,
            None if addend is None else addend.layout, result.layout, problem.dtype, problem.form,
        ),
        device,
    )  # fmt: skip
    require_workspace("herk of complex int8", launch.nbytes)
    launch(view.array.data.ptr, (addend or result).array.data.ptr, result.array.data.ptr)
    as_given = view.array.data.ptr == a.array.data.ptr
    if as_given and (addend is None or addend.array.data.ptr == c.data.ptr):
        return lambda a, c, out: launch(a.array.data.ptr, out if c is None else c, out)
    return None


def _in_words(parts: Any) -> bool:
    """Return whether both parts of complex int8 are neighbours at multiples of 2 bytes."""
    together = parts.strides[-1] == 1 and parts.data.ptr % 2 == 0
    return bool(together and not any(stride % 2 for stride in parts.strides[:-1]))


def _as_rows(problem: HerkProblem, x: Any) -> Batched:
    """Return a result as matrices, a triangle as one row each."""
    return batched(x if problem.form == "full" else x[..., np.newaxis, :], problem.batch_shape)
