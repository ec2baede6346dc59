"""A filter bank as NumPy and CuPy users write it: filtered samples in memory, then a transform."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
from argand import PRECISIONS
from argand.channelise.problem import spectra_of

from benchmarks.peers._peer import Backend, Candidate, Peer

ALGORITHM = "filter, then a transform"
_PRECISIONS = ("fp64", "fp32")
Filter = Callable[[Any, Any, int, int], Any]
"""From samples, coefficients (taps, channels), the hop and the spectra: the filtered samples."""


def channelise_by(
    arrays: Any, filtered: Filter, precision: str, x: Any, coefficients: Any, channels: int,
    oversampling: Any,
) -> Any:  # fmt: skip
    """Spectra (..., spectra, channels) by NumPy or CuPy; of real x channels 0 to M / 2."""
    row = PRECISIONS[precision]
    real = x.dtype.kind != "c"
    h = arrays.asarray(coefficients, row.real_output).reshape(-1, channels)
    fraction = Fraction(oversampling)
    hop = int(channels / fraction)
    count = spectra_of(x.shape[-1], h.size, hop)
    found = (arrays.fft.rfft if real else arrays.fft.fft)(filtered(x, h, hop, count))
    if fraction != 1:
        turns = np.outer(np.arange(count) * hop % channels, np.arange(found.shape[-1])) % channels
        found *= arrays.asarray(np.exp(-2j * np.pi / channels * turns), row.output)
    return found.astype(row.output, copy=False)


def channelise_peer(name: str, backend: Backend, filtered: Filter) -> Peer:
    """The peer of NumPy or CuPy, whose module has the peer's name."""

    def compute(
        precision: str, x: Any, coefficients: Any, channels: int, oversampling: Any = 1
    ) -> Any:
        arrays = import_module(name)
        return channelise_by(arrays, filtered, precision, x, coefficients, channels, oversampling)

    return Peer(
        name=name, operation="channelise", backends=(backend,), precisions=_PRECISIONS,
        algorithm=lambda precision: ALGORITHM, modules=(name,), compute=compute,
        prepared=lambda: _candidates(name, compute),
    )  # fmt: skip


def _candidates(name: str, compute: Callable[..., Any]) -> list[Candidate]:
    """The candidates of a benchmark: samples in the precision's type."""

    def at(precision: str) -> Candidate:
        row = PRECISIONS[precision]

        def prepare(x: Any, *how: Any) -> tuple[Any, ...]:
            return x.astype(row.output if x.dtype.kind == "c" else row.real_output), *how

        def computed(*given: Any) -> Any:
            return compute(precision, *given)

        return Candidate(
            name, row, ALGORITHM, prepare, computed, input=row.output, output=row.output
        )

    return [at(precision) for precision in _PRECISIONS]
