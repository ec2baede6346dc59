"""`argand.gemm` at the precisions of exact integers: what such a call takes and computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from argand.gemm.cpu import oriented
from argand.gemm.modular.cpu import product
from argand.gemm.modular.moduli import MODULAR_PRECISIONS, fewest_moduli, moduli
from argand.gemm.operands import Op, as_operand, on_gpu
from argand.gemm.packed import Packed
from argand.gemm.pairs import Pairs
from argand.gemm.problem import GemmProblem, gemm_problem
from argand.runtime.checks import check_out

Array = npt.NDArray[Any]
_ROUNDOFF = {np.dtype(np.complex64): 2.0**-24, np.dtype(np.complex128): 2.0**-53}


def modular_gemm(
    a: Any,
    b: Any,
    c: Any,
    *,
    alpha: complex,
    beta: complex,
    op_a: Op,
    op_b: Op,
    precision: str | None,
    tolerance: float | None,
    check: bool,
    out: Any,
) -> Array:
    """alpha op(a) op(b) + beta c from the exact product of integers; arguments as of `argand.gemm`.

    The result has the operands' type: complex128 where one of them needs it, else complex64. Real
    and imaginary parts of what alpha and beta multiply are rounded after each operation, in the
    result's type.

    Raises:
        ValueError: as `argand.gemm` does; a tolerance that no number of moduli proves; k too long
            for the moduli; packed operands or arrays on a GPU, which these precisions do not take.
        WrongProductError: the check failed.
    """
    for name, x in (("a", a), ("b", b), ("c", c), ("out", out)):
        if isinstance(x, Packed) or (x is not None and on_gpu(x)):
            raise ValueError(
                f"{precision or 'a tolerance'} takes NumPy arrays and Pairs of them, "
                f"got {type(x).__name__} for {name}"
            )
    left, right, addend = (None if x is None else _array(x) for x in (a, b, c))
    assert left is not None
    assert right is not None
    problem = gemm_problem(
        left.shape, right.shape, None if addend is None else addend.shape,
        alpha=alpha, beta=beta, op_a=op_a, op_b=op_b, precision="fp64",
    )  # fmt: skip
    dtype = np.result_type(left, right, np.complex64)
    count = (
        MODULAR_PRECISIONS[precision]
        if precision is not None
        else fewest_moduli(problem.k, tolerance or 0.0, _ROUNDOFF[dtype])
    )
    check_out(out, problem.shape, str(dtype))
    found = _products(problem, left.astype(dtype), right.astype(dtype), count, check=check)
    if alpha != 1:
        found = _times(found, alpha)
    if beta != 0 and addend is not None:
        found = found + _times(addend.astype(dtype), beta)
    if out is None:
        return found
    out[...] = found
    return np.asarray(out)


def _array(x: Any) -> Array:
    x = as_operand(x)
    return np.asarray(x.to_complex64() if isinstance(x, Pairs) else x)


def _products(problem: GemmProblem, a: Array, b: Array, count: int, *, check: bool) -> Array:
    a, b = oriented(a, problem.op_a), oriented(b, problem.op_b)
    a = np.broadcast_to(a, (*problem.batch_shape, problem.m, problem.k))
    b = np.broadcast_to(b, (*problem.batch_shape, problem.k, problem.n))
    out = np.empty(problem.shape, a.dtype)
    for index in np.ndindex(problem.batch_shape):
        out[index] = product(a[index], b[index], moduli(count), check=check)
    return out


def _times(x: Array, factor: complex) -> Array:
    """x times a complex number, each product and sum rounded for itself on every machine."""
    kind = x.real.dtype.type
    real, imag = kind(complex(factor).real), kind(complex(factor).imag)
    out = np.empty_like(x)
    out.real = np.subtract(x.real * real, x.imag * imag)
    out.imag = np.add(x.real * imag, x.imag * real)
    return out
