"""A UVH5 file for tests of readers, and what a study that names it comes to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np

TIMES, PAIRS, CHANNELS = 4, [(1, 1), (1, 7), (7, 7)], 8


def write(path: Path, *, by_time: bool = True, windows: bool = True, kind: str = "c8") -> Any:
    """A UVH5 file; returns its visibilities (time, baseline, frequency, polarization)."""
    rng = np.random.default_rng(3)
    shape = (TIMES, len(PAIRS), CHANNELS, 2)
    data = rng.integers(-99, 99, (*shape, 2)).astype(float).view(complex)[..., 0]
    ordered = data if by_time else data.swapaxes(0, 1)
    grid = [(t, b) for t in range(TIMES) for b in range(3)]
    if not by_time:
        grid = [(t, b) for b in range(3) for t in range(TIMES)]
    raw = ordered.reshape(-1, *([1] if windows else []), CHANNELS, 2)
    if kind != "c8":
        held = np.empty(raw.shape, [("r", kind), ("i", kind)])
        held["r"], held["i"] = raw.real, raw.imag
        raw = held
    else:
        raw = raw.astype(kind)
    with h5py.File(path, "w") as file:
        file.create_dataset("Data/visdata", data=raw, chunks=True, compression="gzip")
        file["Header/ant_1_array"] = np.array([PAIRS[b][0] for _, b in grid])
        file["Header/ant_2_array"] = np.array([PAIRS[b][1] for _, b in grid])
        file["Header/time_array"] = 2458000.5 + np.array([t for t, _ in grid]) * 10 / 86400
        frequencies = 1e8 + 1e5 * np.arange(CHANNELS)
        file["Header/freq_array"] = frequencies[None] if windows else frequencies
        file["Header/polarization_array"] = np.array([-5, -6])
        file["Header/vis_units"] = np.bytes_("Jy")
    return data


def case(path: Path, **more: Any) -> dict[str, Any]:
    source = {"file": str(path), "format": "uvh5", "samples": "visibilities", **more}
    return {"kind": "dft", "axis": "frequency", "input": source}


def change(path: Path, name: str, values: Any) -> None:
    with h5py.File(path, "a") as file:
        del file[name]
        if values is not None:
            file[name] = values
