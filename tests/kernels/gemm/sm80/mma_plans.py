"""Plans of the mma.sync family for products of these sizes."""

from __future__ import annotations

from argand.device import Arch
from argand.gemm.question import GemmSizes, OperandTraits, Question
from argand.gemm.sm80.heuristics import plan_mma
from argand.gemm.sm80.plan import MmaPlan
from argand.precision import Precision


def mma_plan(
    precision: Precision, arch: Arch, *, batch: int, m: int, n: int, k: int, sm_count: int,
    a_k_major: bool = True, b_k_major: bool = False, vector: int = 1, tile: MmaPlan | None = None,
    triangle: bool = False, allowed: int | None = None,
) -> MmaPlan:  # fmt: skip
    """The plan of `plan_mma`, whose copies are of ``vector`` complex numbers."""
    sizes = GemmSizes(batch, m, n, k, triangle=triangle)
    a, b = (OperandTraits(vector == 2, k_major) for k_major in (a_k_major, b_k_major))
    return plan_mma(Question(precision, sizes, a, b, allowed), arch, sm_count, tile)
