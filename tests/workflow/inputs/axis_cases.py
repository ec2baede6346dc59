"""A file of voltages and weights, for tests of axes, and what the check says of a case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np

from tests.normal import normal

AXES = ("frequency", "polarization", "antenna", "time")
SHAPE = (3, 2, 5, 7)


def write_input(folder: Path, rng: np.random.Generator) -> Path:
    """Voltages, weights, and what stands along their axes."""
    path = folder / "in.h5"
    with h5py.File(path, "w") as held:
        held["six"] = np.ones((6, 1, 1), np.complex64)
        held["two"] = np.ones((2, 5, 7), np.complex64)
        held["volt"] = normal(rng, *SHAPE)
        held["weights"] = normal(rng, 3, 2, 4, 5)
        held["freq_hz"] = 1e8 + 1e6 * np.arange(3)
        held["nameless"] = np.arange(3.0)
        held["uneven"] = np.array([0, 1, 2, 4, 5, 6, 7.0])
        held["short"], held["text"] = np.arange(2.0), np.array([b"a", b"b", b"c"])
        held["positions"] = np.arange(15.0).reshape(5, 3)
        held["positions"].attrs["units"] = "m"
    return path


def beams(file: Path, **more: Any) -> dict[str, Any]:
    source = {"file": str(file), "weights": "weights", "samples": "volt", **more}
    return {"kind": "beamforming", "input": source}
