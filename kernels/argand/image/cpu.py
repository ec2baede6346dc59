"""Images on the CPU: which code computes a problem."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from argand.image.blocks import image_in_blocks
from argand.image.cpu_baselines import BaselineImage, is_of_baselines
from argand.image.cpu_few_antennas import few_antennas_image, has_few_antennas
from argand.image.geometry import (
    as_float64,
    as_places,
    centred,
    require_places,
    unit_vectors,
)
from argand.image.hermitian_check import require_hermitian
from argand.image.problem import ImageProblem

Run = Callable[[Any, Any, Any, Any, Any], Any]
"""Computes the problem of r, x, f and s as read, in the last argument where that is an array."""


class _Computation(Protocol):
    """Computes a problem by what it makes of its places."""

    def placed(self, x: Any, f: Any) -> Any:
        """Return what calls need, made from checked positions (antenna, 3) and frequencies."""

    def __call__(self, r: Any, placed: Any, s: Any, out: Any) -> Any:
        """Return the power toward checked directions (direction, 3); it checks r."""


def prepared(problem: ImageProblem, dtype: np.dtype[Any]) -> Run:
    """Return a function that computes the problem of NumPy arrays, whose values it checks.

    ``dtype`` is that of the covariances.
    """
    baselines = has_few_antennas(problem) and is_of_baselines(problem)
    compute = BaselineImage(problem, dtype) if baselines else _CentredImage(problem)

    def run(r: Any, x: Any, f: Any, s: Any, out: Any) -> Any:
        x = as_float64(x)
        placed = _placed(compute, x.tobytes(), x.shape, as_float64(f).tobytes())
        return compute(r, placed, unit_vectors(as_float64(s), np), out)

    return run


class _CentredImage:
    """The image of a problem by positions about their centre."""

    def __init__(self, problem: ImageProblem) -> None:
        self._problem, self._has_few_antennas = problem, has_few_antennas(problem)

    def placed(self, x: Any, f: Any) -> Any:
        """Return positions about their centre, and frequencies."""
        return centred(x), f

    def __call__(self, r: Any, placed: Any, s: Any, out: Any) -> Any:
        """Return the power; raises ValueError for a matrix that is not Hermitian."""
        require_hermitian(r, np)
        x, f = placed
        if self._has_few_antennas:
            return few_antennas_image(self._problem, r, x, f, s, out)
        return image_in_blocks(self._problem, r, x, f, s, out, np)


@lru_cache(maxsize=64)
def _placed(
    compute: _Computation, positions: bytes, shape: tuple[int, int], frequencies: bytes
) -> Any:
    """Check positions of a shape, and frequencies; return what a computation makes of them.

    Results are kept by the numbers: to look them up takes less time than the checks.
    """
    x, f = as_places(np.frombuffer(positions).reshape(shape)), np.frombuffer(frequencies)
    require_places(x, f)
    return compute.placed(x, f)
