"""Products of 16-bit precisions by kernels of tf32. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

from dataclasses import replace

from argand.precision import BF16, TF32, Precision

BF16_IN_TF32 = replace(BF16, name="tf32", bytes=TF32.bytes, cublas=TF32.cublas, ptx=TF32.ptx)
"""bf16 as tensor cores multiply it as tf32, which holds its numbers."""


def product_in_tf32(precision: Precision) -> Precision | None:
    """Return the precision by whose kernels a GPU may compute a product at ``precision``, or None.

    Of a scaled one it is the counterpart: one term has ties away from zero, no further than to
    even, and a second one is cut, which `Precision.term_roundoffs` allows. So the same bounds hold.
    bf16 keeps its bits.
    """
    if precision.operand == BF16 and precision.terms == 1:
        return replace(precision, name="tf32", operand=BF16_IN_TF32)
    return precision.counterpart


_SCALED_MARGIN = 1.09
"""`tf32_margin` of fp16. Of 24 drawn products on an H200 that were estimated 1.05 to 1.15 times as
fast as by tf32, three were slower by more than 2%, by 5 to 11%: all of them below this margin."""
_SHORT_K, _PACKED_MARGIN = 128, 1.2
"""Longest k at which bf16 with both operands packed has a margin, and that margin: bf16 was slower
than tf32 by up to 1.11 where its estimate was 0.88 to 0.9 of tf32's (45 drawn products on an
H200)."""
_OTHER_PLAN_MARGIN = 1.03
"""Margin of bf16 by another plan than tf32's, where the errors of two estimates add: 57 x 4691 x
1105 took 1.1 of tf32's time where its estimate was 0.98. By the same plan bf16 is no slower."""
SAME_TILE = 1.03
"""Time over that of tf32's plan, by estimate, up to which the same plan of mma.sync at bf16 is
taken to be no slower: in 62 of 63 drawn products it took 1.01 of tf32's or less, 0.965 in the
geometric mean (an H200), in the other one registers leave room for fewer blocks."""
FROM_WGMMA = 1.06
"""Margin of bf16 by mma.sync beside tf32's plan of wgmma in 16 bits, where the errors of two
families' estimates add: 18 drawn products that took mma.sync without it took 1.08 of that plan's
time, five of them more than tf32, up to 1.29, and by that plan none (an H200)."""


_SHORT_CALL, _SHORT_CALL_MARGIN = 17e-6, 0.9
"""Estimated seconds up to which 3xfp16 by wgmma is faster than its estimate, and its margin there
beside mma.sync in 3xtf32: 53 recorded plans took 0.89 of their estimates, from there to 30 us 0.95
(an H200); six drawn products that mma.sync computes as well 0.91 of what it does beside its own."""


def tf32_margin(
    precision: Precision, k: int, *, packs: bool, same_plan: bool, seconds: float = 1.0,
    families_differ: bool = False,
) -> float:  # fmt: skip
    """Return the factor within which a plan of 16 bits counts as no faster than one in tf32.

    ``packs`` says that it packs the row operand, too, ``same_plan`` that the other does alike,
    ``families_differ`` that it is of wgmma and the other of mma.sync; ``seconds`` are its estimate.
    Of two terms the estimates are fitted to the same times but for short calls.
    """
    if precision.terms > 1:
        return _SHORT_CALL_MARGIN if families_differ and seconds < _SHORT_CALL else 1.0
    if precision.scaled:
        return _SCALED_MARGIN
    if packs and k <= _SHORT_K:
        return _PACKED_MARGIN
    return 1.0 if same_plan else _OTHER_PLAN_MARGIN
