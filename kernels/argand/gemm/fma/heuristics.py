"""The model of the fma family's time. Nothing here needs a GPU or CuPy.

``python -m benchmarks.sweep gemm --plans 1`` times all candidates of drawn products.
The times that constants are fitted to are in docs/experiments/2026-11-30-fitted-constants.md.
"""

from __future__ import annotations

from argand.gemm.fma.plan import FmaPlan
from argand.gemm.question import GemmSizes
from argand.precision import Precision

# Microseconds on an H200, and cycles of a multiprocessor's quarter for what a warp does.
_CLOCK = 1755.0
_LAUNCH = 1.45
"""Microseconds of a launch."""
_ROUND = {1: 0.5, 8: 0.7}
"""Latency of each further round of loads from memory or L2, by results of a lane."""
_PER_K = {1: 30.0, 8: 60.0}
"""Cycles of one k, by results of a lane."""
_RESULTS = {1: 250.0, 8: 1100.0}
"""Cycles of addresses and stores, by results of a lane."""
_ROUNDING = 0.2, 0.15, 40.0
"""Rounding adds these: to the first round of loads, to a further one, and cycles of one k."""
_BYTES = 3.1e6
"""Bytes of a microsecond."""
_SHARED_LAUNCH = 1.83
"""The launch where lanes share results. The constants below are fitted to times less what mma.sync
takes beyond its estimates, so that both families are ranked alike."""
_SHARED_BLOCK = 70.0
"""Cycles of each further block of a multiprocessor."""
_SHARED_ROUND = 134.0
"""Cycles of each row of such a block in a round of loads; a short k leaves out no round."""
_STRIDED_PER_K = 0.75
"""Cycles of one k and row for each operand whose k is not contiguous, because every lane then reads
a line of its own, in the first block."""
_FURTHER_STRIDED_PER_K = 0.115
"""The same in a further block."""


def estimated_microseconds(
    plan: FmaPlan,
    precision: Precision,
    sm_count: int,
    sizes: GemmSizes,
    memory: float = 1.0,
    strided: int = 0,
) -> float:
    """Return the estimated microseconds of a product, to rank plans by.

    ``memory`` is the card's peak memory rate over an H200's, ``strided`` how many of the operands
    do not have k as their contiguous axis.
    """
    batch, m, n, k = sizes.batch, sizes.m, sizes.n, sizes.k
    blocks = batch * -(-m // plan.block_m) * -(-n // plan.block_n)
    further_blocks = -(-blocks // sm_count) - 1  # of a multiprocessor
    if plan.k_lanes > 1:
        rounds = -(-k // (plan.unroll * plan.k_lanes))
        rounding = _ROUNDING[0] if precision.terms == 1 else 0.0
        rows = min(m, plan.block_m)
        per_row = rounds * _SHARED_ROUND + strided * k * _FURTHER_STRIDED_PER_K
        cycles = rows * strided * k * _STRIDED_PER_K
        cycles += further_blocks * (_SHARED_BLOCK + rows * per_row)
        return _SHARED_LAUNCH + rounding + cycles / _CLOCK
    results = plan.rows * plan.columns
    rounds = -(-k // plan.unroll)
    first, further, of_k = _ROUNDING if precision.terms == 1 else (0.0, 0.0, 0.0)
    latency = _LAUNCH + first + (_ROUND[results] + further) * (rounds - 1)
    # The products of a multiprocessor's first block are hidden in the rounds of its loads.
    warps = plan.threads / 32 / 4
    cycles = warps * _RESULTS[results]
    cycles += further_blocks * warps * (k * (_PER_K[results] + of_k) + _RESULTS[results])
    moved = 8 * batch * (m * n + k * (m + n)) / (memory * _BYTES)
    return latency + max(cycles / _CLOCK, moved)
