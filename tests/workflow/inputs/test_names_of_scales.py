"""Dimension scales whose datasets are called otherwise than axes, but have an axis as their NAME.

h5py writes that attribute by `make_scale("antenna")`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.workflow.chained_cases import study_of as chained
from tests.workflow.one_case import error_of, staged, study_of
from tests.workflow.test_chains import run
from workflow.steps.staging import caveats
from workflow.storage.certificates import read_certificate

AXES = {
    "samples": ("frequency", "polarization", "antenna", "time"),
    "weights": ("frequency", "polarization", "beam", "antenna"),
}
SHAPES = {"samples": (2, 1, 3, 8), "weights": (2, 1, 4, 3)}
SAMPLES = {"fq": ("frequency", [1.5, 1.4]), "ids": ("antenna", [b"a", b"b", b"c"])}


def written(path: Path, names: Any = True, **scales: Any) -> str:
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


WHOSE = "nothing names the entries of {} along antenna, which are taken to be those of {} in the"


@pytest.mark.parametrize("named", ["samples", "weights"])
def test_antennas_that_one_operand_names_alone_are_said_to_be_assumed(
    tmp_path: Path, named: str
) -> None:
    """Beams of other antennas, or of these in another order, came out without a word."""
    other = "weights" if named == "samples" else "samples"
    path = written(tmp_path / "in.h5", **{named: {"ids": SAMPLES["ids"]}})
    one = study_of(case(path)).workload("w").stage()
    assert one.attributes["assumed"] == {
        f"{other}.antenna": f"{WHOSE.format(other, named)} same order"
    }
    assert caveats(one).endswith(one.attributes["assumed"][f"{other}.antenna"])


@pytest.mark.parametrize("how", ["both", "none", "study", "dropped"])
def test_nothing_is_assumed_where_both_or_the_study_tell(tmp_path: Path, how: str) -> None:
    ids = {"ids": SAMPLES["ids"]}
    there = {"samples": ids, "weights": ids if how == "both" else {}} if how != "none" else {}
    more: dict[str, Any] = {}
    if how == "study":
        more = {"coordinates": {"antenna": ["a", "b", "c"]}}
    if how == "dropped":
        more = {"select": {"samples": [":", ":", "0:1", ":"], "weights": [":", ":", ":", "0:1"]}}
    one = study_of(case(written(tmp_path / "in.h5", **there), **more)).workload("w").stage()
    assert "assumed" not in one.attributes


def test_a_product_without_names_is_taken_in_the_order_of_a_file(tmp_path: Path) -> None:
    """Products are held to a file's names by numbers that were selected, else by nothing."""
    path = written(tmp_path / "in.h5", weights={"ids": SAMPLES["ids"]})
    samples = {"file": path, "samples": "samples", "axes": list(AXES["samples"])}
    bank = {"kind": "channelise", "channels": 2, "taps": 1, "axis": "time", "input": samples}
    weights: dict[str, Any] = {"file": path, "weights": "weights", "samples": {"workload": "bank"}}
    weights["select"] = {
        "weights": ["0:1", ":", ":", ":"],
        "samples": {"frequency": "0:1", "fine_frequency": 1},
    }
    study = chained({"bank": bank, "w": {"kind": "beamforming", "input": weights}})
    run(study, tmp_path)
    certificate = read_certificate(tmp_path / "w/products/w.h5")
    assert f"{WHOSE.format('samples', 'weights')} same order" in certificate["caveats"]
