"""Products of real numbers, as power, are no amplitudes; names along an axis tell no steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from test_chains import run

from tests.workflow.chained_cases import BEAMS, study_of
from workflow.config.mistakes import StudyError
from workflow.preflight.check import check_study

POWER = {"kind": "dft", "axis": "time", "power": True, "input": {"samples": {"workload": "beams"}}}
ONE = {"workload": "power"}


@pytest.mark.parametrize(
    ("case", "operand", "axes"),
    [
        ({"kind": "correlate"}, "voltages", None),
        ({"kind": "beamforming", "beams": 1}, "samples", None),
        ({"kind": "beamforming", "beams": 1, "detect": "power"}, "samples", None),
        ({"kind": "mimo"}, "channel", ["frequency", "receiver", "beam", "time", "time_frequency"]),
    ],
)  # fmt: skip
def test_power_is_no_amplitude(case: dict[str, Any], operand: str, axes: list[str] | None) -> None:
    source = {operand: ONE, "select": {operand: {"beam": 0, "time_frequency": 3}}}
    source |= {"axes": {operand: axes}} if axes else {}
    said = f"input.{operand}: must be complex amplitudes, but the product of power is power, float"
    with pytest.raises(StudyError, match=said):
        check_study(study_of({"beams": BEAMS, "power": POWER, "x": {**case, "input": source}}))


def test_power_is_transformed() -> None:
    """Its changes along time are a signal of their own."""
    select = {"samples": {"polarization": 0, "time_frequency": 1}}
    spectra = {"kind": "dft", "axis": "time", "input": {"samples": ONE, "select": select}}
    check_study(study_of({"beams": BEAMS, "power": POWER | {"length": 4}, "x": spectra}))


def test_an_axis_with_names_is_transformed_by_its_entries(tmp_path: Path) -> None:
    """As that of a file is, whose antennas have names too."""
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file["v"] = np.arange(24, dtype=np.complex64).reshape(4, 6)
    source = {
        "file": str(tmp_path / "v.h5"), "samples": "v", "axes": ["antenna", "time"],
        "coordinates": {"antenna": ["a", "b", "c", "d"]},
    }  # fmt: skip
    first = {"kind": "dft", "axis": "time", "input": source}
    across = {"kind": "dft", "axis": "antenna", "input": {"samples": {"workload": "first"}}}
    study = study_of({"first": first, "across": across})
    check_study(study)
    found = run(study, tmp_path)["across"].coordinates["antenna_frequency"]
    assert (found.units, found.values[:2].tolist()) == ("cycles/sample", [0.0, 0.25])
