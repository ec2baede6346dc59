"""The cases of each sweep, by its name: drawn ones, and those of given sizes."""

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


_DRAWS: dict[str, Callable[[np.random.Generator, int, Any], list[Case]]] = {
    "gemm": products.draw, "softmax": softmaxes.draw, "few_rows": softmaxes.draw_few,
    "dft": transforms.draw, "gates": gates.draw, "small": _small, "channelise": banks.draw,
    "beam_power": beams.draw, "herk": correlations.draw,
    "circuits": circuits.draw, "image": images.draw, "hermitian": systems.draw,
    "spectrum": spectra.draw, "readout": readouts.draw, "solve": dense.draw,
}  # fmt: skip
SWEEPS = tuple(_DRAWS)
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
        return _DRAWS[sweep](np.random.default_rng(seed), cases, log_uniform)
    if sweep not in GIVEN:
        raise ValueError(f"a sweep of given sizes must be one of {list(GIVEN)}, got {sweep!r}")
    return given_cases(sweep, GIVEN[sweep], sizes)
