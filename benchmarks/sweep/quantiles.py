"""Quantiles of the ratios, fractions and regrets of a sweep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

SLOWER = 0.97
"""A case is slower where ours has less than this part of the best library's rate."""


@dataclass(frozen=True)
class Quantiles:
    """Quantiles of positive numbers; ``slower`` is how many are below `SLOWER`."""

    count: int
    slower: int
    least: float
    p10: float
    median: float
    p90: float
    most: float
    geometric_mean: float


def quantiles_of(found: Iterable[float | None]) -> Quantiles | None:
    """Return the quantiles of the numbers that are not None; None where all are."""
    values = np.array([value for value in found if value is not None])
    if not values.size:
        return None
    p10, median, p90 = (float(q) for q in np.quantile(values, (0.1, 0.5, 0.9)))
    return Quantiles(
        count=len(values),
        slower=int((values < SLOWER).sum()),
        least=float(values.min()),
        p10=p10,
        median=median,
        p90=p90,
        most=float(values.max()),
        geometric_mean=float(np.exp(np.log(values).mean())),
    )
