"""Dimension scales whose datasets are called otherwise than axes, but have an axis as their NAME.

h5py writes that attribute by `make_scale("antenna")`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np

from tests.workflow.one_case import error_of, staged, study_of

AXES = {
    "samples": ("frequency", "polarization", "antenna", "time"),
    "weights": ("frequency", "polarization", "beam", "antenna"),
}
SHAPES = {"samples": (2, 1, 3, 8), "weights": (2, 1, 4, 3)}
SAMPLES = {"fq": ("frequency", [1.5, 1.4]), "ids": ("antenna", [b"a", b"b", b"c"])}


def written(path: Path, names: bool = True, **scales: dict[str, tuple[str, Any]]) -> str:
    """Samples and weights with scales by the names of their datasets, each (axis, values)."""
    with h5py.File(path, "w") as file:
        for operand, shape in SHAPES.items():
            file[operand] = np.ones(shape, np.complex64)
            for name, (axis, values) in scales.get(operand, {}).items():
                place = f"{operand}_{name}"
                file[place] = values
                if axis == "frequency":
                    file[place].attrs["units"] = "GHz"
                file[place].make_scale(axis if names else "")
                file[operand].dims[AXES[operand].index(axis)].attach_scale(file[place])
    return str(path)


def case(path: str, **more: Any) -> dict[str, Any]:
    source = {"file": path, "samples": "samples", "weights": "weights", **more}
    return {"kind": "beamforming", "input": source}


def test_weights_of_antennas_in_another_order_are_refused(tmp_path: Path) -> None:
    """They were multiplied with samples of other antennas, without a word."""
    weights = {"n": ("antenna", [b"b", b"a", b"c"])}
    path = written(tmp_path / "in.h5", samples=SAMPLES, weights=weights)
    assert "along antenna, b to c, got a to c" in error_of(case(path))


def test_what_stands_along_axes_that_scales_name(tmp_path: Path) -> None:
    found = staged(case(written(tmp_path / "in.h5", samples=SAMPLES))).coordinates
    np.testing.assert_array_equal(found["frequency"].values, [1.5, 1.4])
    assert found["frequency"].units == "GHz"
    assert found["antenna"].values.tolist() == ["a", "b", "c"]


def test_a_selection_goes_by_the_names_of_scales(tmp_path: Path) -> None:
    all_axes = {**SAMPLES, "feed": ("polarization", [b"x"]), "at": ("time", np.arange(8.0))}
    chosen = {"samples": {"antenna": ["c", "a", "b"]}}
    path = written(tmp_path / "in.h5", samples=all_axes)
    found = staged(case(path, select=chosen)).coordinates
    assert found["antenna"].values.tolist() == ["c", "a", "b"]
    assert found["polarization"].values.tolist() == ["x"]


def test_names_along_an_axis_that_nothing_names_are_said_to_be_left_out(tmp_path: Path) -> None:
    path = written(tmp_path / "in.h5", names=False, samples=SAMPLES)
    said = study_of(case(path)).workload("w").stage().attributes["left_out"]
    assert set(said) == {"/samples_fq", "/samples_ids"}
    assert "names its axis 'samples_ids'" in said["/samples_ids"]


def test_the_name_of_a_dataset_comes_first_where_it_is_that_of_an_axis(tmp_path: Path) -> None:
    """As netCDF has it, whatever NAME says."""
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["samples"], file["weights"] = (np.ones(SHAPES[one]) + 0j for one in AXES)
        file["frequency"] = [1.5, 1.4]
        file["frequency"].attrs["units"] = "GHz"
        file["frequency"].make_scale("time")
        file["samples"].dims[0].attach_scale(file["frequency"])
    found = staged(case(str(tmp_path / "in.h5"))).coordinates
    assert found["frequency"].values.tolist() == [1.5, 1.4]
