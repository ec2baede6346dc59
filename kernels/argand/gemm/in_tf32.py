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
"""See `tf32_margin`: estimates were that far off where fp16 was slower than tf32 with plans that
find scales (18 drawn products on an H200, in which tf32 took 0.91 of the time on average)."""
_LONG_SECONDS, _LONG_MARGIN = 1e-3, 1.069
"""The same of one scaled term from this estimated time on, where errors of estimates are less: tf32
took 1 / 1.069 of what its estimate over that of fp16 says, in the geometric mean of ten products on
an H200 (standard error 0.014; seven drawn with seed 20261127, 64 x (512 x 8192 x 512), 128 x (512 x
4096 x 512) and 12998 x 364 x 12045)."""
_SHORT_K, _PACKED_MARGIN = 128, 1.2
"""The same of bf16 up to this k with both operands packed: it was slower than tf32 by up to 1.11
where its estimate was 0.88 to 0.9 of tf32's (45 drawn products on an H200)."""

_OTHER_PLAN_MARGIN = 1.03
"""The same of bf16 by another plan than tf32's, where the errors of two estimates add: 57 x 4691 x
1105 took 1.1 of tf32's time where its estimate was 0.98. By the same plan bf16 is no slower."""


def tf32_margin(
    precision: Precision, k: int, seconds: float, *, packs: bool, same_plan: bool
) -> float:
    """Return the factor within which a plan of 16 bits counts as no faster than one in tf32.

    ``seconds`` is its estimated time. ``packs`` says that it packs the row operand, too,
    ``same_plan`` that the other does alike.
    """
    if precision.scaled:
        long = precision.terms == 1 and seconds >= _LONG_SECONDS
        return _LONG_MARGIN if long else _SCALED_MARGIN
    if packs and k <= _SHORT_K:
        return _PACKED_MARGIN
    return 1.0 if same_plan else _OTHER_PLAN_MARGIN
