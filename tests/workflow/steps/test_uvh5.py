"""Visibilities written as UVH5: what our reader, and where it is there pyuvdata, finds in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from input_files import put
from test_chains import run

from tests.workflow.chained_cases import study_of
from workflow.config.mistakes import StudyError
from workflow.config.uvh5_site import Uvh5Site
from workflow.data import PLACES, Product
from workflow.files.input_error import InputError
from workflow.preflight.budget import disk_of
from workflow.preflight.check import check_study
from workflow.readers.visibilities import Uvh5
from workflow.steps.uvh5 import _sidereal, write_uvh5
from workflow.storage.products import read_product

SITE = {"latitude_deg": -26.7, "longitude_deg": 116.67, "julian_date": 2461000.5}
VISIBILITIES: dict[str, Any] = {
    "kind": "correlate", "channels": 3, "polarizations": 2, "antennas": 5, "samples": 24,
    "integrate": 8, "uvh5": SITE,
}  # fmt: skip


def uvh5_of(case: dict[str, Any], folder: Path, **site: Any) -> Path:
    """The UVH5 file of a correlation that is run in a folder."""
    run(study_of({"v": case}), folder)
    write_uvh5(folder / "v/products/w.h5", folder / "v.uvh5", Uvh5Site(**{**SITE, **site}))
    return folder / "v.uvh5"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Product, Path]:
    folder = tmp_path_factory.mktemp("uvh5")
    study = study_of({"v": VISIBILITIES})
    product = run(study, folder)["v"]
    (path,) = folder.rglob("products/w.h5")
    site = Uvh5Site.model_validate(SITE)
    assert write_uvh5(path, folder / "v.uvh5", site) == 15
    return product, folder / "v.uvh5"


def test_our_reader_finds_the_product(written: tuple[Product, Path]) -> None:
    product, path = written
    reader = Uvh5(path)
    outline = reader.outline("covariance")
    found = reader.read("covariance", [slice(n) for n in outline.data.shape])
    square = product.data.reshape(3, 3, 2, 5, 2, 5)
    names = outline.coordinates["polarization"].values.tolist()
    assert names == ["xx", "yy", "xy", "yx"]
    for place, (one, other) in enumerate([(0, 0), (1, 1), (0, 1), (1, 0)]):
        expected = square[:, :, one, :, other].swapaxes(0, 1)
        np.testing.assert_array_equal(found[:, :, place], expected)
    lines = reader.outline("visibilities")
    rows = reader.read("visibilities", [slice(n) for n in lines.data.shape])
    first, second = (lines.coordinates[f"antenna_{n}"].values for n in (1, 2))
    for place, (one, other) in enumerate([(0, 0), (1, 1), (0, 1), (1, 0)]):
        expected = square[:, :, other, second, one, first]
        np.testing.assert_array_equal(rows[..., place], expected.transpose(1, 2, 0))


def test_coordinates_come_back(written: tuple[Product, Path]) -> None:
    product, path = written
    found = Uvh5(path).outline("covariance").coordinates
    known = product.coordinates
    np.testing.assert_array_equal(found["frequency"].values, known["frequency"].values)
    for name in ("east", "north"):
        # Turned to the Earth's centre and back: a few roundings of metres.
        np.testing.assert_allclose(found[name].values, known[name].values[:5], atol=1e-12)
    np.testing.assert_allclose(found["up"].values, 0, atol=1e-12)
    # A Julian date of fp64 knows 4e-5 s.
    since = known["integration"].values - known["integration"].values[0]
    np.testing.assert_allclose(found["time"].values, since, atol=1e-4)


def test_its_image_is_that_of_the_product(tmp_path: Path) -> None:
    """The sky that the file is of is the one that was planted."""
    grid = {"n": 11, "field_of_view_deg": 60}
    drawn = {**VISIBILITIES, "polarizations": 1, "antennas": 16, "sources": [{"l": 0.2, "m": -0.1}]}
    covariances = {"covariances": {"workload": "v"}}
    image = {"kind": "image", "directions": grid, "sum": ["time"]}
    found = run(study_of({"v": drawn, "i": {**image, "input": covariances}}), tmp_path)
    path = tmp_path / "v.uvh5"
    write_uvh5(tmp_path / "v" / "products" / "w.h5", path, Uvh5Site.model_validate(SITE))
    source = {"file": str(path), "format": "uvh5", "covariances": "covariance"}
    again = run(study_of({"i": {**image, "input": source}}), tmp_path / "again")["i"]
    np.testing.assert_allclose(again.data, found["i"].data, rtol=1e-9)
    east, north = (again.coordinates[name].values for name in ("l", "m"))
    row, column = np.unravel_index(again.data[0, 0].argmax(), again.data.shape[-2:])
    assert abs(north[row] + 0.1) <= abs(north[1] - north[0])
    assert abs(east[column] - 0.2) <= abs(east[1] - east[0])


def labelled(folder: Path, **changed: Any) -> dict[str, Any]:
    """A correlation of voltages in a file whose coordinates have names."""
    rng = np.random.default_rng(5)
    parts = rng.standard_normal((3, 2, 4, 24, 2)).astype("f4")
    with h5py.File(folder / "v.h5", "w") as file:
        file["v"] = parts.view("c8")[..., 0]
        file["east"], file["north"] = [0.0, 3.0, 9.0, 4.0], [1.0, -2.0, 0.0, 8.0]
    places = {name: {"dataset": name, "units": "m", "axis": "antenna"} for name in PLACES[:2]}
    coordinates = {
        "frequency": {"start": 1e8, "step_hz": -1e6}, "time": {"step_s": 1e-3}, **places, **changed
    }  # fmt: skip
    source = {
        "file": str(folder / "v.h5"), "voltages": "v", "coordinates": coordinates,
        "axes": ["frequency", "polarization", "antenna", "time"],
    }  # fmt: skip
    return {"kind": "correlate", "integrate": 8, "uvh5": SITE, "input": source}


@pytest.mark.parametrize(
    ("antennas", "numbers"), [([7, 3, 12, 5], [7, 3, 12, 5]), (["A", "B", "Ö", "D"], [0, 1, 2, 3])]
)
def test_feeds_antennas_and_telescope_keep_their_names(
    tmp_path: Path, antennas: list[Any], numbers: list[int]
) -> None:
    case = labelled(tmp_path, polarization=["Y", "X"], antenna=antennas)
    study = study_of({"v": case})
    square, path = run(study, tmp_path)["v"].data.reshape(3, 3, 2, 4, 2, 4), tmp_path / "v.uvh5"
    write_uvh5(tmp_path / "v" / "products" / "w.h5", path, Uvh5Site(**SITE, telescope="Süd"))
    with h5py.File(path) as file:
        header = file["Header"]
        assert header["telescope_name"][()].decode() == "Süd"
        assert header["polarization_array"][...].tolist() == [-6, -5, -8, -7]  # yy, xx, yx, xy
        assert header["antenna_numbers"][...].tolist() == numbers
        names = [name.decode() for name in header["antenna_names"][...]]
        assert [header[f"ant_{end}_array"][1] for end in (1, 2)] == numbers[:2]
        assert file["Data/visdata"][1, 0, 3] == square[0, 0, 0, 1, 1, 0]  # x of 1, y of 2
    assert names == list(map(str, antennas))
    found = Uvh5(path).outline("covariance").coordinates.get("antenna_name")
    assert antennas == (list(found.values) if found else numbers)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"polarization": ["x", "x"]}, "2 polarizations must be x and y, or r and l, each once"),
        ({"polarization": ["x", "r"]}, "each once, or have numbers alone, got x, r"),
        ({"polarization": ["H", "V"]}, "each once, or have numbers alone, got h, v"),
        (
            {"up": {"dataset": "east", "units": "ft", "axis": "antenna"}},
            "uvh5: up must be in one of .'m', 'km', 'cm', 'mm'., got 'ft'",
        ),
        ({"time": {"step": 1, "units": "weeks"}}, "'h', 'd'., got 'weeks'; give it by input.coord"),
    ],
    ids=str,
)
def test_names_that_uvh5_has_not(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(StudyError, match=said):
        check_study(study_of({"v": labelled(tmp_path, **changed)}))


def test_missing_samples_make_no_integration_longer(tmp_path: Path) -> None:
    """An hour without data: a mean step of it made each integration of 8 ms 20 minutes long."""
    times = np.arange(24) * 1e-3 + np.where(np.arange(24) < 8, 0, 3600)
    case = labelled(tmp_path, time={"dataset": "t", "units": "s"})
    with h5py.File(tmp_path / "v.h5", "a") as file:
        file["t"] = times
    found = run(study_of({"v": case}), tmp_path)["v"].coordinates
    np.testing.assert_allclose(found["integration_time"].values, 8e-3, rtol=1e-9)
    np.testing.assert_allclose(found["integration"].values, times.reshape(3, 8).mean(axis=1))


def test_a_wave_has_the_phase_of_pyuvdatas_conventions(tmp_path: Path) -> None:
    """Those of 2026: V_12 = conj(x_1) x_2, uvw = r_2 - r_1, so that exp(-2 pi i w) undoes it."""
    wave = {"sources": [{"l": 0.2, "m": -0.1}], "noise": 0.0, "polarizations": 1}
    with h5py.File(uvh5_of({**VISIBILITIES, **wave}, tmp_path)) as file:
        data, uvw = file["Data/visdata"][...], file["Header/uvw_array"][...]
        hertz = file["Header/freq_array"][...]
    turns = uvw[:, :2] @ [0.2, -0.1] / 299792458
    phased = data[..., 0] * np.exp(-2j * np.pi * turns[:, None] * hertz)
    np.testing.assert_allclose(np.angle(phased), 0, atol=1e-5)


def test_what_pyuvdata_phases(written: tuple[Product, Path], tmp_path: Path) -> None:
    """A source 20 degrees east of the meridian, at the zenith's declination, has one phase."""
    pyuvdata = pytest.importorskip("pyuvdata")
    uv = pyuvdata.UVData.from_file(str(written[1]))
    unprojected = uv.uvw_array.copy()
    uv.phase(
        lon=uv.lst_array[0] + np.deg2rad(20), lat=np.deg2rad(SITE["latitude_deg"]), cat_name="s",
        cat_type="sidereal", phase_frame="icrs",
    )  # fmt: skip
    toward = np.linalg.lstsq(unprojected[:, :2], uv.uvw_array[:, 2], rcond=None)[0]
    assert toward[0] > 0.25
    uv.data_array = np.ones_like(uv.data_array)
    uv.unproject_phase()
    phases = np.exp(2j * np.pi * (unprojected[:, :2] @ toward)[:, None] * uv.freq_array / 299792458)
    np.testing.assert_allclose(uv.data_array[..., 0], phases, atol=1e-3)


def test_counts_of_the_header_are_those_of_its_arrays(written: tuple[Product, Path]) -> None:
    with h5py.File(written[1]) as file:
        header = file["Header"]
        first, second = (header[f"ant_{n}_array"][()] for n in (1, 2))
        sizes = {
            "Nspws": len(header["spw_array"]), "Nphase": len(header["phase_center_catalog"]),
            "Nfreqs": len(header["freq_array"]), "Npols": len(header["polarization_array"]),
            "Nants_telescope": len(header["antenna_numbers"]),
            "Nants_data": len(set(first) | set(second)), "Nblts": len(first),
            "Nbls": len(set(zip(first, second, strict=True))),
            "Ntimes": len(set(header["time_array"][()])),
        }  # fmt: skip
        assert {name: int(header[name][()]) for name in sizes} == sizes


@pytest.mark.parametrize(
    ("julian_date", "hours"),
    [(2451545.0, 18.697374558), (2446895.5, 13 + 10 / 60 + 46.3668 / 3600)],
)
def test_the_sidereal_time_is_that_of_an_almanac(julian_date: float, hours: float) -> None:
    """At J2000.0, and of Meeus, Astronomical Algorithms, example 12.a; within the Earth's 0.9 s."""
    for longitude in (0.0, -64.5, 350.0):
        expected = (hours * np.pi / 12 + np.deg2rad(longitude)) % (2 * np.pi)
        (found,) = _sidereal(np.array([julian_date]), longitude)
        assert found == pytest.approx(expected, abs=0.9 * np.pi / 43200)


def test_what_pyuvdata_finds(written: tuple[Product, Path]) -> None:
    pyuvdata = pytest.importorskip("pyuvdata")
    product, path = written
    uv = pyuvdata.UVData.from_file(str(path))
    square = product.data.reshape(3, 3, 2, 5, 2, 5)
    np.testing.assert_array_equal(uv.get_data(1, 3, "xy"), square[:, :, 1, 3, 0, 1].T)
    step = 1 / product.coordinates["integration_time"].values[0] * 8
    np.testing.assert_allclose(uv.channel_width, step, rtol=1e-9)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"form": "triangle"}, "uvh5 may be given beside form: full alone, got 'triangle'"),
        ({"polarizations": 3}, "uvh5: there must be at most 2 polarizations, got 3"),
        ({"channels": 1}, "uvh5.channel_width_hz: must be given for one channel"),
        ({"uvh5": {**SITE, "latitude_deg": 91}}, "uvh5.latitude_deg: must be at least -90 and"),
    ],
    ids=str,
)  # fmt: skip
def test_what_it_cannot_be(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(StudyError, match=said.replace(".", r"\.")):
        check_study(study_of({"v": {**VISIBILITIES, **changed}}))


def test_integrations_shorter_than_dates_are_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Julian dates of fp64 are 4e-5 s apart, and a reader would take two times for one."""
    said = r"uvh5: 3 integrations have 1 Julian dates, because they are 8e-06 s apart"
    case = labelled(tmp_path, time={"step_s": 1e-6})
    with pytest.raises(StudyError, match=said):
        check_study(study_of({"v": case}))
    with monkeypatch.context() as patched:
        patched.setattr("workflow.inputs.equal_steps.MAX_CHECKED", 8)  # so that none has a value
        with pytest.raises(StudyError, match=said):
            check_study(study_of({"v": case}))
    drawn = {**VISIBILITIES, "frequencies": {"step_hz": 1e7}}  # whose times the check has not
    run(study_of({"v": drawn}), tmp_path)
    with pytest.raises(InputError, match="Julian dates"):
        write_uvh5(tmp_path / "v/products/w.h5", tmp_path / "v.uvh5", Uvh5Site(**SITE))
    assert not (tmp_path / "v.uvh5").exists()


def test_it_counts_toward_the_disk() -> None:
    cases = VISIBILITIES, {key: one for key, one in VISIBILITIES.items() if key != "uvh5"}
    with_it, one = (disk_of(study_of({"v": case}), "v") for case in cases)
    assert with_it["deliver"] - one["deliver"] == 3 * 3 * 10 * 10 * 16


def test_voltages_of_nowhere(tmp_path: Path) -> None:
    path = put(tmp_path / "v.h5", v=np.ones((3, 2, 5, 24), np.complex64))
    source = {"file": str(path), "voltages": "v", "sample_rate_hz": 10.0}
    case = {"kind": "correlate", "integrate": 8, "uvh5": SITE, "input": source}
    with pytest.raises(StudyError) as caught:
        check_study(study_of({"v": case}))
    for said in ("frequency, in one of ['Hz', ", "east, in one of ['m', ", "north, in one of ['m"):
        assert f"no coordinate {said}" in str(caught.value)


def test_a_damaged_product_leaves_no_file(written: tuple[Product, Path], tmp_path: Path) -> None:
    (path,) = written[1].parent.rglob("products/w.h5")
    copy = tmp_path / "p.h5"
    data = bytearray(path.read_bytes())
    with h5py.File(path) as file:
        dataset = file["entry/data/visibilities"]
        place = dataset.id.get_chunk_info(0).byte_offset
    data[place + 3] ^= 1
    copy.write_bytes(data)
    with pytest.raises(RuntimeError, match=r"p\.h5"):
        write_uvh5(copy, tmp_path / "v.uvh5", Uvh5Site.model_validate(SITE))
    assert not list(tmp_path.glob("*uvh5*"))
    assert read_product(path).data.size
