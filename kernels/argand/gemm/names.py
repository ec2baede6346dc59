"""What a launch of a product is called: its family, tile and operands, for records.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from argand.gemm.heuristics import GemmChoice, OperandTraits
from argand.gemm.sm80_plan import GemmPlan
from argand.gemm.sm90_plan import WgmmaPlan
from argand.gemm.sm90_scheduler import TileDivision
from argand.precision import Precision


def mma_name(plan: GemmPlan, precision: Precision, a: OperandTraits, b: OperandTraits) -> str:
    """``mma.sync 64x64x16 4 stages: A in place, B copied before, each block looks for scales``."""
    scaling = ""
    if precision.scaled:
        scaling = (
            ", each block looks for scales"
            if plan.finds_absmax
            else ", scales from a launch before"
        )
    left, right = ("copied before" if x.packed else "in place" for x in (a, b))
    return f"mma.sync {plan.name}: A {left}, B {right}{scaling}"


def wgmma_name(
    choice: GemmChoice, plan: WgmmaPlan, division: TileDivision, a: OperandTraits, b: OperandTraits
) -> str:
    """``wgmma 128x128x32 3 stages: A in place, B packed aside, 28 of 1024 tiles split``.

    The row operand stands first. ``plan`` is what became of the choice's, ``division`` how its
    tiles are divided.
    """
    (row, rows), (column, columns) = ("A", a), ("B", b)
    if choice.swapped:
        (row, rows), (column, columns) = ("B", b), ("A", a)
    packs_columns = "packed aside" if plan.fused_pack else "packed"
    parts = [
        f"{row} {_way(rows, 'packed' if plan.storage == 'planar' else 'in place')}",
        f"{column} {_way(columns, packs_columns)}",
    ]
    if plan.prescaled:
        parts.append("unscaled")
    if choice.split_k_slices > 1:
        parts.append(f"k in {choice.split_k_slices} parts")
    if division.stream_k_tiles:
        parts.append(f"{division.stream_k_tiles} of {division.tiles} tiles split")
    if plan.overlapped_stages:
        parts.append(f"a head of {plan.overlapped_stages} stages")
    return f"wgmma {plan.name()}: {', '.join(parts)}"


def _way(operand: OperandTraits, otherwise: str) -> str:
    """How an operand comes to the kernel."""
    if operand.packed:
        return "packed before"
    return f"{otherwise} from pairs" if operand.half else otherwise
