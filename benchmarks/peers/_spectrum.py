"""Computation that the peers of spectral estimates share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from argand import PRECISIONS

from benchmarks.peers._peer import Backend, Candidate, Peer

_PRECISIONS = ("fp64", "fp32")


def spectrum_peer(name: str, backend: Backend, algorithm: str, compute: Callable[..., Any]) -> Peer:
    """The peer of a library, whose module has the peer's name.

    ``compute`` is as `Peer` says of spectra.
    """
    return Peer(
        name=name, operation="spectrum", backends=(backend,), precisions=_PRECISIONS,
        algorithm=lambda precision: algorithm, modules=(name,), compute=compute,
        prepared=lambda: _candidates(name, algorithm, compute),
    )  # fmt: skip


def group_means(power: Any, average: int, like: Any) -> Any:
    """Means over whole groups of (..., segments, bins), of the type of the samples' parts."""
    *leading, segments, bins = power.shape
    groups = segments // average
    if average == 1:
        return power
    shaped = power[..., : groups * average, :].reshape(*leading, groups, average, bins)
    return shaped.mean(axis=-2).astype(np.dtype(like.dtype).type(0).real.dtype, copy=False)


def _candidates(name: str, algorithm: str, compute: Callable[..., Any]) -> list[Candidate]:
    """The candidates of a benchmark: samples in the precision's type."""

    def at(precision: str) -> Candidate:
        row = PRECISIONS[precision]

        def prepare(x: Any, *how: Any) -> tuple[Any, ...]:
            return x.astype(row.output if x.dtype.kind == "c" else row.real_output), *how

        def computed(*given: Any) -> Any:
            return compute(precision, *given)

        return Candidate(
            name, row, algorithm, prepare, computed, input=row.output, output=row.real_output
        )

    return [at(precision) for precision in _PRECISIONS]
