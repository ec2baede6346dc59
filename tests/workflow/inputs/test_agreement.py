"""Coordinates of two operands that are the same, or are not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.workflow.chained_cases import study_of
from tests.workflow.readers.guppi_file import parts, write
from workflow.config.mistakes import StudyError
from workflow.data import Coordinate
from workflow.files.input_error import InputError
from workflow.inputs.agreement import check_agrees, differ, in_names
from workflow.inputs.dates import from_the_first
from workflow.preflight.check import check_study

DATE = "2026-11-28T10:00:00.123456789"
DAYS = 61372 + (36000 + 0.123456789) / 86400
"""The same in days since 1858, which fp64 has to 0.3 us."""


def of(values: Any, units: str = "", long_name: str = "") -> Coordinate:
    return Coordinate(np.array(values), units, long_name)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (of([1421.5, 1420.5], "MHz"), of([1.4215e9, 1.4205e9], "Hz"), False),
        (of([0.1 + 0.2, 0.4], "GHz"), of([300.0, 400.0], "MHz"), False),
        (of([1421.5, 1420.5], "MHz"), of([1421.5, 1420.49], "MHz"), True),
        (of([1421.5, 1420.5], "MHz"), of([1421.5, 1420.5], "Hz"), True),
        (of([1421.5, 1420.5], "MHz"), of([1421.5, 1420.5], ""), True),
        (of([1.42e9], "Hz"), of([1420.0], "MHz"), False), (of([0.0], "s"), of([1.0], "s"), True),
        (of([1.7e9, 1.7e9 + 1e-6], "s"), of([1.7e9, 1.7e9 + 2e-6], "s"), True),
        (of([0, 1], "s", "time since 2026-11-28"), of([0, 1], "s", "time since 2026-11-27"), True),
        (of([0, 1], "s", "time since 2026-11-28"), of([0, 1000], "ms"), False),
        (of([0, 1], "s", "time since 2026-11-28 10:00:00"),
         of([0, 1], "s", "middle of the bin since 2026-11-28T10:00:00.000000000 UTC"), False),
        (of([0, 1], "s", "time since 2026-11-28 10:00:00"),
         of([0, 1], "s", "time since 2026-11-28T10:00:00.000000001Z"), False),
        (of([0, 1], "s", "time since 2026-11-28 10:00:00"),
         of([0, 1], "s", "time since 2026-11-28T10:00:00.002Z"), True),
        (of([3600, 3601], "s", "time since 2026-11-28"),
         of([0, 1], "s", "time since 2026-11-28T01:00:00"), False),
        (of([0.0], "s", "time since 2026-11-28"), of([0.0], "s", "time since 2026-11-28T01"), True),
        (of([0.0], "s", "time since a Monday"), of([0.0], "s", "time since a Tuesday"), True),
        (of([0, 1], "", "count since 2026-11-28"), of([0, 1], "", "count since 2026-11-29"), True),
        (of(["x", "y"]), of(["X ", "Y"]), False), (of(["x", "y"]), of(["y", "x"]), True),
        (of([0, 1]), of(["0", "2"]), True),
    ],
)  # fmt: skip
def test_coordinates_that_differ(one: Coordinate, other: Coordinate, expected: bool) -> None:
    assert differ(one, other) == differ(other, one) == expected


@pytest.mark.parametrize(
    ("name", "one", "several", "expected"),
    [
        ("polarization", of(["y"]), of(["x", "y"]), True),
        ("polarization", of(["X"]), of(["x", "x "]), False),
        ("polarization", of([1]), of(["x", "y"]), False),
        ("beam", of(["y"]), of(["x", "y"]), False),
        ("frequency", of([151.0], "MHz"), of([1.5e8, 1.6e8], "Hz"), False),
        ("frequency", of([141.0], "MHz"), of([1.5e8, 1.6e8], "Hz"), False),
        ("frequency", of([139.0], "MHz"), of([1.5e8, 1.6e8], "Hz"), True),
        ("frequency", of([171.0], "MHz"), of([1.6e8, 1.5e8], "Hz"), True),
        ("frequency", of([3.0], "m"), of([1.6e8, 1.5e8], "Hz"), False),
        ("time", of([99.0], "s"), of([0.0, 1.0], "s"), False),
    ],
)  # fmt: skip
def test_one_entry_that_is_for_several(
    name: str, one: Coordinate, several: Coordinate, expected: bool
) -> None:
    """An entry disagrees with several of other names, or of a band without its frequency."""
    for pair in ((one, several), (several, one)):
        if expected:
            with pytest.raises(InputError, match=rf"another operand along {name}, "):
                check_agrees("samples", name, *pair)
        else:
            check_agrees("samples", name, *pair)


@pytest.mark.parametrize(
    ("other", "step_s", "entries", "expected"),
    [
        (of(DAYS + np.arange(4) * 1e-5 / 86400, "d", "t since 1858-11-17"), 1e-5, 4, False),
        (of(DAYS + np.arange(1, 5) * 1e-5 / 86400, "d", "t since 1858-11-17"), 1e-5, 4, True),
        (of([DAYS], "d", "time since 1858-11-17"), 1e-5, 1, False),
        (of([DAYS + 2400000.5], "d", "time since -4713-11-24T12:00:00"), 1e-5, 1, False),
        (of([0.0], "s", f"time since the Julian date {DAYS + 2400000.5:.9f}"), 1e-5, 1, False),
        (of([1e-4], "s", f"time since the Julian date {DAYS + 2400000.5:.9f}"), 1e-5, 1, True),
        (of([DAYS + 2e-6 / 86400], "d", "time since 1858-11-17"), 1e-5, 1, True),
        (of(np.arange(4) * 1e-8, "s", f"t since {DATE[:-1]}8"), 1e-8, 4, False),
        (of(np.arange(4) * 1e-8, "s", f"t since {DATE[:-1]}6"), 1e-8, 4, True),
        (of(np.arange(4) * 1e-6, "s", "t since 2026-11-28T10:00:00.123457"), 1e-6, 4, True),
        (of(np.arange(4) * 1e-5, "s", "t since 2026-11-28T10:00:00.123457"), 1e-5, 4, False),
    ],
)
def test_times_are_compared_to_what_their_numbers_resolve(
    other: Coordinate, step_s: float, entries: int, expected: bool
) -> None:
    one = of(np.arange(entries) * step_s, "s", f"time since {DATE} UTC")
    assert differ(one, other) == differ(other, one) == expected


def test_a_date_of_seconds_in_fp64_is_rounded_as_they_are() -> None:
    """Seconds since 1970 in fp64 are 0.2 us apart, and a start among them moves to the date."""
    start = (np.datetime64(DATE, "ns") - np.datetime64(0, "ns")) / np.timedelta64(1, "s")
    for step, expected in ((1e-6, False), (1e-7, True)):
        given = Coordinate(start + step * np.arange(4), "s", step=step)
        found, date = from_the_first(given, "1970-01-01")
        assert date != DATE
        found = replace(found, long_name=f"time since {date}")
        exact = of(np.arange(4) * step, "s", f"time since {DATE}")
        assert differ(found, exact) == differ(exact, found) == expected


@pytest.mark.parametrize("entries", [1, 500])
@pytest.mark.parametrize("stored", [("f4", "f8"), ("f8", "f4"), ("f4", "f4")])
@pytest.mark.parametrize("units", ["Hz", "MHz"])
def test_frequencies_in_fp32(
    tmp_path: Path, stored: tuple[str, str], units: str, entries: int
) -> None:
    """Channels of 1 kHz at 1.4 GHz, where numbers of fp32 are 128 Hz apart; one is off by one."""
    path = tmp_path / "two.h5"
    in_hz = 1.4e9 + 40.3 + 1e3 * np.arange(entries + 1)
    source: dict[str, Any] = {"file": str(path), "weights": "w", "samples": "x"}
    source["axes"] = {"weights": ["frequency", "beam", "antenna"],
                      "samples": ["frequency", "antenna", "time"]}  # fmt: skip
    given = {"w": {"kind": "beamforming", "input": source}}
    for off in (0, 1):
        with h5py.File(path, "w") as file:
            for name, shape, kind, start, unit in (
                ("w", (entries, 2, 3), stored[0], 0, "Hz"),
                ("x", (entries, 3, 4), stored[1], off, units),
            ):
                file[name] = np.ones(shape, np.complex64)
                values = in_hz[start : start + entries] / (1 if unit == "Hz" else 1e6)
                file[f"{name}_frequency"] = values.astype(kind)
                file[f"{name}_frequency"].attrs["units"] = unit
                file[name].dims[0].attach_scale(file[f"{name}_frequency"])
        if not off:
            check_study(study_of(given))
            continue
        with pytest.raises(StudyError, match="the values of another operand along frequency"):
            check_study(study_of(given))


def test_rounding_that_may_hide_another_channel() -> None:
    """Channels of 200 Hz, of which fp32 leaves too little, are compared as they stand."""
    exact = 1.4e9 + 200.0 * np.arange(8)
    rounded = Coordinate(exact.astype("f4").astype(float), "Hz", rounding=64.0)
    assert differ(rounded, of(exact, "Hz"))
    assert differ(of(exact, "Hz"), rounded)


def test_numbers_of_antennas_go_by_their_names_beside_names() -> None:
    """Weights of UVH5 covariances are so named, beside voltages of GUPPI."""
    numbers, names = of([2, 5]), of(["1b", "1e"])
    beside = {"antenna": numbers, "antenna_name": names}
    assert in_names("antenna", (numbers, beside), (numbers, {})) == (numbers, numbers)
    assert in_names("antenna", (names, {}), (numbers, beside)) == (names, names)
    assert in_names("antenna", (numbers, beside), (names, {})) == (names, names)
    assert in_names("antenna", (numbers, {}), (names, {})) == (numbers, names)


def test_an_order_that_differs_between_equal_ends_is_told_by_its_first_entry() -> None:
    pair = of([1.0, 3.0, 2.0, 4.0], "MHz"), of([1.0, 2.0, 3.0, 4.0], "MHz")
    with pytest.raises(InputError, match=r"along frequency, 3.0 at entry 1, got 2.0 at entry 1;"):
        check_agrees("weights", "frequency", *pair)


def test_weights_in_mhz_of_channels_in_hz(tmp_path: Path) -> None:
    """The same frequencies in two units agree; an error gives both values with their units.

    So do names of antennas and a file's numbers that only count, which a study's own do not.
    """
    write(tmp_path / "v.raw", parts(2, shape=(12, 32, 2)), OBSNCHAN=12, NANTS=3, NPOL=2,
          PIPERBLK=32, ANTNMS00="1b,1e,2a")  # fmt: skip
    with h5py.File(tmp_path / "w.h5", "w") as file:
        file["w"] = np.ones((4, 2, 3), np.complex64)
        file["f"] = np.array([1421.5, 1420.5, 1419.5, 1418.5])
        file["wrong_mhz"] = np.array([1418.5, 1419.5, 1420.5, 1421.5])
    bank = {
        "kind": "channelise", "channels": 4, "taps": 2, "axis": "time",
        "input": {"file": str(tmp_path / "v.raw"), "format": "guppi", "samples": "voltages"},
    }  # fmt: skip
    weights: dict[str, Any] = {
        "file": str(tmp_path / "w.h5"), "weights": "w", "samples": {"workload": "bank"},
        "axes": {
            "weights": ["frequency", "beam", "antenna"],
            "samples": ["antenna", "polarization", "frequency", "time", "fine_frequency"],
        },
        "select": {"samples": {"fine_frequency": 0}},
        "coordinates": {"frequency": {"dataset": "f", "units": "MHz"}},
    }  # fmt: skip
    cases = {"bank": bank, "w": {"kind": "beamforming", "input": weights}}
    check_study(study_of(cases))
    with h5py.File(tmp_path / "w.h5", "r+") as file:
        file["number"] = np.arange(3) + 1
        file["w"].dims[2].attach_scale(file["number"])
    check_study(study_of(cases))
    weights["coordinates"]["antenna"] = [1, 2, 3]
    with pytest.raises(StudyError, match="along antenna, 1 to 3, got 1b to 2a"):
        check_study(study_of(cases))
    weights["coordinates"] = {"frequency": "wrong_mhz"}
    with pytest.raises(StudyError) as error:
        check_study(study_of(cases))
    found = str(error.value)
    assert "input.samples: it must have the values of another operand along frequency, " in found
    assert "1418.5 to 1421.5 MHz, got 1421500000 to 1418500000 Hz; select the same entries" in found
