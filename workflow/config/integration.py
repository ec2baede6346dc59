"""Integrations of samples along time, which correlations and detected beams have."""

from __future__ import annotations


def integrated(samples: int, integrate: int | None) -> tuple[int, int]:
    """Return how many integrations there are, and the samples of each.

    Raises ValueError where samples are left over.
    """
    each = samples if integrate is None else integrate
    if not samples or not each or samples % each:
        most = samples // each * each if each else 0
        hint = f"; {most} of them are a multiple of it (input.select takes so many)" if most else ""
        raise ValueError(
            f"integrate must divide the {samples} samples along time, got {each}{hint}"
        )
    return samples // each, each
