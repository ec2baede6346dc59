"""The sweeps by their names: their titles, and their cases, drawn ones and of given sizes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.sweep import (
    banks,
    beams,
    circuits,
    correlations,
    dense,
    gates,
    images,
    products,
    readouts,
    softmaxes,
    spectra,
    systems,
    transforms,
)
from benchmarks.sweep.case import Case
from benchmarks.sweep.given import given_cases

Sizes = np.ndarray[Any, np.dtype[np.int64]]


def log_uniform(rng: np.random.Generator, low: float, high: float, count: tuple[int, ...]) -> Sizes:
    """Return integers from ``low`` to ``high``, log-uniform."""
    return np.exp(rng.uniform(np.log(low), np.log(high), count)).round().astype(np.int64)


def _small(rng: np.random.Generator, cases: int, sizes: Any) -> list[Case]:
    """Draw a product, a softmax and a transform in turn, 1 to 512 on every axis."""
    draws = (products.draw_small, softmaxes.draw_small, transforms.draw_small)
    return [draws[number % len(draws)](rng, sizes) for number in range(cases)]


_SWEEPS: dict[str, tuple[Callable[[np.random.Generator, int, Any], list[Case]], str]] = {
    "gemm": (products.draw, "Products of 32 to 16384"),
    "softmax": (softmaxes.draw, "Softmax of 16 to $2^{20}$ columns"),
    "few_rows": (softmaxes.draw_few, "Softmax of 1 to 4096 rows"),
    "dft": (transforms.draw, "Transforms of length 8 to $2^{20}$"),
    "gates": (gates.draw, "Gates on 20 to 30 qubits"),
    "small": (_small, "1 to 512 on every axis"),
    "channelise": (banks.draw, "Filter banks of 8 to 4096 channels"),
    "beam_power": (beams.draw, "1 to 2048 detected beams"),
    "herk": (correlations.draw, "Hermitian products of 16 to 4096"),
    "circuits": (circuits.draw, "Circuits on 8 to 28 qubits"),
    "image": (images.draw, "Images of 2 to 512 antennas"),
    "hermitian": (systems.draw, "Hermitian systems of 1 to 128 rows"),
    "spectrum": (spectra.draw, "Spectral estimates of 8 to 16384 points"),
    "readout": (readouts.draw, "Answers of states of 20 to 28 qubits"),
    "solve": (dense.draw, "Systems of 64 to 8192 equations"),
}
"""The function that draws the cases of each sweep, and its title, in the order of the pages."""
TITLES = {name: title for name, (_, title) in _SWEEPS.items()}
SWEEPS = tuple(_SWEEPS)
GIVEN: dict[str, Callable[..., Case]] = {
    "channelise": banks.BankCase, "beam_power": beams.BeamCase,
    "herk": correlations.CorrelationCase, "image": images.ImageCase,
    "hermitian": systems.SystemCase, "spectrum": spectra.SpectrumCase,
    "readout": readouts.ReadoutCase, "solve": dense.DenseCase,
}  # fmt: skip
"""Case classes of the sweeps that take given sizes."""


def drawn(sweep: str, cases: int, seed: int, sizes: Path | None = None) -> list[Case]:
    """Return the cases of a seed, or those of a file of sizes: the same for the same arguments.

    Raises ValueError for a sweep that takes no sizes, and as `given_cases` does.
    """
    if sizes is None:
        return _SWEEPS[sweep][0](np.random.default_rng(seed), cases, log_uniform)
    if sweep not in GIVEN:
        raise ValueError(f"a sweep of given sizes must be one of {list(GIVEN)}, got {sweep!r}")
    return given_cases(sweep, GIVEN[sweep], sizes)
