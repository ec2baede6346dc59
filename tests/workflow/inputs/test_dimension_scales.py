"""Dimension scales of a file go along with a dataset where a study says nothing of its axes."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.workflow.one_case import error_of, study_of
from workflow.data import Coordinate
from workflow.files.input_error import InputError
from workflow.preflight.check import check_study
from workflow.steps.staging import understood

SINCE = "middle of the spectrum's samples since 2026-11-28T10:00:00.123456789 UTC"
SCALES: dict[str, tuple[Any, str]] = {
    "t": (np.arange(6) * 0.25 + 3, "ms"),
    "rcvr": (np.array([b"core", b"east", b"west"]), ""),
    "chan": (np.array([1.5, 1.4, 1.3, 1.2]), "GHz"),
}


def write(path: Path, scales: dict[str, tuple[Any, str]]) -> Path:
    """A file of voltages ``v`` (t, rcvr, chan) with scales of some of these axes."""
    with h5py.File(path, "w") as file:
        for name, (values, units) in scales.items():
            file[name] = values
            file[name].attrs["units"] = units
            file[name].make_scale(name)
        data = file.create_dataset("v", data=np.ones((6, 3, 4), np.complex64))
        for place, axis in enumerate(("t", "rcvr", "chan")):
            if axis in scales:
                data.dims[place].attach_scale(file[axis])
        if "t" in scales:
            file["t"].attrs["long_name"] = SINCE
    return path


def staged(path: Path, **more: Any) -> dict[str, Coordinate]:
    """Coordinates of a correlation, which the check and the stage job have alike."""
    axes = ["time", "antenna", "channel"]
    source = {"file": str(path), "voltages": "v", "axes": axes, **more}
    study = study_of({"kind": "correlate", "integrate": 1, "input": source})
    check_study(study)
    one = study.workload("w")
    found = one.stage().coordinates
    assert {*one.outline().coordinates} == {*found}
    return dict(found)


def test_scales_stand_along_the_axes(tmp_path: Path) -> None:
    path = write(tmp_path / "v.nc", SCALES)
    found = staged(path, select={"voltages": {"antenna": [2, 0], "channel": "1:4:2"}})
    np.testing.assert_array_equal(found["time"].values, np.arange(6) * 0.25 + 3)
    assert (found["time"].units, found["time"].long_name) == ("ms", SINCE)
    assert found["antenna"].values.tolist() == ["west", "core"]
    np.testing.assert_array_equal(found["frequency"].values, [1.4, 1.2])
    assert found["frequency"].units == "GHz"
    one = staged(path, select={"voltages": {"channel": 1}})
    np.testing.assert_array_equal(one["frequency"].values, [1.4])


def test_the_study_takes_the_place_of_a_scale(tmp_path: Path) -> None:
    path = write(tmp_path / "v.nc", SCALES)
    given = {"frequency": {"step_hz": 2.0}, "antenna": list("abc")}
    found = staged(path, coordinates=given, sample_rate_hz=4.0)
    np.testing.assert_array_equal(found["frequency"].values, 2.0 * np.arange(4))
    np.testing.assert_array_equal(found["time"].values, np.arange(6) / 4)
    assert found["antenna"].values.tolist() == list("abc")


@pytest.mark.parametrize(
    "scales",
    [
        {"t": (np.arange(6.0), ""), "rcvr": (np.arange(3), ""), "chan": (np.arange(4), "")},
        {"t": (np.arange(6) + 5, ""), "chan": (np.array([1.0, 2.0, np.nan, 4.0]), "Hz")},
        {"t": (np.arange(6) + 5, "Hz"), "chan": (np.ones((4, 2)), "Hz")},
        {"chan": (np.array([b"a", b"b", b"c", b"d"]), "")},
    ],
)
def test_what_cannot_be_a_coordinate_is_left_out(tmp_path: Path, scales: Any) -> None:
    path = write(tmp_path / "v.nc", scales)
    assert staged(path) == {}


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    """The line of the stage step and certificates name scales that say something."""
    scales = {
        "t": (np.arange(6) + 5, ""), "rcvr": (np.arange(3), ""),
        "chan": (np.array([1.0, 2.0, np.nan, 4.0]), "Hz"),
    }  # fmt: skip
    path = write(tmp_path / "v.nc", scales)
    axes = ["time", "antenna", "channel"]
    source = {"file": str(path), "voltages": "v", "axes": axes}
    one = study_of({"kind": "correlate", "integrate": 1, "input": source}).workload("w").stage()
    assert one.attributes["left_out"] == {
        "/t": "/t has no unit; give it as {dataset: path, units: s}, {values: [...], units: s} or "
        "by equal steps",
        "/chan": "/chan: its values must be finite numbers, entry 2 of what is selected is nan; "
        "take others by input.select",
    }
    assert understood(one).endswith("; left out: " + "; ".join(one.attributes["left_out"].values()))


def test_of_several_scales_the_one_that_has_a_unit(tmp_path: Path) -> None:
    path = write(tmp_path / "v.nc", {"chan": (np.arange(4), "")})
    with h5py.File(path, "r+") as file:
        del file["chan"].attrs["units"]
        file["sky"] = np.array([1.5, 1.4, 1.3, 1.2])
        file["sky"].attrs["units"] = np.bytes_("GHz")
        file["sky"].make_scale("sky")
        file["v"].dims[2].attach_scale(file["sky"])
    np.testing.assert_array_equal(staged(path)["frequency"].values, [1.5, 1.4, 1.3, 1.2])


def test_a_long_scale_takes_no_memory_to_check(tmp_path: Path) -> None:
    """It takes no time either: numbers of its entries were made to compare it with."""
    path, samples = tmp_path / "v.h5", 1 << 26
    with h5py.File(path, "w") as file:
        for name, shape, kind in (("v", (1, samples), "c8"), ("t", (samples,), "f8")):
            file.create_dataset(name, shape, kind, chunks=(*shape[:-1], 1 << 20))
        file["v"].dims[1].attach_scale(file["t"])
        file["t"].attrs["units"] = "s"
    source = {"file": str(path), "voltages": "v", "axes": ["antenna", "time"]}
    one = study_of({"kind": "correlate", "integrate": 1024, "input": source})
    check_study(one)
    tracemalloc.start()
    try:
        assert {*one.workload("w").outline().coordinates} == {"time"}
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_a_dimension_of_netcdf_without_a_variable(tmp_path: Path) -> None:
    path = write(tmp_path / "v.nc", SCALES)
    with h5py.File(path, "r+") as file:
        file["t"].attrs["NAME"] = b"This is a netCDF dimension but not a netCDF variable.         6"
    assert {*staged(path)} == {"frequency", "antenna"}


def of_one_scale(path: Path, **select: Any) -> dict[str, Any]:
    """A beamforming of weights and samples whose channels and antennas have one scale each."""
    with h5py.File(path, "w") as file:
        for name, values in (("chan", [100.0, 101.0, 102.0, 103.0]), ("rcvr", [b"a", b"b", b"c"])):
            file[name] = np.array(values)
            file[name].make_scale(name)
        file["chan"].attrs["units"] = np.bytes_("MHz")
        for name, shape in (("w", (4, 2, 3)), ("x", (4, 3, 8))):
            file[name] = np.ones(shape, np.complex64)
            file[name].dims[0].attach_scale(file["chan"])
            file[name].dims[shape.index(3)].attach_scale(file["rcvr"])
    axes = {"weights": ["channel", "beam", "antenna"], "samples": ["channel", "antenna", "time"]}
    source = {"file": str(path), "weights": "w", "samples": "x", "axes": axes, "select": select}
    return {"kind": "beamforming", "input": source}


@pytest.mark.parametrize(
    ("weights", "samples", "said"),
    [
        ({"channel": "0:2"}, {"channel": "2:4"}, "frequency, 100 to 101 MHz, got 102 to 103 MHz"),
        ({"channel": 0}, {"channel": 2}, "frequency, 100 MHz, got 102 MHz"),
        ({"antenna": [1, 0]}, {"antenna": [0, 1]}, "antenna, b to a, got a to b"),
    ],
)
def test_operands_that_take_different_entries_of_a_scale(
    tmp_path: Path, weights: Any, samples: Any, said: str
) -> None:
    given = of_one_scale(tmp_path / "v.h5", weights=weights, samples=samples)
    assert error_of(given) == (
        f"input.samples: it must have the values of another operand along {said}; select the same "
        "entries by input.select, correct one of them by input.coordinates, or name that axis "
        "otherwise in input.axes"
    )


def test_one_entry_for_all_of_another_operand(tmp_path: Path) -> None:
    """Weights of one channel for every channel's samples are meant: the product has these."""
    given = of_one_scale(tmp_path / "v.h5", weights={"channel": 1})
    found = study_of(given).workload("w").stage().coordinates["frequency"]
    assert found.values.tolist() == [100.0, 101.0, 102.0, 103.0]


@pytest.mark.parametrize(("b", "kept"), [(3, [3.0]), (4, None)])
def test_the_selected_entry_of_both_operands(
    tmp_path: Path, b: int, kept: list[float] | None
) -> None:
    """It is that of the product, and of matrices of two times there is none."""
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file["t"] = np.arange(6.0)
        file["t"].attrs["units"] = np.bytes_("s")
        for name in ("a", "b"):
            file[name] = np.ones((6, 3, 3), np.complex64)
            file[name].dims[0].attach_scale(file["t"])
    source = {
        "file": str(tmp_path / "v.h5"), "a": "a", "b": "b",
        "axes": {"a": ["time", "m", "k"], "b": ["time", "k", "n"]},
        "select": {"a": {"time": 3}, "b": {"time": b}},
    }  # fmt: skip
    found = study_of({"kind": "gemm", "input": source}).workload("w").outline().coordinates
    selected = found.get("selected_time")
    assert (selected.values.tolist() if selected else None) == kept


NAMES = np.array([b"core", b"east", b"west"])


@pytest.mark.parametrize(
    ("of_weights", "of_samples", "expected"),
    [
        (NAMES, np.arange(3) + 1, ["core", "east", "west"]),
        (np.arange(3.0) + 1, NAMES, ["core", "east", "west"]),
        (np.arange(3) + 1, np.arange(3.0) + 1, [1, 2, 3]),
        (np.arange(3) + 1, np.arange(3) + 4, None),
        (NAMES, np.array([1, 2, 4]), None),
    ],
)
def test_names_beside_numbers(
    tmp_path: Path, of_weights: Any, of_samples: Any, expected: list[Any] | None
) -> None:
    """Numbers that only count contradict no names; others do, and other numbers."""
    path = tmp_path / "two.h5"
    with h5py.File(path, "w") as file:
        for name, shape, values in (("x", (3, 8), of_samples), ("w", (2, 3), of_weights)):
            file[name] = np.ones(shape, np.complex64)
            file[f"{name}_antenna"] = values
            file[name].dims[shape.index(3)].attach_scale(file[f"{name}_antenna"])
    source: dict[str, Any] = {"file": str(path), "weights": "w", "samples": "x"}
    source["axes"] = {"weights": ["beam", "antenna"], "samples": ["antenna", "time"]}
    given = {"kind": "beamforming", "input": source}
    if expected is None:
        assert "the values of another operand along antenna" in str(error_of(given))
        return
    found = study_of(given).workload("w").stage().coordinates["antenna"].values
    assert found.tolist() == expected


def test_axes_that_nobody_names(tmp_path: Path) -> None:
    """A scale counts where the file's own name of the axis is that of the operand's.

    Those of samples that may have any axes are theirs. They had none unless the study named them.
    """
    path = tmp_path / "v.h5"
    with h5py.File(path, "w") as file:
        file["v"] = np.ones((3, 4), np.complex64)
        file["antenna"], file["sample"] = np.array([b"a", b"b", b"c"]), np.arange(4.0) + 1
        for number, name in enumerate(("antenna", "sample")):
            file["v"].dims[number].attach_scale(file[name])
            file["v"].dims[number].label = name
    source = {"file": str(path), "voltages": "v"}
    one = study_of({"kind": "correlate", "integrate": 1, "input": source}).workload("w")
    assert {*one.outline().coordinates} == {"antenna"}
    with h5py.File(path, "a") as file:
        file["sample"].attrs["units"] = "MHz"
    with pytest.raises(InputError, match="has 'sample', which by its place is 'time', but it must"):
        one.outline()  # bins of a spectrum are no times
    source = {"file": str(path), "samples": "v"}
    one = study_of({"kind": "dft", "axis": "antenna", "input": source}).workload("w")
    assert one.outline().axes["samples"] == ("sample", "antenna")
    source["select"] = {"samples": {"antenna": 1}}
    one = study_of({"kind": "dft", "axis": "sample", "input": source}).workload("w")
    assert one.outline().coordinates["sample"].values.tolist() == [1, 2, 3, 4]
    with h5py.File(path, "a") as file:
        for number in range(2):
            file["v"].dims[number].label = "twice"
            file["v"].dims[number].detach_scale(file[("antenna", "sample")[number]])
    one = study_of({"kind": "dft", "axis": -1, "input": {**source, "select": {}}}).workload("w")
    assert not one.outline().coordinates


def test_names_along_the_axis_that_is_transformed(tmp_path: Path) -> None:
    """A transform over antennas in a row needs no names; those that a study gives are an error."""
    path = write(tmp_path / "v.nc", SCALES)
    axes = ["time", "antenna", "channel"]
    source: dict[str, Any] = {"file": str(path), "samples": "v", "axes": axes}
    given = {"kind": "dft", "axis": "antenna", "input": source}
    check_study(study_of(given))
    assert {*study_of(given).workload("w").stage().coordinates} == {"time", "channel"}
    source["coordinates"] = {"antenna": "rcvr"}
    assert error_of(given) == (
        "input.coordinates.antenna must be numbers, whose steps a transform needs, got core"
    )
