"""Cosines and sines of phases in turns, on the CPU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

# NumPy takes 0.15 us to make an array of Python's number.
_HALF_TURN, _TURN = np.array(math.pi), np.array(2 * math.pi)


def cosines_and_sines(turns: Any, cosines: Any, sines: Any) -> None:
    """Write the cosines and sines of phases, which are reduced to half a turn in fp64 in place.

    Those of fp64 come from the tangent of half the angle, t: with q = 2 / (1 + t^2) they are q - 1
    and t q, because NumPy's tangent takes a tenth of the time of its cosine. t is finite: no number
    of fp64 is a quarter of a turn in radians.
    """
    turns -= np.rint(turns)
    if cosines.dtype != np.float64:
        turns *= _TURN
        angles = turns.astype(cosines.dtype)
        np.cos(angles, cosines)
        np.sin(angles, sines)
        return
    turns *= _HALF_TURN
    t = np.tan(turns, turns)
    q = t * t
    q += 1.0
    np.divide(2.0, q, q)
    np.subtract(q, 1.0, cosines)
    np.multiply(t, q, sines)
