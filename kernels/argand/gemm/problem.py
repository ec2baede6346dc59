"""The problem of a call of `argand.gemm`, without its data.

C = alpha op(A) op(B) + beta C, batched as ``numpy.matmul``. Plans, apart from the problem, say how
a GPU computes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from argand.checks import as_number, check_one_of, check_scalar
from argand.gemm.families import Family, check_family
from argand.gemm.operands import Op, oriented_shape
from argand.precision import HALF_FORMATS, Precision, get_precision

Output = Literal["complex64", "complex128", "complex-half", "power"]
"""The type of a result; complex-half is `Pairs` of the format in which the operands multiply, power
an array of the squared magnitudes."""
OperandKind = Literal["complex", "fp16", "bf16", "int8", "int16", "fp32", "packed"]
"""The kind of an operand that a caller gives: an array, `Pairs` of a format, or `Packed`."""


def allowed_outputs(precision: Precision) -> tuple[Output, ...]:
    """Return the types that a result may have at a precision, the default first."""
    half = precision.terms == 1 and precision.operand.name in HALF_FORMATS
    return (precision.output, *(("complex-half",) if half else ()), "power")


def power_type(precision: Precision) -> str:
    """Return the type of squared magnitudes at a precision."""
    return "float64" if precision.output == "complex128" else "float32"


@dataclass(frozen=True)
class GemmProblem:
    """A product without its data: sizes, ops, scalars, precision and types.

    Attributes:
        batch_shape: leading axes of the result; those of A and B broadcast to it as in
            ``numpy.matmul``.
        m, n, k: op(A) is ``batch_shape + (m, k)``, op(B) ``batch_shape + (k, n)``, C
            ``batch_shape + (m, n)``.
        op_a, op_b, alpha, beta, precision, output: as in `argand.gemm`.
        a_format, b_format: what the caller gave.
        kernels: the family of a GPU's kernels that is to compute it; None: the fastest.
        triangle: B is A^H, and a GPU computes the tiles of the lower triangle alone, for
            `argand.herk`.
        mirror: whether those tiles may be stored in the upper triangle too.

    Raises ValueError for an output or a family that the precision does not have.
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
    output: Output = "complex64"
    a_format: OperandKind = "complex"
    b_format: OperandKind = "complex"
    kernels: Family | None = None
    triangle: bool = False
    mirror: bool = False

    def __post_init__(self) -> None:
        check_family(self.kernels, self.precision)
        check_one_of(
            f"output at {self.precision.name}", self.output, allowed_outputs(self.precision)
        )

    @property
    def batch(self) -> int:
        """Number of products."""
        return int(np.prod(self.batch_shape, dtype=np.int64))

    @property
    def flops(self) -> int:
        """8 batch m n k: four real multiplications and four additions a complex one."""
        return 8 * self.batch * self.m * self.n * self.k

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return (*self.batch_shape, self.m, self.n)


def product_sizes(
    a_shape: tuple[int, ...], b_shape: tuple[int, ...], op_a: Op, op_b: Op
) -> tuple[int, int, int]:
    """Return m, n and k. Raises ValueError where op(A) and op(B) do not have one k."""
    m, k = oriented_shape(a_shape, op_a, name="a", op_name="op_a")
    k_b, n = oriented_shape(b_shape, op_b, name="b", op_name="op_b")
    if k != k_b:
        raise ValueError(
            f"inner dimensions differ: op(a) is {m} x {k} and op(b) is {k_b} x {n} "
            f"(a {a_shape} {op_a}, b {b_shape} {op_b})"
        )
    return m, n, k


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
    output: Output | None = None,
    a_format: OperandKind = "complex",
    b_format: OperandKind = "complex",
    kernels: Family | None = None,
) -> GemmProblem:
    """Return the problem of a call with these shapes; output None is the precision's own.

    Raises ValueError where the inner dimensions differ, the leading axes do not broadcast, C does
    not have the result's shape, beta is not 0 and there is no C, alpha or beta is beyond the
    result's range, or the precision does not have this output or these kernels.
    """
    m, n, k = product_sizes(a_shape, b_shape, op_a, op_b)
    try:
        batch_shape = np.broadcast_shapes(a_shape[:-2], b_shape[:-2])
    except ValueError:
        raise ValueError(
            f"leading axes of a {a_shape[:-2]} and b {b_shape[:-2]} do not broadcast"
        ) from None
    row = get_precision(precision, rounding, exact=True)
    problem = GemmProblem(
        batch_shape=batch_shape, m=m, n=n, k=k, op_a=op_a, op_b=op_b,
        alpha=as_number(alpha, "alpha"), beta=as_number(beta, "beta"), precision=row,
        output=row.output if output is None else output, a_format=a_format, b_format=b_format,
        kernels=kernels,
    )  # fmt: skip
    check_c(beta, c_shape, problem.shape)
    check_scalars(problem, row.output)
    return problem


def check_scalars(problem: GemmProblem, dtype: str) -> None:
    """Raise ValueError where alpha or beta is finite, but infinite in the type of a result."""
    check_scalar("alpha", problem.alpha, dtype)
    check_scalar("beta", problem.beta, dtype)


def check_c(beta: complex, c_shape: tuple[int, ...] | None, shape: tuple[int, ...]) -> None:
    """Raise ValueError where C is read (beta is not 0) and missing or not of the result's shape."""
    if beta != 0 and c_shape is None:
        raise ValueError(f"beta is {beta}, so c must be given")
    if beta != 0 and c_shape != shape:
        raise ValueError(f"c must have shape {shape}, got {c_shape}")


def result_type(problem: GemmProblem) -> str:
    """Return the name of the type of a problem's result, for checks of an ``out``."""
    if problem.output == "power":
        return power_type(problem.precision)
    if problem.output == "complex-half":
        return f"Pairs of {problem.precision.operand.name}"
    return problem.output
