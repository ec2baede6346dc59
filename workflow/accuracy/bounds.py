"""A-priori error bounds of every precision, derived from its row in `argand.PRECISIONS`.

Notation: u is the unit roundoff of the accumulator (2^-24 or 2^-53), v that of an operand
(`Precision.u`), k the length of the contraction, P the number of products of terms, and
gamma(n, u) = n u / (1 - n u) the classical bound on n roundings (Higham, Accuracy and Stability of
Numerical Algorithms, 2nd ed., section 3.1).

Why moduli. The real part of a_l b_l is ar br - ai bi. Everything that can go wrong is a relative
perturbation of one of these two real products, and by Cauchy-Schwarz |ar br| + |ai bi| <= |a| |b|;
the imaginary part has |ar bi| + |ai br| <= |a| |b| too. So each part's error is bounded by a
coefficient times |A| |B| with the moduli of the entries, and each part is verified apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from argand import Precision
from argand.operand_format import Format
from argand.precision import FP64

from workflow.accuracy.promotion import promotions
from workflow.accuracy.underflow import underflow

Array = npt.NDArray[np.float64]

MIN_SUMMED = 4
"""Fewest products that a tensor core sums at once in any of our instructions (tf32 on sm_80)."""
PROMOTED_EVERY = 64
"""k between two promotions to fp32 registers, at most, in the split precisions' CUDA kernels, but
where small products have sums of their own: a large sum of 96 k suffers less than of 64 with them
(`accumulation_error`)."""


def gamma(n: float, u: float) -> float:
    """Return n u / (1 - n u): the relative error of n roundings; infinite where n u >= 1."""
    return n * u / (1 - n * u) if n * u < 1 else math.inf


def roundings(n: float, u: float) -> float:
    """Return (1 + u)^n - 1: n relative perturbations of at most u each, upward."""
    return math.expm1(n * math.log1p(u))


def accumulator_roundoff(precision: Precision) -> float:
    """Return 2^-p of the type in which products are summed and results returned."""
    return 2.0**-precision.accumulator.significand


def operand_roundoff(precision: Precision) -> float:
    """Return v, the relative error of an operand's terms; none at fp64, which holds every input.

    Exact integers are off by a part of their line's norm (`workflow.accuracy.underflow`).
    """
    return 0.0 if precision.operand == FP64 or precision.moduli else precision.u


def kept_size(precision: Precision) -> float:
    """Return sum of |a_p| |b_q| over the products kept, relative to |a| |b|: a little over 1."""
    if precision.moduli:
        return 1.0
    sizes = [1.0]
    for roundoff in precision.term_roundoffs:
        sizes.append(sizes[-1] * roundoff)
    grown = [
        size * (1 + roundoff)
        for size, roundoff in zip(sizes, precision.term_roundoffs, strict=False)
    ]
    return sum(grown[i] * grown[j] for i, j in precision.products)


def on_tensor_cores(precision: Precision, backend: str) -> bool:
    """Return whether products at a precision are summed by tensor cores, which truncate.

    Sums of exact integers are not: int8 is summed exactly.
    """
    return backend == "cuda" and not precision.exact_operands and not precision.moduli


def accumulation_error(precision: Precision, k: int, backend: str) -> float:
    """Return a bound on the error of summing the kept products, relative to their moduli's sum.

    IEEE arithmetic (the CPU, and fp32 and fp64 on GPUs): one part of a complex dot product is a sum
    of 2 k real products in some order. A product passes through its own rounding and at most
    2 k - 1 additions, and the P sums are added: gamma(2 k + P - 1, u), whatever the order.

    Tensor cores (Fasi, Higham, Mikaitis, Pranesh 2021, "Numerical behavior of NVIDIA tensor
    cores"): products are exact; an instruction aligns its d products and the accumulator to the
    largest exponent, truncates each to the accumulator's significand (an error below one unit in
    the last place of the largest, 2 u of it), adds them exactly and truncates the sum: at most d +
    2 truncations for d products. Zero addends lose nothing, so with d >= 4 and the two chains of k
    products of one part there are at most 2 k + 2 * 2 * (k + 3) / 4 = 3 k + 3 truncations, each of
    at most 2 u times the sum of moduli: gamma(P (3 k + 4), 2 u).
    Where warps or blocks share k, a product suffers the truncations of its own part, and for each
    other part one rounding in place of three truncations or more.

    The split precisions' kernels promote the accumulator at least every ``PROMOTED_EVERY``
    products along k: each product suffers its own slice's truncations, and `promotions`. Those of
    mma.sync that add small products apart do so every P / 2 times as many, where a large product
    suffers one P-th of the truncations for each k, and small ones are 2^-11 of it.
    """
    u, count = accumulator_roundoff(precision), len(precision.products)
    if precision.moduli:  # the result is rounded once
        return u if k else 0.0
    if not on_tensor_cores(precision, backend):
        return gamma(2 * k + count - 1, u) if k else 0.0
    plain = gamma(count * truncations(k), 2 * u)
    if count == 1:
        return plain
    promoted = gamma(count * truncations(min(k, PROMOTED_EVERY)), 2 * u)
    added = gamma(promotions(k), u)
    return min(plain, promoted + added + promoted * added)


def sum_error(precision: Precision, k: int, backend: str) -> float:
    """Return a bound on the same error for whole vectors, as 2-norms: relative to ||a||_2 ||B||_2.

    For a row vector a and a matrix B, every partial sum of one part of a B, whatever the order, is
    a_S B_S with S some of its 2 k real products, and ||a_S B_S||_2 <= ||a||_2 s, where s is the
    2-norm of [Re B; Im B] (leaving rows out only makes it smaller). Each rounding loses at most u
    of such a vector, and there are 2 k products and at most 2 k - 1 + P sums: gamma(4 k + P, u).

    On tensor cores a truncation loses at most 2 u of the largest addend, which is the partial sum
    or one of the instruction's products; in 2-norm both are at most ||a||_2 s, together sqrt(2) of
    it. With promotion the truncations of a slice are relative to the norm of that slice of a; the
    norms of all slices add up to at most sqrt(slices) ||a||_2 (Cauchy-Schwarz).
    """
    u, count = accumulator_roundoff(precision), len(precision.products)
    if precision.moduli:
        return u
    if not on_tensor_cores(precision, backend):
        return gamma(4 * k + count, u)
    each = math.sqrt(2) * 2 * u
    plain = gamma(count * truncations(k), each)
    if count == 1:
        return plain
    slices, depth = math.ceil(k / PROMOTED_EVERY), min(k, PROMOTED_EVERY)
    promoted = gamma(count * truncations(depth), each) * math.sqrt(slices)
    return min(plain, promoted + gamma(slices, u) * (1 + promoted))


def truncations(k: int) -> int:
    """Return the most truncations that a part of a complex dot product of length k meets."""
    instructions = 2 * math.ceil(k / MIN_SUMMED)
    return 2 * k + 2 * instructions


def spread(alpha: complex) -> float:
    """Return (|Re alpha| + |Im alpha|) / |alpha|, by which alpha mixes errors of the two parts."""
    return (abs(alpha.real) + abs(alpha.imag)) / abs(alpha) if alpha else 1.0


def scaling_roundings(alpha: complex, beta: complex) -> int:
    """Return the roundings that alpha (P) + beta C adds to P: 3 of alpha, 1 of the sum."""
    return (0 if alpha == 1 else 3) + (1 if beta else 0)


ADDEND_ROUNDINGS = 5
"""Roundings of beta C: of beta, of C, a product, a sum, and the sum with the product."""


def product_coefficient(precision: Precision, k: int, backend: str) -> float:
    """Return c with |part of (fl(AB) - AB)| <= c |A| |B|, without underflow.

    Rounded operands are off by v each, (1 + v)^2 - 1 together; products of terms that are not
    kept come on top (`Precision.dropped`); then `accumulation_error` of what is kept.
    """
    operands = roundings(2, operand_roundoff(precision))
    summed = accumulation_error(precision, k, backend) * kept_size(precision)
    return operands + precision.dropped + summed


def product_bound(
    precision: Precision, k: int, backend: str, *, alpha: complex = 1, beta: complex = 0
) -> float:
    """Return c with |part of (C^ - C)| <= c (|alpha| |A| |B| + |beta| |C|), without underflow.

    C^ is compared with the fp64 reference, which has the same kind of error at u = 2^-53; the
    bound is the sum of both.
    """
    u = accumulator_roundoff(precision)
    inner = product_coefficient(precision, k, backend)
    bound = _scaled(inner, u, alpha, beta)
    reference = _scaled(gamma(2 * k, 2.0**-53), 2.0**-53, alpha, beta)
    return bound + reference


def _scaled(inner: float, u: float, alpha: complex, beta: complex) -> float:
    """Return a bound after alpha, which mixes the parts by `spread` and rounds three times."""
    if math.isinf(inner):
        return inner
    mixed = spread(complex(alpha)) * inner
    product = mixed + (1 + mixed) * roundings(scaling_roundings(alpha, beta), u)
    return max(product, roundings(ADDEND_ROUNDINGS, u) if beta else 0.0)


def rounded_once(kind: Format, error: Array | float, size: Array | float) -> Array | float:
    """Return a bound on a real part's error after it was rounded once more, to nearest in a format.

    The part x^ that was rounded is within ``error`` of x, and |x| <= ``size``. Rounding to p bits
    moves it by at most w |x^|, w = 2^-p, or by half a subnormal spacing s, and |x^| <= |x| +
    |x^ - x|: together (1 + w) error + w size + s / 2. It holds where x^ is within the format's
    largest number; beyond it rounding gives an infinity.
    """
    w = 2.0**-kind.significand
    return (1 + w) * error + w * size + kind.smallest_subnormal / 2


def stage_bound(precision: Precision, k: int, backend: str, tile: int = 1) -> float:
    """Return the relative 2-norm error of y = U x, with U a k x k unitary table, at a precision.

    A table entry is rounded to the output's type and then to an operand, together w, and
    ||dU||_F <= w ||U||_F = w sqrt(k). The vector is off by v ||x||, which U does not amplify.
    Dropped products are products of small terms: at most sqrt(k) `Precision.dropped`. In each part
    the sums lose at most `sum_error` (U is unitary, so its 2-norm is 1) and at most
    `accumulation_error` times || |U| ||_2 <= ||U||_F = sqrt(k). A scaled precision adds
    sqrt(2) 2^-39 of the largest component to each entry, twice (see `workflow.accuracy.underflow`):
    2 sqrt(2) 2^-39 k and 2 sqrt(2) 2^-39 sqrt(k) in norm. An unnormalised Fourier matrix is
    sqrt(k) U: the relative error is the same.
    """
    root = math.sqrt(k)
    summed = min(sum_error(precision, k, backend), root * accumulation_error(precision, k, backend))
    operands = operands_bound(precision, k, backend, tile=tile)
    return operands + math.sqrt(2) * summed * kept_size(precision)


def operands_bound(
    precision: Precision, k: int, backend: str, *, tile: int = 1, moved: float = 0.0
) -> float:
    """Return the part of `stage_bound` beside the sums.

    Where ``tile`` entries of vectors have one scale, what that loses is sqrt(tile) of it, beside
    the norm of all of them. ``moved`` is what entries of the table were moved by before.
    """
    v, root = operand_roundoff(precision), math.sqrt(k)
    lost = 2 * math.sqrt(2) * underflow(precision, backend).of_largest
    entry = (1 + moved) * (1 + v) * (1 + accumulator_roundoff(precision)) - 1
    table = root * entry + lost * k
    vector = v + lost * max(root, math.sqrt(tile))
    return table + vector + table * vector + root * precision.dropped


def transform_bound(precision: Precision, factors: Sequence[int], backend: str) -> float:
    """Return a spectrum's relative 2-norm error by a dense stage for each factor of its length.

    Between two stages every value is multiplied by a twiddle, a table entry of the output's type:
    one rounding for the entry and sqrt(2) gamma(2, u) for the complex product. Once each come the
    window and the norm: two roundings of their tables, two products. Stages and
    twiddles are sqrt(N) times unitary, so relative errors compound as prod (1 + e) - 1. SciPy's
    reference has at most three fast transforms (Bluestein's) of under 4 N points, 7 roundings a
    level (Higham, section 24.1), at 2^-53.
    """
    u = accumulator_roundoff(precision)
    twiddles = roundings(1, u) + math.sqrt(2) * gamma(2, u)
    between = (1 + twiddles) ** max(0, len(factors) - 1) * (1 + roundings(4, u))
    levels = 3 * (math.log2(max(1, math.prod(factors))) + 3)
    reference = gamma(7 * levels, 2.0**-53)
    stages = compounded([stage_bound(precision, factor, backend) for factor in factors])
    return (1 + stages) * between - 1 + reference


def compounded(errors: Sequence[float]) -> float:
    """Return prod (1 + e) - 1: relative errors of exact stages one after another."""
    return repeated((error, 1) for error in errors)


def repeated(errors: Iterable[tuple[float, int]]) -> float:
    """Return prod (1 + e)^n - 1 over pairs (e, n)."""
    logs = sum(n * math.log1p(error) for error, n in errors)
    return math.expm1(logs) if logs < 700 else math.inf
