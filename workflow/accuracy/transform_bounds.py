"""A-priori error bounds of `argand.dft`, relative 2-norm errors of one transform.

Notation as in `bounds`: u of the accumulator, v of an operand. A transform of length L is sqrt(L)
times unitary, so an error in the input of a stage reaches its output with the same relative size.
"""

from __future__ import annotations

import math

import numpy as np
from argand import Precision
from argand.dft.butterfly import ButterflyPlan
from argand.dft.cluster import ClusterPlan
from argand.dft.cpu import HEADROOM
from argand.dft.heuristics import butterflies_for
from argand.dft.method import Method, dense, method_for, prime_factors, product
from argand.dft.plan import Fp32Plan, Plan, TwoFactorPlan
from argand.dft.single_cta import SingleCtaPlan
from argand.dft.tables import convolutions
from argand.dft.three_kernel import ThreeKernelPlan
from argand.dft.two_pass import TwoPassPlan
from argand.precision import PRECISIONS

from workflow.accuracy.bounds import (
    accumulator_roundoff,
    gamma,
    kept_size,
    on_tensor_cores,
    operand_roundoff,
    roundings,
    transform_bound,
)

_INSTRUCTION = 16
"""Most products that one instruction of our transforms' kernels sums."""


def folded_bound(precision: Precision, length: int, backend: str) -> float:
    """Return the relative error of one dense stage, without underflow.

    With e_k = x_k + x_(L-k) and o_k = x_k - x_(L-k), X_n and X_(L-n) are x_0 + P_n -+ i Q_n,
    P = e C and Q = o S with half of the cosines and sines (`dft.tables.folded_matrices`). The
    transform of a symmetric sequence of norm |e| / sqrt(2) has the norm sqrt(2) |P|, so
    |P| <= sqrt(L) / 2 |e|, for any of its terms alone too; the same for Q. Together,
    |e|^2 + |o|^2 <= 2 |x|^2. So what is relative to sqrt(L) / 2 |e| in P is as large relative to
    |X| = sqrt(L) |x|.

    - Folding and rounding e and o: u and v. Rounding the tables moves C by at most v times its
      Frobenius norm, which is at most L / 2: sqrt(L) v. Terms that are not kept likewise.
    - Sums: a rounding loses u of a partial sum, and there are at most P (L + 1) of them and of
      products (IEEE), or with tensor cores 2 u of the sum or of a product (sqrt(2) of both
      together) at each of an instruction's d + 2 truncations.
    - x_0 + P -+ i Q is two roundings, scaling back two, and X_0 a sum of L / 2 + 1 terms.
    """
    u, v = accumulator_roundoff(precision), operand_roundoff(precision)
    half, count = length // 2, len(precision.products)
    if half == 0:
        return roundings(2, u)
    if on_tensor_cores(precision, backend):
        lost = count * (half + 2 * math.ceil(half / (_INSTRUCTION / 2)))
        sums = gamma(lost, math.sqrt(2) * 2 * u)
    else:
        sums = gamma(count * (2 * half + 1), u)
    operands = roundings(1, v) * (1 + roundings(1, u)) + roundings(1, u)
    tables = math.sqrt(length) * (v + precision.dropped)
    inner = (1 + operands) * (1 + tables) * (1 + sums * kept_size(precision)) - 1
    return inner + (1 + inner) * (roundings(4, u) + gamma(half + 1, u))


def dft_bound(precision: Precision, method: Method, backend: str) -> float:
    """Return the relative error of one transform by its method, norm and fp64 reference included.

    A length that butterflies convolve for has their bound, whatever the precision.
    """
    plan = butterflies_of(method)
    return _staged_bound(precision, method, backend) if plan is None else butterfly_bound(plan)


def butterflies_of(method: Method) -> Fp32Plan | None:
    """Return the butterflies that convolve for a length by its own method, or None.

    They compute it at every precision. Dense stages compute a length of another method.
    """
    return butterflies_for(method.length) if method == method_for(method.length) else None


def _staged_bound(precision: Precision, method: Method, backend: str) -> float:
    """Return the relative error of a transform by the dense stages of a method.

    Between the stages of a product is a twiddle, a rounded table entry: u and sqrt(2) gamma(2, u).
    Before, between and after the two transforms of a convolution are such products too. There the
    spectrum B of the other sequence multiplies: errors made before it reach the result, of norm
    sqrt(N) |x|, by at most max |B| / sqrt(N), whatever x is, where Rader's is 1 except for x_0.

    Scaled precisions lose at most half of fp16's smallest number in each of a stage's numbers
    (`lost_to_range`).
    """
    u = accumulator_roundoff(precision)
    twiddle = _twiddle(u)
    stages = method.stages
    compound = math.expm1(
        sum(math.log1p(folded_bound(precision, stage, backend)) for stage in stages)
        + (len(stages) + 2) * math.log1p(twiddle)
    )
    return _whole(method, compound + lost_to_range(precision, method), u)


def plan_bound(plan: Plan | None, precision: Precision, length: int) -> float:
    """Return the relative error of a transform on a GPU by what ran; None is cuFFT, in fp32.

    Tensor cores' products have the precision, butterflies and cuFFT are fp32's at every one but
    fp64. For cuFFT a dense stage for each prime factor is all that is assumed.
    """
    if plan is None:
        ran = precision if precision.exact_operands else PRECISIONS["fp32"]
        return transform_bound(ran, prime_factors(length), "cuda")
    if isinstance(plan, Fp32Plan):
        return butterfly_bound(plan)
    if isinstance(plan, TwoFactorPlan):
        return _staged_bound(precision, product(plan.n1, plan.n2), "cuda")
    return _staged_bound(precision, dense(plan.length), "cuda")


def butterfly_bound(plan: Fp32Plan) -> float:
    """Return relative error of one transform by butterflies in fp32, its fp64 reference included.

    A butterfly of a prime P that is folded sums e_k and o_k times rounded roots: each part of X_n
    has at most P / 2 + 5 roundings of sum |x_k| <= sqrt(P) |x|, so |X| is off by sqrt(2) P gamma
    |x|, which is sqrt(2 P) gamma relative to |X| = sqrt(P) |x|; a butterfly of 2 is one addition.
    There is a twiddle at most before each prime. Where a kernel multiplies table entries to make
    one, each counts as a twiddle of its own: up to log2 R of a whole transform's powers, two
    between the columns and the lines of cluster, three-kernel and two-pass plans, and two after
    each stage of long convolutions and of three mixed radices or more.

    A convolution passes each prime of its length there and back; the spectrum and a chirp before
    and after are such products too. Scales are powers of two, and fp32's range is wider than what a
    transform's numbers span.
    """
    u = PRECISIONS["fp32"].u
    radices, made = radices_of(plan)
    primes = [prime for radix in radices for prime in prime_factors(radix)]
    each = [_prime_bound(prime, u) for prime in primes]
    twiddle = math.log1p(_twiddle(u))
    there = sum(map(math.log1p, each)) + (len(primes) + made) * twiddle
    if isinstance(plan, ButterflyPlan | ThreeKernelPlan):
        return _whole(plan.method, math.expm1(2 * there + 3 * twiddle), u)
    return _whole(dense(plan.length), math.expm1(there), u)


def radices_of(plan: Fp32Plan) -> tuple[tuple[int, ...], int]:
    """Return radices of a transform's stages, and how many table entries are products of others."""
    if isinstance(plan, SingleCtaPlan):
        powers = (plan.radix - 1).bit_length()
        return (plan.radix, plan.radix, plan.last_radix), 2 * (powers - 1)
    if isinstance(plan, ThreeKernelPlan):
        return (*plan.columns, *plan.radices), 1 + plan.line.multiplied_twiddles
    if isinstance(plan, TwoPassPlan):
        return (*plan.columns, *plan.lines), 1
    if isinstance(plan, ClusterPlan):
        return plan.radices, 1
    return plan.radices, plan.multiplied_twiddles


def _prime_bound(prime: int, u: float) -> float:
    return roundings(1, u) if prime == 2 else math.sqrt(2 * prime) * gamma(prime // 2 + 5, u)


def _twiddle(u: float) -> float:
    """Return the relative error of a product with a rounded complex number of a table."""
    return roundings(1, u) + math.sqrt(2) * gamma(2, u)


def _whole(method: Method, inner: float, u: float) -> float:
    """Return the relative error of a method with its norm and the fp64 reference."""
    levels = 3 * (math.log2(max(1, method.length)) + 3)
    reference = gamma(7 * levels, PRECISIONS["fp64"].u)
    return amplification(method, worst=True) * (inner + (1 + inner) * roundings(4, u)) + reference


def amplification(method: Method, *, worst: bool) -> float:
    """Return the factor by which spectra of convolutions enlarge an error relative to the norm.

    They enlarge it by their largest value in the worst case, a white one by their root mean square.
    """
    inner = math.prod(amplification(part, worst=worst) for part in method.parts)
    if method.kind in ("dense", "product"):
        return inner
    length, size = method.parts[0].length, 0.0
    for one in convolutions(method):
        moduli = np.abs(one.spectrum)
        modulus = moduli.max() if worst else np.sqrt(np.mean(moduli**2))
        size += 2.0**-one.exponent * float(modulus) * length
    found = inner**2 * max(1.0, size / math.sqrt(method.length))
    # The rest of the error leaves out Rader's x_0.
    return found + 1 if worst and method.kind == "rader" else found


def lost_to_range(precision: Precision, method: Method) -> float:
    """Return the error that the range of fp16 costs a scaled transform.

    A transform begins with a number of at least 2^e and has fewer than 4 N (a convolution's length)
    parts, each off by at most half the smallest number of fp16 when it is split; e and o are two.
    Each stage multiplies the norm by sqrt(L) and divides by the power of two from L on. A
    convolution's spectrum has a modulus of at least 1 / 2 where it is Rader's (except for one
    element); Bluestein's takes any modulus, and 1 / 8 is what its norm keeps.
    """
    if not precision.scaled:
        return 0.0
    operand = precision.operand
    size = 2.0 ** (operand.scaled_exponent - HEADROOM)
    count = 2 * (method.parts[0].length if method.convolves and method.parts else method.length)
    each = math.sqrt(2 * count) * operand.smallest_subnormal / 2
    lost = 0.0
    for index, stage in enumerate(method.stages):
        if method.convolves and 2 * index == len(method.stages):
            size /= 8
        lost += each / size
        size *= math.sqrt(stage) / 2.0 ** (stage - 1).bit_length()
    return lost
