"""Coordinates whose values stand in the study."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from axis_cases import beams, write_input

from tests.workflow.one_case import error_of, staged, study_of
from workflow.files.input_error import InputError
from workflow.inputs.dates import date_in
from workflow.inputs.table_columns import column_of_table


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_input(tmp_path, np.random.default_rng(1))


def test_values_in_the_study_have_units_and_an_axis(file: Path) -> None:
    """Positions of a few antennas, and uneven frequencies, need no dataset."""
    metres = [0.0, 3.0, 7.5, -2.0, 4.0]
    coordinates = {
        "frequency": {"values": [100, 102, 107], "units": "MHz"},
        "east": {"values": metres, "units": "m", "axis": "antenna"},
        "antenna": list("abcde"),
    }
    case = beams(file, coordinates=coordinates)
    one = study_of(case).workload("w")
    one.check()
    found = one.stage().coordinates
    np.testing.assert_array_equal(found["frequency"].values, [100, 102, 107])
    np.testing.assert_array_equal(found["east"].values, metres)
    assert (found["east"].units, found["east"].axes) == ("m", ("antenna",))
    for name, wrong, said in (
        ("east", {"values": metres[1:], "axis": "antenna"}, "east must have 5 values, got 4"),
        ("east", {"values": [*metres, 0], "axis": "antenna"}, "east must have 5 values, got 6"),
        ("east", {"values": metres}, "must be of an axis of the operands"),
        ("frequency", {"values": [1, 2, 3]}, "has no unit; give it as {dataset: path, units: Hz}"),
        ("time", {"values": [*range(7)]}, "{values: [...], units: s} or by equal steps"),
        ("frequency", {"values": [1, "b", 3], "units": "Hz"}, "must be numbers, got 'b'; names"),
        ("frequency", {"values": ["a", "b", "c"]}, "frequency: its values must hold numbers, got"),
        ("frequency", {"values": [1, 2, float("nan")], "units": "Hz"}, "finite number"),
        ("time", {"values": [0.0] * 8, "units": "s", "replace": True}, "replace must not be given"),
    ):
        assert said in error_of(beams(file, coordinates={name: wrong})), said


def test_numbers_among_names_are_names_as_the_study_has_them(file: Path) -> None:
    """Antenna 12 of 1a, 2b, 12 was 12.0."""
    found = staged(beams(file, coordinates={"antenna": ["1a", "2b", 12, 0.5, 1e9]})).coordinates
    assert found["antenna"].values.tolist() == ["1a", "2b", "12", "0.5", "1000000000"]


@pytest.mark.parametrize("how", ["dataset", "values", "list"])
def test_times_that_are_dates(file: Path, how: str) -> None:
    """They were text, which times cannot be; the coordinate says when they begin."""
    dates = [f"2026-11-28T10:00:{n:02d}.50+00:00" for n in range(0, 14, 2)]
    with h5py.File(file, "a") as made:
        made["when"] = np.array(dates, "S")
    time = {"dataset": "when", "values": {"values": dates}, "list": dates}[how]
    found = staged(beams(file, coordinates={"time": time})).coordinates["time"]
    assert found.values.tolist() == [*range(0, 14, 2)]
    assert (found.units, date_in(found.long_name)) == ("s", dates[0])


def test_places_with_their_components_first(file: Path) -> None:
    """Positions (3, antenna) were refused; of as many antennas entries come first, as ever."""
    with h5py.File(file, "a") as made:
        made["turned"], square = made["positions"][()].T, np.arange(9.0).reshape(3, 3)
        made["square"] = square
    for name, along, expected in (
        ("turned", "antenna", np.arange(15.0).reshape(5, 3)[:, 1]),
        ("square", "frequency", square[:, 1]),
    ):  # fmt: skip
        of = {"dataset": name, "column": 1, "axis": along, "units": "m"}
        found = staged(beams(file, coordinates={"north": of})).coordinates["north"]
        np.testing.assert_array_equal(found.values, expected)
    column = {"dataset": "turned", "column": 3, "axis": "antenna"}
    assert "the second of at least 4 columns" in error_of(beams(file, coordinates={"n": column}))


TABLE = [("name", "S4"), ("east_m", ">f4"), ("n", "<i2"), ("flag", "?"), ("up", "f8", (2,))]


@pytest.mark.parametrize("chunks", [None, (2,)])
def test_columns_of_a_table(file: Path, chunks: tuple[int, ...] | None) -> None:
    """Antennas by name and place in a compound dataset, as of NumPy's records, were refused."""
    rows = np.zeros(5, TABLE)
    rows["name"], rows["east_m"], rows["n"] = list("abcde"), np.arange(5) / 2, -np.arange(5)
    with h5py.File(file, "a") as made:
        made.create_dataset("ants", data=rows, chunks=chunks, compression=chunks and "gzip")
    of = {"dataset": "ants", "axis": "antenna"}
    places = {"east": {**of, "column": "east_m"}, "north": {**of, "column": "n", "units": "km"}}
    names = {"antenna": {"dataset": "ants", "column": "name"}}
    taken = [4, 3, 2, 1]
    select = {"weights": [":", ":", ":", taken], "samples": [":", ":", taken, ":"]}
    found = staged(beams(file, coordinates=places | names, select=select)).coordinates
    assert found["antenna"].values.tolist() == list("edcb")
    for name, values, unit in (("east", [2, 1.5, 1, 0.5], "m"), ("north", [-4, -3, -2, -1], "km")):
        assert (found[name].values.tolist(), found[name].units) == (values, unit)
        assert found[name].axes == ("antenna",)
    for column, said in (
        ("East_m", "got 'East_m'; did you mean 'east_m'?"), ("flag", "must be numbers or text of"),
        ("up", "must be numbers or text of one length"), ("", "at least 1 character"),
    ):  # fmt: skip
        assert said in error_of(beams(file, coordinates={"east": {**of, "column": column}})), said
    for dataset, said in (("positions", "must be a table"), ("ants", "/ants must have 7 values")):
        wrong = {"dataset": dataset, "axis": "time", "column": "n"}
        assert said in error_of(beams(file, coordinates={"x": wrong})), said


@pytest.mark.parametrize("values", [[5, 7, 1], [(1 << 63) + 5, (1 << 64) - 1, 1]])
def test_a_column_of_large_integers(tmp_path: Path, values: list[int]) -> None:
    path = tmp_path / "table.h5"
    with h5py.File(path, "w") as given:
        given["t"] = np.array([(one,) for one in values], [("n", "u8")])
        assert column_of_table(given["t"], "n", "key").tolist() == values


@pytest.mark.parametrize(
    ("kind", "column", "said"),
    [
        ([("n", "S65"), ("x", "f8")], "n", "names of at most 64 bytes, got text of 65"),
        ([("n", "S60000"), ("x", "f8")], "x", "rows and up to 1 GiB, got"),
    ],
)
def test_a_table_of_long_rows(tmp_path: Path, kind: Any, column: str, said: str) -> None:
    """The file has kilobytes, since the zeros in it are compressed."""
    path = tmp_path / "table.h5"
    with h5py.File(path, "w") as given:
        table = given.create_dataset("t", (1 << 15,), kind, chunks=(1 << 10,), compression=1)
        with pytest.raises(InputError, match=said):
            column_of_table(table, column, "key")


def test_coordinates_by_the_names_of_the_file(tmp_path: Path) -> None:
    with h5py.File(path := tmp_path / "v.h5", "w") as file:
        file["v"] = np.ones((4, 4, 4), np.complex64)
        for number, name in enumerate(("Time", "ant", "freq")):
            file["v"].dims[number].label = name

    def case(**more: Any) -> dict[str, Any]:
        return {"kind": "correlate", "input": {"file": str(path), "voltages": "v", **more}}

    coordinates = {
        "freq": {"start": 1e8, "step_hz": 1e6}, "ant": list("abcd"),
        "east": {"values": [0, 1, 4, 9], "units": "m", "axis": "ant"},
    }  # fmt: skip
    found = staged(case(coordinates=coordinates, select={"voltages": {"ant": "c"}}))
    assert found.coordinates["frequency"].units == "Hz"
    assert found.coordinates["antenna"].values.tolist() == ["c"]
    assert (found.coordinates["east"].values.tolist(), found.coordinates["east"].axes) == (
        [4], ("antenna",)
    )  # fmt: skip
    both = {"freq": coordinates["freq"], "frequency": coordinates["freq"]}
    assert "input.coordinates.freq is of the same axis" in error_of(case(coordinates=both))
