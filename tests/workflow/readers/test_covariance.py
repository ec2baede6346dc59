"""Covariances of antennas from UVH5, and where the antennas stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.workflow.one_case import error_of
from tests.workflow.readers.uvh5_file import CHANNELS, TIMES, change, write
from workflow.files.input_error import InputError
from workflow.inputs.file_array import FileArray
from workflow.inputs.selections import pick
from workflow.readers import Uvh5
from workflow.readers.covariance import pairs_of


@pytest.mark.parametrize("by_time", [True, False])
def test_a_covariance_is_hermitian_and_read_in_parts(tmp_path: Path, by_time: bool) -> None:
    """Antennas 1 and 7: (1, 1), (1, 7) and (7, 7) are in the file as conj(x_1) x_7, and so on."""
    data = write(tmp_path / "v.uvh5", by_time=by_time)
    reader = Uvh5(tmp_path / "v.uvh5")
    outline = reader.outline("covariance")
    assert outline.axes == ("time", "frequency", "polarization", "antenna", "column")
    assert outline.data.shape == (TIMES, CHANNELS, 2, 2, 2)
    whole = reader.read("covariance", [slice(0, n) for n in outline.data.shape])
    for place, (i, j) in enumerate([(0, 0), (1, 0), (1, 1)]):
        np.testing.assert_array_equal(whole[..., i, j], data[:, place])
    np.testing.assert_array_equal(whole[..., 0, 1], data[:, 1].conj())
    part = [slice(1, 3), slice(2, 7), slice(1, 2), slice(1, 2), slice(0, 1)]
    np.testing.assert_array_equal(reader.read("covariance", part), whole[tuple(part)])
    np.testing.assert_array_equal(outline.coordinates["antenna"].values, [1, 7])
    assert outline.coordinates["antenna_2"].axes == ("column",)
    assert "east" not in outline.coordinates  # the file does not say where they stand


def test_crossed_feeds_of_a_covariance_need_both_orders(tmp_path: Path) -> None:
    """Element (row, column) of xy is x of the row and y of the column: that of yx in the file."""
    path = tmp_path / "v.uvh5"
    data = write(path)
    change(path, "Header/polarization_array", np.array([-8, -7]))
    reader = Uvh5(path)
    part = [slice(n) for n in reader.outline("covariance").data.shape]
    part[2] = slice(1, 2)
    found = reader.read("covariance", part)
    np.testing.assert_array_equal(found[:, :, 0, 1, 0], data[:, 1, :, 0])
    np.testing.assert_array_equal(found[:, :, 0, 0, 1], data[:, 1, :, 1].conj())
    change(path, "Header/polarization_array", np.array([-5, -7]))
    with pytest.raises(InputError, match="as xy needs yx, which the file lacks"):
        Uvh5(path).read("covariance", part)


def test_what_is_near_a_covariance_is_led_to_it(tmp_path: Path) -> None:
    path = tmp_path / "v.uvh5"
    write(path)
    image: dict[str, Any] = {"kind": "image", "directions": {"n": 8, "field_of_view_deg": 10.0}}
    source = {"file": str(path), "covariances": "visibilities"}
    message = error_of(image | {"input": source})
    assert message.endswith("it looks like uvh5: `format: uvh5` reads visibilities of an "
                            "interferometer")  # fmt: skip
    message = error_of(image | {"input": source | {"format": "uvh5"}})
    assert message.endswith("those of the file's format are `covariances: covariance`")


def place_antennas(path: Path, **changed: Any) -> None:
    header = {
        "antenna_numbers": [7, 1], "antenna_positions": [[1.0, 2.0, 3.0], [0.0, 0.0, 5.0]],
        "latitude": 90.0, "longitude": 0.0, **changed,
    }  # fmt: skip
    with h5py.File(path, "a") as file:
        for name, values in header.items():
            file[f"Header/{name}"] = np.asarray(values)


def test_where_antennas_stand(tmp_path: Path) -> None:
    """At the pole up is z, north is against x and east is y."""
    write(tmp_path / "v.uvh5")
    place_antennas(tmp_path / "v.uvh5")
    found = Uvh5(tmp_path / "v.uvh5").outline("covariance").coordinates
    for name, values in (("east", [0, 2]), ("north", [0, -1]), ("up", [5, 3])):
        np.testing.assert_allclose(found[name].values, values, atol=1e-12)
        assert (found[name].axes, found[name].units) == (("antenna",), "m")


@pytest.mark.parametrize(
    "changed",
    [
        {"antenna_numbers": [7, 2]}, {"antenna_numbers": [7, np.inf]},
        {"antenna_positions": [1.0, 2.0]}, {"latitude": [1.0, 2.0]}, {"longitude": np.nan},
    ],
)  # fmt: skip
def test_antennas_that_stand_nowhere(tmp_path: Path, changed: dict[str, Any]) -> None:
    write(tmp_path / "v.uvh5")
    place_antennas(tmp_path / "v.uvh5", **changed)
    with pytest.raises(InputError, match="antenna_positions must have three finite values"):
        Uvh5(tmp_path / "v.uvh5").outline("covariance")


@pytest.mark.parametrize(
    ("first", "second", "lacking"),
    [
        ([1, 1, 7], [1, 7, 3], "3 of 6"),
        ([1, 2, 3], [1, 2, 3], "3 of 6"),
        ([1, 2, 2], [1, 2, 3], ""),
    ],
)
def test_pairs_of_antennas_that_are_missing(
    tmp_path: Path, first: list[int], second: list[int], lacking: str
) -> None:
    path = tmp_path / "v.uvh5"
    write(path)
    change(path, "Header/ant_1_array", np.tile(first, TIMES))
    change(path, "Header/ant_2_array", np.tile(second, TIMES))
    with pytest.raises(InputError, match=rf"each pair of them.* but {lacking}.* are not there"):
        Uvh5(path).outline("covariance")


def test_pairs_that_are_missing_are_zeros_where_the_study_says_so(tmp_path: Path) -> None:
    """Files of visibilities between antennas alone, and those from which a baseline was taken."""
    path = tmp_path / "v.uvh5"
    data = write(path)
    ends = [(1, 2), (3, 1), (3, 4)]
    for end, name in enumerate(("ant_1_array", "ant_2_array")):
        change(path, f"Header/{name}", np.tile([pair[end] for pair in ends], TIMES))
    reader = Uvh5(path)
    reader.flagged = "zero"
    outline = reader.outline("covariance")
    found = reader.read("covariance", [slice(n) for n in outline.data.shape])
    expected = np.zeros((TIMES, CHANNELS, 2, 4, 4), complex)
    for place, (first, second) in enumerate(ends):
        expected[..., second - 1, first - 1] = data[:, place]
        expected[..., first - 1, second - 1] = data[:, place].conj()
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(outline.coordinates["antenna"].values, [1, 2, 3, 4])
    with h5py.File(path, "a") as file:
        file["Data/flags"] = np.zeros((TIMES * 3, CHANNELS, 2), bool)
    assert FileArray(reader, "covariance").taken(pick(None, found.shape)).shape == found.shape
    assert reader.made_zero() == f"{10 * found.size // 16} of {found.size} values, which are " + (
        "flagged or missing"
    )
    part = [slice(2), slice(3), slice(2), slice(0, 2), slice(3, 4)]
    np.testing.assert_array_equal(reader.read("covariance", part), expected[tuple(part)])


def test_few_pairs_of_many_antennas(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="50000000 of 50005000 are not there"):
        pairs_of(np.arange(10_000).reshape(-1, 2), "x", complete=False)


FREQUENCIES = 1e8 + 1e5 * np.arange(CHANNELS)


def phase(path: Path, **changed: Any) -> Any:
    """Say that every other row is phased to a source; returns the metres in the phases of rows."""
    rows = TIMES * 3
    uvw = np.random.default_rng(8).uniform(-3e4, 3e4, (rows, 3))
    header: dict[str, Any] = {
        "uvw_array": uvw, "phase_center_id_array": np.arange(rows) % 2 * 5,
        "phase_center_catalog/0/cat_type": np.bytes_("unprojected"),
        "phase_center_catalog/5/cat_type": np.bytes_("sidereal"), **changed,
    }  # fmt: skip
    with h5py.File(path, "a") as file:
        for name, values in header.items():
            if values is not None:
                file[f"Header/{name}"] = values
    return uvw[:, 2] * (np.arange(rows) % 2)


@pytest.mark.parametrize("by_time", [True, False])
def test_the_phase_toward_a_source_is_undone(tmp_path: Path, by_time: bool) -> None:
    """A wave from the source has the phase 0 in the file, and 2 pi f w / c without its phasing."""
    path = tmp_path / "v.uvh5"
    data = write(path, by_time=by_time)
    metres = phase(path)
    ordered = metres.reshape(TIMES, 3) if by_time else metres.reshape(3, TIMES).T
    turns = ordered[..., None] * FREQUENCIES / 299792458
    expected = data * np.exp(2j * np.pi * turns)[..., None]
    reader = Uvh5(path)
    whole = [slice(n) for n in reader.outline("covariance").data.shape]
    found = reader.read("covariance", whole)
    for place, (i, j) in enumerate([(0, 0), (1, 0), (1, 1)]):
        np.testing.assert_allclose(found[..., i, j], expected[:, place], rtol=1e-5, atol=1e-3)
    np.testing.assert_array_equal(found[..., 0, 1], found[..., 1, 0].conj())
    lines = [slice(n) for n in reader.outline("visibilities").data.shape]
    as_there = data if by_time else data.swapaxes(0, 1)
    np.testing.assert_array_equal(reader.read("visibilities", lines), as_there)


@pytest.mark.parametrize(("kind", "turned"), [("phased", True), ("drift", False)])
def test_the_phase_of_files_without_a_catalogue(tmp_path: Path, kind: str, turned: bool) -> None:
    path = tmp_path / "v.uvh5"
    data = write(path)
    uvw = np.full((TIMES * 3, 3), 2.0)
    with h5py.File(path, "a") as file:
        file["Header/phase_type"], file["Header/uvw_array"] = kind, uvw
    reader = Uvh5(path)
    found = reader.read("covariance", [slice(n) for n in reader.outline("covariance").data.shape])
    phases = np.exp(2j * np.pi * turned * 2.0 * FREQUENCIES / 299792458)[:, None]
    np.testing.assert_allclose(found[..., 1, 0], data[:, 1] * phases, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"uvw_array": None}, "has no dataset Header/uvw_array"),
        ({"uvw_array": np.zeros((4, 3))}, "uvw_array must have 12 times three finite values"),
        ({"uvw_array": np.full((12, 3), np.nan)}, "must have 12 times three finite values"),
        ({"phase_center_id_array": np.zeros(3, int)}, "must have 12 whole numbers, got 3"),
        ({"phase_center_id_array": np.full(12, 9)}, "catalog/9/cat_type must be one of"),
        ({"phase_center_id_array": np.full(12, 1e300)}, "whole numbers, got 12 of float64"),
        (
            {"phase_center_catalog/5/cat_type": np.bytes_("near_field")},
            "must be one of ['unprojected', 'drift', 'sidereal', 'ephem', 'driftscan', 'phased'] "
            "for a covariance, got 'near_field'; pyuvdata's UVData.unproject_phase makes",
        ),
        ({"phase_center_catalog/5/cat_type": np.bytes_("x" * 70)}, "for a covariance, got ''"),
        ({"phase_center_catalog/5/cat_type": np.zeros(1 << 20)}, "for a covariance, got ''"),
        ({"phase_center_catalog/5/cat_type": h5py.SoftLink("/no")}, "for a covariance, got ''"),
        (
            {"phase_center_catalog/5/cat_type": h5py.ExternalLink("o.h5", "/x")},
            "for a covariance, got ''",
        ),
    ],
    ids=lambda value: str(value)[:50],
)  # fmt: skip
def test_phases_toward_nothing_that_is_known(
    tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    path = tmp_path / "v.uvh5"
    write(path)
    phase(path, **changed)
    reader = Uvh5(path)
    part = [slice(n) for n in reader.outline("covariance").data.shape]
    with pytest.raises(InputError) as error:
        reader.read("covariance", part)
    assert said in str(error.value)
    reader.read("visibilities", [slice(n) for n in reader.outline("visibilities").data.shape])


def test_a_phased_file_of_the_allen_telescope_array_is_as_pyuvdata_unphases_it(
    real_data: Path,
) -> None:
    pyuvdata = pytest.importorskip("pyuvdata")
    path = real_data / "vis" / "ata_LoA_C0352_3c286.uvh5"
    known = pyuvdata.UVData.from_file(str(path))
    known.unproject_phase()
    reader = Uvh5(path)
    outline = reader.outline("covariance")
    numbers = outline.coordinates["antenna"].values.tolist()
    found = reader.read("covariance", [slice(n) for n in outline.data.shape])[0]
    for i, j in ((0, 3), (27, 5), (11, 26)):
        expected = known.get_data(numbers[i], numbers[j]).conj()
        feeds = [known.polarization_array.tolist().index(code) for code in (-5, -6)]
        for feed in feeds:
            np.testing.assert_allclose(found[:, feed, i, j], expected[0, :, feed], rtol=1e-4)


def test_places_of_the_murchison_widefield_array_are_those_of_its_baselines(
    real_data: Path,
) -> None:
    """Its uvw are of a drift scan, so east, north and up of a baseline's second less its first."""
    path = real_data / "vis" / "mwa128_1061315448_mini.uvh5"
    found = Uvh5(path).outline("covariance").coordinates
    where = np.stack([found[name].values for name in ("east", "north", "up")], axis=-1)
    numbers = found["antenna"].values
    with h5py.File(path) as file:
        i, j = (np.searchsorted(numbers, file[f"Header/ant_{end}_array"][...]) for end in (1, 2))
        uvw = file["Header/uvw_array"][...]
    np.testing.assert_allclose(where[j] - where[i], uvw, atol=1e-9)


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"antenna": [0]}, "antennas, got 1 rows and 2 columns"),
        ({"antenna": [0, 1], "column": [1, 0]}, "antennas, got [1, 7] and [7, 1] from entry 0 on"),
    ],
)
def test_rows_and_columns_of_other_antennas_are_refused_by_the_check(
    tmp_path: Path, chosen: dict[str, Any], said: str
) -> None:
    """They were led to another array, or ended the stage step as not Hermitian."""
    path = tmp_path / "v.uvh5"
    write(path)
    source = {
        "file": str(path), "format": "uvh5", "covariances": "covariance",
        "select": {"covariances": chosen},
    }  # fmt: skip
    image = {"kind": "image", "directions": {"n": 8, "field_of_view_deg": 10.0}, "input": source}
    assert error_of(image) == (
        f"input.select.covariances: rows and columns must be of the same {said}; select the same "
        "entries of both"
    )
