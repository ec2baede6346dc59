"""Coordinates that a study gives to products of other workloads, which say nothing of an axis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_chains import run

from tests.workflow.chained_cases import study_of
from workflow.config.mistakes import StudyError
from workflow.preflight.check import check_study

BANK = {
    "kind": "channelise", "channels": 4, "taps": 2, "antennas": 3, "polarizations": 2,
    "samples": 64,
}  # fmt: skip
HZ = {"start": 1e8, "step_hz": 1e6, "replace": True}
PLACES = {
    name: {"values": [0, 1, 3], "units": "m", "axis": "antenna"} for name in ("east", "north")
}
NAMES = {"antenna": list("abc"), "polarization": ["x", "y"]}


def correlated(coordinates: dict[str, Any], **more: Any) -> dict[str, Any]:
    given = {"voltages": {"workload": "bank"}, "coordinates": coordinates, **more}
    return {"bank": BANK, "vis": {"kind": "correlate", "input": given}}


def test_names_and_places_go_along_as_those_of_a_file(tmp_path: Path) -> None:
    """Simulated channels, and products of matrices, had nowhere else to have them said."""
    select = {"voltages": {"polarization": "y", "antenna": ["c", "a"]}}
    study = study_of({
        **correlated({**NAMES, **PLACES, "frequency": HZ}, select=select),
        "image": {
            "kind": "image", "directions": {"n": 3, "field_of_view_deg": 10},
            "input": {"covariances": {"workload": "vis"}},
        },
        "weights": {"kind": "adaptive", "beams": 1, "loading": 1.0, "input": {
            "covariances": {"workload": "vis"},
        }},
        "beams": {"kind": "beamforming", "input": {
            "weights": {"workload": "weights"}, "samples": {"workload": "bank"},
            "coordinates": {**NAMES, "frequency": HZ},
            "select": {"samples": select["voltages"]},
        }},
    })  # fmt: skip
    found = run(study, tmp_path)
    vis = found["vis"].coordinates
    assert vis["input_antenna"].values.tolist() == ["c", "a"]
    assert vis["input_polarization"].values.tolist() == ["y", "y"]
    assert vis["east"].values.tolist() == [3, 0]
    np.testing.assert_array_equal(vis["frequency"].values, 1e8 + 1e6 * np.arange(4))
    assert found["image"].coordinates["antenna"].values.tolist() == ["c", "a"]
    assert found["beams"].coordinates["polarization"].values.tolist() == ["y"]


def test_an_axis_that_a_product_lacks_may_be_said() -> None:
    workloads = correlated({"polarization": ["y"]})
    study = study_of({**workloads, "bank": {**BANK, "polarizations": 1}})
    check_study(study)
    bank = study.workload("bank")
    staged = study.workload("vis").outline({"bank": bank.product_outline(bank.outline())})
    assert staged.coordinates["polarization"].values.tolist() == ["y"]


@pytest.mark.parametrize(
    ("name", "given", "ends"),
    [
        ("range", {"start": 0, "step_m": 2}, (10, 14)),
        ("range", {"values": [*range(8)], "units": "km"}, (5, 7)),
        ("frequency", {"start": 0, "step_hz": 2}, (-6, -2)),
        ("frequency", {"start": 100, "step_hz": 2}, (110, 114)),
    ],
)
def test_what_stands_in_place_of_frequencies_keeps_its_values(
    name: str, given: dict[str, Any], ends: tuple[int, int]
) -> None:
    """Ranges of beats in the upper half of a transform were taken for frequencies below 0."""
    again = {"kind": "dft", "axis": "batch", "input": {
        "samples": {"workload": "spectra"}, "axes": {"samples": ["batch", name]},
        "coordinates": {name: {**given, "replace": True}}, "select": {"samples": {name: "5:8"}},
    }}  # fmt: skip
    study = study_of({"spectra": {"kind": "dft", "length": 8, "batch": 3}, "again": again})
    check_study(study)
    made = study.workload("spectra")
    staged = study.workload("again").outline({"spectra": made.product_outline(made.outline())})
    found = staged.coordinates[name]
    assert (found.values[0], found.values[-1]) == ends
    assert "upper half" not in found.long_name


@pytest.mark.parametrize(
    ("coordinates", "said"),
    [
        ({"frequency": {"start": 1, "step_hz": 1}}, "frequency: the product says it already; "),
        ({"frequency": "/f"}, "frequency must be equal steps or values beside products alone, "
         "without datasets"),
        ({"antena": list("abc")}, "antena: must be of an axis of the operands, ['polarization', "
         "'antenna', 'time', 'frequency'], got 'antena'; did you mean 'antenna'?"),
        ({"antenna": ["a", "b"]}, "antenna must have 3 values, got 2"),
    ],
)  # fmt: skip
def test_mistakes(coordinates: dict[str, Any], said: str) -> None:
    with pytest.raises(StudyError) as error:
        check_study(study_of(correlated(coordinates)))
    assert f"vis.input.coordinates.{said}" in str(error.value)
