"""Coordinates that netCDF's attribute `coordinates` names beside those of axes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.workflow.one_case import study_of
from workflow.data import Coordinate, Staged
from workflow.preflight.check import check_study
from workflow.steps.staging import understood

NO_VALUES = b"This is a netCDF dimension but not a netCDF variable.         6"
AXES = ("sample", "station", "chan")
SHAPE = (6, 3, 4)
EVERY: dict[str, tuple[Any, tuple[str, ...], str]] = {
    "time": (np.arange(6) * 0.25 + 3, ("sample",), "ms"),
    "freq": (np.array([1.5, 1.4, 1.3, 1.2]), ("chan",), "GHz"),
    "east": (np.array([0.0, 10.0, 25.0]), ("station",), "m"),
    "station_name": (np.array([b"core", b"east", b"west"]), ("station",), ""),
}


def write(path: Path, given: dict[str, Any], said: str | None = None, group: str = "/") -> Path:
    """A file of voltages `v` (sample, station, chan), with others that its attribute names."""
    with h5py.File(path, "w") as file:
        for axis, length in zip(AXES, SHAPE, strict=True):
            file[axis] = np.zeros(length, "f4")
            file[axis].make_scale(axis)
            file[axis].attrs["NAME"] = NO_VALUES
        within = file.require_group(group)
        for name, (values, axes, units) in given.items():
            within[name] = values
            within[name].attrs["units"] = units
            for place, axis in enumerate(axes):
                within[name].dims[place].attach_scale(file[axis])
        within["v"] = np.ones(SHAPE, np.complex64)
        for place, axis in enumerate(AXES):
            within["v"].dims[place].attach_scale(file[axis])
        within["v"].attrs["coordinates"] = " ".join(given) if said is None else said
    return path


def staged(path: Path, **more: Any) -> Staged:
    """A correlation, whose coordinates the check and the stage job have alike."""
    source = {"file": str(path), "voltages": "v", "axes": ["time", "antenna", "channel"], **more}
    study = study_of({"kind": "correlate", "integrate": 1, "input": source})
    check_study(study)
    one = study.workload("w")
    found = one.stage()
    assert {*one.outline().coordinates} == {*found.coordinates}
    return found


def coordinates(path: Path, **more: Any) -> dict[str, Coordinate]:
    return dict(staged(path, **more).coordinates)


@pytest.mark.parametrize("group", ["/", "/night/one"])
def test_they_stand_along_the_axes_of_their_dimensions(tmp_path: Path, group: str) -> None:
    path = write(tmp_path / "v.nc", EVERY, group=group)
    found = coordinates(
        path, voltages=f"{group}/v", select={"voltages": {"antenna": [2, 0], "channel": "1:4:2"}}
    )
    assert {*found} == {"time", "antenna", "frequency", "east", "station_name"}
    assert found["antenna"].values.tolist() == [2, 0]  # which are selected
    np.testing.assert_array_equal(found["time"].values, np.arange(6) * 0.25 + 3)
    np.testing.assert_array_equal(found["frequency"].values, [1.4, 1.2])
    assert (found["frequency"].units, found["frequency"].axes) == ("GHz", ())
    assert (found["east"].values.tolist(), found["east"].axes) == ([25.0, 0.0], ("antenna",))
    assert found["station_name"].values.tolist() == ["west", "core"]


def test_the_study_takes_their_place(tmp_path: Path) -> None:
    path = write(tmp_path / "v.nc", EVERY)
    given = {"frequency": {"step_hz": 2.0}, "east": {"values": [1, 2, 3], "axis": "antenna"}}
    found = coordinates(path, coordinates=given, sample_rate_hz=4.0)
    np.testing.assert_array_equal(found["frequency"].values, 2.0 * np.arange(4))
    np.testing.assert_array_equal(found["time"].values, np.arange(6) / 4)
    assert found["east"].values.tolist() == [1, 2, 3]


def test_names_stand_in_place_of_numbers_that_count(tmp_path: Path) -> None:
    given = {"antenna": (EVERY["station_name"][0], ("station",), "")}
    path = write(tmp_path / "v.nc", given)
    with h5py.File(path, "r+") as file:
        file["station"][...] = np.arange(3) + 1
        file["station"].attrs["NAME"] = b"station"
    assert coordinates(path)["antenna"].values.tolist() == ["core", "east", "west"]


def test_places_of_a_product_make_beams(tmp_path: Path) -> None:
    """Places of antennas come along, by which beams are steered without another line."""
    flat = {"north": (np.array([0.0, 3.0, 9.0]), ("station",), "m"), **EVERY}
    path = write(tmp_path / "v.nc", flat)
    axes = ["time", "antenna", "channel"]
    source = {"file": str(path), "samples": "v", "axes": axes}
    study = study_of({"kind": "beamforming", "beams": 4, "input": source})
    check_study(study)
    assert study.workload("w").stage().operands["weights"].shape == (4, 1, 4, 3)


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("gone", None, "gone: /v names it among its coordinates, and it is not there"),
        ("height", (np.float64(3), (), "m"), "one axis, this one along none that it names"),
        ("lat", (np.ones((3, 4)), ("station", "chan"), "deg"), r"along \['antenna', 'frequency'\]"),
        ("t", (np.ones(6), (), "s"), "this one along none that it names"),
        ("2x", (np.ones(3), ("station",), "m"), "a name must begin with a letter"),
        ("freq", (np.array([1.0, 2.0, np.nan, 4.0]), ("chan",), "Hz"), "entry 2 .* is nan"),
        ("times", (np.arange(6) + 1, ("sample",), ""), "/times has no unit"),
        ("antenna", (np.arange(4) + 2, ("chan",), ""), "'antenna' is an axis of its own"),
    ],
)
def test_what_is_no_coordinate_is_left_out_and_said(
    tmp_path: Path, name: str, given: Any, said: str
) -> None:
    path = write(tmp_path / "v.nc", {name: given} if given is not None else {}, said=name)
    one = staged(path)
    assert dict(one.coordinates) == {}
    (why,) = one.attributes["left_out"].values()
    assert re.search(said, why), why
    assert f"left out: {why}" in understood(one)


@pytest.mark.parametrize(
    "said",
    ["", "/", "//", "..", "v", "v/v", "/v/../v", " \n\t ", "a" * 20000, "x " * 9000, "\u202e\x01"],
)
def test_hostile_lists_of_names(tmp_path: Path, said: str) -> None:
    """Whatever is named, the data are read; links out of the file are not followed."""
    path = write(tmp_path / "v.nc", {}, said="away round " + said)
    with h5py.File(path, "r+") as file:
        file["away"] = h5py.ExternalLink("/etc/passwd", "/x")
        file["round"] = h5py.SoftLink("/round")
    found = staged(path)
    assert dict(found.coordinates) == {}
    if len(said) < 1 << 14:
        assert "name that file instead" in found.attributes["left_out"]["/away"]
        assert "links in a circle" in found.attributes["left_out"]["/round"]


def test_scalars_are_of_axes_that_the_data_lack(tmp_path: Path) -> None:
    """A scalar that xarray leaves of an axis, of which it took one entry, is read."""
    path = tmp_path / "v.h5"
    with h5py.File(path, "w") as file:
        file["v"] = np.ones((6, 3), np.complex64)
        for axis, length in enumerate((6, 3)):
            file[AXES[axis]] = np.arange(length) + 1.0
            file[AXES[axis]].make_scale(AXES[axis])
            file["v"].dims[axis].attach_scale(file[AXES[axis]])
        file["frequency"], file["polarization"], file["day"] = 1.5, np.bytes_("x"), 3
        file["frequency"].attrs["units"] = np.bytes_("GHz")
        file["v"].attrs["coordinates"] = np.bytes_("frequency polarization day")
    source = {"file": str(path), "voltages": "v", "axes": ["time", "antenna"]}
    study = study_of({"kind": "correlate", "integrate": 1, "input": source})
    check_study(study)
    found = study.workload("w").stage()
    frequency = found.coordinates["frequency"]
    assert (frequency.values.tolist(), frequency.units) == ([1.5], "GHz")
    assert found.coordinates["polarization"].values.tolist() == ["x"]
    assert [*found.attributes["left_out"]] == ["/day", "/sample"]
