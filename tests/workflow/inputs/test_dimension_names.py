"""Axes go by the names that a file gives all of them; those that contradict a study are refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.workflow.one_case import error_of, staged, study_of
from workflow.files import text_attributes
from workflow.inputs.dimension_names import dimension_names
from workflow.preflight.check import check_study

AXES = ("frequency", "polarization", "antenna", "time")


@pytest.fixture(scope="module", autouse=True)
def attributes_without_a_fork() -> None:
    """Leave the reading of attributes to a fork: some files here are damaged."""


def written(path: Path, names: tuple[str, ...], *, labels: bool = False, grouped: str = "") -> Path:
    """A file of voltages of 4 entries an axis, as netCDF names its axes."""
    with h5py.File(path, "w") as file:
        data = file.create_dataset("v", data=np.ones((4,) * len(names), np.complex64))
        for number, name in enumerate(names):
            if labels:
                data.dims[number].label = name
                continue
            scale = file.create_dataset(f"{grouped}{name}", data=np.arange(4.0))
            scale.make_scale(name)
            data.dims[number].attach_scale(scale)
    return path


def case(path: Path, **more: Any) -> dict[str, Any]:
    return {"kind": "correlate", "input": {"file": str(path), "voltages": "v", **more}}


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("select", [{}, {"voltages": [":", ":", 2]}, {"voltages": {"ant": [3, 1]}}])
def test_a_file_that_names_all_axes_is_read_by_its_names(
    tmp_path: Path, labels: bool, select: dict[str, Any]
) -> None:
    """In whatever order they lie; it was an error that said which line to add."""
    path = written(tmp_path / "v.h5", ("Time", "antenna", "channel"), labels=labels)
    values = np.arange(64.0).reshape(4, 4, 4)
    with h5py.File(path, "r+") as file:
        file["v"][...] = values.astype(np.complex64)
    found = staged(case(path, select=select)).operands["voltages"]
    axes = {"voltages": ["time", "antenna", "frequency"]}
    named = (
        {"voltages": {"antenna": [3, 1]}} if isinstance(select.get("voltages"), dict) else select
    )
    by_study = staged(case(path, select=named, axes=axes)).operands["voltages"]
    np.testing.assert_array_equal(found, by_study)
    if not select:
        np.testing.assert_array_equal(found[:, 0], values.transpose(2, 1, 0))


def test_names_that_stand_twice_are_no_names_of_all_axes(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    with h5py.File(path, "w") as file:
        file["v"] = np.ones((4, 4, 4), np.complex64)
        for number, name in enumerate(("time", "antenna", "antenna")):
            file["v"].dims[number].label = name
    assert "is read as ['polarization', 'antenna', 'time']" in error_of(case(path))


@pytest.mark.parametrize("labels", [False, True])
def test_a_study_that_exchanges_time_and_another_axis(tmp_path: Path, labels: bool) -> None:
    path = written(tmp_path / "v.h5", ("Time", "antenna", "channel"), labels=labels)
    assert error_of(case(path, axes=["antenna", "time", "channel"])) == (
        "input.axes.voltages: /v names its axes ['time', 'antenna', 'frequency'], and the study "
        "['antenna', 'time', 'channel']; correct the study, or where the file is wrong its "
        "dimension scales or labels"
    )
    path = written(tmp_path / "r.h5", ("time", "rcvr"), labels=labels)
    assert "and the study ['channel', 'time']; correct" in error_of(
        case(path, axes=["channel", "time"])
    )
    path = tmp_path / "v.h5"
    for axes in (["time", "polarization", "channel"], ["polarization", "antenna", "time"]):
        check_study(study_of(case(path, axes=axes)))
    path = written(tmp_path / "w.h5", ("antenna", "polarization"), labels=labels)
    check_study(study_of(case(path, axes=["polarization", "antenna"])))


def test_the_line_to_add_has_names_that_a_study_may_have(tmp_path: Path) -> None:
    path = written(tmp_path / "v.h5", ("\x1b[31m", "time", "antenna"), labels=True)
    found = error_of(case(path, select={"voltages": [0, ":", ":"]}))
    assert "names its axes ['\\x1b[31m', 'time', 'antenna'], and is read" in found
    assert "add `axes: {voltages: [dropped_0, time, antenna]}` to the input" in found
    axes = {"voltages": ["dropped_0", "time", "antenna"]}
    check_study(study_of(case(path, select={"voltages": [0, ":", ":"]}, axes=axes)))


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize(
    "names",
    [("antenna", "time"), ("frequency", "polarization", "antenna", "time"), ("rcvr", "t"),
     ("ant", "time"), ("channel", "polarization", "antenna", "time")],
)  # fmt: skip
def test_the_same_order_and_other_names_tell_nothing(
    tmp_path: Path, names: tuple[str, ...], labels: bool
) -> None:
    path = written(tmp_path / "v.h5", names, labels=labels, grouped="axes/")
    check_study(study_of(case(path)))
    if names[-1] == "t" and not labels:
        with h5py.File(path, "r+") as file:
            file["axes/t"].attrs["units"] = "s"
        attributes = study_of(case(path)).workload("w").stage().attributes
        assert attributes["left_out"] == {
            "/axes/t": f"/axes/t: the file names its axis 't', which is none of {[*AXES]}; name "
            "all axes in input.axes.voltages"
        }


def test_the_entry_that_a_number_takes_keeps_its_value(tmp_path: Path) -> None:
    path = written(tmp_path / "v.h5", AXES)
    with h5py.File(path, "r+") as file:
        file["frequency"][...] = [1.1, 1.3, 1.2, 1.4]
        file["frequency"].attrs["units"] = "GHz"
    one = study_of(case(path, select={"voltages": {"frequency": 2}})).workload("w")
    assert one.stage().coordinates["frequency"].values.tolist() == [1.2]


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize(
    ("names", "taken"),
    [(("antenna", "time", "polarization"), [":", ":", 2]),
     (("polarization", "x", "antenna", "time"), [2, 0, ":", ":"]),
     (("x", "y", "antenna", "time"), [0, 2, ":", ":"])],
)  # fmt: skip
def test_the_entry_that_a_number_takes_is_of_the_axis_that_the_file_names(
    tmp_path: Path, names: tuple[str, ...], taken: list[Any], labels: bool
) -> None:
    """The place tells it of names that are none of the operand's alone."""
    path = written(tmp_path / "v.h5", names, labels=labels)
    one = study_of(case(path, select={"voltages": taken})).workload("w")
    assert one.stage().coordinates["polarization"].values.tolist() == [2]


def test_weights_of_several_channels_of_one_that_the_file_names(tmp_path: Path) -> None:
    """The channel is selected where the file has it, not where the operand has it."""
    path = written(tmp_path / "v.h5", ("polarization", "frequency", "antenna", "time"), labels=True)
    with h5py.File(path, "r+") as file:
        file["w"] = np.ones((4, 1, 5, 4), np.complex64)
    source = {"file": str(path), "weights": "w", "samples": "v"}
    source |= {"select": {"samples": [":", 1, ":", ":"]}}
    assert error_of({"kind": "beamforming", "input": source}).startswith(
        "input.select.samples: takes one entry of frequency, and weights have 4"
    )


def test_a_name_that_stands_there_twice_tells_nothing(tmp_path: Path) -> None:
    path = written(tmp_path / "v.h5", ("antenna", "antenna"), labels=True)
    check_study(study_of(case(path)))


ONE_IS_KNOWN = (
    "and is read as {} where input.axes says nothing; name its axes in input.axes.voltages, of "
    "['frequency', 'polarization', 'antenna', 'time']"
)


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize(
    ("names", "read_as"),
    [
        (("time", "rcvr"), ["antenna", "time"]), (("t", "rcvr", "channel"), [*AXES[1:]]),
        (("time", "ant", "station"), [*AXES[1:]]),  # a square of antennas, whose names are one
    ],
)  # fmt: skip
def test_one_name_in_another_place_is_a_mistake(
    tmp_path: Path, names: tuple[str, ...], read_as: list[str], labels: bool
) -> None:
    """Whatever names the file has for the others, which tell nothing."""
    path = written(tmp_path / "v.h5", names, labels=labels)
    assert error_of(case(path)).endswith(ONE_IS_KNOWN.format(read_as))


@pytest.mark.parametrize("attribute", ["axis", "dims", "_ARRAY_DIMENSIONS"])
@pytest.mark.parametrize("is_bytes", [False, True])
def test_names_in_an_attribute(tmp_path: Path, attribute: str, is_bytes: bool) -> None:
    """Files of CHIME have such names and no dimension scales, as do arrays of xarray."""
    names = ["freq", "input", "time"]
    path = tmp_path / "v.h5"
    with h5py.File(path, "w") as file:
        file["v"] = np.ones((4, 3, 8), np.complex64)
        file["v"].attrs[attribute] = np.array(names, "S") if is_bytes else names
    assert staged(case(path)).operands["voltages"].shape == (4, 1, 3, 8)
    check_study(study_of(case(path, axes=["frequency", "antenna", "time"])))
    for wrong in (["freq", "time"], [1, 2, 3], "freq"):
        with h5py.File(path, "r+") as file:
            file["v"].attrs[attribute] = wrong
        assert "its 4 polarizations may be entries of another axis" in error_of(case(path))


def test_parts_of_other_axes_or_of_one_dataset(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    with h5py.File(path, "w") as file:
        for part, names in (("re", ["antenna", "time"]), ("im", ["time", "antenna"])):
            file[part] = np.ones((4, 4))
            file[part].attrs["dims"] = names
    given = case(path, voltages={"real": "re", "imag": "im"})
    assert error_of(given) == (
        "input.voltages: real and imaginary part must have the same axes, and the file names those "
        "of /re ['antenna', 'time'], and those of /im ['time', 'antenna']; correct the study, or "
        "where the file is wrong its dimension scales or labels"
    )
    given = case(path, voltages={"real": "re", "imag": "/re"})
    expected = "input.voltages: real and imaginary part are the same dataset, /re"
    assert error_of(given) == expected
    with h5py.File(path, "r+") as file:
        del file["im"].attrs["dims"]
    check_study(study_of(case(path, voltages={"real": "re", "imag": "im"})))
    with h5py.File(path, "r+") as file:
        file["re"].attrs["dims"], file["im"].attrs["dims"] = ["ant", "t_re"], ["ant", "t_im"]
    check_study(study_of(case(path, voltages={"real": "re", "imag": "im"})))


def test_names_of_some_axes(tmp_path: Path) -> None:
    """They must be read in their places; what the file has along them goes along."""
    path = written(tmp_path / "v.h5", ("time", "antenna"))
    with h5py.File(path, "r+") as file:
        file["time"].attrs["units"] = "s"
        file["v"].dims[1].detach_scale(file["antenna"])
        assert dimension_names(file["v"]) == ["time", ""]
    expected = f"/v names its axes ['time', ''], {ONE_IS_KNOWN.format(['antenna', 'time'])}"
    assert error_of(case(path)) == f"input.voltages: {expected}"
    assert "names its axes ['time', ''], and the study ['antenna', 'time']; correct" in error_of(
        case(path, axes=["antenna", "time"])
    )
    found = study_of(case(path, axes=["time", "antenna"])).workload("w").stage().coordinates
    assert {*found} == {"time"}
    with h5py.File(path, "r+") as file:
        del file["time"]  # which leaves a reference to nothing
    check_study(study_of(case(path)))


def test_damaged_names_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A length in the heap that leads beyond it: HDF5 searches for ever."""
    monkeypatch.setattr(text_attributes, "CPU_SECONDS", 0.1)
    path = written(tmp_path / "v.h5", ("time", "antenna"), labels=True)
    content = bytearray(path.read_bytes())
    content[content.index(b"antenna") - 8] = 255
    path.write_bytes(content)
    check_study(study_of(case(path)))


def test_names_are_read_once_while_the_file_stays_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fork takes milliseconds, and each point of a sweep reads the same file."""
    calls, guarded = [], text_attributes.guarded

    def counted(read: Callable[[], Any]) -> Any:
        calls.append(read)
        return guarded(read)

    monkeypatch.setattr(text_attributes, "guarded", counted)
    path = written(tmp_path / "v.h5", ("Time", "antenna"))
    for _ in range(3):
        with h5py.File(path) as file:
            assert dimension_names(file["v"]) == ["time", "antenna"]
    assert len(calls) == 1
    written(path, ("antenna", "Time"))
    os.utime(path, ns=(0, 0))  # where a clock is coarser than two writes are apart
    with h5py.File(path) as file:
        assert dimension_names(file["v"]) == ["antenna", "time"]
    assert len(calls) == 2


def test_a_study_may_call_axes_as_the_file_does(tmp_path: Path) -> None:
    """A file's ``chan`` is frequency here, which messages said and files do not."""
    path = written(tmp_path / "v.h5", ("station", "Chan", "time"))
    source = {"file": str(path), "samples": "v", "select": {"samples": {"Chan": "1:", "ant": 0}}}
    study = study_of({"kind": "dft", "axis": "chan", "input": source})
    check_study(study)
    found = study.workload("w").stage().held()
    assert found.axes["samples"] == ("time", "frequency")
    assert found.operands["samples"].shape == (4, 3)
    source["select"] = {"samples": {"Chan": "1:", "frequency": 0}}
    said = "two entries are of one: ['frequency', 'frequency']"
    assert said in error_of({"kind": "dft", "axis": "time", "input": source})
    assert "axis: must be of ['antenna', 'frequency', 'time'], got 'beam'" in error_of(
        {"kind": "dft", "axis": "beam", "input": {"file": str(path), "samples": "v"}}
    )
