"""Cosines and sines of phases in turns, on the CPU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def cosines_and_sines(turns: Any, cosines: Any, sines: Any) -> None:
    """Write the cosines and sines of phases, which are reduced to half a turn in fp64 in place.

    Of fp64 they come from the tangent of half the angle, t: (1 - t^2) / (1 + t^2) and
    2 t / (1 + t^2), because NumPy's tangent takes a tenth of the time of its cosine. t is finite:
    no number of fp64 is a quarter of a turn in radians.
    """
    turns -= np.rint(turns)
    if cosines.dtype != np.float64:
        turns *= 2 * math.pi
        angles = turns.astype(cosines.dtype)
        np.cos(angles, out=cosines)
        np.sin(angles, out=sines)
        return
    turns *= math.pi
    t = np.tan(turns, out=turns)
    square = t * t
    np.subtract(1, square, out=cosines)
    square += 1
    cosines /= square
    t += t
    np.divide(t, square, out=sines)
