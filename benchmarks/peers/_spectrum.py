"""Computation that the peers of spectral estimates share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.peers._peer import Backend, Peer


def spectrum_peer(name: str, backend: Backend, algorithm: str, compute: Callable[..., Any]) -> Peer:
    """Return the peer of a library, whose module has the peer's name.

    ``compute`` is as `Peer` says of spectra.
    """
    return Peer(
        name=name, operation="spectrum", backends=(backend,), precisions=("fp64", "fp32"),
        algorithm=lambda precision: algorithm, modules=(name,), compute=compute,
    )  # fmt: skip


def group_means(power: Any, average: int, like: Any) -> Any:
    """Return means over whole groups of (..., segments, bins), of the samples' real type."""
    *leading, segments, bins = power.shape
    groups = segments // average
    if average == 1:
        return power
    shaped = power[..., : groups * average, :].reshape(*leading, groups, average, bins)
    return shaped.mean(axis=-2).astype(np.dtype(like.dtype).type(0).real.dtype, copy=False)
