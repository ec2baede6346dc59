"""Channels that are too wide for an array lose what its farthest antennas have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from input_files import put

from tests.workflow.one_case import study_of
from workflow.arrays.antenna_places import HALF_COHERENT


def test_half_of_the_correlation_is_lost(rng: np.random.Generator) -> None:
    """White noise that arrives so many samples later is compared to 3 standard errors of a mean."""
    x = rng.standard_normal((1 << 16, 2)) @ [1, 1j]
    late = np.fft.ifft(np.fft.fft(x) * np.exp(-2j * np.pi * np.fft.fftfreq(x.size) * HALF_COHERENT))
    found = abs(np.vdot(x, late)) / (np.linalg.norm(x) * np.linalg.norm(late))
    assert found == pytest.approx(0.5, abs=3 / 2**8)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return put(tmp_path / "v.h5", v=np.ones((3, 40), np.complex64))


def remark(path: Path, step_s: float, units: str = "km", **case: Any) -> str:
    east = {"values": [0.0, 0.2, 1.2], "units": units, "axis": "antenna"}
    north = {"values": [0.0, 0.0, 0.1], "units": units, "axis": "antenna"}
    along = {"frequency": {"values": [1.4], "units": "GHz"}, "time": {"step_s": step_s}}
    data = "samples" if case["kind"] == "beamforming" else "voltages"
    source = {"file": str(path), data: "v", "coordinates": {**along, "east": east, "north": north}}
    one = study_of({**case, "input": source}).workload("w")
    return one.remark(one.stage())


def test_waves_of_one_microsecond_at_a_kilometre(path: Path) -> None:
    said = (
        "samples every 1e-06 s lose half of the correlation of the farthest antennas, 1.2e+03 m "
        "apart, for waves 8.7 deg off the zenith and beyond, unless delays"
    )
    assert np.degrees(np.arcsin(HALF_COHERENT * 299.792458 / 1200)) == pytest.approx(8.7, abs=0.05)
    assert said in remark(path, 1e-6, kind="correlate")
    assert not remark(path, 1e-5, kind="correlate")
    assert not remark(path, 1e-6, "m", kind="correlate")
    for extent, found in ((0.2, True), (0.01, False)):
        beams = {"kind": "beamforming", "beams": 4, "extent": extent}
        assert (said in remark(path, 1e-6, **beams)) == found
