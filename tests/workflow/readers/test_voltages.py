"""Voltages by baseband, of which a stand-in has what is called."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.workflow.one_case import error_of, study_of
from tests.workflow.peak_memory import with_peak
from tests.workflow.readers.baseband_stand_in import Stream, dada_case, install
from tests.workflow.readers.uvh5_file import case
from workflow.preflight.check import check_study
from workflow.readers import READERS


@pytest.mark.parametrize("name", ["dada", "vdif"])
def test_voltages_by_a_stand_in_of_baseband(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """baseband is under the GPL and no dependency: the stand-in has what is called of it."""
    path = tmp_path / "v.raw"
    path.write_bytes(bytes(2 * 36))
    given = case(path, format=name, samples="voltages") | {"axis": "time"}
    monkeypatch.setitem(sys.modules, f"baseband.{name}", None)
    assert error_of(given).startswith(f"input.format: {name} needs the package baseband")
    install(monkeypatch, name, lambda *_, **__: Stream())
    given["input"]["select"] = {"samples": {"time": "2:6", "polarization": 0}}
    study = study_of(given)
    check_study(study)
    staged = study.workload("w").stage()
    np.testing.assert_array_equal(staged.operands["samples"], Stream.data[2:6, 0].T)
    assert staged.axes["samples"] == ("frequency", "time")
    np.testing.assert_array_equal(staged.coordinates["time"].values, np.arange(2, 6) / 4)

    steps = {"start": 1e9, "step_hz": 1e6}
    given["input"]["coordinates"] = {"frequency": steps, "polarization": ["x", "y"]}
    given["input"]["select"] = {"samples": {"polarization": 0, "frequency": "1:3"}}
    study = study_of(given)
    check_study(study)
    found = study.workload("w").stage().coordinates["frequency"]
    np.testing.assert_array_equal(found.values, [1.001e9, 1.002e9])
    assert found.units == "Hz"
    for wrong, message in (
        ({"frequency": [1.0, 2.0]}, "input.coordinates.frequency must have 3 values, got 2"),
        ({"frequency": [1.0, 2.0, 3.0]}, "input.coordinates.frequency has no unit"),
        (
            {"frequency": {"start": 1e9, "step": 1e6, "units": "m"}},
            "input.coordinates.frequency must be in one of ['Hz', ",
        ),
        ({"time": {"step_s": 1.0}}, "input.coordinates.time: the file says it already"),
    ):
        given["input"]["coordinates"] = wrong
        assert error_of(given).startswith(message)
    del given["input"]["coordinates"]

    for shape in ((37, 2, 3), (10**12, 2, 3), (-5, 2, 3), (6, -2, 3)):
        monkeypatch.setattr(Stream, "shape", shape)
        assert f"lacks frames: it tells of samples of shape {shape}" in error_of(given)

    class VerifyError(Exception):
        """Astropy's, of no other kind."""

    def damaged(*_: Any, **__: Any) -> Any:
        raise VerifyError("no header")

    install(monkeypatch, name, damaged)
    assert "cannot be read as" in error_of(given)


@pytest.mark.parametrize(
    ("name", "header", "centres"),
    [
        ("dada", {"FREQ": "1551.5", "BW": "-3"}, [1552.5e6, 1551.5e6, 1550.5e6]),
        ("dada", {"FREQ": 320.0, "BW": 6.0}, [318e6, 320e6, 322e6]),
        ("dada", {"FREQ": 320.0}, None),
        ("vdif", {}, None),
    ],
)
def test_where_channels_stand_and_since_when_times_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, header: Any, centres: Any
) -> None:
    path = tmp_path / "v.raw"
    path.write_bytes(bytes(2 * 36))
    monkeypatch.setattr(Stream, "header0", header)
    install(monkeypatch, name, lambda *_, **__: Stream())
    found = READERS[name](path).outline("voltages").coordinates
    assert found["time"].long_name == "time since 2018-01-14T14:11:33.000001250 UTC"
    middle = "middle of the bin since 2018-01-14T14:11:33.000001250 UTC"
    assert found["time"].middle_of("bin") == middle
    assert ("frequency" in found) == (centres is not None)
    if centres is not None:
        np.testing.assert_allclose(found["frequency"].values, centres)
        edge = "upper" if centres[0] > centres[-1] else "lower"
        falls = ", of samples whose frequencies fall" if edge == "upper" else ""
        assert found["frequency"].long_name == f"centre of the channel{falls}"
        monkeypatch.setattr(Stream, "complex_data", False)
        real = READERS[name](path).outline("voltages").coordinates["frequency"].long_name
        assert real == f"centre of the channel, whose {edge} edge is frequency 0 of the samples"


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"FREQ": "1551.5", "BW": "3"}, "coordinates.frequency: the file says it already, "
         "1550500000 to 1552500000 Hz; leave it out, or where the file is wrong give"),
        ({"FREQ": "nan", "BW": 3}, "file: PATH: its header's FREQ and BW must be the "
         "finite middle and width of the band in MHz, got 'nan' and 3; or give input.coordinates"),
        ({"FREQ": 1.0, "BW": 0}, "file: PATH: its header's FREQ and BW must be"),
        ({"FREQ": 1e308, "BW": 1e308}, "file: PATH: its header's FREQ and BW must be"),
        ({"FREQ": "none", "BW": True}, "file: PATH: its header's FREQ and BW must be"),
        ({}, "coordinates.frequency.replace: the file says nothing of frequency; leave it out"),
    ],
)  # fmt: skip
def test_wrong_frequencies_of_a_header_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, header: Any, said: str
) -> None:
    path = tmp_path / "v.dada"
    given = dada_case(path, monkeypatch, header)
    given["input"]["axes"] = ["time", "polarization", "frequency"]
    steps: dict[str, Any] = {"start": 1.2e9, "step_hz": -1e6}
    if "already" in said:
        given["input"]["coordinates"] = {"frequency": steps}
    if not header:
        given["input"]["coordinates"] = {"frequency": {**steps, "replace": True}}
    assert error_of(given).startswith("input." + said.replace("PATH", str(path)))
    given["input"]["coordinates"] = {"frequency": {**steps, "replace": bool(header)}}
    study = study_of(given)
    check_study(study)
    found = study.workload("w").stage().coordinates
    np.testing.assert_array_equal(found["frequency"].values, [1.2e9, 1.199e9, 1.198e9])
    assert found["frequency"].units == "Hz"
    listed = {"values": [3, 1, 2], "units": "gigahertz", "replace": bool(header)}
    given["input"]["coordinates"] = {"frequency": listed}
    uneven = study_of(given).workload("w").stage().coordinates["frequency"]
    np.testing.assert_array_equal(uneven.values, [3, 1, 2])
    assert uneven.units == "GHz"
    if "already" not in said:
        return
    assert found["frequency"].long_name == "centre of the channel"
    given["input"]["coordinates"] = {"time": {"step_s": 0.5, "replace": True}}
    study = study_of(given)
    found = study.workload("w").stage().coordinates
    np.testing.assert_array_equal(found["time"].values, np.arange(6) / 2)
    assert found["time"].long_name == "time since 2018-01-14T14:11:33.000001250 UTC"
    steps_since = {"step": 0.5, "units": "seconds since 2026-11-28", "replace": True}
    given["input"]["coordinates"] = {"time": steps_since}
    time = study_of(given).workload("w").stage().coordinates["time"]
    assert (time.units, time.long_name) == ("s", "time since 2026-11-28")
    for wrong, why in (
        ({"start": 1.2e9, "replace": True}, "must have dataset, values or one of"),
        ({**steps, "replace": 1}, "must be true or false"),
        ({**steps, "replaces": True}, "unknown key; did you mean 'replace'?"),
        ({**steps, "step_hz": 1e400, "replace": True}, "must be a finite number"),
        ({"start": 5, "step": 1, "replace": True}, "has no unit"),
        ({"values": [1, 2, 3], "replace": True}, "has no unit; give it as {start: ..., step_hz: "),
        ({"values": [1, 2], "units": "Hz", "replace": True}, "must have 3 values, got 2"),
        ({"values": [], "units": "Hz"}, "coordinates.frequency.values: must be a list of at least"),
        ({"values": 3, "units": "Hz"}, "coordinates.frequency.values: must be a list, got 3"),
        (
            {**listed, "axis": "time"},
            "frequency: 'frequency' is an axis of its own; it stands along time by no name",
        ),
        ({**listed, "value": 1}, "coordinates.frequency.value: unknown key; did you mean 'values'"),
    ):
        given["input"]["coordinates"] = {"frequency": wrong}
        assert why in error_of(given)
    given["input"] |= {"format": "hdf5", "coordinates": {"time": {"step_s": 0.5, "replace": True}}}
    assert "coordinates.time.replace must not be given beside format: hdf5" in error_of(given)


@pytest.mark.parametrize(
    ("order", "turned"), [("TPF", False), (None, False), ("tfp", True), ("FTP", None), ("PT", None)]
)
def test_the_order_of_a_dada_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str | None, turned: bool | None
) -> None:
    path = tmp_path / "v.dada"
    path.write_bytes(bytes(2 * 36))
    monkeypatch.setattr(Stream, "header0", {"ORDER": order} if order else {})
    install(monkeypatch, "dada", lambda *_, **__: Stream())
    given = case(path, format="dada", samples="voltages") | {"axis": "time"}
    if turned is None:
        said = f"time first, as TFP or TPF, or be of one channel and polarization, got '{order}' of"
        assert said in error_of(given)
        monkeypatch.setattr(Stream, "shape", (6, 1, 1))
        return check_study(study_of(given))
    found = study_of(given).workload("w").stage().operands["samples"]
    as_there = Stream.data.reshape(6, 3, 2).swapaxes(1, 2) if turned else Stream.data
    np.testing.assert_array_equal(found, as_there.transpose(1, 2, 0))


def test_unsigned_samples_of_a_dada_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """baseband takes bytes for two's complement: 0 to 255 in offset binary are -128 to 127."""
    given = dada_case(tmp_path / "v.dada", monkeypatch, {})
    stored = np.random.default_rng(2).integers(0, 256, (6, 2, 3, 2), np.uint8)
    signed = stored.view(np.int8).astype(np.float32).view(np.complex64)[..., 0]
    monkeypatch.setattr(Stream, "data", signed)
    given["input"]["zero_level"] = 128
    found = study_of(given).workload("w").stage().held().operands["samples"]
    expected = (stored.astype(np.float32) - 128).view(np.complex64)[..., 0]
    np.testing.assert_array_equal(found, expected.transpose(1, 2, 0))
    given["input"]["format"] = "vdif"
    assert error_of(given) == "input.zero_level must not be given beside format: vdif"


def test_an_assertion_of_baseband_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "v.dada"
    path.write_bytes(bytes(36))

    def opened(file: str, mode: str, squeeze: bool) -> Any:
        raise AssertionError

    install(monkeypatch, "dada", opened)
    given = case(path, format="dada", samples="voltages") | {"axis": "time"}
    assert "cannot be read as dada (AssertionError: in raise AssertionError)" in error_of(given)


def test_a_check_takes_no_memory_for_each_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The times of equal steps are not made for each sample, which would take 16 bytes each."""
    path, samples = tmp_path / "v.dada", 1 << 26
    with path.open("wb") as file:
        file.truncate(samples * 2 * 3 * 2)  # of which nothing is written
    monkeypatch.setattr(Stream, "shape", (samples, 2, 3))
    install(monkeypatch, "dada", lambda *_, **__: Stream())
    one = study_of(case(path, format="dada", samples="voltages") | {"axis": "time"}).workload("w")
    one.check()  # imports
    _, peak = with_peak(one.check)
    outline, more = with_peak(one.outline)
    assert outline.coordinates["time"].step == 0.25
    assert max(peak, more) < 1 << 20
