"""Channels within coarse ones on two axes of a user's file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from test_chains import run

from tests.workflow.chained_cases import study_of
from workflow.config.mistakes import StudyError
from workflow.preflight.check import check_study

COARSE, FINE, ANTENNAS = 3, 8, 4


def test_a_file_of_both_axes_in_any_order(tmp_path: Path, rng: np.random.Generator) -> None:
    """They were refused, and had to be written as one."""
    x = rng.normal(size=(2, COARSE, FINE, ANTENNAS, 6))
    with h5py.File(tmp_path / "own.h5", "w") as file:
        file["re"], file["im"] = x.transpose(0, 4, 2, 1, 3)
        file["w"] = rng.normal(size=(2, ANTENNAS)) + 0j
        file["w_of_all"] = np.ones((COARSE * FINE, 2, ANTENNAS)) + 0j
    axes = ["time", "fine_frequency", "channel", "antenna"]
    source: dict[str, Any] = {
        "file": str(tmp_path / "own.h5"), "samples": {"real": "re", "imag": "im"}, "weights": "w",
        "axes": {"samples": axes}, "select": {"samples": {"fine_frequency": "1:7"}},
        "coordinates": {
            "channel": {"values": [150, 152, 151], "units": "MHz"},
            "fine_frequency": {"start": -400, "step": 100, "units": "kHz"},
        },
    }  # fmt: skip

    def beams(**changes: Any) -> Any:
        return study_of({"b": {"kind": "beamforming", "input": {**source, **changes}}})

    found = run(beams(), tmp_path)["b"]
    with h5py.File(tmp_path / "own.h5") as file:
        w = file["w"][()]
    z = (x[0] + 1j * x[1])[:, 1:7].reshape(COARSE * 6, ANTENNAS, 6)
    np.testing.assert_allclose(found.data[:, 0], w @ z, atol=1e-12)
    mhz = np.array([150, 152, 151])[:, None] + np.arange(-3, 3) / 10
    np.testing.assert_allclose(found.coordinates["frequency"].values, mhz.reshape(-1))
    one_channel = {"fine_frequency": "1:7", "channel": 1}
    staged = beams(select={"samples": one_channel}).workload("b").stage()
    assert (
        "antenna 4 x time 6 (from time, frequency, antenna;" in staged.attributes["axes"]["samples"]
    )
    for number, (one, rows) in enumerate([
        (one_channel, slice(6, 12)),
        ({"fine_frequency": 3}, slice(2, None, 6)),
    ]):  # fmt: skip
        found = run(beams(select={"samples": one}), tmp_path / str(number))["b"]
        np.testing.assert_allclose(found.data[:, 0], w @ z[rows], atol=1e-12)
        np.testing.assert_allclose(found.coordinates["frequency"].values, mhz.reshape(-1)[rows])
    with pytest.raises(
        StudyError, match=r"frequency: must be given, in one of \['Hz'.*, got nothing: "
    ):
        check_study(beams(coordinates={"channel": source["coordinates"]["channel"]}))
    both = {**source["axes"], "weights": ["frequency", "beam", "antenna"]}
    offsets = {"fine_frequency": source["coordinates"]["fine_frequency"]}
    for coordinates, said in (
        (source["coordinates"], rf"the operands have frequency of lengths \[3, {COARSE * FINE}\]"),
        (
            offsets,
            "input.weights: must have frequency 3 and fine_frequency 6, as input.samples has",
        ),
    ):
        with pytest.raises(StudyError, match=said):
            check_study(beams(weights="w_of_all", axes=both, coordinates=coordinates))
