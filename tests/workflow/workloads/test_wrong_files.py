"""Wrong files of every kind: the message says what was found, what is allowed and where."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from workflow.config.mistakes import StudyError
from workflow.files.input_error import InputError
from workflow.preflight.check import check_study
from workflow.preflight.loading import load_study
from workflow.steps.staging import stage
from workflow.workloads import KINDS

Arrays = dict[str, Any]

rng = np.random.default_rng(5)


def drawn(*shape: int) -> Any:
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)


def covariances() -> Any:
    x = drawn(1, 2, 4, 5, 8)
    return x @ x.conj().swapaxes(-1, -2)


PLACES = {
    "frequency": {"start": 1e8, "step_hz": 1e6},
    "east": {"values": [0, 1, 2, 3, 4], "units": "m", "axis": "antenna"},
    "north": {"values": [0, 2, 1, 5, 4], "units": "m", "axis": "antenna"},
}
STATE = np.eye(1, 64, dtype=np.complex64)[0]
RIGHT: dict[str, tuple[Arrays, dict[str, Any]]] = {
    "adaptive": ({"covariances": covariances(), "weights": drawn(4, 2, 3, 5)}, {}),
    "beamforming": ({"weights": drawn(4, 2, 3, 5), "samples": drawn(4, 2, 5, 16)}, {}),
    "channelise": ({"samples": drawn(3, 256)}, {"channels": 8, "taps": 4, "axis": 1}),
    "correlate": ({"voltages": drawn(4, 2, 5, 16)}, {"integrate": 8}),
    "dft": ({"samples": drawn(3, 64)}, {"axis": 1}),
    "gemm": ({"a": drawn(1, 6, 7), "b": drawn(1, 7, 8)}, {}),
    "image": (
        {"covariances": covariances()},
        {"directions": {"n": 9, "field_of_view_deg": 20}, "input": {"coordinates": PLACES}},
    ),
    "mimo": ({"channel": drawn(2, 4, 3, 2)}, {"qam": 16}),
    "softmax": ({"x": rng.standard_normal((4, 9)).astype(np.float32)}, {}),
    "solve": ({"a": drawn(1, 6, 6), "b": drawn(1, 6, 2)}, {}),
    "statevector": ({"state": STATE}, {"circuit": {"name": "qft", "qubits": 6}}),
}
"""For each kind the arrays of a file that it takes, and its keys; the first array is made wrong."""


def study(kind: str, file: Path, arrays: Arrays) -> Any:
    with h5py.File(file, "w") as held:
        for name, array in arrays.items():
            held[name] = array
    case = copy.deepcopy(RIGHT[kind][1])
    given = {"file": str(file), **{name: f"/{name}" for name in RIGHT[kind][0]}}
    case |= {"kind": kind, "input": case.get("input", {}) | given}
    settings = {"device": "cpu", "precisions": ["fp64"], "baselines": "none"}
    return load_study({**settings, "workloads": {"w": case}})


def refused(kind: str, file: Path, arrays: Arrays) -> str:
    with pytest.raises(StudyError) as raised:
        check_study(study(kind, file, arrays))
    return str(raised.value)


@pytest.fixture(params=sorted(RIGHT))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_kind_is_here() -> None:
    assert set(RIGHT) == set(KINDS)


def test_right_files_are_taken(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "in.h5"
    checked = study(kind, file, RIGHT[kind][0])
    check_study(checked)
    stage(checked.workload("w"), [file], tmp_path / "staged.h5", logging.getLogger())


WRONG: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "text": (lambda _: np.array([b"a", b"b"]), "got bytes8", "float32"),
    "whole numbers without a sign": (lambda x: np.ones(x.shape, np.uint8), "uint8", "128|float32"),
    "too many axes": (
        lambda x: x[..., None, None, None, None, None],
        "1, 1, 1)",
        "at most|one axis",
    ),
    "no elements": (lambda x: x[:0], "of shape (0", "must have elements"),
}
"""Faults of the first array of a file, and what its message says was found, and allowed."""


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_array_is_said_before_a_job(kind: str, fault: str, tmp_path: Path) -> None:
    arrays = dict(RIGHT[kind][0])
    first, (wrong, found, allowed) = next(iter(arrays)), WRONG[fault]
    arrays[first] = wrong(arrays[first])
    said = refused(kind, tmp_path / "in.h5", arrays)
    assert f"workloads.w.input.{first}" in said
    assert found in said
    assert any(word in said for word in allowed.split("|"))


def test_an_array_that_is_missing_is_said_with_those_there_are(kind: str, tmp_path: Path) -> None:
    arrays = dict(RIGHT[kind][0])
    first = next(iter(arrays))
    arrays["voltage_dump"] = arrays.pop(first)
    said = refused(kind, tmp_path / "in.h5", arrays)
    assert f"workloads.w.input.{first}: " in said
    assert f"has no dataset /{first}" in said
    assert "/voltage_dump" in said


def test_a_file_that_is_cut_is_said_with_its_bytes(kind: str, tmp_path: Path) -> None:
    made = study(kind, file := tmp_path / "in.h5", RIGHT[kind][0])
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StudyError, match=f"{len(whole) // 2} of its {len(whole)} bytes are there"):
        check_study(made)


def test_nan_is_said_with_its_place_by_the_job_that_reads_it(kind: str, tmp_path: Path) -> None:
    for name, array in RIGHT[kind][0].items():
        wrong = array.copy()
        wrong.reshape(-1)[1] = np.nan
        made = study(kind, file := tmp_path / "in.h5", RIGHT[kind][0] | {name: wrong})
        check_study(made)
        with pytest.raises(InputError) as raised:
            stage(made.workload("w"), [file], tmp_path / "staged.h5", logging.getLogger())
        said = str(raised.value)
        assert f"input.{name} has 1 NaN and 0 Inf among {array.size} values" in said
        advice = "input.flagged: zero makes NaN of HDF5 0"
        if kind not in (
            "adaptive",
            "mimo",
            "solve",
            "statevector",
        ):  # whose studies refuse that key
            advice = f"allow_nonfinite: true lets them through; {advice}"
        assert said.endswith(f"1 of what is selected; {advice}")
