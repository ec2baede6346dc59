"""Images on the CPU: which code computes a problem."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from argand.image.blocks import image_in_blocks
from argand.image.cpu_baselines import BaselineImage, is_of_baselines
from argand.image.cpu_few_antennas import few_antennas_image, has_few_antennas
from argand.image.geometry import centred
from argand.image.hermitian_check import require_hermitian
from argand.image.problem import ImageProblem

Run = Callable[[Any, Any, Any, Any, Any], Any]
"""Computes a problem of checked r, x, f and s, in the last argument where that is an array."""
_in_blocks = partial(image_in_blocks, arrays=np)


def prepared(problem: ImageProblem) -> Run:
    """Return what computes the problem of NumPy arrays, whose covariances it checks."""
    if has_few_antennas(problem) and is_of_baselines(problem):
        return BaselineImage(problem)
    compute = few_antennas_image if has_few_antennas(problem) else _in_blocks

    def run_centred(r: Any, x: Any, f: Any, s: Any, out: Any) -> Any:
        require_hermitian(r, np)
        return compute(problem, r, centred(x), f, s, out)

    return run_centred
