"""Sizes of a product that plans depend on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from argand.gemm.problem import GemmProblem


@dataclass(frozen=True)
class GemmSizes:
    """The sizes of a product, and what of its result decides about plans.

    Attributes:
        batch, m, n, k: ``batch`` products of m by k and k by n.
        half_output: results are pairs of 16 bits.
        triangle: only the tiles of the lower triangle are computed.
        power: results are squared magnitudes.
    """

    batch: int
    m: int
    n: int
    k: int
    half_output: bool = False
    triangle: bool = False
    power: bool = False

    @classmethod
    def of(cls, problem: GemmProblem) -> Self:
        """Return the sizes of a product that a call describes."""
        return cls(
            problem.batch, problem.m, problem.n, problem.k,
            half_output=problem.output == "complex-half",
            triangle=problem.triangle, power=problem.output == "power",
        )  # fmt: skip

    @property
    def narrow(self) -> bool:
        """Whether a result has 4 bytes, which the wgmma family alone stores."""
        return self.half_output or self.power

    def tiles(self, block_m: int, block_n: int) -> int:
        """Return how many tiles of this size are computed, in all products."""
        rows, columns = -(-self.m // block_m), -(-self.n // block_n)
        return self.batch * (rows * (rows + 1) // 2 if self.triangle else rows * columns)
