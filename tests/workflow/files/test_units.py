"""Units that files and studies name: their words, and what converts to Hz, s and m."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from test_chains import run

from tests.workflow.chained_cases import study_of
from workflow.config.mistakes import StudyError
from workflow.config.uvh5_site import Uvh5Site
from workflow.files.units import BASES, FACTORS, dated, in_base, parted, squared
from workflow.inputs.dates import julian_date
from workflow.preflight.check import check_study
from workflow.steps.uvh5 import write_uvh5
from workflow.storage.staged import open_staged, write_staged

SITE = {"latitude_deg": -26.7, "longitude_deg": 116.6, "julian_date": 2461372.75}
IN_BASES: dict[str, Any] = {
    "frequency": {"start": 1e8, "step_hz": -1e6}, "time": {"step_s": 1e-3},
    "east": {"values": [0.0, 3000.0, 900.0], "units": "m", "axis": "antenna"},
    "north": {"values": [100.0, -200.0, 0.0], "units": "m", "axis": "antenna"},
    "up": {"values": [0.5, 1.5, -2.0], "units": "m", "axis": "antenna"},
}  # fmt: skip
POWER = {"detect": "power"}
IN_OTHERS: dict[str, Any] = {
    "frequency": {"values": [100, 99], "units": "mhz"}, "time": {"step": 1, "units": "msec"},
    "east": {"values": [0.0, 3.0, 0.9], "units": "kilometres", "axis": "antenna"},
    "north": {"values": [1e4, -2e4, 0.0], "units": "cm", "axis": "antenna"},
    "up": {"values": [500, 1500, -2000], "units": "mm", "axis": "antenna"},
}  # fmt: skip


def test_visibilities_are_written_in_the_units_of_uvh5(tmp_path: Path) -> None:
    parts = np.random.default_rng(6).standard_normal((2, 1, 3, 24, 2)).astype("f4")
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file["v"] = parts.view("c8")[..., 0]
    headers = []
    for name, coordinates in (("bases", IN_BASES), ("others", IN_OTHERS)):
        source = {
            "file": str(tmp_path / "v.h5"), "voltages": "v", "coordinates": coordinates,
            "axes": ["frequency", "polarization", "antenna", "time"],
        }  # fmt: skip
        study = study_of(
            {"v": {"kind": "correlate", "integrate": 8, "uvh5": SITE, "input": source}}
        )
        run(study, tmp_path / name)
        path = tmp_path / f"{name}.uvh5"
        write_uvh5(tmp_path / name / "v" / "products" / "w.h5", path, Uvh5Site.model_validate(SITE))
        with h5py.File(path) as file:
            header = file["Header"]
            headers.append({
                key: header[key][...]
                for key in ("freq_array", "channel_width", "time_array", "integration_time",
                            "uvw_array", "antenna_positions")
            })  # fmt: skip
    np.testing.assert_allclose(headers[0]["freq_array"], [1e8, 9.9e7])
    np.testing.assert_allclose(headers[0]["integration_time"], 8e-3)
    np.testing.assert_allclose(headers[0]["uvw_array"][1], [3000, -300, 1])
    for key, values in headers[0].items():
        np.testing.assert_allclose(headers[1][key], values, rtol=1e-12, atol=1e-9, err_msg=key)


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("MHZ", "MHz"), ("mhz", "MHz"), ("mHz", "mHz"), ("hz", "Hz"), ("Megahertz", "MHz"),
        ("hours", "h"), ("Days", "d"), ("minute", "min"), ("min", "min"), ("msec", "ms"),
        ("\u00b5s", "us"), ("kilometres", "km"), ("V", "V"), ("furlongs", "furlongs"),
    ],
)  # fmt: skip
def test_words_of_units(text: str, unit: str) -> None:
    assert parted(text) == (unit, "")
    assert parted(f" {text} since 2026-11-28 10:00:00 ") == (unit, "2026-11-28 10:00:00")


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("MJD", "1858-11-17T00:00:00"),
        (" mjd", "1858-11-17T00:00:00"),
        ("JD", "-4713-11-24T12:00:00"),
    ],
)
def test_days_that_astronomers_count(text: str, date: str) -> None:
    """MJD and the like are days from a date, not units of their own."""
    assert parted(text) == ("d", date)
    seconds = np.datetime64(date) - np.datetime64("1970-01-01T00:00:00")
    day = {"M": 40587.0, "J": 2440587.5}[text.strip().upper()[0]]
    assert -seconds / np.timedelta64(86400, "s") == day


def test_a_unit_is_as_large_as_its_prefix_or_its_span_says() -> None:
    prefixes = {"n": -9, "u": -6, "m": -3, "c": -2, "": 0, "k": 3, "M": 6, "G": 9, "T": 12}
    spans = {"min": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
    for name, base in BASES.items():
        for unit in FACTORS[base]:
            span = unit.removeprefix("1/")
            if span in spans:
                size = spans[span].total_seconds()
                expected = size if span == unit else 1 / size
            else:
                expected = 10.0 ** prefixes[unit.removesuffix(base)]
            assert in_base(name, np.array([3.0]), unit) == pytest.approx(3 * expected, rel=1e-15)


def test_both_parts_have_one_unit(tmp_path: Path) -> None:
    path = tmp_path / "in.h5"
    source: dict[str, Any] = {"file": str(path), "voltages": {"real": "re", "imag": "im"}}
    for units, said in (
        ({"re": "mV", "im": "mV"}, "mV"), ({"re": "mV"}, "mV"), ({"im": "V"}, "V"), ({}, ""),
        ({"re": "mV", "im": "V"}, None),
    ):  # fmt: skip
        with h5py.File(path, "w") as file:
            for name in ("re", "im"):
                file[name] = np.ones((3, 8))
                if name in units:
                    file[name].attrs["units"] = units[name]
        study = study_of({"w": {"kind": "correlate", "input": source}})
        if said is not None:
            assert study.workload("w").outline().units.get("voltages", "") == said
            continue
        with pytest.raises(StudyError, match="one unit, got 'mV' of /re and 'V' of /im; write"):
            check_study(study)
        given = study_of({"w": {"kind": "correlate", "input": {**source, "units": "V"}}})
        assert given.workload("w").outline().units["voltages"] == "V"


@pytest.mark.parametrize("unit", ["degrees", "rad", "dB", "dBm"])
def test_amplitudes_and_phases_are_no_parts(tmp_path: Path, unit: str) -> None:
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as file:
        file["abs"], file["arg"] = np.ones((2, 3, 8))
        file["arg"].attrs["units"] = np.bytes_(unit)
    source = {"file": str(path), "voltages": {"real": "abs", "imag": "arg"}}
    with pytest.raises(StudyError, match=rf"/arg is in '{unit}', as amplitudes or phases are"):
        check_study(study_of({"w": {"kind": "correlate", "input": source}}))
    check_study(study_of({"w": {"kind": "correlate", "input": {**source, "units": "V"}}}))


def test_angles_that_are_real_or_two_parts(tmp_path: Path) -> None:
    """A series of directions, and the Earth's pole x + i y, are no amplitudes and phases."""
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as file:
        for name in ("x", "y"):
            file[name] = np.ones((3, 8))
            file[name].attrs["units"] = np.bytes_("rad")
    for parts in ({"real": "x"}, {"real": "x", "imag": "y"}):
        source = {"file": str(path), "samples": parts}
        study = study_of({"w": {"kind": "dft", "axis": -1, "input": source}})
        check_study(study)
        assert study.workload("w").outline().units["samples"] == "rad"


@pytest.mark.parametrize(
    ("stored", "said"),
    [(b"\xb5V", "?V"), (np.bytes_(b"\xb5V"), "\ufffdV"), (np.bytes_(b"V\0V"), "V V")],
)
def test_a_unit_that_hdf5_would_not_take_back_is_staged(
    tmp_path: Path, stored: bytes, said: str
) -> None:
    """Latin-1 and NUL in a unit ended the stage job with an error of h5py's."""
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file["v"] = np.ones((4, 8), np.complex64)
        file["v"].attrs["units"] = stored
    source = {"file": str(tmp_path / "v.h5"), "voltages": "v"}
    one = study_of({"w": {"kind": "correlate", "input": source}}).workload("w")
    write_staged(tmp_path / "s.h5", one.stage(), workload="w", kind="correlate")
    with open_staged(tmp_path / "s.h5") as staged:
        assert staged.outline.units == {"voltages": said}


def test_the_attribute_unit_stands_for_units(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file["x"], file["t"] = np.ones((2, 8), np.complex64), np.arange(8.0)
        file["x"].attrs["unit"] = "V"
        file["t"].attrs["unit"] = "ms"
    source = {
        "file": str(tmp_path / "v.h5"), "samples": "x", "axes": ["antenna", "time"],
        "coordinates": {"time": "t"},
    }  # fmt: skip
    study = study_of({"w": {"kind": "dft", "axis": "time", "input": source}})
    check_study(study)
    found = study.workload("w").stage()
    assert (found.units["samples"], found.coordinates["time"].units) == ("V", "ms")


@pytest.mark.parametrize(
    ("kind", "units", "expected"),
    [
        ("gemm", {"a": "S", "b": "V"}, "S V"),
        ("gemm", {"a": "V/m", "b": "1"}, "V/m"),
        ("gemm", {"a": "V", "b": "V"}, "V^2"),
        ("gemm", {}, ""),
        ("solve", {"a": "ohm", "b": "V"}, "V/ohm"),
        ("solve", {"a": "V/A", "b": ""}, "1/(V/A)"),
        ("solve", {"b": "V"}, "V"),
    ],
)
def test_products_have_the_units_that_their_operands_give(
    kind: str, units: dict[str, str], expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as file:
        file["a"], file["b"] = np.eye(4, dtype="c8"), np.ones((4, 2), "c8")
        for name, unit in units.items():
            file[name].attrs["units"] = unit
    source = {"file": str(path), "a": "a", "b": "b"}
    one = study_of({"w": {"kind": kind, "input": source}}).workload("w")
    assert one.product_outline(one.outline()).units == expected


@pytest.mark.parametrize(
    ("unit", "expected"),
    [("V", "V^2"), ("V/V", "(V/V)^2"), ("V^2", "(V^2)^2"), ("1/mV V", "(1/mV V)^2"), ("1", ""),
     ("", ""), ("dimensionless", ""), ("sqrt(Jy)", "Jy"), ("Jy^0.5", "Jy"), ("Jy**(1/2)", "Jy"),
     ("sqrt(Jy) m", "(sqrt(Jy) m)^2"), ("sqrt(Jy/(m s))", "(sqrt(Jy/(m s)))^2"),
     ("s-1", "(s-1)^2"), ("V·m", "(V·m)^2")],
)  # fmt: skip
def test_the_unit_of_a_power(unit: str, expected: str, tmp_path: Path) -> None:
    assert squared(unit) == expected
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as file:
        file["v"] = np.ones((4, 8), "c8")
        file["h"] = np.ones((1, 2, 4, 2), "c8")
        file["v"].attrs["units"] = file["h"].attrs["units"] = unit
    source = {"file": str(path), "voltages": "v"}
    one = study_of({"w": {"kind": "correlate", "input": source}}).workload("w")
    assert one.product_outline(one.outline()).units == expected
    source = {"file": str(path), "channel": "h"}
    link = study_of({"w": {"kind": "mimo", "input": source}}).workload("w")
    assert link.product_outline(link.outline()).coordinates["noise_power"].units == expected


@pytest.mark.parametrize(("detect", "expected"), [({}, "(1/mV) V"), (POWER, "((1/mV) V)^2")])
def test_beams_have_the_weights_unit_too(
    detect: dict[str, str], expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as file:
        file["w"], file["v"] = np.ones((3, 4), "c8"), np.ones((4, 8), "c8")
        file["w"].attrs["units"], file["v"].attrs["units"] = "1/mV", "V"
    source = {"file": str(path), "weights": "w", "samples": "v"}
    one = study_of({"w": {"kind": "beamforming", "input": source, **detect}}).workload("w")
    assert one.product_outline(one.outline()).units == expected


@pytest.mark.parametrize(
    ("calendar", "date"),
    [
        ("", "2000-01-01"),
        ("proleptic_gregorian", "2000-01-01"),
        ("noleap", "2000-01-01 in the calendar noleap"),
        ("TAI", "2000-01-01 in the calendar TAI"),
    ],
)
def test_a_date_of_another_calendar_is_no_date_of_ours(calendar: str, date: str) -> None:
    assert parted(dated("days since 2000-01-01", calendar)) == ("d", date)
    assert (julian_date(date) is None) == ("calendar" in date)
    assert dated("d", calendar) == "d"
