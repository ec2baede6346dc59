"""Antennas and polarizations are selected by their names, as by their numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from test_chains import run

from tests.workflow import chained_cases
from tests.workflow.inputs.test_dimension_scales import SCALES, write
from tests.workflow.one_case import error_of, staged
from workflow.config.mistakes import StudyError
from workflow.data import Staged
from workflow.preflight.check import check_study

AXES = ["time", "antenna", "channel"]


@pytest.fixture
def path(tmp_path: Path, rng: np.random.Generator) -> Path:
    """Voltages ``v`` (t, rcvr, chan) of the antennas core, east and west; ``other`` names them."""
    found = write(tmp_path / "v.nc", SCALES)
    with h5py.File(found, "r+") as file:
        file["v"][...] = rng.standard_normal((6, 3, 4, 2)) @ [1, 1j]
        file["bare"] = file["v"][...]
        file["other"] = [b"a1", b"a2", b"a1"]
    return found


def case(path: Path, select: Any, **more: Any) -> dict[str, Any]:
    source = {"file": str(path), "voltages": "v", "axes": AXES, **more}
    return {
        "kind": "correlate", "integrate": 1, "input": {**source, "select": {"voltages": select}},
    }  # fmt: skip


def assert_equal(found: Staged, wanted: Staged) -> None:
    np.testing.assert_array_equal(found.operands["voltages"], wanted.operands["voltages"])
    assert {*found.coordinates} == {*wanted.coordinates}
    for name, one in found.coordinates.items():
        np.testing.assert_array_equal(one.values, wanted.coordinates[name].values)


@pytest.mark.parametrize(
    ("named", "numbered"),
    [
        ({"antenna": ["west", "core"]}, {"antenna": [2, 0]}),
        ({"antenna": ["west", 0], "channel": "1:"}, {"antenna": [2, 0], "channel": "1:"}),
        ({"antenna": "east"}, {"antenna": 1}),
        ([":", ["east"], ":"], [":", [1], ":"]),
    ],
)
def test_names_of_the_file(path: Path, named: Any, numbered: Any) -> None:
    found = staged(case(path, named))
    assert_equal(found, staged(case(path, numbered)))
    assert "west" in str(found.attributes["select"]) or "east" in str(found.attributes["select"])


def test_a_name_in_a_list_takes_all_entries_of_that_name(path: Path) -> None:
    more = {"coordinates": {"antenna": "other"}}
    found = staged(case(path, {"antenna": ["a2", "a1"]}, **more))
    assert_equal(found, staged(case(path, {"antenna": [1, 0, 2]}, **more)))
    feeds = {"group": {"values": ["x", "a1", "x"], "axis": "antenna"}}
    more["coordinates"] |= feeds
    found = staged(case(path, {"antenna": ["x"]}, **more))
    assert found.coordinates["antenna"].values.tolist() == ["a1", "a1"]
    said = "'a1' as names of different kinds along antenna, at [0, 2] and at [1]"
    assert said in error_of(case(path, {"antenna": ["a1"]}, **more))


def test_names_of_the_study_and_of_axes_without_names(path: Path) -> None:
    names = {"coordinates": {"antenna": ["x", "y", "z"], "time": {"step_s": 1.0}}}
    found = staged(case(path, {"antenna": ["z", "y"]}, **names))
    assert found.coordinates["antenna"].values.tolist() == ["z", "y"]
    bare = {"voltages": "bare", "axes": None, "coordinates": {"antenna": "/rcvr"}}
    found = staged(case(path, [1, ["west", "east"], ":"], **bare))
    with h5py.File(path) as file:
        np.testing.assert_array_equal(found.operands["voltages"][0, 0], file["v"][1][[2, 1]])


def test_names_of_a_covariance_are_those_of_its_columns_too(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        data = np.arange(9).reshape(3, 3)
        file["r"] = (data + data.T + np.eye(3)).astype("complex64")
    source = {
        "file": str(path), "covariances": "r", "axes": ["antenna", "column"],
        "select": {"covariances": {"antenna": ["c", "a"], "column": ["c", "a"]}},
        "coordinates": {
            "antenna": ["a", "b", "c"], "frequency": {"values": [150], "units": "MHz"},
            **{
                name: {"values": [0, 3, 9], "units": "m", "axis": "antenna"}
                for name in ("east", "north")
            },
        },
    }  # fmt: skip
    found = staged({"kind": "adaptive", "beams": 1, "loading": 9.0, "input": source})
    np.testing.assert_array_equal(found.operands["covariances"][0, 0, 0], [[17, 8], [8, 1]])
    assert found.coordinates["antenna"].values.tolist() == ["c", "a"]


def test_names_of_another_workloads_inputs(tmp_path: Path, path: Path) -> None:
    taken = ["west", "core"]
    cases = {
        "visibilities": {**case(path, {"antenna": ["core", "west", "east"]}), "integrate": 6},
        "named": {
            "kind": "gemm",
            "input": {
                "a": {"workload": "visibilities"}, "b": {"workload": "visibilities"},
                "select": {
                    name: {"frequency": 1, "integration": 0, "input": taken} for name in "ab"
                },
            },
            "op_b": "C",
        },
    }  # fmt: skip
    study = chained_cases.study_of(cases)
    found = run(study, tmp_path)
    r = found["visibilities"].data[1, 0][[1, 0]]
    np.testing.assert_allclose(found["named"].data[0], r @ r.conj().T, rtol=1e-5)


@pytest.mark.parametrize(
    ("select", "more", "said"),
    [
        ({"antenna": "wset"}, {}, "names ['core', 'east', 'west'] along antenna, got 'wset'; did"),
        ([":", ":", "a"], {}, "has no names along axis 2, got 'a'; an index, a range such as '0:4"),
        ({"antenna": ["east", 3]}, {}, "axis 1 has length 3: an index must be within -3 to 2, got"),
        (
            {"antenna": "a1"},
            {"coordinates": {"antenna": "other"}},
            "'a1' along antenna at [0, 2]; a",
        ),
        (
            {"antenna": "::-1"},
            {},
            "must be a whole number or text such as '0:4096', '::2' of a step ",
        ),
        ({"time": "2026-11-28"}, {}, "has no names along time, got '2026-11-28'"),
    ],
)
def test_names_that_no_entry_or_several_have(
    path: Path, select: Any, more: dict[str, Any], said: str
) -> None:
    assert said in error_of(case(path, select, **more))


def test_inputs_of_one_feed_are_taken_by_its_name(path: Path) -> None:
    """The error of images of two feeds says how to do it."""
    with h5py.File(path, "r+") as file:
        file["v2"] = np.stack([file["v"][...], 2 * file["v"][...]], axis=1)
    places = {
        name: {"values": [0, 1, 5], "units": "m", "axis": "antenna"} for name in ("east", "north")
    }
    axes = ["time", "polarization", "antenna", "channel"]
    along = {"polarization": ["Y", "X"], "channel": "chan", **places}
    more = {"coordinates": along, "voltages": "v2", "axes": axes}
    covariances: dict[str, Any] = {"covariances": {"workload": "visibilities"}}
    sky = {"kind": "image", "directions": {"n": 1, "cell_arcmin": 1}, "input": covariances}
    cases = {"visibilities": {**case(path, [":"] * 4, **more), "integrate": 6}, "sky": sky}
    with pytest.raises(StudyError, match=r"such as \{input: \[Y\], conjugated_input: \[Y\]\}"):
        check_study(chained_cases.study_of(cases))
    covariances["select"] = {"covariances": {"input": ["X"], "conjugated_input": ["X"]}}
    check_study(chained_cases.study_of(cases))
