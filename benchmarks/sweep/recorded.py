"""The sweeps that are recorded under docs/data/."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.sweep.draws import SWEEPS

BOUND_BY_PRODUCTS = ("gemm", "image", "solve")
"""Operations whose times a copy of the same bytes tells nothing about."""


def sweep_files(data: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield card, sweep and file of every recorded sweep."""
    for card in ("h200", "h100"):
        for sweep in SWEEPS:
            path = data / f"{card}-sweep-{sweep}.csv"
            if path.exists():
                yield card.upper(), sweep, path
