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

from argand.gate_forms import Array
from argand.gate_plan import GatePlan


@dataclass(frozen=True)
class Cut:
    """What is cut of a product of dense matrices on average, relative to it.

    Attributes:
        own: in the step of k in which it is added.
        further: in each step after.
    """

    own: float
    further: float


_CUTS: Mapping[tuple[str, str, int], Cut] = MappingProxyType({})
"""By kind, precision and width: measured on an H200 by ``python -m benchmarks.gate_cut``."""


def cut_of(plan: GatePlan) -> Cut:
    """What the sums of a plan lose; nothing where rounding of the operands loses far more."""
    return _CUTS.get((plan.kind, plan.precision.name, plan.width), Cut(0.0, 0.0))


def steps_of(plan: GatePlan) -> Array:
    """(2^width,): for each column of the matrix the step in which its products are added.

    Steps are added from the last one down (``multiply`` in ``cuda/gate_mma.cuh`` and
    ``cuda/gate_wgmma.cuh``).
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

    Nothing is cut where nothing is added, so only steps count in which a row has entries, and
    real and imaginary parts half each. A row of one entry has no sums. ``cut`` is `cut_of` the plan
    where none is given.
    """
    given = cut_of(plan) if cut is None else cut
    if not (given.own or given.further):
        return matrix
    first, count = _step_bits(plan)
    shape = (len(matrix), -1, 2**count, 2**first)
    parts = np.ascontiguousarray(matrix).view(np.float64).reshape(*shape, 2) != 0
    added = parts.any(axis=(1, 3)).mean(axis=-1)  # (rows, steps)
    after = np.cumsum(added, axis=1) - added
    lost = given.own * added + given.further * after
    lost[np.count_nonzero(matrix, axis=1) == 1] = 0
    return np.asarray((matrix.reshape(shape) * (1 + lost[:, None, :, None])).reshape(matrix.shape))
