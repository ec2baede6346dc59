"""The form of a product that launches on a GPU are prepared for."""

from __future__ import annotations

from dataclasses import dataclass

from argand.gemm.problem import GemmProblem
from argand.gemm.question import GemmSizes, OperandTraits, Question
from argand.gemm.tma_layout import has_odd_batches, has_odd_pitch, tma_addressable
from argand.runtime.calls.layout import Layout, is_k_major


@dataclass(frozen=True)
class OperandForm:
    """The layout of an operand that a launch is prepared for, at any address.

    Attributes:
        layout: layout of the rows of op(A), or of the columns of op(B) as rows, by k; None for
            planes.
        half: it holds pairs of 16 bits.
        conjugated: it is yet to be conjugated.
        batched: each product has its own.
        copy: the layout of a copy beside planes; None where there is none.
    """

    layout: Layout | None
    half: bool = False
    conjugated: bool = False
    batched: bool = True
    copy: Layout | None = None

    @property
    def traits(self) -> OperandTraits:
        """The properties that the choice of a plan depends on."""
        if self.layout is None:
            copied = self.copy is not None
            return OperandTraits(packed=True, batched=self.batched, copied=copied)
        return OperandTraits(
            tma_addressable(self.layout), is_k_major(self.layout), self.half,
            batched=self.batched, conjugated=self.conjugated,
            odd_pitch=has_odd_pitch(self.layout), odd_batches=has_odd_batches(self.layout),
        )  # fmt: skip


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
