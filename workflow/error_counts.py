"""Errors along an axis as text, counts exact to add up: ``0.0:214/4096 5.0:3/4096``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

RATE, EVM = "bit_error_rate_", "evm_"
"""Prefixes of the names of a product's coordinates that have a precision's bit error rate, and its
error vector magnitude in dB."""
Values = npt.NDArray[np.float64]


def counts_text(places: Sequence[float], wrong: Sequence[float], totals: Sequence[float]) -> str:
    """Return the text of errors: at each place how many of all, or how much of a power."""
    each = zip(places, wrong, totals, strict=True)
    return " ".join(f"{float(place)!r}:{count!r}/{total!r}" for place, count, total in each)


def rates_of(text: str) -> tuple[Values, Values]:
    """Return the places and the wrong ones over all at each. Raises ValueError for other text."""
    found = _parsed(text)
    rates = [wrong / (total or 1) for _, wrong, total in found]
    return np.array([place for place, _, _ in found]), np.array(rates)


def summed_counts(texts: Iterable[str]) -> str:
    """Return the counts of the whole from those of its parts, which have the same places."""
    parts = [_parsed(text) for text in texts]
    columns = zip(*parts, strict=True)
    return " ".join(
        f"{column[0][0]!r}:{sum(c[1] for c in column)!r}/{sum(c[2] for c in column)!r}"
        for column in columns
    )


def _parsed(text: str) -> list[tuple[float, float, float]]:
    found = []
    for word in text.split():
        place, _, counts = word.partition(":")
        wrong, _, total = counts.partition("/")
        found.append((float(place), _number(wrong), _number(total)))
    return found


def _number(text: str) -> float:
    """Return a whole number as one, which adds up exactly; raises ValueError for none."""
    return int(text) if text.isdigit() else float(text)
