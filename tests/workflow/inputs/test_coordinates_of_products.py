"""Coordinates of products as operands: those that a study gives, those that a number drops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from input_files import put
from one_input import AXES, OneInput
from test_chains import run

from tests.workflow.chained_cases import study_of
from workflow.config.mistakes import StudyError
from workflow.data import Coordinate, Product
from workflow.inputs.axes import Operand
from workflow.inputs.hdf5_operands import describe_coordinates
from workflow.inputs.product_operand import ProductOperand
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


OPERAND = Operand("x", AXES)
DATA = np.zeros((2, 3, 4), np.complex64)
FEEDS = np.array(["xx", "yy"])


def test_a_product_says_which_entry_a_number_took() -> None:
    product = Product("p", DATA, AXES, {"a": Coordinate(FEEDS, "", "feed")}, "p")
    source = OneInput(file=Path("p.h5"), x="/x", select={"x": {"a": 1}})
    operand = ProductOperand(OPERAND, product, source)
    assert operand.header.shape == (1, 3, 4)
    found = operand.coordinates()["a"]
    assert (found.values.tolist(), found.long_name) == (["yy"], "feed")


def test_an_axis_that_the_operand_lacks_leaves_what_was_taken() -> None:
    product = Product("p", DATA, ("feed", "b", "c"), {"feed": Coordinate(FEEDS)}, "p")
    source = OneInput(file=Path("p.h5"), x="/x", select={"x": {"feed": 1}})
    found = ProductOperand(OPERAND, product, source).coordinates()
    assert list(found) == ["selected_feed"]
    assert found["selected_feed"].values.tolist() == [FEEDS[1]]


def test_a_file_says_which_entry_a_number_took(tmp_path: Path) -> None:
    path = put(tmp_path / "x.h5", x=DATA)
    source = OneInput(
        file=path, x="/x", axes={"x": [*AXES]}, select={"x": {"a": 1}}, coordinates={"a": [5, 7]}
    )
    assert describe_coordinates(source, [OPERAND])[0]["a"].values.tolist() == [7]
