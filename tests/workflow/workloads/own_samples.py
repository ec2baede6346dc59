"""A file of samples that two kinds transform along time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np


def write_samples(folder: Path) -> Path:
    """Samples (time, antenna) of integers and of reals, 64 weights, times of unequal steps."""
    rng = np.random.default_rng(0)
    with h5py.File(folder / "own.h5", "w") as file:
        parts = rng.integers(-128, 128, (400, 3, 2)).astype(np.int8)
        file["x"] = parts.view([("r", "i1"), ("i", "i1")])[..., 0]
        file["x"].attrs["units"] = np.bytes_("V")
        file["real"] = rng.standard_normal((400, 3))
        file["weights"] = 1 + rng.random(64)
        file["t"] = np.r_[np.arange(399) * 1e-3, 7.0]
    return folder / "own.h5"


def samples_of(path: Path, **changes: Any) -> dict[str, Any]:
    """Keys of a case that reads them."""
    given = {"file": str(path), "samples": "x", "axes": {"samples": ["time", "antenna"]}}
    return {"axis": "time", "input": given | changes}
