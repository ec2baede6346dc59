"""A-priori error bounds of `argand.apply_gate` and of circuits, as 2-norms relative to the state's.

Notation as in `bounds`. A gate of width w multiplies every group of 2^w amplitudes by its matrix;
errors of different groups are orthogonal, so what holds for a group holds for the state.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from argand import PRECISIONS, Precision
from argand.gates.cpu import product_precision
from argand.gates.plan import LARGEST_TILE, separate_small_products, widest_mma
from argand.gates.truncation import largest_compensation

from workflow.accuracy.bounds import (
    accumulator_roundoff,
    gamma,
    on_tensor_cores,
    operands_bound,
    repeated,
    stage_bound,
    truncations,
)


def gate_bound(precision: Precision, width: int, backend: str) -> float:
    """Return the relative 2-norm error of a state after one gate on ``width`` qubits, k = 2^width.

    `stage_bound`, which holds for a peer's product at the precision as for ours, but at the split
    precisions, which only ours has:

    - Narrow gates are summed in fp32 (`product_precision`).
    - On tensor cores the sums of all k stay there. Products of small terms are summed first: a
      truncation loses 2 u of the largest addend, sqrt(2) of it in norm (`sum_error`), and of the
      `truncations` of k of each of the three products only those of the first terms meet sums as
      large as the state; the others' sums are at most 2 r in norm, r the first term's roundoff.
      Adding both and the difference of real and imaginary products are two more roundings. Where
      registers do not suffice for this (`separate_small_products`), all three count alike.
    - The matrix compensates the mean of what is truncated (`argand.gates.truncation`), which counts
      as an error of its entries.
    """
    used = precision if precision.terms == 1 else product_precision(precision, width)
    tile = LARGEST_TILE if backend == "cuda" else 1
    kernel = on_tensor_cores(used, backend) and width <= widest_mma(used)
    if used.terms == 1 or not kernel:
        return stage_bound(used, 2**width, backend, tile)
    k, count = 2**width, len(used.products)
    each = 2 * math.sqrt(2) * accumulator_roundoff(used)
    small = 2 * used.term_roundoffs[0] * (1 + used.term_roundoffs[0])
    if separate_small_products(used, width):
        lost = gamma(truncations(k), each) + (count - 1) * small * gamma(2 * truncations(k), each)
    else:
        lost = gamma(count * truncations(k), each)
    sums = lost + (1 + lost) * gamma(2, accumulator_roundoff(used))
    moved = largest_compensation(used, width)
    operands = operands_bound(used, k, backend, tile=tile, moved=moved)
    return operands + math.sqrt(2) * sums * (1 + small)


def evolution_bound(
    precision: Precision,
    widths: Sequence[int],
    backend: str,
    reference_widths: Sequence[int] | None = None,
) -> float:
    """Return the relative 2-norm error of a state after gates of these widths.

    Exact gates keep the norm of the errors made before, so the errors compound as
    prod (1 + e) - 1, that of rounding the state to the output's type first among them. The fp64
    reference's own error is added, of gates of ``reference_widths`` or, where these are not given,
    the same.
    """
    exact, ours = PRECISIONS["fp64"], Counter(widths)
    theirs = Counter(widths if reference_widths is None else reference_widths)
    errors = [(gate_bound(precision, width, backend), n) for width, n in ours.items()]
    own = repeated([(accumulator_roundoff(precision), 1), *errors])
    return own + repeated((stage_bound(exact, 2**width, "cpu"), n) for width, n in theirs.items())
