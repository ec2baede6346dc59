"""Names along an axis, in a dataset of text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.workflow.one_case import error_of, study_of
from workflow.files import text_attributes
from workflow.files.input_error import InputError
from workflow.files.names import read_names
from workflow.preflight.check import check_study

TEXTS = ["rx-left", "rx-µ", "rx-right"]


@pytest.fixture(scope="module", autouse=True)
def attributes_without_a_fork() -> None:
    """Leave the reading of attributes to a fork: some files here are damaged."""


def case(path: Path, names: str, **more: Any) -> dict[str, Any]:
    source = {
        "file": str(path), "samples": "h", "axes": ["receiver", "time"],
        "coordinates": {"receiver": names, **more},
    }  # fmt: skip
    return {"kind": "dft", "axis": "time", "input": source}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file["h"] = np.ones((3, 8), np.complex64)
        file["any"] = TEXTS
        file.create_dataset("any_packed", data=TEXTS, chunks=(2,), compression="gzip")
        file["any_long"] = ["a", "é" * 65, "c"]
        file["fixed"] = np.array([text.encode() for text in TEXTS])
        file.create_dataset("packed", data=file["fixed"], chunks=(2,), compression="gzip")
        file["row"] = np.array([[text.encode() for text in TEXTS]])
        file["place"] = np.arange(3.0)
        file["place"].attrs["units"] = np.bytes_("m")
        file["two"] = np.array(["a", "b"], "S")
        file["long"] = np.array(["a", "b" * 65, "c"], "S")
        file["many"] = np.zeros(70_000, "S1")
        file["kinds"] = np.array([0, 1, 1], h5py.enum_dtype({"A": 0, "B": 1}, "i4"))
    return tmp_path / "v.h5"


@pytest.mark.parametrize("name", ["fixed", "any", "any_packed", "packed", "row"])
def test_names_of_a_dataset(path: Path, name: str) -> None:
    """A study takes the names of an axis from a dataset of its file."""
    given = case(path, name, place={"dataset": "place", "axis": "receiver"})
    study = study_of(given)
    check_study(study)
    one = study.workload("w")
    found = one.product_outline(one.outline()).coordinates["receiver"]
    assert list(found.values) == TEXTS
    assert found.units == ""
    given["input"]["select"] = {"samples": {"receiver": [2, 0]}}
    some = study_of(given).workload("w").stage().coordinates
    assert list(some["receiver"].values) == [TEXTS[2], TEXTS[0]]
    assert some["place"].values.tolist() == [2.0, 0.0]


def test_names_letter_by_letter(path: Path) -> None:
    """netCDF has a name a row, MATLAB, whose axes are in reverse, a column of numbers."""
    letters = np.array([list(text.ljust(8)) for text in TEXTS])
    with h5py.File(path, "r+") as file:
        rows = [text.encode().ljust(8, b"\0") for text in TEXTS]
        file["netcdf"] = np.frombuffer(b"".join(rows), "S1").reshape(3, 8)
        file["h"].dims[0].attach_scale(file["netcdf"])
        file["row_of_letters"] = np.array([[b"x", b"y", b"z"]])
        file["matlab"] = np.vectorize(ord)(letters).T.astype(np.uint16)
        file["word"] = np.array([[120], [121], [122]], np.uint16)
        for name in ("matlab", "word"):
            file[name].attrs["MATLAB_class"] = np.bytes_("char")
    for name, texts in (("netcdf", TEXTS), ("matlab", TEXTS), ("row_of_letters", list("xyz"))):
        found = study_of(case(path, name)).workload("w").stage().coordinates["receiver"]
        assert list(found.values) == texts
    assert error_of(case(path, "word")) == (
        "input.coordinates.receiver: /word must have 3 names, one for each entry of the axis in "
        "the file, got ['xyz']"
    )
    given = case(path, "netcdf")
    given["input"] |= {"coordinates": {}, "select": {"samples": {"receiver": [2, 1]}}}
    found = study_of(given).workload("w").stage().coordinates["receiver"]
    assert list(found.values) == [TEXTS[2], TEXTS[1]]


def test_a_nul_within_a_name_is_a_space(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file["nul"] = np.array([b"a\0b", b"c", b"d"], "S")
    found = study_of(case(path, "nul")).workload("w").stage().coordinates["receiver"]
    assert list(found.values) == ["a b", "c", "d"]


def test_mistakes(path: Path) -> None:
    key = "input.coordinates.receiver"
    for name, said in (
        ("two", f"{key}: /two must have 3 values, one for each entry of the axis in the file"),
        ("long", f"{key}: /long must have names of at most 64 bytes, got text of 65"),
        ("any_long", f"{key}: /any_long must have names of at most 64 bytes, got text of 130"),
        ("kinds", f"{key}: /kinds must hold numbers, got an enumeration in int32"),
        ("h", f"{key}: /h must have 3 values"),
    ):
        assert error_of(case(path, name)).startswith(said)
    said = "input.coordinates.time: when must hold numbers or dates in ISO 8601, got '0 s'"
    with h5py.File(path, "a") as file:
        file["when"] = np.array([f"{number} s" for number in range(8)], "S")
        file["when"].attrs["units"] = "s"
        with pytest.raises(InputError, match="must have at most 65536 names, got"):
            read_names(file["many"], "x")
    assert error_of(case(path, "fixed", time="when")).startswith(said)


def test_damaged_names_are_an_input_error(path: Path, tmp_path: Path) -> None:
    whole, rng = np.frombuffer(path.read_bytes(), np.uint8), np.random.default_rng(3)
    with h5py.File(path) as file:
        start, size = (
            getattr(file["packed"].id.get_chunk_info(0), n) for n in ("byte_offset", "size")
        )
    seen = set()
    for _ in range(200):
        data = whole.copy()
        data[start + rng.integers(0, size, 2)] ^= rng.integers(1, 256, 2, np.uint8)
        (tmp_path / "d.h5").write_bytes(data.tobytes())
        try:
            with h5py.File(tmp_path / "d.h5") as file:
                assert read_names(file["packed"], "x").shape == (3,)
            seen.add("read")
        except InputError as error:
            seen.add("error" if str(error).startswith("x: ") else str(error))
    assert seen == {"error"}  # gzip has a checksum


def test_damaged_names_of_any_length_are_an_input_error(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A length that leads beyond the heap of a file's texts: HDF5 searches it for ever."""
    monkeypatch.setattr(text_attributes, "CPU_SECONDS", 0.1)
    with h5py.File(tmp_path / "d.h5", "w") as file:
        file["any"] = TEXTS
    data = bytearray((tmp_path / "d.h5").read_bytes())
    data[data.index(b"rx-left") - 8] = 255
    (tmp_path / "d.h5").write_bytes(data)
    with (
        h5py.File(tmp_path / "d.h5") as file,
        pytest.raises(InputError, match=r"x: the names in /any cannot be read \(they are"),
    ):
        read_names(file["any"], "x")
