"""Errors below the range of each precision, derived from its row in `argand.PRECISIONS`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from argand import Precision
from argand.gemm.modular.moduli import moduli
from argand.operand_format import Format
from argand.rounding import LARGEST_SHIFT


@dataclass(frozen=True)
class Underflow:
    """Errors below a format's range: absolute terms that no relative bound covers.

    ``operand`` is the largest absolute error of one real part of an operand, ``of_largest`` the
    same relative to the largest component of its row of A or column of B (scaled precisions and
    exact integers), and
    ``result`` that of one operation on results.
    """

    operand: float
    of_largest: float
    result: float


def underflow(precision: Precision, backend: str, k: int = 1) -> Underflow:
    """Return the underflow terms of a precision, for lines of k numbers.

    An operand below the smallest normal number of its format is off by at most one subnormal
    spacing. A GPU may flush to zero instead, which loses less than the smallest normal number.

    A scaled precision (fp16, 3xfp16) first multiplies each line by 2^s so that its largest
    component is in [2^14, 2^15). Let y = 2^s x be a component, v = `Precision.u`.

    One term, hi = rn(y): within 2^-11 |y| in fp16's normal range, |y| >= 2^-14, and below it within
    half the subnormal spacing, 2^-25. So |y - hi| <= v |y| + 2^-25 with v = 2^-11.

    Two terms, lo = rn(r) with r = y - hi, which fp32 holds exactly: where |y| >= 2^-14, |r| <=
    2^-11 |y|, and lo is within 2^-11 |r| <= 2^-22 |y| of it if |r| is normal in its turn, else
    within 2^-25. Where |y| < 2^-14, |r| <= 2^-25 is a tie at most, which rounds to lo = 0. So in
    all cases |y - hi - lo| <= v |y| + 2^-25 with v = 2^-22: the absolute term is the same, and it
    takes over below |y| = 2^-25 / v (`Precision.full_range`).

    2^-25 is at most 2^-39 of the line's largest component (`Precision.scaled_floor`). s stops at
    126: 2^-151 then.

    The product lo.lo that is not kept is bounded by `Precision.dropped` where both terms are
    normal. In general |lo| <= w |y| + 2^-25, w = 2^-11 (1 + 2^-11), because rounding r moves it by
    2^-11 |r| or by 2^-25, so lo.lo adds at most w 2^-25 (|a| + |b|) + 2^-50. Together with the
    operands' own (1 + v) 2^-25 (|a| + |b|) + 2^-50 that is less than twice 2^-25 (|a| + |b|) +
    2^-50: who sums these terms up takes them twice.

    Exact integers: a component moves by at most `Moduli.component_loss` of its line's 2-norm, which
    is at most sqrt(2 k) of its largest component.
    """

    def smallest(kind: Format) -> float:
        return 2.0**kind.min_exponent if backend == "cuda" else kind.smallest_subnormal

    result = smallest(precision.accumulator)
    if precision.moduli:
        loss = moduli(precision.moduli).component_loss(k) * math.sqrt(2 * k) if k else 0.0
        return Underflow(result, loss, result)
    if not precision.scaled:
        return Underflow(smallest(precision.operand), 0.0, result)
    unscaled = precision.operand.smallest_subnormal / 2 * 2.0**-LARGEST_SHIFT
    return Underflow(result + unscaled, precision.scaled_floor, result)
