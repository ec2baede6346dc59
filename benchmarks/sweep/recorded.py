"""The sweeps that are recorded under docs/data/."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

RECORDED = (
    "gemm", "softmax", "dft", "gates", "small", "channelise", "beam_power", "herk", "circuits",
)  # fmt: skip
"""Sweeps in the order in which they are shown."""


def sweep_files(data: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield card, sweep and file of every recorded sweep."""
    for card in ("h200", "h100"):
        for sweep in RECORDED:
            path = data / f"{card}-sweep-{sweep}.csv"
            if path.exists():
                yield card.upper(), sweep, path
