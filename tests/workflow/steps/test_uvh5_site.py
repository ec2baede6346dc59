"""Tests of the telescope and the date in the header of a UVH5 file."""

from __future__ import annotations

from pathlib import Path

import h5py
import pytest
from test_chains import run

from tests.workflow.chained_cases import study_of
from tests.workflow.steps.test_uvh5 import SITE, VISIBILITIES, labelled
from workflow.config.mistakes import StudyError
from workflow.config.uvh5_site import Uvh5Site
from workflow.preflight.check import check_study
from workflow.steps.uvh5 import write_uvh5


def test_a_telescope_has_a_name_of_any_letters(tmp_path: Path) -> None:
    site = {**SITE, "telescope": "Bleien-Süd"}
    run(study_of({"v": {**VISIBILITIES, "uvh5": site}}), tmp_path)
    (product,) = tmp_path.rglob("products/w.h5")
    write_uvh5(product, tmp_path / "v.uvh5", Uvh5Site.model_validate(site))
    with h5py.File(tmp_path / "v.uvh5") as file:
        assert file["Header/telescope_name"][()].decode() == "Bleien-Süd"


def test_the_date_of_the_samples_is_that_of_the_file(tmp_path: Path) -> None:
    """The date comes from the file, and a study that gives another one is refused."""
    dated = {"step": 1e-3, "units": "seconds since 2026-11-28T10:00:00"}
    expected = 2461372.5 + 10 / 24
    for given in (None, round(expected, 5)):
        site = {**SITE, "julian_date": given}
        case = {**labelled(tmp_path, time=dated), "uvh5": site}
        study = study_of({"v": case})
        check_study(study)
        folder = tmp_path / str(given)
        run(study, folder)
        path = folder / "v.uvh5"
        write_uvh5(folder / "v" / "products" / "w.h5", path, Uvh5Site.model_validate(site))
        with h5py.File(path) as file:
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
