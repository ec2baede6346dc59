"""Coefficients that segments are multiplied by: a window, and the scale of the estimate."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np

from argand.channelise.signal import designed_coefficients, given_coefficients, is_named
from argand.checks import as_real, check_one_of

Array = np.ndarray[Any, np.dtype[np.float64]]
Scaling = Literal["density", "spectrum"]
SCALINGS: tuple[Scaling, ...] = get_args(Scaling)


def scaled_window(window: Any, length: int, scaling: str, sample_rate: Any) -> Array:
    """Return the window times the root of the estimate's scale, float64, (length,).

    With it |X|^2 of a segment is the estimate itself, so powers stay in the range of the samples'.

    Args:
        window: the name of a window of scipy.signal, or (name, parameter...): periodic, as of
            ``scipy.signal.get_window``. Else the real coefficients themselves, on any device.
        length: N.
        scaling: ``density``, over the sample rate times the sum of w^2; ``spectrum``, over the
            square of the sum of w. As in ``scipy.signal.welch``.
        sample_rate: samples a second.

    Raises:
        ValueError: an unknown window or scaling, another number of coefficients, one that is not
            finite, coefficients whose sum of the scaling is 0, a sample rate that is not positive.
        TypeError: coefficients that are not real numbers.
    """
    check_one_of("scaling", scaling, SCALINGS)
    rate = _positive(sample_rate)
    w = window_of(window, length)
    unit = float(np.abs(w).max())
    if unit == 0:
        raise ValueError("window must not be zero everywhere")
    w = w / unit  # squares of any window are then in range
    if scaling == "density":
        return w / math.sqrt(float(w @ w)) / math.sqrt(rate)
    size = abs(float(w.sum()))
    if size < length * 2.0**-53:  # what roundings leave of a sum of 0
        raise ValueError("window must have a sum other than 0 at scaling 'spectrum'")
    return w / size


def window_of(window: Any, length: int) -> Array:
    """Return a window's coefficients; arguments and errors are those of `scaled_window`."""
    if is_named(window):
        return _designed(window, length)
    return given_coefficients(window, length, "as many as a segment has samples")


@lru_cache(maxsize=16)
def _designed(window: Any, length: int) -> Array:
    from scipy.signal import get_window

    return designed_coefficients(
        window, lambda: get_window(window, length), f"is not finite at a length of {length}"
    )


def _positive(sample_rate: Any) -> float:
    found = as_real(sample_rate, "sample_rate")
    if not 0 < found < math.inf:
        raise ValueError(f"sample_rate must be a positive number, got {sample_rate!r}")
    return found
