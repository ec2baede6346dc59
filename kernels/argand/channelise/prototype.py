"""Coefficients of the prototype filter."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from argand.device import is_cuda_array

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
        TypeError: coefficients that are no real numbers.
    """
    named = isinstance(window, str) or (
        isinstance(window, tuple) and bool(window) and isinstance(window[0], str)
    )
    if named:
        return _designed(window, channels, taps)
    found = window.get() if is_cuda_array(window) else np.asarray(window)
    if found.dtype.kind not in "fiu":
        raise TypeError(f"coefficients must be real numbers, got {found.dtype}")
    if found.shape != (channels * taps,):
        raise ValueError(
            f"window must be a name or {channels * taps} coefficients, taps times channels, got "
            f"shape {found.shape}"
        )
    found = found.astype(np.float64)
    if not np.isfinite(found).all():
        raise ValueError("coefficients must be finite")
    return found


@lru_cache(maxsize=16)
def _designed(window: Any, channels: int, taps: int) -> Array:
    from scipy.signal import firwin

    try:
        found = np.asarray(firwin(channels * taps, 1 / channels, window=window), np.float64)
    except Exception as error:  # SciPy checks few parameters: some fail wherever they are used
        raise ValueError(
            f"window must be a window of scipy.signal, got {window!r}: {error}"
        ) from None
    if not np.isfinite(found).all():
        raise ValueError(f"window {window!r} makes no filter of {channels} channels, {taps} taps")
    found.flags.writeable = False
    return found
