"""The sweeps that are recorded under docs/data/."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

TITLES = {
    "gemm": "Products of 32 to 16384", "softmax": "Softmax of 16 to $2^{20}$ columns",
    "few_rows": "Softmax of 1 to 4096 rows", "dft": "Transforms of length 8 to $2^{20}$",
    "gates": "Gates on 20 to 30 qubits", "small": "1 to 512 on every axis",
    "channelise": "Filter banks of 8 to 4096 channels",
    "beam_power": "1 to 2048 detected beams", "herk": "Hermitian products of 16 to 4096",
    "circuits": "Circuits on 20 to 28 qubits", "image": "Images of 2 to 512 antennas",
    "hermitian": "Hermitian systems of 1 to 128 rows",
    "spectrum": "Spectral estimates of 8 to 16384 points",
    "readout": "Answers of states of 20 to 28 qubits", "solve": "Systems of 64 to 8192 equations",
}  # fmt: skip
"""The title of each sweep, in the order in which they are shown."""
BOUND_BY_PRODUCTS = ("gemm", "image", "solve")
"""Operations whose times a copy of the same bytes tells nothing about."""


def sweep_files(data: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield card, sweep and file of every recorded sweep."""
    for card in ("h200", "h100"):
        for sweep in TITLES:
            path = data / f"{card}-sweep-{sweep}.csv"
            if path.exists():
                yield card.upper(), sweep, path
