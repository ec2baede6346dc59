"""Complex matrix product: the problem, and the call that a user makes.

C = alpha op(A) op(B) + beta C, batched as ``numpy.matmul``. What is to be computed (`GemmProblem`)
is kept apart from how (`GemmPlan` of the CUDA backend); the arrays decide where.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from argand import numpy_backend
from argand.device import is_cuda_array
from argand.precision import Precision, get_precision

Op = Literal["N", "T", "C"]
OPS: tuple[Op, ...] = get_args(Op)


@dataclass(frozen=True)
class GemmProblem:
    """What a call computes, without its data.

    op(A) is ``batch_shape + (m, k)``, op(B) ``batch_shape + (k, n)``, C ``batch_shape + (m, n)``;
    leading axes are broadcast as in ``numpy.matmul``.
    """

    batch_shape: tuple[int, ...]
    m: int
    n: int
    k: int
    op_a: Op
    op_b: Op
    alpha: complex
    beta: complex
    precision: Precision

    @property
    def batch(self) -> int:
        """How many products there are."""
        return int(np.prod(self.batch_shape, dtype=np.int64))

    @property
    def flops(self) -> int:
        """8 batch m n k: four real multiplications and four additions a complex one."""
        return 8 * self.batch * self.m * self.n * self.k

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return (*self.batch_shape, self.m, self.n)


def _oriented(shape: tuple[int, ...], op: str, name: str) -> tuple[int, int]:
    if len(shape) < 2:
        raise ValueError(f"{name} must have at least 2 axes, got shape {shape}")
    if op not in OPS:
        raise ValueError(f"op_{name} must be one of {list(OPS)}, got {op!r}")
    rows, columns = shape[-2:]
    return (rows, columns) if op == "N" else (columns, rows)


def gemm_problem(
    a_shape: tuple[int, ...],
    b_shape: tuple[int, ...],
    c_shape: tuple[int, ...] | None = None,
    *,
    alpha: complex = 1,
    beta: complex = 0,
    op_a: Op = "N",
    op_b: Op = "N",
    precision: str | Precision = "fp32",
    rounding: Sequence[str] | str | None = None,
) -> GemmProblem:
    """The problem that a call of these shapes poses.

    Raises ValueError where the inner dimensions differ, the leading axes do not broadcast, C does
    not have the result's shape, or beta is not 0 and there is no C.
    """
    m, k = _oriented(a_shape, op_a, "a")
    k_b, n = _oriented(b_shape, op_b, "b")
    if k != k_b:
        raise ValueError(
            f"inner dimensions differ: op(a) is {m} x {k} and op(b) is {k_b} x {n} "
            f"(a {a_shape} {op_a}, b {b_shape} {op_b})"
        )
    try:
        batch_shape = np.broadcast_shapes(a_shape[:-2], b_shape[:-2])
    except ValueError:
        raise ValueError(
            f"leading axes of a {a_shape[:-2]} and b {b_shape[:-2]} do not broadcast"
        ) from None
    problem = GemmProblem(
        batch_shape, m, n, k, op_a, op_b, complex(alpha), complex(beta),
        get_precision(precision, rounding),
    )  # fmt: skip
    if beta != 0 and c_shape is None:
        raise ValueError(f"beta is {beta}, so c must be given")
    if beta != 0 and c_shape != problem.shape:
        raise ValueError(f"c must have shape {problem.shape}, got {c_shape}")
    return problem


def gemm(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    alpha: complex = 1,
    beta: complex = 0,
    op_a: Op = "N",
    op_b: Op = "N",
    precision: str | Precision = "fp32",
    rounding: Sequence[str] | str | None = None,
    out: Any = None,
) -> Any:
    """alpha op(a) op(b) + beta c, at a precision.

    Args:
        a, b: ``(..., m, k)`` and ``(..., k, n)`` after their op; NumPy arrays are computed on the
            CPU, CuPy arrays on their GPU. Any strides; leading axes broadcast as in numpy.matmul.
        c: ``(..., m, n)``; not read where beta is 0.
        alpha, beta: complex scalars.
        op_a, op_b: ``N`` as it is, ``T`` transposed, ``C`` conjugated and transposed.
        precision: a name of ``PRECISIONS`` or a row of it.
        rounding: how the terms of tf32 and 3xtf32 are rounded: one name for all, or one for each.
        out: where the result goes; it may be c. Its type must be the precision's output type.

    Returns:
        ``(..., m, n)``, complex128 at fp64 and complex64 otherwise.

    Raises:
        ValueError: shapes that do not fit, an unknown precision, op or rounding, a wrong ``out``.
        TypeError: some arrays on a GPU and others not.
    """
    arrays = [x for x in (a, b, c, out) if x is not None]
    on_gpu = [is_cuda_array(x) for x in arrays]
    if any(on_gpu) and not all(on_gpu):
        raise TypeError("a, b, c and out must all be NumPy arrays or all be CuPy arrays")
    if not any(on_gpu):
        a, b, c = np.asarray(a), np.asarray(b), None if c is None else np.asarray(c)
    problem = gemm_problem(
        a.shape, b.shape, None if c is None else c.shape,
        alpha=alpha, beta=beta, op_a=op_a, op_b=op_b, precision=precision, rounding=rounding,
    )  # fmt: skip
    check_out(out, problem.shape, problem.precision.output)
    if any(on_gpu):
        from argand.cuda_backend import gemm as launch

        return launch(problem, a, b, c, out)
    return numpy_backend.gemm(problem, a, b, c, out)


def check_out(out: Any, shape: tuple[int, ...], dtype: str) -> None:
    """Raise ValueError where ``out`` is given and is not of this shape and type."""
    if out is not None and (tuple(out.shape) != shape or str(out.dtype) != dtype):
        raise ValueError(
            f"out must have shape {shape} and type {dtype}, got {tuple(out.shape)} and {out.dtype}"
        )
