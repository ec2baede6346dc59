"""Products of 16-bit precisions by kernels of tf32. Nothing here needs a GPU or CuPy.

A margin is a factor of a plan's estimate within which it counts as no faster than another. The
products that margins are fitted to are in docs/experiments/2026-11-30-fitted-constants.md.
"""

from __future__ import annotations

from dataclasses import replace

from argand.gemm.families import ChosenFamily
from argand.precision import BF16, TF32, Precision

BF16_IN_TF32 = replace(BF16, name="tf32", bytes=TF32.bytes, cublas=TF32.cublas, ptx=TF32.ptx)
"""bf16 as tensor cores multiply it as tf32, which holds its numbers."""


def product_in_tf32(precision: Precision) -> Precision | None:
    """Return the precision by whose kernels a GPU may compute a product at ``precision``, or None.

    A scaled one has its counterpart: one term has ties away from zero, no further than to even, and
    a second one is cut, which `Precision.term_roundoffs` allows. So the same bounds hold.
    bf16 keeps its bits.
    """
    if precision.operand == BF16 and precision.terms == 1:
        return replace(precision, name="tf32", operand=BF16_IN_TF32)
    return precision.counterpart


_SCALED_MARGIN = 1.09
"""`tf32_margin` of fp16."""
_SHORT_K = 128
"""Longest k at which bf16 with both operands packed has `_PACKED_MARGIN`."""
_PACKED_MARGIN = 1.2
"""Margin of bf16 with both operands packed."""
_RESULTS_K = 64
"""Longest k at which bf16 by wgmma has a margin by tf32's own plan too: its blocks store to memory
for most of the time, and end less evenly."""
_RESULTS_SECONDS = 100e-6
"""Least estimated seconds of such a product."""
_RESULTS_MARGIN = 1.03
"""Margin of such a product."""
_OTHER_PLAN_MARGIN = 1.03
"""Margin of bf16 by another plan than tf32's, where the errors of two estimates add. By the same
plan bf16 is as a rule no slower."""
_OTHER_WGMMA_MARGIN = 1.12
"""Margin of bf16 by another plan of wgmma."""
SAME_TILE = 1.03
"""Time over that of tf32's plan, by estimate, up to which the same plan of mma.sync at bf16 is
taken to be no slower. Beyond, registers leave room for fewer blocks."""
FROM_WGMMA = 1.06
"""Margin of bf16 by mma.sync beside tf32's plan of wgmma in 16 bits, where the errors of two
families' estimates add."""
_SHORT_CALL = 17e-6
"""Estimated seconds up to which 3xfp16 by wgmma is faster than its estimate."""
_SHORT_CALL_MARGIN = 0.9
"""Margin of such a product beside mma.sync in 3xtf32."""


def tf32_margin(
    precision: Precision, k: int, *, family: ChosenFamily, tf32_family: ChosenFamily, packs: bool,
    same_plan: bool, seconds: float,
) -> float:  # fmt: skip
    """Return the factor within which a plan of 16 bits counts as no faster than one in tf32.

    ``family`` and ``tf32_family`` are their families; ``packs`` says that it packs the row operand,
    too, ``same_plan`` that the other does alike; ``seconds`` are its estimate. At two terms the
    estimates are fitted to the same times, except for short calls.
    """
    if precision.terms > 1:
        beside_mma = family == "wgmma" and tf32_family == "mma.sync"
        return _SHORT_CALL_MARGIN if beside_mma and seconds < _SHORT_CALL else 1.0
    if precision.scaled:
        return _SCALED_MARGIN
    if packs and k <= _SHORT_K:
        return _PACKED_MARGIN
    if same_plan:
        stores = family == "wgmma" and k <= _RESULTS_K and seconds > _RESULTS_SECONDS
        return _RESULTS_MARGIN if stores else 1.0
    return _OTHER_WGMMA_MARGIN if family == "wgmma" else _OTHER_PLAN_MARGIN
