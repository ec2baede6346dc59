"""Formats by name: the same staged file as from HDF5, or an error that says what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.workflow.one_case import error_of, study_of
from tests.workflow.readers.uvh5_file import CHANNELS, TIMES, case, change, write
from tests.workflow.whole_files import read_staged
from workflow.config.formats import FORMATS, HDF5
from workflow.files.input_error import InputError
from workflow.inputs.file_array import FileArray
from workflow.inputs.selections import pick
from workflow.preflight.check import check_study
from workflow.readers import READERS, Uvh5
from workflow.steps.staging import stage


@pytest.fixture(scope="module", autouse=True)
def attributes_without_a_fork() -> None:
    """Leave the reading of attributes to a fork: some files here are damaged."""


def test_every_format_has_a_reader() -> None:
    assert {HDF5, *READERS} == set(FORMATS)


@pytest.mark.pairwise
@pytest.mark.parametrize("by_time", [True, False])
@pytest.mark.parametrize("windows", [True, False])
@pytest.mark.parametrize("kind", ["c8", "f8", "i4"])
@pytest.mark.parametrize("most", [1, 1 << 26])
def test_visibilities(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_time: bool, windows: bool, kind: str,
    most: int,
) -> None:  # fmt: skip
    monkeypatch.setattr("workflow.inputs.product_operand.STRETCH_BYTES", most)
    path = tmp_path / "v.uvh5"
    data = write(path, by_time=by_time, windows=windows, kind=kind)
    study = study_of(case(path, select={"samples": {"time": "1:4:2", "polarization": 1}}))
    check_study(study)
    stage(study.workload("w"), [path], tmp_path / "s.h5", __import__("logging").getLogger("t"))
    staged = read_staged(tmp_path / "s.h5")
    expected = data[1:4:2, ..., 1] if by_time else data[1:4:2, ..., 1].swapaxes(0, 1)
    np.testing.assert_array_equal(staged.operands["samples"], expected)
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


@pytest.mark.parametrize("by_time", [True, False])
def test_flagged_values_are_said_left_out_or_kept(tmp_path: Path, by_time: bool) -> None:
    path = tmp_path / "v.uvh5"
    data = write(path, by_time=by_time)
    flags = np.zeros((TIMES, 3, CHANNELS, 2), bool)
    flags[1, 2, 3:5, 1], flags[2] = True, True
    data[2] = 0  # what is zero already is in no sum
    ordered, shown = (x if by_time else x.swapaxes(0, 1) for x in (data, flags))
    change(path, "Data/visdata", ordered.reshape(-1, 1, CHANNELS, 2).astype("c8"))
    with h5py.File(path, "a") as file:
        file["Data/flags"] = shown.reshape(-1, 1, CHANNELS, 2)

    def read(**more: Any) -> Any:
        return study_of(case(path, **more)).workload("w").stage().operands["samples"]

    with pytest.raises(InputError, match=r"flags 2 of the first 192 values of visibilities that"):
        read()
    chosen = {"samples": {"frequency": [2, 5]}}  # 3 and 4 are read with them, and not taken
    assert read(select=chosen).shape[-1] == 2
    as_read = ordered.transpose(0, 1, 3, 2)
    np.testing.assert_array_equal(read(flagged="keep"), as_read)
    left = np.where(shown.transpose(0, 1, 3, 2), 0, as_read)
    np.testing.assert_array_equal(read(flagged="zero"), left)
    zeros = study_of(case(path, flagged="zero")).workload("w").stage().attributes["zeros"]
    assert zeros == {"samples": "50 of 192 values, which are flagged or missing"}
    assert left[(1, 2) if by_time else (2, 1)][1, 3] == 0
    reader = Uvh5(path)
    reader.flagged = "zero"
    square = FileArray(reader, "covariance")
    found = square.taken(pick(None, Uvh5(path).outline("covariance").data.shape))
    for place, (i, j) in enumerate([(0, 0), (1, 0), (1, 1)]):
        np.testing.assert_array_equal(found[..., i, j], np.where(flags, 0, data)[:, place])


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (np.zeros((12, 8, 1), bool), "must be truth values of the shape of Data/visdata"),
        (np.zeros((11, 8, 2), bool), "must be truth values of the shape of Data/visdata"),
        (np.zeros((12, 1, 1, 8, 2), bool), "must be truth values of the shape of Data/visdata"),
        (np.zeros((12, 8, 2)), "must be truth values of the shape of Data/visdata"),
        (np.bool_(True), "must be truth values of the shape of Data/visdata"),
        (np.zeros((8, 2), bool), "must be truth values of the shape of Data/visdata"),
        (np.zeros((12, 2, 8, 2), bool), "must be truth values of the shape of Data/visdata"),
        (np.zeros((12, 8, 2), "S4"), "must be truth values of the shape of Data/visdata"),
        (h5py.ExternalLink("other.h5", "/x"), "Data/flags"),
    ],
    ids=str,
)
def test_flags_that_are_none(tmp_path: Path, flags: Any, said: str) -> None:
    path = tmp_path / "v.uvh5"
    write(path)
    with h5py.File(path, "a") as file:
        file["Data/flags"] = flags
    with pytest.raises(InputError, match=said):
        study_of(case(path)).workload("w").stage()


DAMAGE: list[tuple[str, Any, str]] = [
    ("Header/time_array", None, "is not UVH5"),
    ("Header/time_array", np.zeros(5), "must have 12 finite values"),
    ("Header/time_array", np.full(12, np.nan), "must have 12 finite values"),
    ("Header/time_array", np.arange(12.0), "each baseline must have each time once"),
    ("Header/ant_1_array", np.zeros(12, int), "each baseline must have each time once"),
    ("Header/freq_array", np.zeros(100), "is longer than the data"),
    ("Header/freq_array", np.array([b"x"] * 8), "must hold numbers"),
    ("Header/polarization_array", np.zeros(1), "must have 2 finite values"),
    ("Header/polarization_array", np.array([-5, 0]), "another polarization in each spectral win"),
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
    line = error_of(case(path))
    assert line.startswith("input.file: ")
    assert message in line


def test_a_header_that_claims_more_than_there_is(tmp_path: Path) -> None:
    path = tmp_path / "v.uvh5"
    write(path)
    with h5py.File(path, "a") as file:
        for name, shape in (("Data/visdata", (1 << 40, 1, 8, 2)), ("Header/time_array", 1 << 40)):
            del file[name]
            file.create_dataset(name, shape, "c8" if "vis" in name else "f8", chunks=True)
    assert "or than memory" in error_of(case(path))


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
    ({"flagged": "drop"}, "input.flagged: must be one of ['refuse', 'zero', 'keep'], got 'drop'"),
    ({"flagged": True}, "input.flagged: must be one of ['refuse', 'zero', 'keep'], got true"),
    ({"flagged": "zero", "format": "csi"}, "input.flagged must not be given beside format: csi"),
    (
        {"flagged": "keep", "format": "hdf5"},
        "input.flagged must be refuse or zero beside format: hdf5, got keep: allow_nonfinite: true",
    ),
    (
        {"flagged": "keep", "format": "guppi"},
        "input.flagged must be refuse or zero beside format: guppi, got keep",
    ),
    ({"external": True}, "input.external must not be given beside format: uvh5"),
    ({"file": "/nowhere.uvh5"}, "input.file: there is no file /nowhere.uvh5"),
    ({"select": {"samples": {"time": 9}}}, "input.select.samples: visibilities of "),
]


@pytest.mark.parametrize(("more", "message"), MISTAKES, ids=lambda value: str(value)[:40])
def test_mistakes_are_said_before_anything_runs(
    tmp_path: Path, more: dict[str, Any], message: str
) -> None:
    write(tmp_path / "v.uvh5")
    assert error_of(case(tmp_path / "v.uvh5", **more)).startswith(message)


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
