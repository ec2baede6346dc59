"""Lower triangles of full Hermitian matrices on a GPU, by the kernels of their precision."""

from __future__ import annotations

from typing import Any, NamedTuple

import cupy

from argand.gemm.launch import GemmLaunch
from argand.gemm.modular.api import modular_gemm
from argand.gemm.modular.moduli import EXACT
from argand.gemm.pairs import Pairs
from argand.gemm.panel_launch import PanelLaunch
from argand.gemm.prepare import prepare
from argand.gemm.product_form import OperandForm, ProductForm
from argand.herk import cublas
from argand.herk.problem import FULL_PRODUCT, HerkProblem
from argand.runtime.calls.layout import batched
from argand.runtime.launch import kernel_trace


class LowerProduct(NamedTuple):
    """The launch of a product, and whether it takes the addresses of a and c as they are."""

    launch: GemmLaunch | PanelLaunch | cublas.FullLaunch
    in_place: bool


def lower_triangle(problem: HerkProblem, a: Any, c: Any, target: Any) -> LowerProduct | None:
    """Compute the lower triangles of full matrices; return the product by our own kernels, if any.

    Unless its launch mirrors them, what is above the diagonal is undefined.
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
        return _by_cublas(problem, a, c, target, as_given=a is given)
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
    return LowerProduct(launch, in_place)


def _by_cublas(
    problem: HerkProblem, a: Any, c: Any, target: Any, *, as_given: bool
) -> LowerProduct | None:
    """Compute lower triangles by cuBLAS, in a matrix of contiguous rows; return a full product."""
    whole = target
    if target.strides[-1] != target.itemsize or target.strides[-2] < (
        target.shape[-1] * target.itemsize
    ):
        whole = cupy.empty(target.shape, target.dtype)
    if c is not None and c is not whole:
        whole[...] = c
    found = None
    if cublas.takes_full_product(problem):
        launch, in_place = cublas.full_product(problem, a, whole)
        if in_place and as_given and c is None and whole is target:
            found = LowerProduct(launch, in_place=True)
    else:
        if kernel_trace.watching:
            kernel_trace.note(cublas.algorithm("fp32" if problem.dtype == "complex64" else "fp64"))
        matrices = cupy.ascontiguousarray(a).reshape(problem.batch, *a.shape[-2:])
        cublas.lower_triangle(problem, matrices, batched(whole, problem.batch_shape))
    if whole is not target:
        target[...] = whole
    return found
