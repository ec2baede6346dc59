"""Norms of states and overlaps of two, summed in fp64. Works on NumPy's arrays and on CuPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

_CHUNK = 1 << 22
"""Amplitudes summed at a time, in fp64: little memory beside the state."""


def norm_of(state: Any) -> float:
    """Return the 2-norm of a state, summed in fp64."""
    return float(np.sqrt(overlap_of(state, state).real))


def fidelity_of(reference: Any, state: Any) -> float:
    """Return |<reference|state>|^2 over both norms squared; NaN where one of them is 0."""
    norms = norm_of(reference) * norm_of(state)
    return float((abs(overlap_of(reference, state)) / norms) ** 2) if norms else float("nan")


def overlap_of(left: Any, right: Any) -> complex:
    """Return <left|right> in complex128."""
    total = 0j
    for start in range(0, left.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        x, y = left[part].astype(np.complex128), right[part].astype(np.complex128)
        total += complex((x.conj() * y).sum())
    return total
