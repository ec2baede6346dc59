"""What tensor cores cut from the sums of a gate, and the matrix that gives it back. Needs no GPU.

Tensor cores cut what they add towards zero, so the sums of split precisions come out too small, by
2^-24 each time one is added to, on average: after a hundred gates a state has lost so much of its
norm. An entry of the matrix that is multiplied early is cut as often as products are added after
it. So each is made larger by what it is going to lose, and what remains has no sign of its own.
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
class Cut:
    """What is cut of a product of dense matrices on average, relative to it.

    Attributes:
        own: in the step of k in which it is added.
        further: in each step after.
    """

    own: float
    further: float


_CUTS: Mapping[tuple[str, str, int], Cut] = MappingProxyType(
    {
        ("mma", "3xtf32", 4): Cut(4.5e-8, 4.8e-8),
        # The only one without `kSeparateSmallProducts`: three cuts a step.
        ("mma", "3xtf32", 5): Cut(4.7e-8, 14.5e-8),
        ("mma", "3xtf32", 6): Cut(5.1e-8, 4.8e-8),
        ("mma", "3xfp16", 4): Cut(4.2e-8, 0.0),
        ("mma", "3xfp16", 5): Cut(4.8e-8, 4.9e-8),
        ("mma", "3xfp16", 6): Cut(5.1e-8, 4.8e-8),
        ("mma", "3xfp16", 7): Cut(5.4e-8, 4.8e-8),
        ("wgmma", "3xfp16", 6): Cut(5.8e-8, 6.5e-8),
        ("wgmma", "3xfp16", 7): Cut(6.3e-8, 6.4e-8),
    }
)
"""By kind, precision and width: on an H200 by ``python -m benchmarks.gates.truncation``."""


def cut_of(plan: GatePlan) -> Cut:
    """What the sums of a plan lose; nothing where rounding of the operands loses far more."""
    return _CUTS.get((plan.kind, plan.precision.name, plan.width), Cut(0.0, 0.0))


def most_given_back(precision: Precision, width: int) -> float:
    """What an entry of a gate's matrix is made larger by, relatively, at most."""
    cuts = [cut for key, cut in _CUTS.items() if key[1:] == (precision.name, width)]
    steps = 2**width // 8
    return max((cut.own + cut.further * steps for cut in cuts), default=0.0)


def steps_of(plan: GatePlan) -> Array:
    """(2^width,): for each column of the matrix the step in which its products are added.

    Steps are added from the last one down (``mainloop`` in ``cuda/gates/sm80_kernel.cuh`` and
    ``cuda/gates/sm90_kernel.cuh``).
    """
    first, count = _step_bits(plan)
    return np.asarray((np.arange(2**plan.width) >> first) & (2**count - 1))


def _step_bits(plan: GatePlan) -> tuple[int, int]:
    """Which bits of a column's number say its step: the first of them, and how many."""
    if plan.kind == "wgmma":
        return (2 if plan.inside else 1), plan.width - 4
    depth = 3 if plan.precision.operand.bytes == 4 else 4
    return depth, plan.width - depth


def grown(matrix: Array, plan: GatePlan, cut: Cut | None = None) -> Array:
    """The matrix (2^width, 2^width) with each entry larger by what its products lose.

    ``cut`` is `cut_of` the plan where none is given. It is that of a full step: real and imaginary
    parts lose half of it each, and a part with q entries of a row 1 - 2^-q of that, for fewer
    products leave fewer bits below the sum. A row of one entry has no sums.
    """
    given = cut_of(plan) if cut is None else cut
    if not (given.own or given.further):
        return matrix
    first, count = _step_bits(plan)
    shape = (len(matrix), -1, 2**count, 2**first)
    parts = np.ascontiguousarray(matrix).view(np.float64).reshape(*shape, 2)
    dense = np.count_nonzero(parts) == parts.size  # seen at a tenth of what counting by steps takes
    if dense:
        entries = np.full((1, 2**count, 2), len(matrix) >> count)
    else:
        entries = np.count_nonzero(parts, axis=(1, 3))  # (rows, steps, parts)
    added = (1 - 0.5**entries).mean(axis=-1)
    after = np.cumsum(added, axis=1) - added
    lost = given.own * added + given.further * after
    if not dense:
        lost[np.count_nonzero(matrix, axis=1) == 1] = 0
    return np.asarray((matrix.reshape(shape) * (1 + lost[:, None, :, None])).reshape(matrix.shape))
