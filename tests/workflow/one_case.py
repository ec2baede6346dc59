"""A study of one workload, ``w``, on the CPU: what is wrong with it, and what it stages."""

from __future__ import annotations

from typing import Any

import pytest

from workflow.config.mistakes import StudyError
from workflow.data import Staged
from workflow.preflight.check import check_study
from workflow.preflight.loading import load_study
from workflow.study import Study


def study_of(case: dict[str, Any]) -> Study:
    """The study, not yet held to its files."""
    return load_study({"device": "cpu", "workloads": {"w": case}})


def error_of(case: dict[str, Any]) -> str:
    """The mistake of a case or of its files, in words."""
    with pytest.raises(StudyError) as error:
        check_study(study_of(case))
    return str(error.value).removeprefix("workloads.w.")


def staged(case: dict[str, Any]) -> Staged:
    """The operands of a case that is right, in memory."""
    study = study_of(case)
    check_study(study)
    return study.workload("w").stage().held()
