"""Covariances of antennas from UVH5, and where the antennas stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.workflow.readers.uvh5_file import CHANNELS, TIMES, change, error_of, write
from workflow.readers import Uvh5
from workflow.storage.inputs import InputError


@pytest.mark.parametrize("by_time", [True, False])
def test_a_covariance_is_hermitian_and_read_in_parts(tmp_path: Path, by_time: bool) -> None:
    """Antennas 1 and 7: (1, 1), (1, 7) and (7, 7) are in the file, (7, 1) is the conjugate."""
    data = write(tmp_path / "v.uvh5", by_time=by_time)
    reader = Uvh5(tmp_path / "v.uvh5")
    outline = reader.outline("covariance")
    assert outline.axes == ("time", "frequency", "polarization", "antenna", "column")
    assert outline.data.shape == (TIMES, CHANNELS, 2, 2, 2)
    whole = reader.read("covariance", [slice(0, n) for n in outline.data.shape])
    for place, (i, j) in enumerate([(0, 0), (0, 1), (1, 1)]):
        np.testing.assert_array_equal(whole[..., i, j], data[:, place])
    np.testing.assert_array_equal(whole[..., 1, 0], data[:, 1].conj())
    part = [slice(1, 3), slice(2, 7), slice(1, 2), slice(1, 2), slice(0, 1)]
    np.testing.assert_array_equal(reader.read("covariance", part), whole[tuple(part)])
    np.testing.assert_array_equal(outline.coordinates["antenna"].values, [1, 7])
    assert outline.coordinates["antenna_2"].axes == ("column",)
    assert "east" not in outline.coordinates  # the file does not say where they stand


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
