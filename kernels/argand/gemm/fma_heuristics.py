"""The model of the fma family's time. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

from argand.gemm.fma_plan import FmaPlan
from argand.precision import Precision

# Microseconds on an H200, and cycles of a multiprocessor's quarter for what a warp does, fitted to
# 20 shapes of k up to 32.
_CLOCK = 1755.0
_LAUNCH = 4.2
_ROUNDING = 0.2
"""Of rounding, in the first round of loads."""
_ROUND = 0.5
"""Of each further round of loads, which waits for memory or L2."""
_PER_K = {1: 30.0, 8: 60.0}
"""Cycles of one k, by results of a lane."""
_RESULTS = {1: 250.0, 8: 900.0}
"""Cycles of addresses and stores, by results of a lane."""
_BYTES = 3.1e6
"""Bytes of a microsecond."""


def estimate(
    plan: FmaPlan,
    precision: Precision,
    sm_count: int,
    sizes: tuple[int, int, int, int],
    memory: float = 1.0,
) -> float:
    """Return the estimated microseconds of a product (batch, m, n, k), to rank plans by.

    ``memory`` is the card's peak memory rate over an H200's.
    """
    batch, m, n, k = sizes
    blocks = batch * -(-m // plan.block_m) * -(-n // plan.block_n)
    results = plan.rows * plan.columns
    rounds = -(-k // plan.together)
    cycles = k * _PER_K[results] + _RESULTS[results]
    warps = -(-blocks // sm_count) * plan.threads / 32 / 4
    moved = 8 * batch * (m * n + k * (m + n)) / (memory * _BYTES)
    rounding = _ROUNDING if precision.terms == 1 else 0.0
    # The first block's work is part of the launch.
    work = max(0.0, warps - plan.threads / 32 / 4) * cycles / _CLOCK
    return _LAUNCH + rounding + (_ROUND + rounding) * (rounds - 1) + max(work, moved)
