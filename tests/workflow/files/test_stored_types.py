"""Packed and missing numbers of netCDF files, by the attributes that say so."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.workflow.whole_files import read_staged
from workflow.config.mistakes import StudyError
from workflow.files.input_error import InputError
from workflow.preflight.check import check_study
from workflow.preflight.loading import load_study
from workflow.steps.staging import stage

STORED = np.arange(-12, 12, dtype=np.int16).reshape(2, 12)


def study_of(path: Path, samples: Any, **more: Any) -> Any:
    source = {"file": str(path), "samples": samples, "axes": ["antenna", "time"], **more}
    case = {"kind": "dft", "axis": "time", "input": source}
    return load_study({"device": "cpu", "workloads": {"w": case}})


def file_of(path: Path, data: Any = STORED, **attributes: Any) -> Path:
    with h5py.File(path, "w") as file:
        file["x"], file["y"] = data, np.asarray(data)[::-1]
        file["t"] = np.arange(12, dtype=np.int32)
        for name, value in attributes.items():
            for dataset in ("x", "y", "t"):
                file[dataset].attrs[name] = value
    return path


def staged(path: Path, samples: Any, **more: Any) -> Any:
    study = study_of(path, samples, **more)
    check_study(study)
    return study.workload("w").stage()


@pytest.mark.parametrize("scale", [np.float32(0.25), np.array([0.25]), np.array([2], np.int16)])
def test_packed_numbers_are_unpacked(tmp_path: Path, scale: Any) -> None:
    """They are stored * scale_factor + add_offset; netCDF's attributes have one value or none."""
    path = file_of(tmp_path / "v.nc", scale_factor=scale, add_offset=np.float32(10))
    factor = float(np.ravel(scale)[0])
    expected = STORED * factor + 10
    found = staged(path, {"real": "x", "imag": "y"}).operands["samples"]
    np.testing.assert_array_equal(found, expected + 1j * expected[::-1])
    wide = np.asarray(scale).dtype == np.float64
    assert found.dtype == (np.complex128 if wide else np.complex64)
    steps = {"time": {"dataset": "t", "units": "s"}}
    times = staged(path, {"real": "x"}, coordinates=steps).coordinates["time"].values
    np.testing.assert_array_equal(times, np.arange(12) * factor + 10)


@pytest.mark.parametrize("name", ["_FillValue", "missing_value"])
def test_missing_numbers_are_nan(tmp_path: Path, name: str) -> None:
    path = file_of(tmp_path / "v.nc", **{name: np.int16(-12)})
    with pytest.raises(InputError, match=r"has 1 NaN and 0 Inf among 24 values, the first at"):
        staged(path, {"real": "x"})
    found = staged(path, {"real": "x"}, select={"samples": {"time": "1:"}}).operands["samples"]
    np.testing.assert_array_equal(found, STORED[:, 1:])
    path = file_of(tmp_path / "f.nc", STORED / 3, **{name: np.nan})  # as xarray writes always
    np.testing.assert_array_equal(staged(path, {"real": "x"}).operands["samples"], STORED / 3)
    path = file_of(tmp_path / "g.nc", STORED.astype(float), **{name: np.array([1.0, -1e20])})
    with pytest.raises(InputError, match="has 1 NaN"):
        staged(path, {"real": "x"})


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"scale_factor": np.nan}, "must have one finite number as scale_factor and add_offset"),
        ({"add_offset": np.inf}, "must have one finite number as scale_factor and add_offset"),
        ({"scale_factor": [1.0, 2.0]}, "must have one finite number as scale_factor"),
        ({"scale_factor": "two"}, "has an attribute scale_factor that is not one number, or a few"),
        ({"scale_factor": 1j}, "has an attribute scale_factor that is not one number, or a few"),
        ({"_FillValue": np.zeros(100)}, "has an attribute _FillValue that is not one number"),
        ({"_FillValue": np.zeros(0)}, "has an attribute _FillValue that is not one number"),
        ({"_FillValue": h5py.Empty("f8")}, "has an attribute _FillValue that is not one number"),
        ({"BSCALE": 0.25}, "has FITS's BSCALE 0.25, and nothing says whether it is applied "
         "already; delete it where it is, and where it is not write scale_factor in its place"),
        ({"BSCALE": 1.0, "BZERO": 32768}, "has FITS's BZERO 32768, and nothing says whether"),
        ({"BLANK": -12}, "has FITS's BLANK -12, and nothing says whether"),
        ({"BZERO": [0.0, 0.0]}, "has FITS's BZERO 0.0, 0.0, and nothing says whether"),
        ({"BSCALE": "1.0"}, "has an attribute BSCALE that is not one number, or a few; correct or"),
        (
            {"_Unsigned": "True", "_FillValue": 3},  # as netCDF's Python package reads it, too
            "holds unsigned numbers, uint16; say which stands "
            "for 0 by input.zero_level.samples: 32768 in offset binary, 0 where none is below 0",
        ),
    ],
    ids=str,
)  # fmt: skip
def test_attributes_that_cannot_be(tmp_path: Path, attributes: dict[str, Any], said: str) -> None:
    path = file_of(tmp_path / "v.nc", **attributes)
    with pytest.raises(StudyError) as error:
        check_study(study_of(path, {"real": "x"}))
    assert f"input.samples: /x {said}" in str(error.value)


@pytest.mark.parametrize("kind", [np.int16, np.float32])
def test_attributes_of_fits_that_change_nothing(tmp_path: Path, kind: Any) -> None:
    """A factor of 1, an offset of 0, and a missing integer of numbers that are none."""
    blank = {"BLANK": -12} if kind is np.float32 else {}
    path = file_of(tmp_path / "v.h5", STORED.astype(kind), BSCALE=1, BZERO=0.0, **blank)
    np.testing.assert_array_equal(staged(path, {"real": "x"}).operands["samples"], STORED)


@pytest.mark.parametrize("scale", [np.float32(0.25), 0.01])
def test_complex_numbers_have_a_scale(tmp_path: Path, scale: Any) -> None:
    """Complex integers of 16 bits, as recorders store volts, are multiplied by their scale."""
    pairs = np.empty(STORED.shape, [("r", ">i2"), ("i", ">i2")])
    pairs["r"], pairs["i"] = STORED, 3 * STORED
    complex_numbers = (STORED * (1 + 3j)).astype(np.complex64)
    for name, data, samples, expected in (
        ("pairs", pairs, "x", complex_numbers),
        ("complex", complex_numbers, "x", complex_numbers),
        ("nibbles", STORED.astype(np.int8), {"int4x2": "x"}, None),
    ):
        path = tmp_path / f"{name}.h5"
        with h5py.File(path, "w") as file:
            file["x"] = data
            file["x"].attrs["scale_factor"] = scale
        if expected is None:
            lower = (STORED.astype(np.int8) << 4) >> 4
            expected = (STORED.astype(np.int8) >> 4) + 1j * lower
        found = staged(path, samples).operands["samples"]
        np.testing.assert_allclose(found, expected * float(scale), rtol=1e-6)
        wide = isinstance(scale, float) and name != "complex"
        assert found.dtype == (np.complex128 if wide else np.complex64)


def test_what_complex_numbers_have_not(tmp_path: Path) -> None:
    said = "is complex, and may have a scale_factor alone of the attributes of packed and missing"
    for data, samples in ((np.complex64, "x"), (np.int8, {"int4x2": "x"})):
        for name in ("add_offset", "_FillValue"):
            path = file_of(tmp_path / "v.h5", STORED.astype(data), **{name: np.float32(2)})
            with pytest.raises(StudyError, match=said):
                check_study(study_of(path, samples))
        path = file_of(tmp_path / "v.h5", STORED.astype(data), BSCALE=2.0)
        with pytest.raises(StudyError, match=r"FITS's BSCALE 2\.0"):
            check_study(study_of(path, samples))
    path = file_of(tmp_path / "u.h5", STORED.astype(np.complex64), scale_factor=1.0)
    assert staged(path, "x").operands["samples"].dtype == np.complex64


@pytest.mark.parametrize(
    ("units", "unit", "date"),
    [
        ("seconds since 2026-11-28 10:00:00", "s", " since 2026-11-28 10:00:00"),
        ("Milliseconds", "ms", ""), (" us ", "us", ""), ("fortnights", "fortnights", ""),
        ("days since 1970-01-01", "d", " since 1970-01-01"),
    ],
)  # fmt: skip
def test_units_in_words_and_dates(tmp_path: Path, units: str, unit: str, date: str) -> None:
    """The date of a unit of time is no part of the unit: a spectrum's frequencies are in 1/s."""
    path = file_of(tmp_path / "v.nc", STORED.astype(float), units=np.bytes_(units))
    times = {"coordinates": {"time": "t"}}
    study = study_of(path, {"real": "x"}, **times)
    one = study.workload("w")
    found = one.stage().coordinates["time"]
    assert (found.units, found.long_name) == (unit, f"time{date}")
    assert found.middle_of("bin") == f"middle of the bin{date}"
    spectrum = one.product_outline(one.outline()).coordinates["frequency"]
    assert spectrum.units == {"s": "Hz", "ms": "kHz", "us": "MHz"}.get(unit, spectrum.units)


@pytest.mark.parametrize("units", ["mV", b"mV", np.array(["mV"], object), np.array([b"mV"])])
def test_units_are_read_however_they_are_written(tmp_path: Path, units: Any) -> None:
    """Some programs write a unit's text as an array of one, which is read too."""
    path = file_of(tmp_path / "v.h5", units=units)
    one = study_of(path, {"real": "x"}, coordinates={"antenna": [1, 2]}).workload("w")
    stage(one, [path], tmp_path / "s.h5", logging.getLogger("test"))
    assert read_staged(tmp_path / "s.h5").units == {"samples": "mV"}


@pytest.mark.parametrize("units", [3.0, np.array(["mV", "V"], object), h5py.Empty("S2"), "x" * 99])
def test_what_is_no_unit_is_none(tmp_path: Path, units: Any) -> None:
    assert staged(file_of(tmp_path / "v.h5", units=units), {"real": "x"}).units == {}


@pytest.mark.parametrize(
    ("attributes", "low", "high"),
    [
        ({"valid_min": np.int16(-10)}, -10, 11),
        ({"valid_max": np.int16(7)}, -12, 7),
        ({"valid_range": np.array([-3, 4], np.int16), "scale_factor": 0.5}, -3, 4),
        ({"valid_range": np.array([-1.5, 2.0]), "scale_factor": 0.5}, -3, 4),
    ],
)
def test_numbers_outside_of_the_valid_ones_are_nan(
    tmp_path: Path, attributes: dict[str, Any], low: int, high: int
) -> None:
    """Of the type of stored numbers these are limited, of another what they stand for."""
    path = file_of(tmp_path / "v.nc", **attributes)
    lost = int(np.sum(np.clip(STORED, low, high) != STORED))
    with pytest.raises(InputError, match=rf"has {lost} NaN and 0 Inf among 24 values"):
        staged(path, {"real": "x"})
    first = STORED[0] * attributes.get("scale_factor", 1.0)
    case = study_of(path, {"real": "x"}, select={"samples": {"antenna": 0, "time": "9:12"}})
    if low <= STORED[0, 9]:
        found = case.workload("w").stage().operands["samples"]
        np.testing.assert_array_equal(found[0], first[9:])


def test_valid_numbers_of_unsigned_ones_and_of_floating_point(tmp_path: Path) -> None:
    bytes_ = np.arange(24, dtype=np.uint8).reshape(2, 12) * 10
    path = file_of(tmp_path / "u.nc", bytes_.view(np.int8), _Unsigned="true", scale_factor=1.0,
                   valid_max=np.int8(-56))  # fmt: skip
    with pytest.raises(InputError, match="has 3 NaN"):  # 210, 220 and 230 are above 200
        staged(path, {"real": "x"})
    tenths = np.full((2, 12), 0.1, np.float32)
    path = file_of(tmp_path / "f.nc", tenths, valid_range=[0.1, 0.2])
    np.testing.assert_array_equal(staged(path, {"real": "x"}).operands["samples"], tenths)
    for wrong in ({"valid_range": 3.0}, {"valid_min": [1.0, 2.0]}, {"valid_max": "3"}):
        with pytest.raises(
            StudyError, match=r"/x (must have .* numbers as|has an attribute) valid_"
        ):
            check_study(study_of(file_of(tmp_path / "w.nc", **wrong), {"real": "x"}))
    path = file_of(tmp_path / "c.nc", STORED.astype(np.complex64), valid_max=3.0)
    with pytest.raises(StudyError, match="is complex, and may have a scale_factor alone"):
        check_study(study_of(path, "x"))
