"""Coordinates of axes that the data lack: the frequency of one channel, the one feed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from input_files import put
from test_chains import run

from tests.workflow.chained_cases import study_of
from tests.workflow.one_case import error_of, staged
from workflow.config.mistakes import StudyError
from workflow.preflight.check import check_study

LIGHT = 299792458.0
MHZ = {"dataset": "channel_mhz", "units": "MHz"}
SITE = {"latitude_deg": -30, "longitude_deg": 20, "channel_width_hz": 1e6}
GRID = {"n": 9, "field_of_view_deg": 60}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Voltages (antenna, time) of one channel and one feed, with a scalar of each."""
    rng = np.random.default_rng(3)
    path = tmp_path / "narrow.h5"
    with h5py.File(path, "w") as made:
        made["v"] = rng.normal(size=(4, 96)) + 1j * rng.normal(size=(4, 96))
        made["enu"] = rng.uniform(-4, 4, (4, 3))
        made["channel_mhz"], made["feed"] = 152.0, np.bytes_("x")
        made["two"] = np.array([150.0, 151.0])
    return path


def given(path: Path, operand: str, **coordinates: Any) -> dict[str, Any]:
    places = {
        name: {"dataset": "enu", "axis": "antenna", "column": column, "units": "m"}
        for column, name in enumerate(("east", "north", "up"))
    }
    return {
        "file": str(path), operand: "v", "axes": {operand: ["antenna", "time"]},
        "coordinates": {"frequency": MHZ, "time": {"step_s": 1e-3}, **places, **coordinates},
    }  # fmt: skip


@pytest.mark.parametrize("frequency", [MHZ, {"values": [152], "units": "MHz"}])
def test_one_channel_is_imaged_at_its_frequency(
    tmp_path: Path, file: Path, frequency: dict[str, Any]
) -> None:
    """Nothing could say the frequency of samples (antenna, time), so none were imaged."""
    study = study_of({
        "vis": {
            "kind": "correlate", "uvh5": {**SITE, "julian_date": 2459000.5},
            "input": given(file, "voltages", frequency=frequency, polarization="feed"),
        },
        "sky": {"kind": "image", "directions": GRID, "input": {"covariances": {"workload": "vis"}}},
    })  # fmt: skip
    found = run(study, tmp_path / "run")
    assert found["vis"].coordinates["frequency"].values.tolist() == [152.0]
    assert set(found["vis"].coordinates["input_polarization"].values) == {"x"}
    sky = found["sky"]
    l, m = (sky.coordinates[name].values for name in "lm")  # noqa: E741
    with h5py.File(file) as made:
        v, place = made["v"][()], made["enu"][()]
    direction = np.stack(np.broadcast_arrays(
        l[None, :], m[:, None], np.sqrt(1 - l[None, :] ** 2 - m[:, None] ** 2)
    ))  # fmt: skip
    waves = np.exp(2j * np.pi * 152e6 / LIGHT * np.einsum("ai,iml->aml", place, direction))
    power = (np.abs(np.einsum("aml,at->mlt", waves.conj(), v)) ** 2).sum(axis=-1)
    np.testing.assert_allclose(sky.data[0, 0], power, rtol=1e-9)


def test_beams_of_one_channel_are_steered(file: Path) -> None:
    case = {"kind": "beamforming", "beams": 4, "input": given(file, "samples")}
    found = staged(case)
    assert found.operands["weights"].shape == (1, 1, 4, 4)
    assert found.coordinates["frequency"].units == "MHz"


def test_mistakes(file: Path) -> None:
    key = "input.coordinates.frequency"
    one = "; the data have no axis frequency, which therefore has one entry"
    for frequency, said in (
        ({"dataset": "two", "units": "MHz"}, f"{key}: /two must have 1 value, one for each entry"),
        ({"values": [1, 2], "units": "MHz"}, f"{key} must have 1 value, got 2{one}"),
        ({"values": [1]}, f"{key} has no unit; give it as"),
    ):
        source = given(file, "voltages", frequency=frequency)
        error = error_of({"kind": "correlate", "input": source})
        assert error.startswith(said)
        assert error.endswith(one)
    beyond = given(file, "samples", beam=[1])
    assert "must be of an axis of the operands" in error_of(
        {"kind": "dft", "axis": "time", "input": {**beyond, "samples": "v"}}
    )


def sigmf(folder: Path, **tuned: float) -> dict[str, Any]:
    """Two antennas in a recording that may say what it was tuned to."""
    capture = {"core:sample_start": 0, **{f"core:{key}": value for key, value in tuned.items()}}
    about = {"core:datatype": "cf32_le", "core:sample_rate": 2e6, "core:num_channels": 2}
    (folder / "r.sigmf-meta").write_text(json.dumps({"global": about, "captures": [capture]}))
    (folder / "r.sigmf-data").write_bytes(np.ones((32, 2), "<c8").tobytes())
    source = {"file": str(folder / "r.sigmf-meta"), "format": "sigmf", "voltages": "samples"}
    return {**source, "axes": ["time", "antenna"]}


def test_a_recording_that_says_no_frequency(tmp_path: Path) -> None:
    source = sigmf(tmp_path)
    of = {"frequency": {"values": [915], "units": "MHz"}, "polarization": ["x"]}
    found = staged({"kind": "correlate", "input": {**source, "coordinates": of}}).coordinates
    assert (found["frequency"].values.tolist(), found["frequency"].units) == ([915], "MHz")
    assert found["polarization"].values.tolist() == ["x"]
    error = error_of({"kind": "correlate", "input": {**source, "coordinates": {"beam": [1]}}})
    assert error.startswith("input.coordinates.beam: must be of an axis of the operands")


def test_a_recording_that_says_another_frequency(tmp_path: Path) -> None:
    source, of = sigmf(tmp_path, frequency=915e6), {"values": [868], "units": "MHz"}
    case = {"kind": "correlate", "input": {**source, "coordinates": {"frequency": of}}}
    said = "input.coordinates.frequency: the file says it already, 915000000 Hz; leave it out"
    assert error_of(case).startswith(said)
    case["input"]["select"] = {"voltages": {"antenna": 7}}
    error = error_of({**case, "input": {**case["input"], "coordinates": {"antenna": ["a", "b"]}}})
    assert error.startswith("input.select.voltages: ")
    assert len(error.splitlines()) == 1  # nothing of axes that it has
    del case["input"]["select"]
    case["input"]["coordinates"]["frequency"] = {**of, "replace": True}
    found = staged(case).coordinates
    assert found["frequency"].values.tolist() == [868]
    assert "selected_frequency" not in found


BANK: dict[str, Any] = {
    "kind": "channelise", "channels": 4, "taps": 2, "axis": "time", "centre_hz": 1.5e8,
}  # fmt: skip


def of_one_feed(path: Path) -> dict[str, Any]:
    """A filter bank of the second feed of voltages (polarization, antenna, time)."""
    put(path, v=np.random.default_rng(4).normal(size=(2, 3, 96)).astype(np.complex64))
    return {**BANK, "input": {
        "file": str(path), "samples": "v", "axes": ["polarization", "antenna", "time"],
        "sample_rate_hz": 1e6, "select": {"samples": {"polarization": "y"}},
        "coordinates": {"polarization": ["x", "y"], "antenna": ["a", "b", "c"]},
    }}  # fmt: skip


@pytest.mark.parametrize("by_file", [False, True])
@pytest.mark.parametrize("antenna", [None, "b"])
def test_what_one_workload_selects_is_the_feed_of_the_next(
    tmp_path: Path, by_file: bool, antenna: str | None
) -> None:
    """Visibilities of feed y were those of polarization 0, and x in a UVH5 file."""
    bank = of_one_feed(tmp_path / "v.h5")
    bank["input"]["select"]["samples"] |= {"antenna": antenna} if antenna else {}
    below: dict[str, Any] = {"voltages": {"workload": "bank"}}
    study = {"bank": bank}
    if by_file:
        run(study_of(study), tmp_path / "bank")
        path = tmp_path / "bank" / "bank" / "products" / "w.h5"
        axes = ["antenna", "time", "frequency"]
        study, below = {}, {"file": str(path), "voltages": "/entry/data/spectra", "axes": axes}
    study |= {"vis": {"kind": "correlate", "input": below}}
    found = run(study_of(study), tmp_path / "vis")["vis"].coordinates
    names = [antenna] if antenna else ["a", "b", "c"]
    for side in ("input", "conjugated_input"):
        assert found[f"{side}_polarization"].values.tolist() == ["y"] * len(names)
        assert found[f"{side}_antenna"].values.tolist() == names
    assert not any(name.startswith("selected") for name in found)


@pytest.mark.parametrize("axis", ["polarization", "antenna"])
def test_the_number_of_an_entry_without_a_name_goes_along(tmp_path: Path, axis: str) -> None:
    """Visibilities of entry 1 were those of 0, a feed as x in a UVH5 file."""
    bank = of_one_feed(tmp_path / "v.h5")
    del bank["input"]["coordinates"][axis]
    bank["input"]["select"]["samples"] = {axis: 1}
    workloads = {
        "bank": bank, "vis": {"kind": "correlate", "input": {"voltages": {"workload": "bank"}}},
    }  # fmt: skip
    found = run(study_of(workloads), tmp_path)
    one = found["bank"].coordinates[f"selected_{axis}"]
    assert (one.values.tolist(), one.long_name) == (
        [1], f"number of the {axis} in the input that is selected",
    )  # fmt: skip
    assert set(found["vis"].coordinates[f"input_{axis}"].values) == {1}


@pytest.mark.parametrize("kept", ["v", "scalar", "sigmf"])
def test_samples_of_one_feed_may_say_which(tmp_path: Path, file: Path, kept: str) -> None:
    """A filter bank took the feed of an axis alone, so visibilities could not be of y."""
    said: dict[str, Any] = {"coordinates": {"polarization": ["y"]}}
    given = {"file": str(file), "samples": "v", "axes": ["antenna", "time"], **said}
    if kept == "scalar":
        with h5py.File(file, "r+") as made:
            made["polarization"] = np.bytes_("y")
            made["v"].attrs["coordinates"] = "polarization"
        del given["coordinates"]
    if kept == "sigmf":
        given = {**sigmf(tmp_path), "samples": "samples", **said}
        del given["voltages"]
    workloads = {
        "bank": {**BANK, "input": {**given, "sample_rate_hz": 1e6} if kept != "sigmf" else given},
        "vis": {"kind": "correlate", "input": {"voltages": {"workload": "bank"}}},
    }
    found = run(study_of(workloads), tmp_path / "run")
    assert found["bank"].coordinates["selected_polarization"].values.tolist() == ["y"]
    assert set(found["vis"].coordinates["input_polarization"].values) == {"y"}
    if kept == "v":
        wrong = {**given, "coordinates": {"polarisation": ["y"]}}
        assert error_of({**BANK, "input": wrong}).endswith("; did you mean 'polarization'?")


def test_weights_of_another_feed_than_is_selected(tmp_path: Path) -> None:
    workloads = {
        "bank": of_one_feed(tmp_path / "v.h5"),
        "beams": {"kind": "beamforming", "input": {
            "file": str(tmp_path / "w.h5"), "weights": "w", "samples": {"workload": "bank"},
            "axes": {"weights": ["polarization", "beam", "antenna"]},
            "coordinates": {"polarization": ["x"]},
        }},
    }  # fmt: skip
    put(tmp_path / "w.h5", w=np.ones((1, 2, 3), np.complex64))
    with pytest.raises(StudyError, match="another operand along polarization, x, got y"):
        check_study(study_of(workloads))
    workloads["beams"]["input"]["coordinates"] = {"polarization": ["y"]}
    check_study(study_of(workloads))


@pytest.mark.parametrize("names", [["x", "y"], None])
def test_weights_of_several_feeds_for_one_that_was_selected(
    tmp_path: Path, names: list[str] | None
) -> None:
    """Beams of x were made of samples of y, which the workload before had selected."""
    bank = of_one_feed(tmp_path / "v.h5")
    known: dict[str, Any] = {"coordinates": {"polarization": names}} if names else {}
    if not names:
        del bank["input"]["coordinates"]["polarization"]
        bank["input"]["select"]["samples"]["polarization"] = 1
    put(tmp_path / "w.h5", w=np.ones((2, 2, 3), np.complex64))
    source: dict[str, Any] = {
        "file": str(tmp_path / "w.h5"), "weights": "w", "samples": {"workload": "bank"},
        "axes": {"weights": ["polarization", "beam", "antenna"]}, **known,
    }  # fmt: skip
    workloads = {"bank": bank, "beams": {"kind": "beamforming", "input": source}}
    said = (
        "samples: has one entry of polarization, which another workload selects, and weights have 2"
    )
    with pytest.raises(StudyError, match=said):
        check_study(study_of(workloads))
    source["select"] = {"weights": {"polarization": 1}}
    found = run(study_of(workloads), tmp_path / "run")["beams"]
    assert found.coordinates["polarization"].values.tolist() == [names[1] if names else 1]


def test_weights_of_channels_within_one_that_was_selected(tmp_path: Path) -> None:
    """Samples have an axis of these, so none of the weights is for the same samples as another."""
    bank = of_one_feed(tmp_path / "v.h5")
    bank["input"] |= {
        "axes": ["frequency", "antenna", "time"], "select": {"samples": {"frequency": 1}},
        "coordinates": {"frequency": {"values": [1.4e8, 1.5e8], "units": "Hz"}},
    }  # fmt: skip
    del bank["centre_hz"]
    put(tmp_path / "w.h5", w=np.ones((4, 2, 3), np.complex64))
    beams = {"kind": "beamforming", "input": {
        "file": str(tmp_path / "w.h5"), "weights": "w", "samples": {"workload": "bank"},
        "axes": {"weights": ["frequency", "beam", "antenna"]},
    }}  # fmt: skip
    check_study(study_of({"bank": bank, "beams": beams}))
