"""Counts of errors along an axis as text, exact to add up: ``0.0:214/4096 5.0:3/4096``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

RATE = "bit_error_rate_"
"""Prefix of the names of a product's coordinates that have a precision's bit error rate."""
Values = npt.NDArray[np.float64]


def counts_text(places: Sequence[float], wrong: Sequence[int], total: int) -> str:
    """Return the text of counts: at each place how many of ``total`` are wrong."""
    pairs = zip(places, wrong, strict=True)
    return " ".join(f"{float(place)!r}:{int(count)}/{int(total)}" for place, count in pairs)


def rates_of(text: str) -> tuple[Values, Values]:
    """Return the places and the wrong ones over all at each. Raises ValueError for other text."""
    found = _parsed(text)
    rates = [wrong / max(total, 1) for _, wrong, total in found]
    return np.array([place for place, _, _ in found]), np.array(rates)


def summed_counts(texts: Iterable[str]) -> str:
    """Return the counts of the whole from those of its parts, which have the same places."""
    parts = [_parsed(text) for text in texts]
    columns = zip(*parts, strict=True)
    return " ".join(
        f"{column[0][0]!r}:{sum(c[1] for c in column)}/{sum(c[2] for c in column)}"
        for column in columns
    )


def _parsed(text: str) -> list[tuple[float, int, int]]:
    found = []
    for word in text.split():
        place, _, counts = word.partition(":")
        wrong, _, total = counts.partition("/")
        found.append((float(place), int(wrong), int(total)))
    return found
