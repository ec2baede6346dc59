"""A peer: a filter bank by NumPy, one product of frames for each tap and a transform."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers._channelise import channelise_peer


def filtered(x: Any, h: Any, hop: int, count: int) -> Any:
    """Return the sum over taps of coefficients times frames, (..., spectra, channels)."""
    taps, channels = h.shape
    strides = (*x.strides[:-1], hop * x.strides[-1], x.strides[-1])

    def frames(tap: int) -> Any:
        begun = x[..., tap * channels :]
        return np.lib.stride_tricks.as_strided(begun, (*x.shape[:-1], count, channels), strides)

    found = frames(0) * h[0]
    for tap in range(1, taps):
        found += frames(tap) * h[tap]
    return found


PEER = channelise_peer("numpy", "cpu", filtered)
