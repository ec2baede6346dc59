"""Coefficients of the prototype filter."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from argand.channelise.signal import designed_coefficients, given_coefficients, is_named

Array = np.ndarray[Any, np.dtype[np.float64]]


def prototype(window: Any, channels: int, taps: int) -> Array:
    """Return the taps times channels coefficients h, float64, in order of time.

    Args:
        window: the name of a window of scipy.signal, or (name, parameter...): then h is
            ``scipy.signal.firwin(taps * channels, 1 / channels, window=window)``, a low pass whose
            gain is 1 at 0 and a half at the edge of a channel. Else the coefficients themselves, on
            any device.
        channels, taps: M and T.

    Raises:
        ValueError: an unknown window, another number of coefficients, or one that is not finite.
        TypeError: coefficients that are not real numbers.
    """
    if is_named(window):
        return _designed(window, channels, taps)
    return given_coefficients(window, channels * taps, "taps times channels")


@lru_cache(maxsize=16)
def _designed(window: Any, channels: int, taps: int) -> Array:
    from scipy.signal import firwin

    return designed_coefficients(
        window,
        lambda: firwin(channels * taps, 1 / channels, window=window),
        f"makes no filter of {channels} channels, {taps} taps",
    )
