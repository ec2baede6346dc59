"""Coordinates of two operands that are the same, or are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.workflow.chained_cases import study_of
from tests.workflow.readers.guppi_file import parts, write
from workflow.config.check import check_study
from workflow.config.mistakes import StudyError
from workflow.data import Coordinate
from workflow.storage.agreement import differ, in_names


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
         of([0, 1], "s", "time since 2026-11-28T10:00:00.000000001Z"), True),
        (of(["x", "y"]), of(["X ", "Y"]), False), (of(["x", "y"]), of(["y", "x"]), True),
        (of([0, 1]), of(["0", "2"]), True),
    ],
)  # fmt: skip
def test_coordinates_that_differ(one: Coordinate, other: Coordinate, expected: bool) -> None:
    assert differ(one, other) == differ(other, one) == expected


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
    """As weights of UVH5 covariances do, beside voltages of GUPPI."""
    numbers, names = of([2, 5]), of(["1b", "1e"])
    beside = {"antenna": numbers, "antenna_name": names}
    assert in_names("antenna", (numbers, beside), (numbers, {})) == (numbers, numbers)
    assert in_names("antenna", (names, {}), (numbers, beside)) == (names, names)
    assert in_names("antenna", (numbers, beside), (names, {})) == (names, names)
    assert in_names("antenna", (numbers, {}), (names, {})) == (numbers, names)


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
