"""Probabilistic bounds on states, by the model of `probabilistic`; worst cases are `gate_bounds`.

Errors of a state are relative to its norm, which gates keep.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from argand import Precision
from argand.gates.cpu import product_precision
from argand.gates.plan import separate_small_products, widest_mma
from argand.rounding import round_operand

from workflow.accuracy import bounds
from workflow.accuracy.bounds import accumulator_roundoff, on_tensor_cores, operand_roundoff
from workflow.accuracy.probabilistic import (
    PRODUCT_TRUNCATION,
    SUM_DEVIATION,
    concentration,
    deviations,
)
from workflow.accuracy.references import Array
from workflow.accuracy.underflow import underflow
from workflow.passes import Applied, applied_matrices

_HEADROOM = 4
"""Powers of two below a format's scale by which entries are multiplied, so that small ones stay
normal in it as scaled ones do."""


def known_deviation(matrices: Sequence[Array], precision: Precision) -> float:
    """Return how far rounding of a circuit's matrices, applied as given, moves a state.

    The error of a matrix is known, ||U^ - U||_F / ||U||_F. A matrix that is applied again errs in
    the same direction again, different ones in quadrature.
    """
    widths = [matrix.shape[0].bit_length() - 1 for matrix in matrices]
    total = 0.0
    for matrix, (width, _, times) in zip(matrices, applied_matrices(matrices, widths), strict=True):
        used = _used(precision, width)
        scale = 2.0 ** (used.operand.scaled_exponent - _HEADROOM) if used.scaled else 1.0
        held = round_operand((matrix * scale).astype(used.output), used) / scale
        error = float(np.linalg.norm(held - matrix) / np.linalg.norm(matrix))
        total += times * error**2  # (times error)^2, shared by as many
    return math.sqrt(total)


def fused_deviation(applied: Sequence[Applied], precision: Precision) -> float:
    """Return how far rounding of fused matrices, which are not at hand, moves a state.

    An entry is off by the roundoff of its operand, uniformly for each term. Before that it is
    rounded to the output's type, which is all at the IEEE precisions.
    """
    total = 0.0
    for width, _, times in applied:
        used = _used(precision, width)
        each = _operand_roundoff(used) / 3.0 ** (used.terms / 2) + accumulator_roundoff(used)
        total += times * each**2
    return math.sqrt(total)


def evolution_probable(
    precision: Precision,
    applied: Sequence[Applied],
    backend: str,
    *,
    amplitudes: int,
    matrices: float,
) -> tuple[float, float]:
    """Return bounds that one state in 1e9 exceeds: of its relative error, and of an amplitude's.

    The latter is relative to the largest amplitude. ``matrices`` is what their rounding does
    (`known_deviation`, `fused_deviation`); matrices have few numbers to average over. Truncations
    at one-term precisions always shorten the state: their means add up.
    """
    counted = Counter((one.width, one.terms) for one in applied)
    state = math.sqrt(
        accumulator_roundoff(precision) ** 2  # the state that it begins with
        + sum(
            count * _gate_deviation(precision, width, terms, backend) ** 2
            for (width, terms), count in counted.items()
        )
    )
    numbers = math.fsum(2.0 * one.terms * 2.0**one.width / one.times for one in applied)
    common = concentration(numbers) * matrices
    if precision.terms == 1 and on_tensor_cores(precision, backend):
        truncations = sum(
            2 * one.terms + 2 * _instructions(one.width, one.terms, bounds.MIN_SUMMED)
            for one in applied
        )
        common += accumulator_roundoff(precision) * truncations
    return (
        concentration(2.0 * amplitudes) * state + common,
        deviations(2.0 * amplitudes) * state + common,
    )


def _gate_deviation(precision: Precision, width: int, terms: int, backend: str) -> float:
    """Return the deviation that one gate on ``width`` qubits adds, without that of its matrix.

    It rounds the state to operands, and sums of as many products as a row has ``terms``, whose
    partial sums are no longer than the state. A rounding to nearest has u / sqrt(3). At split
    precisions kernels compensate the mean of what tensor cores truncate
    (`argand.gates.truncation`), and add the products of small terms apart or first where they can
    (`separate_small_products`): then those of the large ones alone meet sums as large as the state.
    """
    used = _used(precision, width)
    u, k = accumulator_roundoff(used), float(terms)
    v = _operand_roundoff(used) / 3.0 ** ((used.terms - 1) / 2)
    cores = on_tensor_cores(used, backend) and (used.terms == 1 or width <= widest_mma(used))
    if not cores:
        sums = u * math.sqrt((2 * k + len(used.products) + 2) / 3)
    elif used.terms == 1:
        sums = u * PRODUCT_TRUNCATION * math.sqrt(2 * k)
    else:
        large = 1 if separate_small_products(used, width) else len(used.products)
        instructions = _instructions(width, terms, used.operand.mma_k)
        squares = PRODUCT_TRUNCATION**2 * 2 * k + SUM_DEVIATION**2 * instructions
        sums = u * math.sqrt(large * squares + 2)
    lost = 2 * math.sqrt(2) * underflow(used, backend).of_largest * k
    return math.hypot(v, sums) + lost


def _operand_roundoff(used: Precision) -> float:
    """Return v; none where an operand is what the state is kept as."""
    return 0.0 if used.exact_operands else operand_roundoff(used)


def _instructions(width: int, terms: int, depth: int) -> int:
    """Return how many instructions, of ``depth`` products, add to one part of a row's sum."""
    return 2 * min(terms, math.ceil((1 << width) / depth))


def _used(precision: Precision, width: int) -> Precision:
    """Return the precision of a gate's products: narrow gates of split precisions are fp32's."""
    return precision if precision.terms == 1 else product_precision(precision, width)
