"""Channels of samples whose times are modified Julian dates, or not known: frequencies in Hz."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.workflow.chained_cases import study_of
from tests.workflow.test_chains import run
from workflow.config.mistakes import StudyError
from workflow.preflight.check import check_study

COARSE_HZ = 1.4e9 - 1e6 * np.arange(3)
STEP_S = 0.01
CHANNELS = 8
RTOL = 1e-5
"""Of frequencies: MJD in fp64 are 0.6 us apart, which a mean over 63 steps of 10 ms divides."""


def bank(folder: Path, *, several: bool, **keys: Any) -> dict[str, Any]:
    """A filter bank of constant samples of 2 antennas, in one coarse channel or in several."""
    shape = (3, 2, 64) if several else (2, 64)
    with h5py.File(folder / "v.h5", "w") as file:
        file["v"] = np.ones(shape, np.complex64)
        file["mjd"] = 59000 + STEP_S * np.arange(64) / 86400
        file["mjd"].attrs["units"] = "MJD"
        file["coarse_hz"] = COARSE_HZ
    coordinates = {"time": "mjd", **({"frequency": "coarse_hz"} if several else {})}
    source = {
        "file": str(folder / "v.h5"), "samples": "v", "coordinates": coordinates,
        "axes": [*(["frequency"] if several else []), "antenna", "time"],
    }  # fmt: skip
    return {
        "kind": "channelise", "axis": "time", "channels": CHANNELS, "taps": 1, "shift": True,
        "input": source, **keys,
    }  # fmt: skip


def correlated(**selected: Any) -> dict[str, Any]:
    chosen = {"select": {"voltages": selected}} if selected else {}
    return {
        "kind": "correlate", "integrate": 4, "input": {"voltages": {"workload": "c"}, **chosen}
    }  # fmt: skip


@pytest.mark.parametrize("channel", [None, 5])
def test_channels_within_coarse_ones_have_their_frequencies(
    tmp_path: Path, channel: int | None
) -> None:
    """All channels within coarse ones, or one within each; this was a KeyError."""
    selected = {} if channel is None else {"fine_frequency": channel}
    study = study_of({"c": bank(tmp_path, several=True), "v": correlated(**selected)})
    found = run(study, tmp_path)
    within = (np.arange(CHANNELS) - CHANNELS // 2) / (CHANNELS * STEP_S)
    fine = found["c"].coordinates["fine_frequency"]
    assert fine.units == "Hz"
    np.testing.assert_allclose(fine.values, within, rtol=RTOL)
    taken = within if channel is None else within[[channel]]
    hertz = found["v"].coordinates["frequency"]
    assert hertz.units == "Hz"
    expected = (COARSE_HZ[:, None] + taken).ravel()
    np.testing.assert_allclose(hertz.values, expected, rtol=0, atol=RTOL / STEP_S)


def test_a_centre_is_added(tmp_path: Path) -> None:
    study = study_of({"c": bank(tmp_path, several=False, centre_hz=1.4e9)})
    hertz = run(study, tmp_path)["c"].coordinates["frequency"]
    assert hertz.units == "Hz"
    expected = 1.4e9 + (np.arange(CHANNELS) - CHANNELS // 2) / (CHANNELS * STEP_S)
    np.testing.assert_allclose(hertz.values, expected, rtol=0, atol=RTOL / STEP_S)


@pytest.mark.parametrize("kind", ["correlate", "beamforming"])
def test_channels_of_samples_without_times_are_no_frequencies(tmp_path: Path, kind: str) -> None:
    """Those within coarse channels are in cycles a sample; this was a KeyError."""
    bare = bank(tmp_path, several=True)
    del bare["input"]["coordinates"]["time"]
    read = {
        "correlate": correlated(),
        "beamforming": {
            "kind": "beamforming", "beams": 4, "input": {"samples": {"workload": "c"}}
        },
    }[kind]  # fmt: skip
    with pytest.raises(StudyError) as error:
        check_study(study_of({"c": bare, "v": read}))
    said = str(error.value)
    assert "fine_frequency is in cycles/sample, not in one of ['Hz', " in said
    assert "input.sample_rate_hz" in said
    bare["input"]["sample_rate_hz"] = 1 / STEP_S
    if kind == "correlate":
        check_study(study_of({"c": bare, "v": read}))
