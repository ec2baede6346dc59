"""The question that a plan of a product on a GPU answers: its sizes, and traits of its operands.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

from argand.gemm.problem import GemmProblem
from argand.precision import Precision


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


@dataclass(frozen=True)
class OperandTraits:
    """Properties of an operand that plans depend on.

    Attributes:
        copyable: one axis is contiguous and its lines begin at multiples of 16 bytes, so that TMA,
            and cp.async by 16 bytes, can read it in place.
        k_major: k is its contiguous axis.
        half: it holds pairs of 16 bits in the precision's format.
        packed: it is in planes already.
        batched: each product has its own.
        conjugated: it is yet to be conjugated.
        copied: beside its planes there is a copy for mma.sync.
        odd_pitch: its lines are an odd number of complex64 apart, so that TMA reads the even and
            the odd ones by a map each.
        odd_batches: its matrices are an odd number of complex64 apart, too.
    """

    copyable: bool = True
    k_major: bool = True
    half: bool = False
    packed: bool = False
    batched: bool = True
    conjugated: bool = False
    copied: bool = False
    odd_pitch: bool = False
    odd_batches: bool = False

    def readable(self, beside: OperandTraits) -> bool:
        """Return whether it can be a row operand in place, next to this column operand.

        conj(X) Y is computed as conj(X conj(Y)), which needs a Y that is not packed yet. So do odd
        batches of an m-major X, with a Y of each product: packing exchanges its k.
        """
        addressable = (self.copyable or self.odd_pitch) and not self.packed
        exchanges = self.exchanges_k and not beside.batched
        return (
            addressable
            and not exchanges
            and not (beside.packed and (self.conjugated or self.exchanges_k))
        )

    @property
    def exchanges_k(self) -> bool:
        """Whether k changes places in every second product, where it is read in place."""
        return self.odd_batches and not self.k_major

    @property
    def fusable(self) -> bool:
        """Whether fused packing can read it as the column operand."""
        return self.copyable and self.k_major and not self.packed and not self.half


class Question(NamedTuple):
    """The traits of a product that decide its plan: the same question has the same plan.

    Attributes:
        precision, sizes: the precision and the sizes of the product.
        a, b: the traits of A and B.
        allowed: workspace in bytes that the plan may take; None without a limit.
        adds: a C is added, beside which accumulators spill to workspace.
    """

    precision: Precision
    sizes: GemmSizes
    a: OperandTraits
    b: OperandTraits
    allowed: int | None = None
    adds: bool = False
