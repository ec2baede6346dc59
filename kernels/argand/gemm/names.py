"""Names of a product's launches in records: kernel family, tile, operands, scheduling.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from argand.gemm.choice import GemmChoice
from argand.gemm.fma.plan import FmaPlan
from argand.gemm.question import OperandTraits
from argand.gemm.sm80.plan import MmaPlan
from argand.gemm.sm90.plan import WgmmaPlan
from argand.gemm.sm90.scheduler import TileDivision
from argand.precision import Precision


def in_place_name(
    plan: MmaPlan | FmaPlan, precision: Precision, a: OperandTraits, b: OperandTraits
) -> str:
    """Return ``mma.sync 64x64x16 4 stages: A in place, B copied before, absmax by each block``.

    Or ``fma 8x32: A in place, B in place``.
    """
    if isinstance(plan, FmaPlan):
        return f"fma {plan.name}: A in place, B in place"
    scaling = ""
    if precision.scaled:
        scaling = ", absmax by each block" if plan.finds_absmax else ", absmax by a launch before"
    left, right = ("copied before" if x.packed else "in place" for x in (a, b))
    return f"mma.sync {plan.name}: A {left}, B {right}{scaling}"


def wgmma_name(
    choice: GemmChoice,
    plan: WgmmaPlan,
    division: TileDivision,
    a: OperandTraits,
    b: OperandTraits,
) -> str:
    """Return ``wgmma 128x128x32 3 stages: A in place, B packed, 28 of 1024 tiles stream-K``.

    The row operand stands first. ``plan`` is the choice's plan as it was launched, ``division`` is
    how its tiles are divided.
    """
    (row, rows), (column, columns) = ("A", a), ("B", b)
    if choice.swapped:
        (row, rows), (column, columns) = ("B", b), ("A", a)
    # Rows that fused packing leaves out are packed before, or columns of a triangle.
    packed = "by fused packing" if plan.fused_pack else "packed"
    words = [
        f"{row} {_source(rows, packed if plan.storage == 'planar' else 'in place')}",
        f"{column} {_source(columns, packed)}",
    ]
    if plan.triangle:
        words.append("lower triangle")
    if plan.prescaled:
        words.append("unscaled")
    if choice.split_k_slices > 1:
        words.append(f"{choice.split_k_slices} split-K slices")
    if division.stream_k_tiles:
        words.append(f"{division.stream_k_tiles} of {division.tiles} tiles stream-K")
    if plan.overlapped_stages:
        words.append(f"overlapped epilogue of {plan.overlapped_stages} stages")
    return f"wgmma {plan.name}: {', '.join(words)}"


def computed_name(name: str, asked: Precision, computed: Precision) -> str:
    """Return a launch's name with the precision that computes it, where it is not the one asked.

    ``mma.sync 64x64x16 4 stages: A in place, B in place, in tf32 without scales``.
    """
    if computed.name == asked.name:
        return name
    return f"{name}, in {computed.name}{' without scales' if asked.scaled else ''}"


def _source(operand: OperandTraits, otherwise: str) -> str:
    """Return the place that the kernel reads an operand from."""
    if operand.packed:
        return "packed before"
    return f"{otherwise} from pairs" if operand.half else otherwise
