"""The base of kinds that are one matrix product: gemm and beamforming."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from argand import Device, GemmProblem, Precision, gemm
from argand.gemm import cpu as numpy_backend
from argand.gemm.modular.proof import PRIME
from argand.gemm.problem import gemm_problem

from workflow.accuracy import Accuracy
from workflow.accuracy.matrix_product_accuracy import assess_product
from workflow.accuracy.references import ProductReference
from workflow.config.case import Case
from workflow.config.matrix_product_case import MatrixProductCase
from workflow.data import Staged
from workflow.files.input_error import InputError
from workflow.implementation import Implementation, Shape
from workflow.inputs import operands
from workflow.inputs.operands import Operand
from workflow.workloads.base import Workload
from workflow.workloads.baselines import implementations

Array = npt.NDArray[Any]


class MatrixProduct(Workload):
    """A workload whose result is one matrix product."""

    def assess(
        self,
        staged: Staged,
        reference: ProductReference,
        result: Array,
        precision: Precision,
        device: str,
    ) -> Accuracy:
        """See `assess_product`."""
        return assess_product(reference, result, precision, backend=device)


def check_shapes(
    layout: Sequence[Operand], shapes: Mapping[str, tuple[int, ...]], **scalars: Any
) -> None:
    """Raise InputError where the first two operands, and c, do not make a product.

    The error has the axes that each operand of ``layout`` is read by: where a file's lie in another
    order, shapes alone do not say so.
    """
    left, right = layout[:2]
    a, b = shapes[left.name], shapes[right.name]
    try:
        gemm_problem(a, b, shapes.get("c"), **scalars)
    except ValueError as error:
        why = str(error)
        as_stored = all(scalars.get(op, "N") == "N" for op in ("op_a", "op_b"))
        if as_stored and a[-1] != b[-2]:
            why = f"{left.axes[-1]} is {a[-1]} of {left.name} and {b[-2]} of {right.name}"
        for axis, ours, others in zip(left.axes, a[:-2], b[:-2], strict=False):
            if ours != others and 1 not in (ours, others):
                why = f"{axis} is {ours} of {left.name} and {others} of {right.name}"
        raise InputError(
            f"input: {left.name} ({named_sizes(left.axes, a)}) and {right.name} "
            f"({named_sizes(right.axes, b)}) do not fit: {why}; for another order name the axes "
            "in input.axes"
        ) from None


def named_sizes(axes: Sequence[str], shape: Sequence[int]) -> str:
    """Return a shape with the names of its axes, for messages."""
    return ", ".join(f"{axis} {length}" for axis, length in zip(axes, shape, strict=True))


def shape(problem: GemmProblem, read: Iterable[Array]) -> Shape:
    """Return a product's sizes; operands are ``read`` once and the result is written once."""
    values = sum(data.size for data in read) + int(np.prod(problem.shape, dtype=np.int64))
    return Shape(
        flops=problem.flops,
        bytes_moved=values * operands.complex_bytes(problem.precision),
        batch=problem.batch,
        m=problem.m,
        n=problem.n,
        k=problem.k,
    )


def ours(
    case: MatrixProductCase, precision: Precision, device: Device, names: Sequence[str],
    scalars: Mapping[str, Any],
) -> Implementation:  # fmt: skip
    """Return an implementation by `argand.gemm` of those operands ``names`` that there are.

    Exact integers are proved modulo a prime (`argand.gemm.modular.proof`).
    """
    how = {**scalars, "precision": precision, "kernels": case.kernels.get(precision.name)}
    proved = partial(_multiplied, names, {**how, "check": True}, gemm) if precision.moduli else None
    return Implementation.ours(
        precision,
        gemm_algorithm(precision, device),
        partial(_multiplied, names, how, gemm),
        partial(operands.cast, precision=precision),
        proved=proved,
        proof=f"proved modulo {PRIME}" if proved else "",
    )


def peers(
    case: Case, device: Device, names: Sequence[str], scalars: Mapping[str, Any]
) -> list[Implementation]:
    """Return the libraries that the case asks for, on the same operands."""
    return implementations(case, device, "gemm", partial(_multiplied, names, scalars))


def gemm_algorithm(precision: Precision, device: Device) -> str:
    """Return the implementation by `argand.gemm` at a precision on a device."""
    if device.backend == "cuda":
        from argand.gemm import gpu as cuda_gemm

        return cuda_gemm.gemm_algorithm(precision)
    return numpy_backend.gemm_algorithm(precision)


def _multiplied(
    names: Sequence[str], keywords: Mapping[str, Any], multiply: Callable[..., Any],
    given: Mapping[str, Any],
) -> Any:  # fmt: skip
    return multiply(*(given[name] for name in names if name in given), **keywords)
