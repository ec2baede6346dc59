"""Flags of UVH5 files that visibilities are written to."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
from test_chains import run
from test_uvh5 import SITE, labelled

from tests.workflow.chained_cases import study_of
from workflow.config.uvh5_site import Uvh5Site
from workflow.data import PLACES
from workflow.steps.uvh5 import write_uvh5


def test_what_is_no_number_is_flagged(tmp_path: Path) -> None:
    """NaN that a study lets through went into the file as data that nothing flags."""
    values = np.ones((2, 3, 8), np.complex64)
    values[1, 2, 5] = np.nan
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file["v"], file["m"], file["hz"] = values, np.arange(3.0), np.array([1e8, 2e8])
    places = {name: {"dataset": "m", "axis": "antenna", "units": "m"} for name in PLACES[:2]}
    along = {"frequency": {"dataset": "hz", "units": "Hz"}, "time": {"step_s": 1}, **places}
    source = {
        "file": str(tmp_path / "v.h5"), "voltages": "v", "coordinates": along,
        "axes": ["frequency", "antenna", "time"],
    }  # fmt: skip
    run(
        study_of({
            "v": {"kind": "correlate", "integrate": 4, "uvh5": SITE, "input": source,
                  "allow_nonfinite": True},
        }),
        tmp_path,
    )  # fmt: skip
    (product,) = tmp_path.rglob("products/w.h5")
    write_uvh5(product, tmp_path / "v.uvh5", Uvh5Site.model_validate(SITE))
    with h5py.File(tmp_path / "v.uvh5") as file:
        found, flags, counts = (file[f"Data/{n}"][..., 0] for n in ("visdata", "flags", "nsamples"))
    expected = np.zeros((2, 6, 2), bool)  # integration, pair, frequency
    expected[1, [2, 4, 5], 1] = True  # pairs of antenna 2
    np.testing.assert_array_equal(flags, expected.reshape(12, 2))
    np.testing.assert_array_equal(counts, ~flags)
    np.testing.assert_array_equal(found, np.where(flags, 0, 4))


def test_inputs_without_samples_are_flagged(tmp_path: Path) -> None:
    """`flagged: zero` makes samples 0 that the recording lacks."""
    case = labelled(tmp_path)
    with h5py.File(tmp_path / "v.h5", "a") as file:
        file["v"][:, 1, 2, 8:16] = 0
    run(study_of({"v": case}), tmp_path)
    path = tmp_path / "v.uvh5"
    write_uvh5(tmp_path / "v" / "products" / "w.h5", path, Uvh5Site(**SITE))
    with h5py.File(path) as file:
        flags = file["Data/flags"][...].reshape(3, 10, 3, 4)
        counts = file["Data/nsamples"][...].reshape(flags.shape)
        pairs = [file[f"Header/ant_{end}_array"][:10] for end in (1, 2)]
    ends = [(pairs[0] == 2)[:, None], (pairs[1] == 2)[:, None]]
    none = [[False], ends[0] | ends[1], ends[1], ends[0]]  # xx, yy, xy, yx
    expected = np.stack(np.broadcast_arrays(*none), axis=-1)
    np.testing.assert_array_equal(flags[1], np.broadcast_to(expected, (10, 3, 4)))
    assert not flags[[0, 2]].any()
    np.testing.assert_array_equal(counts, ~flags)
