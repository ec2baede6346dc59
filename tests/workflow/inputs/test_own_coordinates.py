"""Coordinates of a user's own files, followed to products: by other names, columns, selections."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from test_chains import run

from tests.workflow.chained_cases import study_of
from workflow.config.mistakes import StudyError
from workflow.data import Product
from workflow.preflight.check import check_study

NAMES = list("abcd")


@pytest.fixture
def source(tmp_path: Path) -> dict[str, Any]:
    """Voltages (time, antenna, channel), of channels that fall, and where four antennas stand.

    Units are text of fixed length: a fork reads any other (`text_attributes`), each time.
    """
    rng = np.random.default_rng(9)
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file["v"] = rng.integers(-99, 99, (128, 4, 3, 2)).astype(">i2")
        file["enu"] = rng.normal(size=(4, 3))
        file["enu"].attrs["units"] = np.bytes_("km")
        file["f"] = np.array([160.0, 155.0, 150.0])
        file["f"].attrs["units"] = np.bytes_("MHz")
    places = {
        name: {"dataset": "enu", "axis": "antenna", "column": column}
        for column, name in enumerate(("east", "north", "up"))
    }
    return {
        "file": str(tmp_path / "v.h5"), "samples": "v",
        "axes": {"samples": ["time", "antenna", "channel", "complex"]},
        "coordinates": {
            "frequency": "f", "time": {"step": 0.5, "units": "us"}, "antenna": NAMES, **places
        },
    }  # fmt: skip


def products_of(folder: Path, **cases: Any) -> dict[str, Product]:
    return run(study_of(cases), folder)


def mistake(**cases: Any) -> str:
    with pytest.raises(StudyError) as caught:
        check_study(study_of(cases))
    return str(caught.value)


BANK: dict[str, Any] = {"kind": "channelise", "channels": 4, "taps": 2, "axis": "time"}


def test_a_chain_keeps_places_names_and_what_was_selected(
    tmp_path: Path, source: dict[str, Any]
) -> None:
    """The products of fine channel 3 have the frequency of that channel."""
    taken = {"fine_frequency": 3, "time": "0:28"}
    of_bank = {"voltages": {"workload": "bank"}, "select": {"voltages": taken}}
    found = products_of(
        tmp_path,
        bank={**BANK, "input": source},
        visibilities={"kind": "correlate", "integrate": 7, "input": of_bank},
        sky={
            "kind": "image", "directions": {"n": 3, "field_of_view_deg": 1},
            "input": {
                "covariances": {"workload": "visibilities"},
                "select": {"covariances": {"input": "1:", "conjugated_input": "1:"}},
            },
        },
    )  # fmt: skip
    bank = found["bank"]
    assert bank.axes == ("antenna", "channel", "time", "fine_frequency")
    np.testing.assert_array_equal(bank.coordinates["channel"].values, [160, 155, 150])
    fine = bank.coordinates["fine_frequency"]
    np.testing.assert_allclose(fine.values, [0, 0.5, -1, -0.5])
    with h5py.File(source["file"]) as file:
        enu = file["enu"][...]
    for column, name in enumerate(("east", "north", "up")):
        assert (bank.coordinates[name].units, bank.coordinates[name].axes) == ("km", ("antenna",))
        np.testing.assert_array_equal(bank.coordinates[name].values, enu[:, column])
    for product in (found["visibilities"], found["sky"]):
        one = product.coordinates["selected_fine_frequency"]
        assert (one.values.tolist(), one.units) == ([-0.5], "MHz")
        assert "that is selected, which is in the frequencies of channels" in one.long_name
    sky = found["sky"].coordinates
    for one in (found["visibilities"].coordinates["frequency"], sky["summed_frequency"]):
        np.testing.assert_allclose(one.values, [159.5, 154.5, 149.5])
    assert (list(sky["antenna"].values), sky["antenna"].axes) == (NAMES[1:], ("antenna",))
    np.testing.assert_allclose(np.ptp(sky["antenna_position"].values, 0), 1e3 * np.ptp(enu[1:], 0))


def test_channels_of_one_channel_are_from_its_samples_frequency_0(source: dict[str, Any]) -> None:
    """Without the coarse channel's centre they count from frequency 0 of the samples."""
    cases = ((None, 0.0, ", from frequency 0 of the samples"), (155e6, 155, ""))
    for (centre, first, said), channel in itertools.product(cases, (1, "1:2")):
        given = {**source, "select": {"samples": {"channel": channel}}}
        more = {} if centre is None else {"centre_hz": centre}
        bank = study_of({"bank": {**BANK, "input": given, **more}}).workload("bank")
        found = bank.product_outline(bank.outline()).coordinates
        own = "selected_frequency" if channel == 1 else "channel"
        assert found[own].values.tolist() == [155.0]
        frequency = found["frequency" if channel == 1 else "fine_frequency"]
        assert (frequency.values[0], frequency.units) == (first, "MHz")
        assert frequency.long_name == f"centre of the channel{said}"


def test_what_a_number_takes_of_a_files_axis_stays(tmp_path: Path, source: dict[str, Any]) -> None:
    """A product keeps the coordinate of an axis of which a number selects one entry."""
    given = {**source, "select": {"samples": {"channel": 1, "antenna": 2}}}
    found = products_of(tmp_path, d={"kind": "dft", "axis": "time", "input": given})["d"]
    one = found.coordinates["selected_frequency"]
    assert (one.values.tolist(), one.units, one.axes) == ([155.0], "MHz", ("selected_frequency",))
    assert found.coordinates["selected_antenna"].values.tolist() == ["c"]
    with h5py.File(source["file"]) as file:
        enu = file["enu"][2]
    for column, name in enumerate(("east", "north", "up")):
        place = found.coordinates[f"selected_{name}"]
        assert (place.values.tolist(), place.units) == ([enu[column]], "km")
    everywhere = {"dataset": "enu", "axis": "antenna", "units": "km"}
    given["coordinates"] = {"place": everywhere}
    found = products_of(tmp_path, e={"kind": "dft", "axis": "time", "input": given})["e"]
    whole = found.coordinates["selected_place"]
    assert (whole.axes, whole.values.tolist()) == (
        ("selected_antenna", "place_component"), [enu.tolist()]
    )  # fmt: skip


def test_a_beam_that_is_selected_keeps_its_direction(
    tmp_path: Path, source: dict[str, Any]
) -> None:
    beams = {
        "kind": "beamforming", "beams": 5, "extent": 0.25,
        "input": {**source, "axes": {"samples": source["axes"]["samples"]}},
    }  # fmt: skip
    chosen = {"samples": {"workload": "beams"}, "select": {"samples": {"beam": 1}}}
    found = products_of(
        tmp_path, beams=beams, spectra={"kind": "dft", "axis": "time", "input": chosen}
    )["spectra"].coordinates
    assert found["selected_beam"].values.tolist() == [1]
    assert found["selected_l"].values.tolist() == [-0.125]


def test_two_operands_may_take_other_entries(tmp_path: Path, source: dict[str, Any]) -> None:
    of_bank = {
        "samples": {"workload": "bank"}, "weights": {"workload": "bank"},
        "axes": {
            "samples": ["antenna", "channel", "time", "fine_frequency"],
            "weights": ["antenna", "channel", "beam", "fine_frequency"],
        },
        "select": {
            "samples": {"fine_frequency": 3, "channel": 2},
            "weights": {"fine_frequency": 1, "channel": 2, "beam": "0:2"},
        },
    }  # fmt: skip
    case = {"kind": "beamforming", "input": of_bank}
    said = mistake(bank={**BANK, "input": source}, beams=case)
    assert "another operand along frequency, 150.5 MHz, got 149.5 MHz" in said
    del source["coordinates"]["time"]  # so that fine channels have no frequencies in Hz
    found = products_of(tmp_path, bank={**BANK, "input": source}, beams=case)["beams"]
    assert "selected_fine_frequency" not in found.coordinates
    np.testing.assert_array_equal(found.coordinates["frequency"].values, [150.0])


def test_mistakes_name_what_the_study_says(source: dict[str, Any]) -> None:
    for coordinate, said in (
        ({"frequency": "enu"}, "coordinates.frequency: /enu must have 3 values, one for each"),
        ({"east": {"dataset": "enu", "axis": "antenna", "column": 3}}, "coordinates.east.column: "
         "/enu must have two axes, the second of at least 4 columns, got shape (4, 3)"),
        ({"frequency": {"dataset": "f", "column": 0}}, "frequency.column: /f must have two axes"),
        ({"east": {"dataset": "enu", "axis": "antenna", "column": -1}}, "must be at least 0"),
    ):  # fmt: skip
        given = {**source, "coordinates": {**source["coordinates"], **coordinate}}
        assert said in mistake(b={**BANK, "input": given}), said


@pytest.mark.parametrize("name", [["a.h5", "b.h5"], "night.*.h5"])
def test_several_files_are_one_by_virtual_datasets(source: dict[str, Any], name: Any) -> None:
    """The error about a list of files, or a pattern, names virtual datasets as the way."""
    found = mistake(b={**BANK, "input": {**source, "file": name}})
    assert (
        "input.file: must be one file, or a pattern where the format is one of ['guppi']" in found
    )
    assert "several of HDF5 are one by virtual datasets" in found
    assert f"with external: true beside it, got {name!r}" in found


def test_times_that_are_too_coarse_say_so(source: dict[str, Any]) -> None:
    """Days since 1858 in fp64 cannot tell samples 2 us apart, which the error says."""
    with h5py.File(source["file"], "a") as file:
        file["t"] = 60000.5 + np.arange(128) * 2e-6 / 86400
    time = {"dataset": "t", "units": "days since 1858-11-17"}
    given = {**source, "coordinates": {**source["coordinates"], "time": time}}
    found = mistake(b={**BANK, "input": given})
    assert "(numbers of that size are 7.3e-12 apart, which is too coarse for the step)" in found
    assert "is at 60000.5000000" in found


@pytest.mark.parametrize(
    ("units", "date"),
    [
        ("nanoseconds since 1970-01-01 00:00:00", "2025-11-28T14:00:00.000000100"),
        ("ns since 1970-01-01T00:00:00Z", "2025-11-28T14:00:00.000000100"),
        ("ns since the epoch", "the epoch and 1764338400000000100 ns"),
        ("ticks since 1970-01-01", "1970-01-01 and 1764338400000000100 ticks"),
    ],
)
def test_integers_beyond_fp64_count_from_the_first(
    tmp_path: Path, source: dict[str, Any], units: str, date: str
) -> None:
    """Integers as xarray writes times, which are 256 ns apart in fp64, are of equal steps."""
    with h5py.File(source["file"], "a") as file:
        file["t"] = np.int64(1764338400000000000) + 100 * np.arange(128)
    time = {"dataset": "t", "units": units}
    given = {
        **source, "coordinates": {**source["coordinates"], "time": time},
        "select": {"samples": {"time": "1:"}},
    }  # fmt: skip
    one = products_of(tmp_path, b={**BANK, "input": given})["b"].coordinates["time"]
    np.testing.assert_array_equal(one.values, 100 * (3.5 + 4 * np.arange(len(one.values))))
    assert one.long_name == f"middle of the spectrum's samples since {date}"


@pytest.mark.each_value
@pytest.mark.parametrize("kind", ["u8", ">u8"])
@pytest.mark.parametrize(
    ("first", "units", "date"),
    [
        (0, "ns", ""),
        (1764338400000000100, "ns since 1970-01-01", " since 2025-11-28T14:00:00.000000100"),
        (1764338400000000100, "ns", " since 1764338400000000100 ns"),
        ((1 << 63) - 300, "ticks since 1900-01-01", " since 1900-01-01 and 9223372036854775508 "
         "ticks"),
        ((1 << 64) - 100 * 128, "ns since 1970-01-01", " since 2554-07-21T23:34:33.709538816"),
    ],
)  # fmt: skip
def test_unsigned_times_of_64_bits(
    source: dict[str, Any], kind: str, first: int, units: str, date: str
) -> None:
    """Counters of 64 bits are read beyond 2^63 too, and where they are no date."""
    with h5py.File(source["file"], "a") as file:
        file["t"] = (np.uint64(first) + np.uint64(100) * np.arange(128, dtype="u8")).astype(kind)
        file["falling"] = file["t"][()][::-1]
    for name, step in (("t", 100), ("falling", -100)):
        time = {"dataset": name, "units": units}
        given = {**source, "coordinates": {**source["coordinates"], "time": time}}
        study = study_of({"b": {**BANK, "input": given}})
        check_study(study)
        one = study.workload("b").stage().coordinates["time"]
        np.testing.assert_array_equal(np.diff(one.values), np.full(127, step))
        assert one.values.dtype == np.int64
        assert name == "falling" or one.long_name == f"time{date}"


@pytest.mark.parametrize("order", [1, -1])
def test_a_compound_of_i_and_q(tmp_path: Path, source: dict[str, Any], order: int) -> None:
    """Names tell the parts, whichever comes first; Q before I was refused."""
    with h5py.File(source["file"], "a") as file:
        parts = np.ascontiguousarray(file["v"][...][..., ::order], "<i2")
        file["iq"] = parts.view([(name, "<i2") for name in "IQ"[::order]])[..., 0]
    given = {**source, "samples": "iq", "axes": {"samples": source["axes"]["samples"][:-1]}}
    case = {"kind": "dft", "axis": "time"}
    found = products_of(
        tmp_path, a={**case, "input": source}, b={**case, "input": given}
    )  # fmt: skip
    np.testing.assert_array_equal(found["a"].data, found["b"].data)


def test_the_upper_half_of_a_falling_axis_is_positive(
    tmp_path: Path, source: dict[str, Any]
) -> None:
    found = products_of(tmp_path, d={"kind": "dft", "axis": "channel", "input": source})["d"]
    one = found.coordinates["channel_frequency"]
    np.testing.assert_allclose(one.values, np.arange(3) / (3 * -5.0))
    assert one.long_name.endswith("(the upper half are the positive ones)")
