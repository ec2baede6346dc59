"""Exact products of CuPy arrays."""

from __future__ import annotations

from typing import Any

import cupy

from argand.device import gpu
from argand.gemm.calls import CALLS, run_of
from argand.gemm.families import Family, require_family
from argand.gemm.modular.launch import prepared
from argand.gemm.modular.pieces import ModularProblem
from argand.gemm.modular.reconstruction import times
from argand.gemm.problem import GemmProblem
from argand.runtime.call_cache import Key
from argand.runtime.layout import batched, device_of, result_array


def modular_product(
    problem: GemmProblem,
    a: Any,
    b: Any,
    c: Any,
    out: Any,
    count: int,
    family: Family | None,
    key: Key | None = None,
    *,
    check: bool = False,
) -> Any:
    """alpha op(a) op(b) + beta c on the GPU that holds the arrays, by ``count`` moduli.

    Args:
        problem: the sizes, ops and scalars.
        a, b, c: CuPy arrays of one complex type; c is None where beta is 0.
        out: an array of that type or None.
        count: of moduli.
        family: of kernels; None is the device's fastest.
        key: under which the call cache is to keep calls of this form; None where the arrays are
            not the caller's own.
        check: prove the integers, and wait for it.

    Returns:
        out, or a new array of shape ``problem.shape``.

    Raises:
        ValueError: k too long for the moduli.
        DeviceError: the device has no such kernels.
        WrongProductError: the check failed.
    """
    with device_of(a):
        require_family(family, gpu(cupy.cuda.Device().id))
        # C may be out: the thread that writes an element has read it.
        inputs = [a, b] if c is out else [a, b, c]
        target = result_array(out, problem.shape, str(a.dtype), inputs)
        if target.size and problem.k:
            _solve(problem, a, b, c, target, out, count, family, key, check=check)
        elif target.size:
            target[...] = 0 if c is None else times(c, problem.beta)
        if out is not None and target is not out:
            out[...] = target
            return out
        return target


def _solve(
    problem: GemmProblem,
    a: Any,
    b: Any,
    c: Any,
    target: Any,
    out: Any,
    count: int,
    family: Family | None,
    key: Key | None,
    *,
    check: bool,
) -> None:
    shape = problem.batch_shape
    left, right = batched(a, shape), batched(b, shape)
    result, addend = batched(target, shape), None if c is None else batched(c, shape)
    given = [(left, a), (right, b), *([] if addend is None else [(addend, c)])]
    in_place = all(x.array.data.ptr == y.data.ptr for x, y in given)
    left = left.transposed if problem.op_a != "N" else left
    right = right.transposed if problem.op_b == "N" else right
    flip_left, flip_right = problem.op_a == "C", problem.op_b == "C"
    # C^T = B^T A^T, whose rows are contiguous.
    swapped = abs(result.row_stride) < abs(result.column_stride)
    if swapped:
        left, right, result = right, left, result.transposed
        flip_left, flip_right = flip_right, flip_left
        addend = None if addend is None else addend.transposed
    prepared_launch = prepared(
        ModularProblem(
            str(a.dtype), count, problem.batch, left.layout, right.layout,
            None if addend is None else addend.layout, result.layout, flip_left, flip_right,
            complex(problem.alpha), complex(problem.beta), family,
            ("column" if swapped else "row") if check else None,
        ),
        gpu(cupy.cuda.Device().id),
    )  # fmt: skip

    def launch(a: int, b: int, c: int, out: int) -> None:
        prepared_launch(*((b, a) if swapped else (a, b)), c, out)

    launch(*(
        int(x.data.ptr) for x in (
            (right if swapped else left).array, (left if swapped else right).array,
            (addend or result).array, result.array,
        )
    ))  # fmt: skip
    if in_place and (out is None or target is out):
        operands = (a, b, c)
        run = run_of(launch, operands, str(a.dtype))
        CALLS.keep(key, run, operands, out, problem.shape, str(a.dtype))
