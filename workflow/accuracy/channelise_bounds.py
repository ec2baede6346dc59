"""The a-priori bound on the spectra of a filter bank, for every precision.

With M channels, u_r the filtered samples of a spectrum and v_r = sum over t of |h| |x| the sum of
their products' moduli, the exact spectrum y has the 2-norm sqrt(M) |u|, and |u_r| <= v_r.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from argand import PRECISIONS, Precision
from argand.dft.method import method_for, prime_factors
from argand.dft.plan_words import plan_in

from workflow.accuracy.bounds import accumulator_roundoff, gamma, roundings, transform_bound
from workflow.accuracy.transform_bounds import dft_bound, plan_bound
from workflow.accuracy.underflow import underflow

KERNEL = "kernel"
"""Value of ``ran`` where one kernel filtered and transformed. Otherwise ``ran`` is the plan of
`argand.dft` in words, and empty on the CPU."""


@dataclass(frozen=True)
class ChanneliseBound:
    """Bound on the 2-norm of a spectrum's error; `allowed` evaluates it.

    Attributes:
        filtered: relative to sqrt(M) |v|, of the filter and the fp64 reference.
        transformed: relative to |y|, of the transform.
        lost: absolute, by underflow.
    """

    filtered: float
    transformed: float
    lost: float

    def allowed(self, size: Any, norm: Any) -> Any:
        """Return the bound for sqrt(M) |v| and |y|, numbers or arrays of them."""
        return self.filtered * size + self.transformed * norm + self.lost


def channelise_bound(
    precision: Precision, channels: int, taps: int, backend: str, *, real: bool, ran: str = ""
) -> ChanneliseBound:
    """Return the bound on spectra of M ``channels`` and T ``taps``; ran is as `KERNEL` says.

    The filter rounds samples and coefficients to its type, and each product passes at most T
    roundings, so u^ is within g v of u, g = (1 + u)^2 (1 + gamma(T)) - 1 with the unit roundoff of
    the accumulator: the moduli of both parts' errors are g times those of v's. The transform is
    sqrt(M) times unitary: what is off before it stays as large relative to sqrt(M) |v|, and its own
    error is relative to sqrt(M) |u^|. The transform of real samples has one more stage in the
    kernel, which parts even from odd ones.

    The reference is every T-th bin of SciPy's transform, in fp64, of the T M products themselves:
    its error is relative to sqrt(T M) times their 2-norm, which is at most |v|.
    """
    u = accumulator_roundoff(precision)
    each = (1 + roundings(2, u)) * (1 + gamma(taps, u)) - 1
    own = bank_transform_bound(precision, channels, backend, real, ran)
    exact = PRECISIONS["fp64"]
    windowed = transform_bound(exact, prime_factors(channels * taps), "cpu") + roundings(6, exact.u)
    terms = underflow(precision, backend)
    lost = 4.0 * channels * (taps + channels) * (terms.operand + terms.result)
    return ChanneliseBound(each * (1 + own) + math.sqrt(taps) * windowed, own, lost)


def bank_transform_bound(
    precision: Precision, channels: int, backend: str, real: bool, ran: str
) -> float:
    """Return the relative error of one transform by what ``ran``."""
    if ran == KERNEL or precision.exact_operands:
        row = precision if precision.exact_operands else PRECISIONS["fp32"]
        return transform_bound(row, [*prime_factors(channels), *[2] * real], backend)
    if ran:
        return plan_bound(plan_in(ran), precision, channels)
    return dft_bound(precision, method_for(channels), backend)
