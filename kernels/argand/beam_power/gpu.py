"""Beam power on a GPU."""

from __future__ import annotations

from typing import Any

import cupy

from argand.beam_power.blocks import in_blocks
from argand.beam_power.problem import BeamPowerProblem
from argand.gemm.pairs import Pairs
from argand.runtime.layout import device_of


def beam_power(problem: BeamPowerProblem, w: Any, x: Any, out: Any) -> Any:
    """Return the result of a problem whose arguments are checked, on the GPU that holds them."""
    with device_of(x.array if isinstance(x, Pairs) else x):
        return in_blocks(problem, w, x, out, cupy)
