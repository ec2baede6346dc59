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
from argand.gates.plan import widest_products
from argand.rounding import round_operand

from workflow.accuracy.bounds import (
    MMA_DEPTH,
    accumulator_roundoff,
    on_tensor_cores,
    operand_roundoff,
    truncations,
    underflow,
)
from workflow.accuracy.probabilistic import PRODUCT_TRUNCATION, concentration, deviations
from workflow.accuracy.references import Array

_IN_RANGE = 1024.0
"""What entries are multiplied by, so that small ones stay normal in fp16 as scaled ones do."""


def applied_deviation(matrices: Sequence[Array], precision: Precision) -> float:
    """How far rounding the matrices of a circuit moves a state, when they are applied as given.

    The error of a matrix is known, ||U^ - U||_F / ||U||_F. A matrix that is applied again errs in
    the same direction again, different ones in quadrature.
    """
    times = Counter(matrix.tobytes() for matrix in matrices)
    total = 0.0
    for matrix in {one.tobytes(): one for one in matrices}.values():
        used = _used(precision, matrix.shape[0].bit_length() - 1)
        held = round_operand((matrix * _IN_RANGE).astype(used.output), used) / _IN_RANGE
        error = float(np.linalg.norm(held - matrix) / np.linalg.norm(matrix))
        total += (times[matrix.tobytes()] * error) ** 2
    return math.sqrt(total)


def fused_deviation(
    matrices: Sequence[Array], widths: Sequence[int], precision: Precision
) -> float:
    """The same where a circuit of ``matrices`` is applied in passes of ``widths``, fused elsewhere.

    An entry is off by v, uniformly for each term. Passes repeat as often as gates do.
    """
    repeats = max(1.0, len(matrices) / max(1, len({matrix.tobytes() for matrix in matrices})))
    total = 0.0
    for width in widths:
        used = _used(precision, width)
        each = operand_roundoff(used) / 3.0 ** (used.terms / 2) + accumulator_roundoff(used)
        total += each**2
    return math.sqrt(min(repeats, max(len(widths), 1)) * total)


def evolution_probable(
    precision: Precision,
    widths: Sequence[int],
    backend: str,
    *,
    amplitudes: int,
    matrices: float,
) -> tuple[float, float]:
    """What a state's relative error is within but for one in 1e9, and the same of an amplitude.

    The latter is relative to the largest amplitude. ``matrices`` is what their rounding does
    (`applied_deviation`, `fused_deviation`), of which there are few numbers to average over.
    Truncations at one-term precisions always shorten the state: their means add up.
    """
    state = math.sqrt(
        sum(
            count * _gate_deviation(precision, width, backend) ** 2
            for width, count in Counter(widths).items()
        )
    )
    numbers = math.fsum(2 * 4.0**width for width in widths)
    common = concentration(numbers) * matrices
    if precision.terms == 1 and on_tensor_cores(precision, backend):
        cuts = sum(truncations(2**width) for width in widths)
        common += accumulator_roundoff(precision) * cuts
    return (
        concentration(2.0 * amplitudes) * state + common,
        deviations(2.0 * amplitudes) * state + common,
    )


def _gate_deviation(precision: Precision, width: int, backend: str) -> float:
    """Deviation that one gate on ``width`` qubits adds, but for its matrix's.

    It rounds the state, and sums of k = 2^width products whose partial sums are no longer than the
    state. A rounding to nearest has u / sqrt(3). Kernels compensate the mean of what tensor cores
    cut (`argand.gates.truncation`) at split precisions.
    """
    used = _used(precision, width)
    u, k = accumulator_roundoff(used), float(1 << width)
    v = operand_roundoff(used) / 3.0 ** ((used.terms - 1) / 2)
    cores = on_tensor_cores(used, backend) and (used.terms == 1 or width <= widest_products(used))
    if not cores:
        sums = u * math.sqrt((2 * k + len(used.products) + 2) / 3)
    elif used.terms == 1:
        sums = u * PRODUCT_TRUNCATION * math.sqrt(2 * k)
    else:
        instructions = 2 * math.ceil(k / MMA_DEPTH)
        sums = u * math.sqrt(2 * k * PRODUCT_TRUNCATION**2 + instructions + 2)
    lost = 2 * math.sqrt(2) * underflow(used, backend).of_largest * k
    return math.hypot(v, sums) + lost


def _used(precision: Precision, width: int) -> Precision:
    """What a gate's products are summed at: narrow gates of split precisions are fp32's."""
    return precision if precision.terms == 1 else product_precision(precision, width)
