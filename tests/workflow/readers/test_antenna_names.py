"""Names of antennas in the header of UVH5 files, followed to products."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.workflow.one_case import staged, study_of
from tests.workflow.readers.uvh5_file import PAIRS, case, write
from workflow.preflight.check import check_study

NUMBERS = np.unique(PAIRS)


def named(path: Path, names: Any) -> None:
    """A file whose antennas, and one more that has no data, have names."""
    write(path)
    with h5py.File(path, "a") as file:
        file["Header/antenna_numbers"] = np.array([99, *NUMBERS[::-1]])
        if names is not None:
            file["Header/antenna_names"] = names


def coordinates_of(path: Path) -> Any:
    study = study_of(case(path))
    check_study(study)
    one = study.workload("w")
    return one.product_outline(one.outline()).coordinates


def test_names_stand_beside_numbers(tmp_path: Path) -> None:
    """An image of 128 tiles had numbers, of which the file says the names."""
    path = tmp_path / "v.uvh5"
    texts = [f"Tile{number}".encode() for number in NUMBERS[::-1]]
    named(path, np.array([b"unused", *texts]))
    found = coordinates_of(path)
    for end in ("antenna_1", "antenna_2"):
        expected = [f"Tile{number}" for number in found[end].values]
        assert list(found[f"{end}_name"].values) == expected
        assert found[f"{end}_name"].axes == ("baseline",)


@pytest.mark.parametrize(
    "names",
    [
        None, np.array([b"99", *(str(n).encode() for n in NUMBERS[::-1])]), np.array([b"a", b"b"]),
        np.arange(1 + len(NUMBERS)), np.array([b"x" * 65] * (1 + len(NUMBERS))),
    ],
    ids=["none", "numbers", "too few", "no text", "too long"],
)  # fmt: skip
def test_names_that_say_nothing(tmp_path: Path, names: Any) -> None:
    path = tmp_path / "v.uvh5"
    named(path, names)
    found = coordinates_of(path)
    assert "antenna_1" in found
    assert not [name for name in found if name.endswith("_name")]


def test_names_select_rows_and_columns_of_a_covariance(tmp_path: Path) -> None:
    """Columns have the names of the rows."""
    path = tmp_path / "v.uvh5"
    named(path, np.array([b"unused", *(f"T{n}".encode() for n in NUMBERS[::-1])]))
    first, last = NUMBERS[0], NUMBERS[-1]

    def taken(select: dict[str, Any]) -> Any:
        part = {"time": 0, "polarization": 0, "frequency": 0}
        source = {
            "file": str(path), "format": "uvh5", "a": "covariance", "b": "covariance",
            "select": {name: {**part, **select} for name in "ab"},
        }  # fmt: skip
        return staged({"kind": "gemm", "input": source}).operands["a"][0]

    rows = {"antenna": [f"T{last}", f"T{first}"], "column": [f"T{last}", f"T{first}"]}
    np.testing.assert_array_equal(taken(rows), taken({})[[-1, 0]][:, [-1, 0]])
    numbers = {"antenna": [str(last), str(first)], "column": [str(last), str(first)]}
    np.testing.assert_array_equal(taken(numbers), taken(rows))
    named_feed = taken({"polarization": "yy"})
    np.testing.assert_array_equal(named_feed, taken({"polarization": 1}))
