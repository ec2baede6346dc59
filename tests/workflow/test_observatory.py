"""`config/observatory.yaml`, smaller: from voltages to peaks that stand where the sources do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS
from scipy.ndimage import maximum_filter
from test_chains import run

from workflow.config.mistakes import StudyError
from workflow.config.study_file import read_study_file
from workflow.data import Array, Product
from workflow.preflight.check import check_study
from workflow.preflight.loading import load_study

SMALL = {
    "channels": {"channels": 4, "taps": 2, "antennas": 36, "samples": 4 * (256 + 1)},
    "visibilities": {"integrate": 128},
    "sky": {"directions": {"n": 33, "field_of_view_deg": 60}},
    "power": {"integrate": 64},
}
FEED = {"input": "0:36", "conjugated_input": "0:36"}
EVERY = [name for name in PRECISIONS if name != "fp32"]


def small(root: Path, precision: str = "fp32") -> dict[str, Any]:
    """The study with fewer antennas, channels and samples, each product at a precision.

    Weights are proved at fp64 and fp32 alone.
    """
    study = read_study_file(root / "config" / "observatory.yaml")
    for name, case in study["workloads"].items():
        own = precision if name != "nulls" or PRECISIONS[precision].exact_operands else "fp32"
        case |= SMALL.get(name, {}) | {"precision": own, "precisions": [own]}
        if name in ("sky", "nulls"):
            case["input"]["select"] = {"covariances": FEED}
    return {**study, "device": "cpu", "baselines": "none"}


def peaks(power: Array, l: Array, m: Array) -> list[tuple[float, float]]:  # noqa: E741
    """The (l, m) of the two brightest local maxima of a map (m, l), the brighter first."""
    highest = np.argwhere(power == maximum_filter(power, size=5, mode="constant", cval=-np.inf))
    bright = sorted(highest.tolist(), key=lambda at: -power[at[0], at[1]])[:2]
    return [(round(float(l[column]), 9), round(float(m[row]), 9)) for row, column in bright]


def check_peaks(found: dict[str, Product], sources: list[tuple[float, float]]) -> None:
    """Hold the image, the plain beams and the adaptive ones to the planted sources."""
    sky = found["sky"]
    there = sky.coordinates
    assert peaks(sky.data[0, 0], there["l"].values, there["m"].values) == sources
    power = found["power"]
    l, m = (power.coordinates[name].values.reshape(9, 9) for name in ("l", "m"))  # noqa: E741
    intensity = power.data[:, list(power.coordinates["stokes"].values).index("I")]
    assert peaks(intensity.mean(axis=(0, 2)).reshape(9, 9), l[0], m[:, 0]) == sources
    beams = found["beams"]
    looks = zip(*(beams.coordinates[name].values for name in ("l", "m")), strict=True)
    assert [(float(a), float(b)) for a, b in looks] == sources
    strength = np.square(np.abs(beams.data)).mean(axis=(0, 1, 3))
    assert strength[0] > 1.5 * strength[1]  # the sources' powers are as 2 to 1


@pytest.mark.parametrize(
    "precision", ["fp32", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in EVERY)]
)
def test_peaks_are_where_the_sources_were_planted(
    root: Path, tmp_path: Path, precision: str
) -> None:
    raw = small(root, precision)
    study = load_study(raw)
    found = run(study, tmp_path)
    planted = raw["workloads"]["channels"]["sources"]
    check_peaks(found, [(source["l"], source["m"]) for source in planted])
    channels, visibilities = found["channels"], found["visibilities"]
    assert channels.axes == ("polarization", "antenna", "time", "frequency")
    for name in ("visibilities", "power", "beams"):
        assert np.array_equal(
            found[name].coordinates["frequency"].values, channels.coordinates["frequency"].values
        )
        assert found[name].coordinates["frequency"].units == "Hz"
    # Phases of a source go with the channel's frequency and with the places of the study.
    places = np.stack([visibilities.coordinates[n].values[:36] for n in ("east", "north")], axis=-1)
    first = planted[0]
    delays = places @ [first["l"], first["m"]] / 299792458.0
    arriving = np.exp(2j * np.pi * channels.coordinates["frequency"].values[:, None] * delays)
    mean = visibilities.data[:, :, :36, :36].mean(axis=1)
    power = np.einsum("fi,fij,fj->f", arriving.conj(), mean, arriving).real
    total = np.einsum("fii->f", mean).real
    assert (power / total > 36 * 0.3).all()


def test_a_survey_is_the_same_of_other_sizes(root: Path) -> None:
    """All but sizes, rates, selections and what is measured stands alike in both."""
    found, survey = (
        read_study_file(root / "config" / f"{name}.yaml")["workloads"]
        for name in ("observatory", "survey")
    )
    assert list(found) == list(survey)
    for name, case in found.items():
        assert list(case) == list(survey[name])
        for key in ("kind", "sources", "sum", "detect", "beams", "extent"):
            assert case.get(key) == survey[name].get(key)
    check_study(load_study({"device": "cpu", "workloads": survey}))


@pytest.mark.parametrize(
    ("select", "said"),
    [
        ({}, "the inputs are of 2 polarizations"),
        ({"input": "0:36", "conjugated_input": "36:72"}, "must be of the same polarizations"),
        ({"input": "0:35", "conjugated_input": "1:36"}, "must be of the same antennas"),
    ],
)
@pytest.mark.parametrize("name", ["sky", "nulls"])
def test_inputs_that_are_no_array_are_refused(
    root: Path, select: dict[str, str], said: str, name: str
) -> None:
    raw = small(root)
    raw["workloads"][name]["input"]["select"] = {"covariances": select}
    with pytest.raises(StudyError) as error:
        check_study(load_study(raw))
    assert str(error.value).startswith(f"workloads.{name}.input.select.covariances: ")
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"centre_hz": 0.0}, "centre_hz must be above half of sample_rate_hz"),
        ({"real": True, "shift": False}, "sources must not be given beside real"),
        ({"sources": [], "array": {"geometry": "linear"}}, "array must not be given without"),
    ],
)
def test_sources_that_cannot_be_simulated(root: Path, changes: dict[str, Any], said: str) -> None:
    raw = small(root)
    raw["workloads"]["channels"] |= changes
    with pytest.raises(StudyError, match=said):
        load_study(raw)
