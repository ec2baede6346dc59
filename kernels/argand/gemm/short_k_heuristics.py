"""The model of the short-k family's time. Nothing here needs a GPU or CuPy.

``python -m benchmarks.sweep gemm --plans 1`` times all candidates of drawn products.
"""

from __future__ import annotations

from argand.gemm.short_k_plan import SIDE, ShortKPlan

# Microseconds on an H200, fitted to 35 calls in rows of up to 20 us (standard deviation 6%).
# docs/experiments/2026-11-27-the-fp32-class.md has what the choices gain.
_WAVE = 2.25
"""Launch, loads and latency of each wave of blocks."""
_STEP = 0.68
"""What a multiprocessor takes to convert and multiply a step of MMAs along k of one tile."""
_STORE = 0.78
"""What it takes to descale and store one."""


def estimate(plan: ShortKPlan, sm_count: int, sizes: tuple[int, int, int, int]) -> float:
    """Return the estimated microseconds of a product (batch, m, n, k), to rank plans by."""
    batch, m, n, k = sizes
    laid = plan.of_k(k)
    tiles = -(-batch * -(-m // SIDE) * -(-n // SIDE) // sm_count)  # of a multiprocessor
    waves = -(-tiles // laid.blocks)
    return waves * _WAVE + tiles * (laid.k_steps * laid.chunks * _STEP + _STORE)
