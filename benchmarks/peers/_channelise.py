"""A filter bank as NumPy and CuPy users write it: filtered samples in memory, then a transform."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
from argand import PRECISIONS
from argand.channelise.problem import spectra_of

from benchmarks.peers._peer import Backend, Peer

ALGORITHM = "filter, then a transform"
Filter = Callable[[Any, Any, int, int], Any]
"""Returns filtered samples from samples, coefficients (taps, channels), the hop and the spectra."""


def channelise_by(
    arrays: Any, filtered: Filter, precision: str, x: Any, coefficients: Any, channels: int,
    oversampling: Any,
) -> Any:  # fmt: skip
    """Return spectra (..., spectra, channels) by NumPy or CuPy; of real x channels 0 to M / 2."""
    row = PRECISIONS[precision]
    real = x.dtype.kind != "c"
    h = arrays.asarray(coefficients, row.real_output).reshape(-1, channels)
    fraction = Fraction(oversampling)
    hop = int(channels / fraction)
    count = spectra_of(x.shape[-1], h.size, hop)
    found = (arrays.fft.rfft if real else arrays.fft.fft)(filtered(x, h, hop, count))
    if fraction != 1:
        period = fraction.numerator  # spectra after which starts repeat modulo the channels
        starts = np.arange(period) * hop % channels
        turns = np.outer(starts, np.arange(found.shape[-1])) % channels
        table = arrays.asarray(np.exp(-2j * np.pi / channels * turns), row.output)
        found *= table[arrays.arange(count) % period]
    return found.astype(row.output, copy=False)


def channelise_peer(name: str, backend: Backend, filtered: Filter) -> Peer:
    """Return the peer of NumPy or CuPy, whose module has the peer's name."""

    def compute(
        precision: str, x: Any, coefficients: Any, channels: int, oversampling: Any = 1
    ) -> Any:
        arrays = import_module(name)
        return channelise_by(arrays, filtered, precision, x, coefficients, channels, oversampling)

    return Peer(
        name=name, operation="channelise", backends=(backend,), precisions=("fp64", "fp32"),
        algorithm=lambda precision: ALGORITHM, modules=(name,), compute=compute,
    )  # fmt: skip
