"""Formats by name: the same staged file as from HDF5, or an error that says what is wrong."""

from __future__ import annotations

import sys
import types
from collections import namedtuple
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from workflow.config.check import check_study
from workflow.config.formats import FORMATS, HDF5
from workflow.config.loading import load_study
from workflow.config.mistakes import StudyError
from workflow.readers import READERS, Uvh5
from workflow.steps.staging import stage
from workflow.storage.inputs import InputError
from workflow.storage.staged import read_staged

TIMES, PAIRS, CHANNELS = 4, [(1, 1), (1, 7), (7, 7)], 8


def write(path: Path, *, by_time: bool = True, windows: bool = True, kind: str = "c8") -> Any:
    """A UVH5 file; returns its visibilities (time, baseline, frequency, polarization)."""
    rng = np.random.default_rng(3)
    shape = (TIMES, len(PAIRS), CHANNELS, 2)
    data = rng.integers(-99, 99, (*shape, 2)).astype(float).view(complex)[..., 0]
    ordered = data if by_time else data.swapaxes(0, 1)
    grid = [(t, b) for t in range(TIMES) for b in range(3)]
    if not by_time:
        grid = [(t, b) for b in range(3) for t in range(TIMES)]
    raw = ordered.reshape(-1, *([1] if windows else []), CHANNELS, 2)
    if kind != "c8":
        held = np.empty(raw.shape, [("r", kind), ("i", kind)])
        held["r"], held["i"] = raw.real, raw.imag
        raw = held
    else:
        raw = raw.astype(kind)
    with h5py.File(path, "w") as file:
        file.create_dataset("Data/visdata", data=raw, chunks=True, compression="gzip")
        file["Header/ant_1_array"] = np.array([PAIRS[b][0] for _, b in grid])
        file["Header/ant_2_array"] = np.array([PAIRS[b][1] for _, b in grid])
        file["Header/time_array"] = 2458000.5 + np.array([t for t, _ in grid]) * 10 / 86400
        frequencies = 1e8 + 1e5 * np.arange(CHANNELS)
        file["Header/freq_array"] = frequencies[None] if windows else frequencies
        file["Header/polarization_array"] = np.array([-5, -6])
        file["Header/vis_units"] = b"Jy"
    return data


def case(path: Path, **more: Any) -> dict[str, Any]:
    source = {"file": str(path), "format": "uvh5", "samples": "visibilities", **more}
    return {"kind": "dft", "axis": "frequency", "input": source}


def study_of(given: dict[str, Any]) -> Any:
    return load_study({"device": "cpu", "workloads": {"w": given}})


def told(given: dict[str, Any]) -> str:
    with pytest.raises(StudyError) as error:
        check_study(study_of(given))
    return str(error.value).removeprefix("workloads.w.")


def test_every_format_has_a_reader() -> None:
    assert {HDF5, *READERS} == set(FORMATS)


@pytest.mark.parametrize("by_time", [True, False])
@pytest.mark.parametrize("windows", [True, False])
@pytest.mark.parametrize("kind", ["c8", "f8", "i4"])
@pytest.mark.parametrize("most", [1, 1 << 26])
def test_visibilities(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_time: bool, windows: bool, kind: str,
    most: int,
) -> None:  # fmt: skip
    monkeypatch.setattr("workflow.storage.product_operand.STRETCH_BYTES", most)
    path = tmp_path / "v.uvh5"
    data = write(path, by_time=by_time, windows=windows, kind=kind)
    study = study_of(case(path, select={"samples": {"time": "1:4:2", "polarization": 1}}))
    check_study(study)
    stage(study.workload("w"), [path], tmp_path / "s.h5", __import__("logging").getLogger("t"))
    staged = read_staged(tmp_path / "s.h5")
    wanted = data[1:4:2, ..., 1] if by_time else data[1:4:2, ..., 1].swapaxes(0, 1)
    np.testing.assert_array_equal(staged.operands["samples"], wanted)
    slow = ("time", "baseline") if by_time else ("baseline", "time")
    assert staged.axes["samples"] == (*slow, "frequency")
    found = staged.coordinates
    np.testing.assert_allclose(found["time"].values, [10, 30], rtol=1e-4)
    np.testing.assert_array_equal(found["antenna_2"].values, [1, 7, 7])
    assert (found["time"].units, found["frequency"].units, staged.units["samples"]) == (
        "s", "Hz", "Jy",
    )  # fmt: skip
    product = study.workload("w").product(staged, staged.operands["samples"])
    np.testing.assert_allclose(product.coordinates["delay"].values, np.arange(8) / 8e5)
    assert product.coordinates["delay"].units == "s"


def change(path: Path, name: str, values: Any) -> None:
    with h5py.File(path, "a") as file:
        del file[name]
        if values is not None:
            file[name] = values


DAMAGE: list[tuple[str, Any, str]] = [
    ("Header/time_array", None, "is not UVH5"),
    ("Header/time_array", np.zeros(5), "must have 12 finite values"),
    ("Header/time_array", np.full(12, np.nan), "must have 12 finite values"),
    ("Header/time_array", np.arange(12.0), "each baseline must have each time once"),
    ("Header/ant_1_array", np.zeros(12, int), "each baseline must have each time once"),
    ("Header/freq_array", np.zeros(100), "is longer than the data"),
    ("Header/freq_array", np.array([b"x"] * 8), "must hold numbers"),
    ("Header/polarization_array", np.zeros(1), "must have 2 finite values"),
    ("Data/visdata", np.zeros((12, 8, 2)), "must be complex"),
    ("Data/visdata", np.zeros((12, 2, 8, 2), "c8"), "must be (baseline-time, frequency"),
    ("Data/visdata", h5py.ExternalLink("other.h5", "/x"), "is a link to"),
]


@pytest.mark.parametrize(("name", "values", "message"), DAMAGE)
def test_files_that_are_not_what_they_say(
    tmp_path: Path, name: str, values: Any, message: str
) -> None:
    path = tmp_path / "v.uvh5"
    write(path)
    change(path, name, values)
    line = told(case(path))
    assert line.startswith("input.file: ")
    assert message in line


def test_a_header_that_claims_more_than_there_is(tmp_path: Path) -> None:
    path = tmp_path / "v.uvh5"
    write(path)
    with h5py.File(path, "a") as file:
        for name, shape in (("Data/visdata", (1 << 40, 1, 8, 2)), ("Header/time_array", 1 << 40)):
            del file[name]
            file.create_dataset(name, shape, "c8" if "vis" in name else "f8", chunks=True)
    assert "or than memory" in told(case(path))


def test_bytes_that_are_cut_or_flipped(tmp_path: Path) -> None:
    path = tmp_path / "v.uvh5"
    write(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(60):
        raw = bytearray(whole)
        raw[int(rng.integers(len(raw)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(raw[: int(rng.integers(1, len(raw)))] if rng.random() < 0.3 else raw)
        try:
            reader = Uvh5(path)
            for name in reader.names:
                outline = reader.outline(name)
                reader.read(name, [slice(0, n) for n in outline.data.shape])
        except InputError:
            pass


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
        {"antenna_numbers": [7, 2]}, {"antenna_positions": [1.0, 2.0]},
        {"latitude": [1.0, 2.0]}, {"longitude": np.nan},
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


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"format": "uvh6"}, "input.format: must be one of ['hdf5', 'uvh5', 'guppi', 'dada', 'vdif', "),
    (
        {"samples": "visdata"},
        "input.samples: must be one of ['visibilities', 'covariance'] of the file",
    ),
    (
        {"samples": {"real": "x"}},
        "input.samples: must be one of ['visibilities', 'covariance'] of the file",
    ),
    ({"coordinates": {"time": {"step_s": 1}}}, "input.coordinates.time: the file says it already"),
    (
        {"coordinates": {"time": "Header/time"}},
        "input.coordinates.time must be equal steps or value",
    ),
    ({"coordinates": {"azimuth": {"step": 1}}}, "input.coordinates.azimuth: must be of an axis of"),
    ({"sample_rate_hz": 3.0}, "input.sample_rate_hz must not be given beside format: uvh5"),
    ({"external": True}, "input.external must not be given beside format: uvh5"),
    ({"file": "/nowhere.uvh5"}, "input.file: there is no file /nowhere.uvh5"),
    ({"select": {"samples": {"time": 9}}}, "input.select.samples: visibilities of "),
]


@pytest.mark.parametrize(("more", "message"), MISTAKES, ids=lambda value: str(value)[:40])
def test_mistakes_are_said_before_anything_runs(
    tmp_path: Path, more: dict[str, Any], message: str
) -> None:
    write(tmp_path / "v.uvh5")
    assert told(case(tmp_path / "v.uvh5", **more)).startswith(message)


@pytest.mark.parametrize(
    "name", ["hera_zen.2458098.45361.uvh5", "hera_zen.2458661.23480_c128.uvh5",
             "mwa128_1061315448_mini.uvh5", "ata_LoA_C0352_3c286.uvh5"],
)  # fmt: skip
def test_measured_files(real_data: Path, name: str) -> None:
    path = real_data / "vis" / name
    reader = Uvh5(path)
    outline = reader.outline("visibilities")
    found = reader.read("visibilities", [slice(0, n) for n in outline.data.shape])
    with h5py.File(path) as file:
        raw = file["Data/visdata"][...]
        first = file["Header/ant_1_array"][...]
    raw = raw.reshape(raw.shape[0], *raw.shape[-2:])
    np.testing.assert_array_equal(found, raw[reader.rows])
    baseline = outline.axes.index("baseline")
    numbers = first[np.moveaxis(reader.rows, baseline, 0)[:, 0]]
    np.testing.assert_array_equal(outline.coordinates["antenna_1"].values, numbers)
    assert outline.units.lower() == "uncalib"


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


class Stream:
    """What baseband's stream readers are, as far as they are used."""

    shape = (6, 2, 3)
    sample_shape = namedtuple("sample_shape", "npol nchan")(2, 3)
    data = np.arange(36).reshape(shape) * (1 + 1j)

    class sample_rate:  # noqa: N801
        @staticmethod
        def to_value(unit: str) -> float:
            assert unit == "Hz"
            return 4.0

    def __enter__(self) -> Stream:
        self.at = 0
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def seek(self, at: int) -> None:
        self.at = at

    def read(self, count: int) -> Any:
        return self.data[self.at : self.at + count]


@pytest.mark.parametrize("name", ["guppi", "dada", "vdif"])
def test_voltages_by_a_stand_in_of_baseband(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """baseband is under the GPL and no dependency: the stand-in has what is called of it."""
    path = tmp_path / "v.raw"
    path.write_bytes(b"x")
    given = case(path, format=name, samples="voltages") | {"axis": "time"}
    monkeypatch.setitem(sys.modules, f"baseband.{name}", None)
    assert told(given).startswith(f"input.format: {name} needs the package baseband")
    module = types.ModuleType(f"baseband.{name}")
    module.open = lambda file, mode, squeeze: Stream()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "baseband", types.ModuleType("baseband"))
    monkeypatch.setitem(sys.modules, f"baseband.{name}", module)
    given["input"]["select"] = {"samples": {"time": "2:6", "polarization": 0}}
    study = study_of(given)
    check_study(study)
    staged = study.workload("w").stage()
    np.testing.assert_array_equal(staged.operands["samples"], Stream.data[2:6, 0].T)
    assert staged.axes["samples"] == ("frequency", "time")
    np.testing.assert_array_equal(staged.coordinates["time"].values, np.arange(2, 6) / 4)

    steps = {"start": 1e9, "step_hz": 1e6}
    given["input"]["coordinates"] = {"frequency": steps, "polarization": ["x", "y"]}
    given["input"]["select"] = {"samples": {"polarization": 0, "frequency": "1:3"}}
    study = study_of(given)
    check_study(study)
    found = study.workload("w").stage().coordinates["frequency"]
    np.testing.assert_array_equal(found.values, [1.001e9, 1.002e9])
    assert found.units == "Hz"
    for wrong, message in (
        ({"frequency": [1.0, 2.0]}, "input.coordinates.frequency must have 3 values, got 2"),
        ({"frequency": [1.0, 2.0, 3.0]}, "input.coordinates.frequency has no unit"),
        ({"time": {"step_s": 1.0}}, "input.coordinates.time: the file says it already"),
    ):
        given["input"]["coordinates"] = wrong
        assert told(given).startswith(message)
    del given["input"]["coordinates"]

    def damaged(*_: Any, **__: Any) -> Any:
        raise ValueError("no header")

    module.open = damaged  # type: ignore[attr-defined]
    assert "cannot be read as" in told(given)
