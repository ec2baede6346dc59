"""Probabilistic bounds on Fourier transforms: deviations of one transform, relative to its norm.

The model is that of `probabilistic`. A transform is sqrt(N) times unitary, and so is what any part
of its input contributes: partial sums over a part of a line are no longer, over all bins together,
than the line. So n roundings of partial sums deviate by sqrt(n) u, whatever the data are, and the
stages of a transform add in quadrature.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from argand import Precision
from argand.dft.butterfly import ButterflyPlan
from argand.dft.method import Method, dense, prime_factors, product
from argand.dft.plan import Fp32Plan, Plan, TwoFactorPlan
from argand.dft.three_kernel import ThreeKernelPlan
from argand.precision import PRECISIONS

from workflow.accuracy.bounds import accumulator_roundoff, on_tensor_cores, operand_roundoff
from workflow.accuracy.probabilistic import PRODUCT_TRUNCATION, SUM_TRUNCATION
from workflow.accuracy.transform_bounds import (
    amplification,
    butterflies_of,
    lost_to_range,
    radices_of,
)

_TWIDDLE = 3.0
"""Squared deviation of a product with a rounded table entry, in u^2: entry, products, their sum."""
_ENDS = 4
"""Roundings of the norm, the window and their products."""
_PARTIAL = 2 / 3
"""Mean of partial sums over the whole, as they grow like a random walk."""
_SMOOTH = 13
"""Largest prime factor that every library has a butterfly for; others are convolutions."""
_UNKNOWN = 2.0
"""Margin for what is not known of a library: its radices, how it makes its tables."""


def library_deviation(precision: Precision, length: int) -> float:
    """Return the deviation of a library's fast transform in its accumulators: it grows by log N.

    Each level of radix 2 has an addition and a twiddle product. Where N has a prime factor above
    ``_SMOOTH``, two transforms of up to 4 N and a product stand for one (Bluestein).
    """
    levels = math.log2(max(2, length))
    if max(prime_factors(length), default=1) > _SMOOTH:
        levels = 2 * (levels + 2) + 1
    u = accumulator_roundoff(precision)
    return _UNKNOWN * u * math.sqrt((1 + _TWIDDLE) / 3 * levels + _ENDS / 3)


def stage_deviation(precision: Precision, length: int, backend: str) -> float:
    """Return the squared deviation of one dense stage that folds its input (`folded_bound`).

    Folding and rounding the data, and rounding the table: u, v, v. The two products of a part of
    X_n have L / 2 terms each and share its energy. The truncations of a sum on tensor cores add up
    by their mean, once an instruction (`probabilistic.SUM_TRUNCATION`); products have either sign.
    Products of small terms are summed first (`cuda/dft/folded_product.cuh`), while there is little
    to truncate.
    """
    u, v = accumulator_roundoff(precision), operand_roundoff(precision)
    half, count = length // 2, len(precision.products)
    if half == 0:
        return 2 * u * u
    operands = u * u + 2 * v * v
    if not on_tensor_cores(precision, backend):
        return operands + u * u * (half + count + 6)
    means = _PARTIAL * SUM_TRUNCATION * u * math.ceil(half / precision.operand.mma_k)
    return operands + means**2 + u * u * (PRODUCT_TRUNCATION**2 * half + count + 6)


def factors_deviation(precision: Precision, factors: Sequence[int], backend: str) -> float:
    """Return the deviation of dense stages of these lengths with twiddles between them."""
    squares = sum(stage_deviation(precision, factor, backend) for factor in factors)
    u = accumulator_roundoff(precision)
    return math.sqrt(squares + (_TWIDDLE * len(factors) + _ENDS) * u * u)


def method_deviation(precision: Precision, method: Method, backend: str) -> float:
    """Return the deviation of one transform of `argand.dft` by a method at a precision.

    A length that butterflies convolve for has the deviations of butterflies
    (`transform_bounds.dft_bound`).
    """
    plan = butterflies_of(method)
    return (
        _staged_deviation(precision, method, backend) if plan is None else butterfly_deviation(plan)
    )


def _staged_deviation(precision: Precision, method: Method, backend: str) -> float:
    """Return the deviation of a transform by the dense stages of a method."""
    u = accumulator_roundoff(precision)
    stages = method.stages
    squares = sum(stage_deviation(precision, stage, backend) for stage in stages)
    squares += (_TWIDDLE * (len(stages) + 2) + _ENDS) * u * u
    return amplification(method, worst=False) * (
        math.sqrt(squares) + lost_to_range(precision, method)
    )


def butterfly_deviation(plan: Fp32Plan) -> float:
    """Return the deviation of one transform by butterflies in fp32 (`butterfly_bound`)."""
    u = PRECISIONS["fp32"].u
    radices, made = radices_of(plan)
    primes = [prime for radix in radices for prime in prime_factors(radix)]
    squares = sum(1.0 if prime == 2 else prime // 2 + 5.0 for prime in primes)
    squares += _TWIDDLE * (len(primes) + made)
    method = dense(plan.length)
    if isinstance(plan, ButterflyPlan | ThreeKernelPlan):
        squares, method = 2 * squares + 3 * _TWIDDLE, plan.method
    return amplification(method, worst=False) * u * math.sqrt(squares + _ENDS)


def plan_deviation(plan: Plan | None, precision: Precision, length: int) -> float:
    """Return the deviation of one transform on a GPU by what ran.

    A plan of None is cuFFT, in fp32 or fp64.
    """
    if plan is None:
        ran = precision if precision.exact_operands else PRECISIONS["fp32"]
        return library_deviation(ran, length)
    if isinstance(plan, Fp32Plan):
        return butterfly_deviation(plan)
    if isinstance(plan, TwoFactorPlan):
        return _staged_deviation(precision, product(plan.n1, plan.n2), "cuda")
    return _staged_deviation(precision, dense(plan.length), "cuda")


def reference_deviation(length: int) -> float:
    """Return the deviation of SciPy's transform in fp64."""
    return library_deviation(PRECISIONS["fp64"], length)
