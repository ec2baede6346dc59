"""Bits of a number moved to chosen places, as runs that kernels shift at once."""

from __future__ import annotations

from collections.abc import Sequence

Runs = list[tuple[int, int]]
"""A mask over the bits of a number, and the places by which they are shifted to the left."""


def runs_to(places: Sequence[int]) -> Runs:
    """Return the runs that bring bit i of a number to ``places[i]``, which ascend."""
    runs: Runs = []
    for bit, place in enumerate(places):
        shift = place - bit
        if runs and runs[-1][1] == shift:
            runs[-1] = runs[-1][0] | 1 << bit, shift
        else:
            runs.append((1 << bit, shift))
    return runs


def padded(values: Sequence[int], length: int) -> tuple[int, ...]:
    """Return values with zeros up to a length."""
    return (*values, *[0] * (length - len(values)))
