"""The model of the time until the wgmma family's kernels multiply. Needs no GPU and no CuPy.

`gemm.sm90.heuristics` says to what the constants were fitted.
"""

from __future__ import annotations

from argand.gemm.pack.plan import panel_fill, scaled_blocks
from argand.gemm.question import OperandTraits, Question
from argand.gemm.sm90.plan import WgmmaPlan

_PACK_BYTES = 4.3e12
"""Bytes a second that packing reads and writes on an H200."""
_SCALED_PACKING = 1.3
"""Factor of packing rows whose absmax is found first."""
_SCALED_BLOCK = 9e-9
"""Least seconds of a block of those, where a short k leaves most of a tile empty."""
_LAUNCH = 1.23e-6
"""Seconds of a call with one launch that does nothing."""
_PACK_LAUNCH = 1e-6
"""Seconds of packing's launch."""
_PLANAR_WAIT = 0.5e-6
"""Seconds that an X in planes adds: nothing of it is loaded meanwhile. One term of 16 bits adds
nothing: its planes are half as long."""
_ABSMAX_EXCHANGE = 1.3e-6
"""Seconds in which blocks that pack rows exchange their absmax. Products of a k that a block holds
alone take as long."""
_ODD_PITCH = 6.1e-7
"""Seconds that a row operand of odd pitch adds: another map, another box, elements read one by
one."""
_FILL = 1.9e-6
"""Seconds until a kernel's first k-tile is loaded."""
_FUSED_PACK_FILL = 11e-6
"""Seconds until fused packing has written the first planes."""


def start_seconds(
    plan: WgmmaPlan, question: Question, column_operand: tuple[int, OperandTraits],
    row_operand: tuple[int, OperandTraits], memory: float,
) -> float:  # fmt: skip
    """Return the seconds of a call until a first k-tile is loaded: launches and packing.

    An operand is its rows, of k each, and its traits; ``memory`` the card's peak memory rate
    over an H200's.
    """
    precision, sizes, *_ = question
    k, packing, scaled = sizes.k, 0.0, False
    for (rows, traits), packs in (
        (column_operand, not plan.fused_pack),
        (row_operand, plan.storage == "planar" and not (plan.fused_pack and plan.conjugate_y)),
    ):  # fmt: skip
        if sizes.triangle and packing:
            continue  # the planes of both operands are the same
        if packs and not traits.packed:
            item = (4 if traits.half else 8) + precision.planar_bytes
            copies = sizes.batch if traits.batched else 1
            finds_absmax = precision.scaled and not traits.half
            factor = _SCALED_PACKING if finds_absmax else 1.0
            if finds_absmax and sizes.triangle and precision.terms == 1:
                factor *= panel_fill(precision, rows, k)
            seconds = factor * copies * rows * k * item / (memory * _PACK_BYTES)
            if finds_absmax:
                seconds = max(seconds, _SCALED_BLOCK * copies * scaled_blocks(precision, rows, k))
            packing += seconds
            scaled |= finds_absmax
    total = _LAUNCH + _FILL + packing + (_PACK_LAUNCH if packing else 0.0)  # one launch for both
    waits = packing and plan.storage == "planar" and not sizes.triangle
    short = precision.terms == 1 and precision.operand.bytes == 2
    total += _PLANAR_WAIT if waits and not short else 0.0
    total += _ABSMAX_EXCHANGE if scaled else 0.0
    return total + (_FUSED_PACK_FILL * plan.fused_pack + _ODD_PITCH * plan.odd_pitch)
