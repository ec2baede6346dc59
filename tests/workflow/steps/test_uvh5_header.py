"""A UVH5 file has the telescope, the date and flags beside its visibilities."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.workflow.chained_cases import study_of
from tests.workflow.steps.test_uvh5 import SITE, VISIBILITIES, labelled, uvh5_of
from tests.workflow.test_chains import run
from workflow.config.mistakes import StudyError
from workflow.config.uvh5_site import Uvh5Site
from workflow.data import PLACES
from workflow.preflight.check import check_study
from workflow.steps.uvh5 import write_uvh5


def test_a_telescope_has_a_name_of_any_letters(tmp_path: Path) -> None:
    name = {"telescope": "Bleien-Süd"}
    case = {**VISIBILITIES, "uvh5": SITE | name}
    with h5py.File(uvh5_of(case, tmp_path, **name)) as file:
        assert file["Header/telescope_name"][()].decode() == "Bleien-Süd"


def test_the_date_of_the_samples_is_that_of_the_file(tmp_path: Path) -> None:
    """The date comes from the file, and a study that gives another one is refused."""
    dated = {"step": 1e-3, "units": "seconds since 2026-11-28T10:00:00"}
    expected = 2461372.5 + 10 / 24
    for given in (None, round(expected, 5)):
        site = {**SITE, "julian_date": given}
        case = {**labelled(tmp_path, time=dated), "uvh5": site}
        with h5py.File(uvh5_of(case, tmp_path / str(given), **site)) as file:
            first = file["Header/time_array"][0]
        assert abs(first - expected - 3.5e-3 / 86400) < 1e-9
    wrong = {**labelled(tmp_path, time=dated), "uvh5": SITE}
    with pytest.raises(StudyError, match=r"uvh5\.julian_date: the times count from 2026-11-28T"):
        check_study(study_of({"v": wrong}))
    for time, said in (({"step_s": 1e-3}, "no date"),
                       ({"step": 1, "units": "s since noon"}, "noon")):  # fmt: skip
        none = {**labelled(tmp_path, time=time), "uvh5": {**SITE, "julian_date": None}}
        with pytest.raises(StudyError, match=f"must be given, since times count from {said}"):
            check_study(study_of({"v": none}))


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
    case = {"kind": "correlate", "integrate": 4, "uvh5": SITE, "input": source}
    with h5py.File(uvh5_of({**case, "allow_nonfinite": True}, tmp_path)) as file:
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
    with h5py.File(uvh5_of(case, tmp_path)) as file:
        flags = file["Data/flags"][...].reshape(3, 10, 3, 4)
        counts = file["Data/nsamples"][...].reshape(flags.shape)
        pairs = [file[f"Header/ant_{end}_array"][:10] for end in (1, 2)]
    ends = [(pairs[0] == 2)[:, None], (pairs[1] == 2)[:, None]]
    none = [[False], ends[0] | ends[1], ends[1], ends[0]]  # xx, yy, xy, yx
    expected = np.stack(np.broadcast_arrays(*none), axis=-1)
    np.testing.assert_array_equal(flags[1], np.broadcast_to(expected, (10, 3, 4)))
    assert not flags[[0, 2]].any()
    np.testing.assert_array_equal(counts, ~flags)


@pytest.mark.parametrize("taken", [1, [1], [1, 0]])
def test_feeds_of_selected_numbers_are_not_known(tmp_path: Path, taken: Any) -> None:
    """They were written as x, or x before y, whichever they are."""
    case = labelled(tmp_path)
    case["input"]["select"] = {"voltages": {"polarization": taken}}
    entries = [taken] if taken == 1 else taken
    with pytest.raises(StudyError, match=re.escape(f"are entries {entries} of the input's")):
        check_study(study_of({"v": case}))
    case["input"]["coordinates"]["polarization"] = ["y", "x"]
    check_study(study_of({"v": case}))


@pytest.mark.parametrize("banked", [False, True])
def test_the_history_says_what_the_samples_lack(tmp_path: Path, banked: bool) -> None:
    """`nsamples` counts samples that were made 0, and nothing in the file said that some were.

    They may be lost to the correlation, or to a workload that it reads.
    """
    values = np.ones((2, 3, 16), np.complex64)
    values[1, 2, 5:7] = np.nan
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file["v"], file["m"], file["hz"] = values, np.arange(3.0), np.array([1e8, 2e8])
    places = {name: {"dataset": "m", "axis": "antenna", "units": "m"} for name in PLACES[:2]}
    along = {"frequency": {"dataset": "hz", "units": "Hz"}, "time": {"step_s": 1}, **places}
    operand = "samples" if banked else "voltages"
    source = {
        "file": str(tmp_path / "v.h5"), operand: "v", "coordinates": along, "flagged": "zero",
        "axes": ["frequency", "antenna", "time"],
    }  # fmt: skip
    bank = {"kind": "channelise", "channels": 2, "taps": 1, "axis": "time", "input": source}
    read = {"voltages": {"workload": "bank"}} if banked else source
    case = {"kind": "correlate", "integrate": 4, "uvh5": SITE, "input": read}
    run(study_of({**({"bank": bank} if banked else {}), "v": case}), tmp_path)
    write_uvh5(tmp_path / "v/products/w.h5", tmp_path / "v.uvh5", Uvh5Site.model_validate(SITE))
    with h5py.File(tmp_path / "v.uvh5") as file:
        history = file["Header/history"][()].decode()
    of = "of bank, " if banked else ""
    lost = f"2 of 96 values, which are NaN in the file, are 0 in {operand}"
    assert (
        history
        == f"argand: v: visibilities; {of}{lost}; nsamples counts samples that are lost or 0"
    )
