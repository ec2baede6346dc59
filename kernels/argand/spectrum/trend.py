"""Trends of segments: their means, or their least-squares lines."""

from __future__ import annotations

from typing import Any

import numpy as np

from argand.spectrum.problem import Detrend

Array = np.ndarray[Any, Any]


def without_trend(segments: Array, detrend: Detrend) -> Array:
    """Return segments (..., N) of fp64 less what ``detrend`` names, as ``scipy.signal.detrend``."""
    found = segments - segments.mean(axis=-1, keepdims=True)
    length = found.shape[-1]
    if detrend == "linear" and length > 1:
        times = np.arange(length) - (length - 1) / 2
        found -= (found @ times / (times @ times))[..., None] * times
    return np.asarray(found)
