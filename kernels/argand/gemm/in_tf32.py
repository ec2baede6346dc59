"""Products of 16-bit precisions by kernels of tf32. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

from dataclasses import replace

from argand.precision import BF16, TF32, Precision

BF16_IN_TF32 = replace(BF16, name="tf32", bytes=TF32.bytes, cublas=TF32.cublas, ptx=TF32.ptx)
"""bf16 as tensor cores multiply it as tf32, which holds its numbers."""


def product_in_tf32(precision: Precision) -> Precision | None:
    """Return the precision by whose kernels a GPU may compute a product at ``precision``, or None.

    Of a scaled one it is the counterpart, by the fewest operations: one term has ties away from
    zero, no further than to even, and a second one is cut, which `Precision.term_roundoffs` allows.
    So the same bounds hold. bf16 keeps its bits.
    """
    if precision.operand == BF16 and precision.terms == 1:
        return replace(precision, name="tf32", operand=BF16_IN_TF32)
    row = precision.counterpart
    return row.with_rounding(("nearest_even", "toward_zero")) if row and row.terms > 1 else row


_SCALED_MARGIN = 1.1
"""See `tf32_margin`: tf32 took 1 / 1.125 of what its estimate over that of fp16 says in 18 drawn
products of 1 to 2 ms (without fused packing), 1 / 1.07 in 20 shorter ones, 3xtf32 1 / 1.095 in 20
(geometric means on an H200, seeds 20261203 to 20261239; standard errors of 0.02, 0.03, 0.02)."""
_SHORT_K, _PACKED_MARGIN = 128, 1.2
"""The same of bf16 up to this k with both operands packed: it was slower than tf32 by up to 1.11
where its estimate was 0.88 to 0.9 of tf32's (45 drawn products on an H200)."""

_OTHER_PLAN_MARGIN = 1.03
"""The same of bf16 by another plan than tf32's, where the errors of two estimates add: 57 x 4691 x
1105 took 1.1 of tf32's time where its estimate was 0.98. By the same plan bf16 is no slower."""
_MMA_SYNC_MARGIN = 0.93
"""Factor on that of wgmma at bf16 beside mma.sync in tf32: 14 choices that it changes took 0.907 of
the time in the geometric mean, 0.82 to 1.06 (drawn products on an H200, seeds 20261521 on)."""


def tf32_margin(
    precision: Precision, k: int, *, packs: bool, same_plan: bool, other_family: bool
) -> float:
    """Return the factor within which a plan of 16 bits counts as no faster than one in tf32.

    ``packs`` says that it packs the row operand, too, ``same_plan`` that the other does alike,
    ``other_family`` that it is of wgmma and the other of mma.sync.
    """
    if precision.scaled:
        return _SCALED_MARGIN
    factor = _MMA_SYNC_MARGIN if other_family else 1.0
    if packs and k <= _SHORT_K:
        return factor * _PACKED_MARGIN
    return 1.0 if same_plan else factor * _OTHER_PLAN_MARGIN
