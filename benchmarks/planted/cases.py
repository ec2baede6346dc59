"""Small workloads of every kind, drawn with a seed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from workflow.accuracy import product_reference
from workflow.config.loading import load_study
from workflow.workloads import Workload

_SAMPLED_BUDGET = 2e4
"""Operations of a reference that is sampled here, so that a small product's is."""


def _size(rng: np.random.Generator, least: int, most: int) -> int:
    """Of any magnitude between the two, so that small ones are not seldom."""
    return int(least * (most / least) ** rng.random())


def _gemm(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "m": _size(rng, 4, 48), "n": _size(rng, 4, 48), "k": _size(rng, 1, 400),
        "batch": int(rng.integers(1, 4)), "op_a": str(rng.choice(["N", "T", "C"])),
        "alpha": [1.0, 0.0] if rng.random() < 0.5 else [0.5, -1.5],
        "init": str(rng.choice(["normal", "lognormal"])),
    }  # fmt: skip


def _beamforming(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "channels": int(rng.integers(1, 3)), "beams": _size(rng, 4, 32),
        "antennas": _size(rng, 4, 128), "samples": _size(rng, 8, 64),
    }  # fmt: skip


def _softmax(rng: np.random.Generator) -> dict[str, Any]:
    scale = float(rng.choice([0.5, 1.0, 4.0]))
    return {"rows": _size(rng, 2, 16), "columns": _size(rng, 2, 4000), "scale": scale}


def _dft(rng: np.random.Generator) -> dict[str, Any]:
    length = int(rng.choice([4, 13, 60, 64, 127, 257, 360, 512, 1009, 1024, 2048]))
    return {"length": length, "batch": int(rng.integers(2, 5)), "inverse": bool(rng.random() < 0.3)}


def _statevector(rng: np.random.Generator) -> dict[str, Any]:
    name = str(rng.choice(["ghz", "qft", "random", "random"]))
    circuit: dict[str, Any] = {"name": name, "qubits": int(rng.integers(2, 11))}
    if name == "random":
        circuit["depth"] = _size(rng, 2, 200)
    return {"circuit": circuit, "initial": str(rng.choice(["zero", "random"]))}


def _solve(rng: np.random.Generator) -> dict[str, Any]:
    if rng.random() < 0.3:
        half = _size(rng, 10, 40)
        return {"source": "cylinder", "ka": 0.2 * half, "n": 2 * half, "rhs": _size(rng, 1, 8)}
    return {"n": _size(rng, 2, 80), "rhs": _size(rng, 1, 8), "batch": int(rng.integers(1, 3))}


def _image(rng: np.random.Generator) -> dict[str, Any]:
    grid = {"n": _size(rng, 1, 24), "field_of_view_deg": 30}
    return {"antennas": _size(rng, 1, 40), "channels": int(rng.integers(1, 4)), "directions": grid}


def _channelise(rng: np.random.Generator) -> dict[str, Any]:
    channels, taps = int(rng.choice([2, 12, 16, 37, 64, 256])), int(rng.integers(1, 9))
    samples = channels * (taps + int(rng.integers(0, 12)))
    oversampling = str(rng.choice(["1", "2", "4/3"])) if channels % 4 == 0 else 1
    real = bool(rng.random() < 0.3)
    return {
        "channels": channels, "taps": taps, "samples": samples, "oversampling": oversampling,
        "real": real,
    }  # fmt: skip


DRAWN: dict[str, Callable[[np.random.Generator], dict[str, Any]]] = {
    "gemm": _gemm,
    "beamforming": _beamforming,
    "softmax": _softmax,
    "dft": _dft,
    "image": _image,
    "channelise": _channelise,
    "solve": _solve,
    "statevector": _statevector,
}
"""The keys of a case, by kind."""


def cases_of(kind: str, count: int, seed: int) -> Iterator[tuple[int, Workload, bool]]:
    """Numbered cases, the first ones the same for any ``count``, and whether to sample each.

    Every other product has a sampled reference.
    """
    for number in range(count):
        rng = np.random.default_rng([seed, number, *kind.encode()])
        drawn = {"kind": kind, **DRAWN[kind](rng)}
        config = {"seed": seed + number, "baselines": "none", "workloads": {"planted": drawn}}
        workload = load_study(config).workload("planted")
        yield number, workload, kind in ("gemm", "beamforming") and number % 2 == 1


@contextlib.contextmanager
def small_references(sampled: bool) -> Iterator[None]:
    """Where ``sampled``, have references of products sampled from fewer operations on."""
    keywords = product_reference.__kwdefaults__
    assert keywords is not None
    before = keywords["flop_budget"]
    try:
        keywords["flop_budget"] = _SAMPLED_BUDGET if sampled else before
        yield
    finally:
        keywords["flop_budget"] = before
