"""NaN in HDF5 files that a study makes 0: flagged samples, which sums leave out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.workflow.one_case import error_of, study_of
from workflow.files.input_error import InputError
from workflow.inputs.lacking import ZEROS
from workflow.steps.staging import understood


def case(path: Path, **more: Any) -> dict[str, Any]:
    source = {"file": str(path), "voltages": "v", "axes": ["antenna", "time"], **more}
    return {"kind": "correlate", "input": source}


@pytest.mark.parametrize("kind", ["c8", "c16", "parts", "packed"])
def test_nan_is_left_out_of_sums(tmp_path: Path, kind: str) -> None:
    """A value is flagged where either part is NaN, and both parts become 0."""
    path, rng = tmp_path / "v.h5", np.random.default_rng(3)
    values = rng.integers(-9, 9, (3, 8, 2)).astype(np.float32)
    flags = np.zeros((3, 8), bool)
    flags[1, 4] = flags[2, 5] = True
    where = ((1, 4, 0), (2, 5, 1))
    more: dict[str, Any] = {}
    for place in where:
        values[place] = -9 if kind == "packed" else np.nan
    with h5py.File(path, "w") as file:
        if kind in ("parts", "packed"):
            stored = values.astype(">i2") if kind == "packed" else values
            file["v"] = stored
            if kind == "packed":
                file["v"].attrs["missing_value"] = stored.dtype.type(-9)
            more = {"axes": ["antenna", "time", "complex"]}
        else:
            file["v"] = (values[..., 0] + 1j * values[..., 1]).astype(kind)
    if kind == "packed":
        flags = (values == -9).any(axis=-1)
    one = study_of(case(path, flagged="zero", **more)).workload("w").stage()
    found = one.held().operands["voltages"].reshape(3, 8)
    expected = np.where(flags, 0, values[..., 0] + 1j * values[..., 1])
    np.testing.assert_array_equal(found, expected)
    said = f"{flags.sum()} of 24 values, which are NaN in the file"
    assert one.attributes[ZEROS] == {"voltages": said}
    assert understood(one).endswith(f"{said}, are 0 in voltages")


def test_inf_stays_an_error(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    with h5py.File(path, "w") as file:
        file["v"] = np.array([[1, np.inf, np.nan]], np.complex64)
    with pytest.raises(InputError, match=r"0 NaN and 1 Inf among 3 values.*lets them through$"):
        study_of(case(path, flagged="zero")).workload("w").stage()
    said = "input.flagged must be refuse or zero beside format: hdf5, got keep: allow_nonfinite"
    assert error_of(case(path, flagged="keep")).startswith(said)


def test_a_file_without_nan(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    with h5py.File(path, "w") as file:
        file["v"] = np.ones((2, 4), np.complex64)
    one = study_of(case(path, flagged="zero")).workload("w").stage()
    assert ZEROS not in one.attributes
