"""Truncation bias of gates on tensor cores, which their matrices compensate. Needs no GPU.

Tensor cores truncate accumulators towards zero. At split precisions each MMA takes 2^-24 of a sum
on average, which after a hundred gates shows in the norm of a state. The earlier an entry of the
matrix is multiplied, the more MMAs truncate its products. So each entry is enlarged by the expected
loss, and the remaining error has no bias.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from argand.gates.canonical import Array
from argand.gates.plan import GatePlan
from argand.precision import Precision


@dataclass(frozen=True)
class TruncationBias:
    """Average loss of a product of a dense matrix, relative to it.

    Attributes:
        own: the loss by the MMAs of its own k-tile.
        later: the loss by the MMAs of each later k-tile.
    """

    own: float
    later: float


_BIASES: Mapping[tuple[str, int, int], TruncationBias] = MappingProxyType(
    {
        ("mma", 4, 4): TruncationBias(4.5e-8, 4.8e-8),
        # The only one without `kSeparateSmallProducts`: three truncations a k-tile.
        ("mma", 4, 5): TruncationBias(4.7e-8, 14.5e-8),
        ("mma", 4, 6): TruncationBias(5.1e-8, 4.8e-8),
        ("mma", 2, 4): TruncationBias(4.2e-8, 0.0),
        ("mma", 2, 5): TruncationBias(4.8e-8, 4.9e-8),
        ("mma", 2, 6): TruncationBias(5.1e-8, 4.8e-8),
        # Both products of a part in one accumulator.
        ("sequence", 2, 4): TruncationBias(5.5e-8, 0.0),
        ("mma", 2, 7): TruncationBias(5.4e-8, 4.8e-8),
        ("wgmma", 2, 6): TruncationBias(5.8e-8, 6.5e-8),
        ("wgmma", 2, 7): TruncationBias(6.3e-8, 6.4e-8),
    }
)
"""Biases by kind, bytes of the operand and width, at two terms: of 3xtf32 and 3xfp16 on an
H200 by ``python -m benchmarks.gates.truncation``. An MMA truncates alike in formats of one size."""


def truncation_bias(plan: GatePlan) -> TruncationBias:
    """Return the bias of a plan; 0 for a single term, whose rounding loses far more."""
    none = TruncationBias(0.0, 0.0)
    if plan.precision.terms == 1:
        return none
    kind = "mma" if plan.kind == "direct_mma" else plan.kind  # which adds in the same order
    return _BIASES.get((kind, plan.precision.operand.bytes, plan.width), none)


def sequence_bias(precision: Precision, width: int) -> TruncationBias:
    """Return the bias of a gate of a sequence: its own where it is fitted, else a single gate's."""
    if precision.terms == 1:
        return TruncationBias(0.0, 0.0)
    size = precision.operand.bytes, width
    return _BIASES.get(("sequence", *size), _BIASES["mma", *size])


def largest_compensation(precision: Precision, width: int) -> float:
    """Return the largest relative compensation of an entry of a gate's matrix."""
    if precision.terms == 1:
        return 0.0
    biases = [bias for key, bias in _BIASES.items() if key[1:] == (precision.operand.bytes, width)]
    k_tiles = 2**width // 8
    return max((bias.own + bias.later * k_tiles for bias in biases), default=0.0)


def k_tiles_of(plan: GatePlan) -> Array:
    """Return the k-tile of each column of the matrix, (2^width,).

    The mainloop takes k-tiles from the last one down (``mainloop`` in
    ``cuda/gates/sm80_kernel.cuh`` and ``cuda/gates/sm90_kernel.cuh``).
    """
    first, count = k_tile_bits(plan)
    return np.asarray((np.arange(2**plan.width) >> first) & (2**count - 1))


def k_tile_bits(plan: GatePlan) -> tuple[int, int]:
    """Return the bits of a column's number that are its k-tile: the first of them, and how many."""
    k_bits = plan.precision.operand.mma_k.bit_length() - 1
    if plan.kind != "wgmma":
        return k_bits, plan.width - k_bits
    # A thread's eight rows are those of the highest bits, and of qubit 0 where that is a target.
    return plan.targets_qubit0 + k_bits - 3, plan.width - k_bits


def compensated(matrix: Array, plan: GatePlan, bias: TruncationBias | None = None) -> Array:
    """Return the matrix (2^width, 2^width) with bias compensation: entries enlarged by their loss.

    ``bias`` is by default the plan's `truncation_bias`, that of a full k-tile. Real and imaginary
    parts lose half of it each. A part with q entries of a row loses 1 - 2^-q of that, because fewer
    products have fewer bits below the sum. A row of one entry loses nothing.
    """
    given = truncation_bias(plan) if bias is None else bias
    if not (given.own or given.later):
        return matrix
    first, count = k_tile_bits(plan)
    shape = (len(matrix), -1, 2**count, 2**first)
    parts = np.ascontiguousarray(matrix).view(np.float64).reshape(*shape, 2)
    # This test takes a tenth of the time of counting by k-tiles.
    dense = np.count_nonzero(parts) == parts.size
    if dense:
        entries = np.full((1, 2**count, 2), len(matrix) >> count)
    else:
        entries = np.count_nonzero(parts, axis=(1, 3))  # (rows, k_tiles, parts)
    added = (1 - 0.5**entries).mean(axis=-1)
    after = np.cumsum(added, axis=1) - added
    lost = given.own * added + given.later * after
    if not dense:
        lost[np.count_nonzero(matrix, axis=1) == 1] = 0
    return np.asarray((matrix.reshape(shape) * (1 + lost[:, None, :, None])).reshape(matrix.shape))
