"""Names of the polarizations of voltages, by the header of their file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from input_files import put

from tests.workflow.chained_cases import study_of as study_of_all
from tests.workflow.one_case import error_of, study_of
from tests.workflow.readers.guppi_file import case, parts, write
from tests.workflow.steps.test_uvh5 import labelled
from workflow.config.mistakes import StudyError
from workflow.data import Coordinate
from workflow.preflight.check import check_study
from workflow.readers.polarizations import of_voltages


@pytest.mark.parametrize(
    ("header", "feeds"),
    [
        ({"FD_POLN": "LIN"}, "xy"), ({"FD_POLN": "CIRC    ", "FD_HAND": 1}, "lr"),
        ({"FD_POLN": "LIN", "FD_HAND": -1}, "yx"), ({"FD_POLN": "CIRC", "FD_HAND": "-1"}, "rl"),
        ({"FD_POLN": "PANE1"}, ""), ({}, ""),
    ],
)  # fmt: skip
def test_a_header_names_the_feeds(tmp_path: Path, header: Any, feeds: str) -> None:
    write(tmp_path / "v.raw", parts(1), **({"FD_POLN": None} | header))
    given = case(tmp_path / "v.raw")
    found = study_of(given).workload("w").stage().coordinates
    assert (list(found["polarization"].values) if feeds else "polarization" in found) == (
        list(feeds) or False
    )
    given["input"]["coordinates"] = {"polarization": list(feeds.upper() or "ab")}
    check_study(study_of(given))  # the file's own names, or names where it has none
    given["input"]["coordinates"] = {"polarization": ["h", "v"]}
    if feeds:
        said = f"the file says it already, {feeds[0]} to {feeds[1]}; leave it out, or where the "
        assert f"{said}file is wrong give it as {{values: [...], replace: true}}" in error_of(given)
        names = {"values": ["h", "v"], "replace": True}
        given["input"]["coordinates"] = {"polarization": names}
    found = study_of(given).workload("w").stage().coordinates
    assert list(found["polarization"].values) == ["h", "v"]


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ({"ANTNMS00": "1aA,1cA", "ANTNMS01": "2bA"}, ["1aA", "1cA", "2bA"]),
        ({"ANTNMS00": "m000, m001,m002,"}, ["m000", "m001", "m002"]),
        ({"ANTNMS00": "1aA,1cA"}, []), ({"ANTNMS00": "1aA,1cA,1aA"}, []), ({}, []),
    ],
)  # fmt: skip
def test_a_header_names_the_antennas(tmp_path: Path, header: Any, names: list[str]) -> None:
    data = parts(1, shape=(12, 32, 2))
    write(tmp_path / "v.raw", data, OBSNCHAN=12, NANTS=3, NPOL=2, PIPERBLK=12, **header)
    given = case(tmp_path / "v.raw")
    found = study_of(given).workload("w").stage().coordinates
    assert (found["antenna"].values.tolist() if names else "antenna" in found) == (names or False)
    given["input"]["coordinates"] = {"antenna": ["1a", "1c", "2b"]}
    if names:
        assert "input.coordinates.antenna: the file says it already, " in error_of(given)
    else:
        check_study(study_of(given))


@pytest.mark.parametrize("names", [["XX", "XY"], ["HH", "HV"], ["rr", "Lr"], [-5, -7]])
def test_covariances_of_two_feeds_in_capitals_or_codes_are_no_power(
    tmp_path: Path, names: list[Any]
) -> None:
    put(tmp_path / "r.h5", r=np.broadcast_to(np.eye(3, dtype=np.complex64), (2, 1, 3, 3)))
    east = {"values": [0, 30, 0], "units": "m", "axis": "antenna"}
    source = {
        "file": str(tmp_path / "r.h5"), "covariances": "r",
        "axes": ["polarization", "frequency", "antenna", "column"],
        "coordinates": {
            "polarization": names, "frequency": {"values": [1.5e8], "units": "Hz"},
            "east": east, "north": {**east, "values": [0, 0, 30]},
        },
    }  # fmt: skip
    given = {"kind": "image", "directions": {"n": 3, "field_of_view_deg": 5}, "input": source}
    assert (
        f"polarization {'xy' if names[1] == -7 else names[1]} is of two feeds and no power"
        in error_of(given)
    )
    source["select"] = {"covariances": {"polarization": "0:1"}}
    check_study(study_of(given))


@pytest.mark.parametrize(
    ("feeds", "said"),
    [
        (["Y", "X"], "of linear feeds, x before y, got y before x; `polarization: .1, 0.` in"),
        (["V", "H"], "of linear feeds, x before y, got v before h; `polarization: .1, 0.` in"),
        (["R", "L"], "of linear feeds, x before y, got r before l; `detect: power`"),
        (["LHCP", "RCP"], "of linear feeds, x before y, got l before r; `detect: power`"),
        (["X", "Y"], ""),
        (["H", "V"], ""),
    ],
    ids=str,
)  # fmt: skip
def test_stokes_parameters_of_other_feeds(tmp_path: Path, feeds: list[str], said: str) -> None:
    source = labelled(tmp_path, polarization=feeds)["input"]
    beams = {key: source[key] for key in ("file", "coordinates")} | {
        "samples": "v", "axes": {"samples": source["axes"]}
    }  # fmt: skip
    case = {"kind": "beamforming", "beams": 4, "detect": "stokes", "integrate": 4, "input": beams}
    if not said:
        return check_study(study_of_all({"b": case}))
    with pytest.raises(StudyError, match=said):
        check_study(study_of_all({"b": case}))


@pytest.mark.parametrize(
    ("power", "feeds"),
    [(["xx", "YY"], ["x", "Y"]), (["rr"], ["r"]), (["I", "x", ""], ["I", "x", ""]), ([1], [1])],
)
def test_weights_are_of_the_feeds_whose_power_they_are_made_of(power: Any, feeds: Any) -> None:
    """Voltages of x have the weights of covariances of xx."""
    found = of_voltages(Coordinate(np.array(power), "", "polarization"))
    assert found.values.tolist() == feeds


@pytest.mark.parametrize(("names", "wrong"), [("IQUV", True), ("iv", True), ("I", False)])
def test_stokes_parameters_are_not_added_up(tmp_path: Path, names: str, wrong: bool) -> None:
    put(tmp_path / "r.h5", r=np.ones((len(names), 3, 3), np.complex64))
    place = {"values": [0, 1, 3], "units": "m", "axis": "antenna"}
    image = {
        "kind": "image", "directions": {"n": 3, "field_of_view_deg": 10}, "sum": ["polarization"],
        "input": {
            "file": str(tmp_path / "r.h5"), "covariances": "r",
            "axes": ["polarization", "antenna", "column"],
            "coordinates": {
                "frequency": {"values": [1e8], "units": "Hz"}, "polarization": list(names),
                "east": place, "north": place,
            },
        },
    }  # fmt: skip
    if wrong:
        said = f"sum: polarization must be of powers of feeds, such as xx and yy, got {names[0]}, "
        assert error_of(image).startswith(said)
    check_study(study_of({**image, "sum": []} if wrong else image))
