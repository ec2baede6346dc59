"""Signs that docs/kinds.md says: of a wave's phase, of covariances, of other conventions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from input_files import put
from test_chains import run

from tests.workflow.chained_cases import study_of

HERTZ, TOWARD = 60e6, (0.25, -0.125)
EAST, NORTH = [0.0, 3.0, 5.0, 9.0], [0.0, 7.0, -4.0, 1.0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A wave's voltages ``x`` (antenna, time), covariance ``r``, and ``other``, its conjugate."""
    late = -(np.outer(TOWARD[0], EAST) + np.outer(TOWARD[1], NORTH))[0] / 299792458
    times = np.arange(8) * 1e-9
    x = np.exp(2j * np.pi * HERTZ * (times - late[:, None]))
    return put(tmp_path / "wave.h5", x=x, r=x @ x.conj().T, other=(x @ x.conj().T).conj())


def source(path: Path, operand: str, dataset: str, axes: list[str]) -> dict[str, Any]:
    places = {
        name: {"values": values, "units": "m", "axis": "antenna"}
        for name, values in (("east", EAST), ("north", NORTH))
    }
    frequency = {"values": [HERTZ], "units": "Hz"}
    return {
        "file": str(path), operand: dataset, "axes": axes,
        "coordinates": {**places, "frequency": frequency},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("dataset", "axes", "sign"),
    [
        ("r", ["antenna", "column"], 1),
        ("other", ["antenna", "column"], -1),
        ("other", ["column", "antenna"], 1),
    ],
)
def test_an_image_of_a_wave(path: Path, dataset: str, axes: list[str], sign: int) -> None:
    grid = {"n": 17, "field_of_view_deg": 60}  # from -0.5 to 0.5, 1/16 apart
    given = source(path, "covariances", dataset, axes)
    found = run(study_of({"i": {"kind": "image", "directions": grid, "input": given}}), path.parent)
    row, column = np.unravel_index(found["i"].data[0, 0].argmax(), (17, 17))
    l, m = found["i"].coordinates["l"].values[column], found["i"].coordinates["m"].values[row]  # noqa: E741
    np.testing.assert_allclose((l, m), np.multiply(sign, TOWARD), atol=1e-12)


def test_a_beam_toward_a_wave(path: Path) -> None:
    """It has all of its power, four antennas in phase."""
    given = source(path, "samples", "x", ["antenna", "time"])
    beams = {"kind": "beamforming", "beams": 25, "extent": 0.25, "input": given}
    found = run(study_of({"b": beams}), path.parent)["b"]
    power = np.square(np.abs(found.data[0, 0])).mean(axis=-1)
    best = power.argmax()
    np.testing.assert_allclose([found.coordinates[n].values[best] for n in "lm"], TOWARD)
    assert power[best] == pytest.approx(16)
