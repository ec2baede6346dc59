"""Transforms and filter banks: names of axes, and what stood along them, there and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from input_files import put
from test_chains import run

from tests.workflow.chained_cases import study_of
from workflow.config.mistakes import StudyError
from workflow.data import Array
from workflow.files.units import OF_SAMPLES
from workflow.preflight.check import check_study


def transform(source: dict[str, Any] | str, axis: str, **more: Any) -> dict[str, Any]:
    """A transform of a file, or of another workload's product."""
    given = {"samples": {"workload": source}} if isinstance(source, str) else source
    return {"kind": "dft", "axis": axis, "input": given, **more}


def file_of(path: Path, data: Array, axes: list[str], **coordinates: Any) -> dict[str, Any]:
    put(path / "x.h5", x=data + 0j)
    return {"file": str(path / "x.h5"), "samples": "x", "axes": axes, "coordinates": coordinates}


@pytest.mark.parametrize(
    ("axis", "between", "inverse", "start", "step", "units"),
    [
        ("frequency", "delay", False, 100.0, 0.1, "MHz"),
        ("frequency", "time", True, 1500.0, -2.0, "kHz"),
        ("x", "x_frequency", False, -2.0, 0.5, "cm"),
    ],
)
def test_a_transform_back_has_the_axis_again(
    tmp_path: Path, axis: str, between: str, inverse: bool, start: float, step: float, units: str
) -> None:
    """As of visibilities whose delays are filtered, and of holograms, which have lengths in cm."""
    data = np.random.default_rng(3).normal(size=(2, 16))
    along = {"start": start, "step": step, "units": units}
    there = transform(file_of(tmp_path, data, ["row", axis], **{axis: along}), axis)
    there["inverse"], back = inverse, transform("there", between, inverse=not inverse)
    study = study_of({"there": there, "back": back})
    found = run(study, tmp_path)["back"]
    np.testing.assert_allclose(found.data, data, atol=1e-14)
    one = found.coordinates[axis]
    np.testing.assert_allclose(one.values, start + step * np.arange(16), rtol=1e-12)
    assert (one.units, one.long_name, f"selected_{axis}" in found.coordinates) == (
        units, axis, False,
    )  # fmt: skip
    shifted = study_of({"there": there, "back": {**back, "shift": True}})
    with pytest.raises(StudyError, match=f"shift: the {axis} begins at selected_{axis}"):
        check_study(shifted)


@pytest.mark.parametrize("length", [1, 3])
def test_an_axis_named_as_the_beginning_of_the_one_that_is_transformed(
    tmp_path: Path, length: int
) -> None:
    """It is refused at any length: the beginning would stand in place of its own coordinate."""
    source = file_of(
        tmp_path, np.ones((length, 8)), ["selected_x", "x"],
        x={"start": -2, "step": 1}, selected_x={"start": 7, "step": 1},
    )  # fmt: skip
    with pytest.raises(StudyError, match=r"axis has the name selected_x, .* name that axis other"):
        check_study(study_of({"there": transform(source, "x")}))
    check_study(study_of({"there": transform(source, "selected_x")}))


@pytest.mark.parametrize(("taken", "first", "tone"), [("16:32", 16, 21), ("40:56", -24, -20)])
def test_samples_of_a_part_of_a_band_say_which_frequency_is_0(
    tmp_path: Path, taken: str, first: int, tone: int
) -> None:
    """A channel is made by a transform, some of its bins and a transform back.

    Those of the upper half are the negative ones.
    """
    time = np.arange(64) / 64e3
    source = file_of(
        tmp_path,
        np.exp(2e3j * np.pi * tone * time),
        ["time"],
        time={"start": 2, "step_s": 1 / 64e3},
    )
    part = transform("spectrum", "frequency", inverse=True)
    part["input"]["select"] = {"samples": {"frequency": taken}}
    bank = {"kind": "channelise", "channels": 4, "taps": 1, "input": transform("part", "")["input"]}
    study = study_of({
        "spectrum": transform(source, "time"), "part": part, "again": transform("part", "time"),
        "bank": {**bank, "axis": "time"},
    })  # fmt: skip
    found = run(study, tmp_path)
    zero = found["part"].coordinates["selected_frequency"]
    assert (zero.values.tolist(), zero.units) == ([1e3 * first], "Hz")
    np.testing.assert_allclose(found["part"].coordinates["time"].values, 2 + time[:16] * 4)
    again = found["again"]
    frequency = again.coordinates["frequency"].values
    np.testing.assert_allclose(frequency, 1e3 * (first + np.arange(16)), rtol=1e-12)
    assert frequency[np.abs(again.data).argmax()] == pytest.approx(1e3 * tone)
    assert OF_SAMPLES in found["bank"].coordinates["frequency"].long_name


def test_lags_of_cross_spectra_count_from_0(tmp_path: Path) -> None:
    """A correlator of spectra: the phase by the time of the first sample cancels."""
    rng = np.random.default_rng(4)
    wave = rng.normal(size=(8, 40))
    voltages = np.stack([wave[:, 8:], wave[:, 5:-3]])  # the second is later by 3 samples
    source = file_of(
        tmp_path, voltages, ["antenna", "segment", "time"],
        time={"start": 2, "step": 1, "units": "us"},
    )  # fmt: skip
    products = {"voltages": {"workload": "spectra"}}
    lags = transform("cross", "frequency", inverse=True, shift=True)
    lags["input"]["select"] = {"samples": {"input": 1, "conjugated_input": 0}}
    study = study_of({
        "spectra": transform(source, "time"),
        "cross": {"kind": "correlate", "input": {
            **products, "axes": {"voltages": ["antenna", "time", "frequency"]},
        }},
        "lags": lags,
    })  # fmt: skip
    found = run(study, tmp_path)["lags"]
    lag = found.coordinates["time"]
    assert (lag.values[np.abs(found.data[0]).argmax()], lag.units) == (pytest.approx(3), "us")


def test_two_axes_of_one_name_count_from_neither_beginning(tmp_path: Path) -> None:
    """Where pulses are transformed too, ranges do not begin at the time of the first pulse."""
    source = file_of(
        tmp_path, np.ones((8, 16)), ["pulse", "time"], pulse={"start": 100, "step_s": 1},
        time={"start": 7, "step": 1, "units": "us"},
    )  # fmt: skip
    rates = transform("ranges", "time")
    rates["input"]["axes"] = {"samples": ["time", "frequency"]}
    chain = {
        "ranges": transform(source, "time"), "rates": rates,
        "again": transform("rates", "frequency", inverse=True),
    }  # fmt: skip
    found = run(study_of(chain), tmp_path)["again"].coordinates
    assert (found["time"].values[0], found["time"].units) == (0, "us")
    assert (found["selected_time"].values.tolist(), found["selected_time"].units) == ([7], "us")


def test_an_axis_begins_where_it_did_though_another_has_its_name(tmp_path: Path) -> None:
    """Rates of visibilities have the name that their delays had; channels begin at 100 MHz."""
    source = file_of(
        tmp_path, np.ones((8, 16)), ["time", "frequency"], time={"start": 5, "step_s": 10},
        frequency={"start": 100, "step": 0.5, "units": "MHz"},
    )  # fmt: skip
    chain = {
        "delays": transform(source, "frequency"), "rates": transform("delays", "time"),
        "again": transform("rates", "delay", inverse=True),
    }  # fmt: skip
    found = run(study_of(chain), tmp_path)["again"]
    channels = found.coordinates[found.axes[-1]]
    np.testing.assert_allclose(channels.values, 100 + 0.5 * np.arange(16))
    assert (channels.units, found.axes[0]) == ("MHz", "frequency")


@pytest.mark.parametrize(
    ("case", "axes", "other", "expected"),
    [
        ({"kind": "channelise", "channels": 8, "taps": 4, "axis": "time"}, ["coarse", "time"],
         "frequency", "fine_frequency"),
        ({"kind": "dft", "axis": "time"}, ["coarse", "time"], "frequency", "time_frequency"),
        ({"kind": "dft", "axis": "time", "power": True, "length": 8}, ["coarse", "time"],
         "frequency", "time_frequency"),
        ({"kind": "dft", "axis": "frequency"}, ["pair", "frequency"], "delay", "frequency_delay"),
    ],
)  # fmt: skip
def test_an_axis_that_comes_out_takes_no_name_that_stands_along_another(
    tmp_path: Path, case: dict[str, Any], axes: list[str], other: str, expected: str
) -> None:
    """The frequencies of coarse channels, and the delays of pairs, were lost from products."""
    put(tmp_path / "v.h5", v=np.ones((2, 64), np.complex64))
    along = {"values": [5, 7], "units": "MHz" if other == "frequency" else "ns", "axis": axes[0]}
    source = {
        "file": str(tmp_path / "v.h5"), "samples": "v", "axes": axes,
        "coordinates": {other: along},
    }  # fmt: skip
    one = study_of({"w": {**case, "input": source}}).workload("w")
    found = one.product_outline(one.outline())
    assert found.coordinates[other].values.tolist() == [5, 7]
    assert found.axes[-1] == expected
