"""Studies whose inputs are mutated: a study, or printable lines, one a mistake."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from test_fuzz_configs import CASES, mutations_of, read_config, say_something

from tests.covers import examples
from tests.workflow.readers import guppi_file
from workflow.config.mistakes import StudyError
from workflow.preflight.check import check_study

FILE, RECORDING = "own.h5", "own.raw"
EAST = {"dataset": "enu", "axis": "antenna", "column": 0, "units": "m"}
VALID: dict[str, Any] = {
    "device": "cpu",
    "workloads": {
        "beams": {
            "kind": "beamforming", "beams": 4,
            "phase_centre": {"azimuth_deg": 10, "elevation_deg": 80},
            "input": {
                "file": FILE, "samples": {"real": "re", "imag": "im"},
                "axes": {"samples": ["time", "frequency", "antenna"]},
                "select": {"samples": {"time": "0:8", "frequency": [0, 2], "antenna": ["a", "c"]}},
                "coordinates": {
                    "frequency": {"start": 1.4e8, "step_hz": 1e6}, "east": EAST,
                    "north": {**EAST, "column": 1}, "antenna": ["a", "b", "c"],
                },
                "units": {"samples": "V"}, "sample_rate_hz": 1e6,
            },
        },
        "visibilities": {
            "kind": "correlate", "integrate": 4, "form": "triangle",
            "input": {
                "file": FILE, "voltages": {"int4x2": "packed"}, "axes": ["antenna", "time"],
                "zero_level": {"voltages": 8},
                "coordinates": {"time": {"dataset": "t", "units": "s"}},
            },
        },
        "spectra": {
            "kind": "dft", "power": True, "length": 8, "axis": "time", "window": ["kaiser", 3.0],
            "input": {
                "file": FILE, "samples": {"real": "re"}, "axes": ["time", "frequency", "antenna"],
                "select": {"samples": {"frequency": 1}},
            },
        },
        "recording": {
            "kind": "channelise", "channels": 4, "taps": 2, "axis": "time", "oversampling": "4/3",
            "input": {
                "file": RECORDING, "format": "guppi", "samples": "voltages", "flagged": "zero",
                "select": {"samples": {"polarization": "x"}},
                "coordinates": {"frequency": {"start": 1.4e9, "step_hz": -1e6, "replace": True}},
            },
        },
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The files that the study names, in the folder that it runs in."""
    rng, found = np.random.default_rng(1), tmp_path_factory.mktemp("inputs")
    with h5py.File(found / FILE, "w") as file:
        file["re"], file["im"] = rng.standard_normal((2, 16, 3, 3))
        file["enu"], file["t"] = rng.standard_normal((3, 3)), np.arange(16.0)
        file["packed"] = rng.integers(0, 256, (3, 16), np.uint8)
    guppi_file.write(found / RECORDING, guppi_file.parts(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(found)
        yield found


def test_what_is_mutated_is_right(folder: Path) -> None:
    study = read_config(copy.deepcopy(VALID))
    assert study is not None
    check_study(study)


@CASES
@given(mutations_of(VALID))
def test_mutated_inputs(config: dict[str, Any]) -> None:
    read_config(config)


@hypothesis_settings(CASES, max_examples=examples(150))
@given(mutations_of(VALID))
def test_checks_of_mutated_inputs(folder: Path, config: dict[str, Any]) -> None:
    study = read_config(config)
    if study is None:
        return
    try:
        check_study(study)
    except StudyError as raised:
        say_something(raised)
