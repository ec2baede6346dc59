"""The problem of a call of `argand.herk`, without its data.

C = alpha op(A) op(A)^H + beta C, batched over leading axes. C is Hermitian, so its lower triangle
says all of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from argand.checks import as_number, check_one_of, check_scalar
from argand.gemm.families import Family, check_family
from argand.gemm.modular.moduli import EXACT
from argand.gemm.operands import Op, oriented_shape
from argand.gemm.problem import GemmProblem, check_c
from argand.gemm.sm90.scheduler import triangle_row
from argand.precision import Precision

Form = Literal["full", "triangle"]
"""The form of a Hermitian result: a matrix, or its lower triangle row by row."""
FORMS: tuple[Form, ...] = get_args(Form)
FULL_PRODUCT = "full product by gemm, mirrored"
"""The name in records of results whose two triangles are both computed."""


@dataclass(frozen=True)
class HerkProblem:
    """A Hermitian product without its data: sizes, scalars, precision and form.

    op(A) is ``batch_shape + (n, k)``. ``precision`` is a row, None at `EXACT`, whose integers are
    not rounded. ``dtype`` is the result's type. Raises ValueError for an unknown form or family of
    kernels.
    """

    batch_shape: tuple[int, ...]
    n: int
    k: int
    op: Op
    alpha: float
    beta: float
    precision: Precision | None
    dtype: str
    form: Form = "full"
    kernels: Family | None = None

    def __post_init__(self) -> None:
        check_one_of("form", self.form, FORMS)
        if self.precision is not None:
            check_family(self.kernels, self.precision)
        elif self.kernels is not None:
            raise ValueError(f"kernels at {EXACT} must be None, got {self.kernels!r}")

    @property
    def batch(self) -> int:
        """Number of products."""
        return math.prod(self.batch_shape)

    @property
    def flops(self) -> int:
        """4 batch n (n + 1) k: those of the lower triangle, 8 a complex multiply-add."""
        return 4 * self.batch * self.n * (self.n + 1) * self.k

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return result_shape(self.batch_shape, self.n, self.form)

    @property
    def other_op(self) -> Op:
        """The op that makes op(A)^H of A; op is N or C."""
        return "C" if self.op == "N" else "N"

    @property
    def product(self) -> GemmProblem:
        """The product of A and A^H whose lower triangle is this problem's result."""
        assert self.precision is not None
        return GemmProblem(
            batch_shape=self.batch_shape, m=self.n, n=self.n, k=self.k, op_a=self.op,
            op_b=self.other_op, alpha=complex(self.alpha), beta=complex(self.beta),
            precision=self.precision, output=self.precision.output, kernels=self.kernels,
            triangle=True, mirror=self.form == "full",
        )  # fmt: skip


def result_shape(batch_shape: tuple[int, ...], n: int, form: Form) -> tuple[int, ...]:
    """Return the shape of a result: ``(..., n, n)``, or ``(..., n (n + 1) / 2)`` of a triangle."""
    return (*batch_shape, n, n) if form == "full" else (*batch_shape, triangle_length(n))


def triangle_length(n: int) -> int:
    """Return how many elements the lower triangle of an n by n matrix has."""
    return n * (n + 1) // 2


def triangle_side(length: int) -> int:
    """Return n of a lower triangle of ``length`` elements."""
    return triangle_row(length)


def herk_problem(
    shape: tuple[int, ...],
    *,
    op: Op = "N",
    alpha: float = 1,
    beta: float = 0,
    precision: Precision | None,
    dtype: str,
    form: Form = "full",
    kernels: Family | None = None,
    c_shape: tuple[int, ...] | None = None,
) -> HerkProblem:
    """Return the problem of an operand of this shape.

    Raises ValueError for a shape of fewer than two axes, an unknown op or form, scalars that are
    not real, a beta without C, and a C of another shape than the result's.
    """
    n, k = oriented_shape(shape, op, name="a")
    scalars = {"alpha": as_number(alpha, "alpha"), "beta": as_number(beta, "beta")}
    for name, value in scalars.items():
        if value.imag != 0:
            raise ValueError(f"{name} must be real, as C is Hermitian, got {value}")
        check_scalar(name, value.real, dtype)
    problem = HerkProblem(
        batch_shape=tuple(shape[:-2]), n=n, k=k, op=op, alpha=scalars["alpha"].real,
        beta=scalars["beta"].real, precision=precision, dtype=dtype, form=form, kernels=kernels,
    )  # fmt: skip
    check_c(beta, c_shape, problem.shape)
    return problem
