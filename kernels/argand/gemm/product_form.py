"""The form of a product that launches on a GPU are prepared for."""

from __future__ import annotations

from dataclasses import dataclass

from argand.gemm.operand_form import OperandForm
from argand.gemm.problem import GemmProblem
from argand.gemm.question import GemmSizes, Question
from argand.runtime.layout import Layout


@dataclass(frozen=True)
class ProductForm:
    """A product for arrays at any address: its problem, and how they lie in memory.

    Attributes:
        problem: sizes, ops, scalars, precision and types.
        a, b: the forms of both operands.
        c: the layout of C, None where beta is 0.
        out: the layout of the result: complex64, or uint32 pairs of 16 bits, or float32 of squares.
    """

    problem: GemmProblem
    a: OperandForm
    b: OperandForm
    c: Layout | None
    out: Layout

    @property
    def addend(self) -> Layout:
        """The layout of C, the result's where there is none: kernels do not read it then."""
        return self.out if self.c is None else self.c

    def question(self, allowed: int | None = None) -> Question:
        """Return the question of its plan, which may take ``allowed`` bytes of workspace."""
        problem = self.problem
        return Question(
            problem.precision, GemmSizes.of(problem), self.a.traits, self.b.traits, allowed,
            problem.beta != 0,
        )  # fmt: skip
