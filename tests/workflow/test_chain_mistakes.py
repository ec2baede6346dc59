"""Mistakes in workloads that read the products of others, said before a job starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from input_files import put
from test_chains import run

from tests.workflow.chained_cases import BEAMS, CHAIN, study_of
from workflow.config.mistakes import StudyError
from workflow.files.input_error import InputError
from workflow.preflight.check import check_study

SAMPLES = {"workload": "beams"}
MISTAKES: list[tuple[dict[str, Any], str]] = [
    (
        {"kind": "dft", "input": {"samples": SAMPLES}},
        "input.samples has 4 axes of shape (6, 2, 4, 16) (frequency, polarization, beam, time), "
        "and nothing says which of them is transformed; add `axis:` and its name to the",
    ),
    (
        {"kind": "dft", "axis": "tme", "input": {"samples": SAMPLES}},
        "axis: must be of ['frequency'",
    ),
    (
        {"kind": "dft", "axis": "time", "input": {"samples": {"workload": "baems"}}},
        "input.samples.workload: must be one of ['beams'], got 'baems'; did you mean 'beams'?",
    ),
    (
        {"kind": "dft", "axis": "time", "input": {"samples": {"workload": "x"}}},
        "input.samples.workload: must be one of ['beams'], got 'x'",
    ),
    (
        {"kind": "gemm", "input": {"a": SAMPLES, "b": SAMPLES}},
        "input.a must have at least 1 and at most 3 axes (batch, m, k), but the product of beams",
    ),
    (
        {
            "kind": "gemm",
            "input": {
                "a": SAMPLES,
                "b": SAMPLES,
                "select": {"a": {"polarization": 0}, "b": {"polarization": 0}},
            },
        },
        "input: a (batch 6, m 4, k 16) and b (batch 6, k 4, n 16) do not fit: k is 16 of",
    ),
    (
        {
            "kind": "dft",
            "axis": "time",
            "input": {"samples": SAMPLES, "select": {"samples": {"time": "0:17"}}},
        },
        "input.select.samples: the product of beams axis 3 has length 16",
    ),
    (
        {"kind": "softmax", "input": {"x": SAMPLES}},
        "input.x: must be real, but the product of beams is complex",
    ),
    (
        {"kind": "dft", "axis": "time", "input": {"samples": SAMPLES, "file": "x.h5"}},
        "input.file must not be given where no operand is a dataset: samples is the product of "
        "beams; beside products select, axes, coordinates and units are allowed; file goes where "
        "data come in, into the input of the workload that reads them from a file",
    ),
    (
        {
            "kind": "dft",
            "axis": "time",
            "input": {"samples": SAMPLES, "coordinates": {"time": {"start": 0, "step_s": 1}}},
        },
        "input.coordinates.time: the product says it already; leave it out, or where "
        "the product is wrong give it as {start: ..., step_s: ..., replace: true}",
    ),
    (
        {"kind": "gemm", "input": {"a": SAMPLES, "b": "/b"}},
        "input.file: missing; b is a dataset of it",
    ),
    (
        {"kind": "dft", "axis": "time", "input": {"samples": SAMPLES}, "shards": 7},
        "shards: must be at most 6, the longest axis that can be split",
    ),
    (
        {
            "kind": "statevector",
            "circuit": {"name": "ghz", "qubits": 3},
            "input": {"state": SAMPLES, "select": {"state": {"frequency": 0, "beam": 0}}},
        },
        "input.state must have one axis (basis_state), but the product of beams",
    ),
]


@pytest.mark.parametrize(("case", "message"), MISTAKES, ids=lambda value: str(value)[:50])
def test_mistakes_are_said_before_anything_runs(case: dict[str, Any], message: str) -> None:
    with pytest.raises(StudyError) as raised:
        check_study(study_of({"beams": BEAMS, "x": case}))
    assert str(raised.value).removeprefix("workloads.x.").startswith(message), raised.value


def test_bins_of_spectra_are_no_times_by_their_place() -> None:
    """They were: integrations had a middle and a length in Hz."""
    spectra = {"kind": "dft", "axis": "time", "input": {"samples": {"workload": "beams"}}}
    case = {"kind": "correlate", "input": {"voltages": {"workload": "spectra"}}}
    with pytest.raises(StudyError) as raised:
        check_study(study_of({"beams": BEAMS, "spectra": spectra, "x": case}))
    assert str(raised.value) == (
        "workloads.x.input.voltages: the product of spectra has 'time_frequency', which by its "
        "place is 'time', but it must be in one of ['s', 'ms', 'us', 'ns', 'min', 'h', 'd'], got "
        "'Hz'; name all axes in input.axes"
    )


@pytest.mark.parametrize(
    ("answer", "what"),
    [({"shots": 99}, "counts, int64"), ({"probabilities": [0, 1, 2]}, "probability, float64")],
)
def test_answers_are_no_state(answer: dict[str, Any], what: str) -> None:
    ghz = {"kind": "statevector", "circuit": {"name": "ghz", "qubits": 3}}
    next_one = ghz | {"input": {"state": {"workload": "first"}}}
    check_study(study_of({"first": ghz, "x": next_one}))
    with pytest.raises(StudyError) as raised:
        check_study(study_of({"first": ghz | answer, "x": next_one}))
    assert str(raised.value) == (
        f"workloads.x.input.state must be complex amplitudes, but the product of first is {what}"
    )


def test_a_state_of_a_file_stands_beside_answers(tmp_path: Path) -> None:
    """Answers of other workloads of the study do not concern it."""
    put(tmp_path / "state.h5", psi=np.eye(1, 8, dtype=complex)[0])
    ghz = {"kind": "statevector", "circuit": {"name": "ghz", "qubits": 3}}
    given = {"file": str(tmp_path / "state.h5"), "state": "psi"}
    check_study(study_of({"counts": ghz | {"shots": 99}, "x": ghz | {"input": given}}))


def test_no_axis_becomes_another_by_its_place() -> None:
    """Antennas of a filter bank's channels are its times only where input.axes says so."""
    bank = {
        "kind": "channelise", "channels": 4, "taps": 2, "polarizations": 2, "antennas": 3,
        "samples": 64,
    }  # fmt: skip
    again = {**bank, "axis": "time", "input": {"samples": {"workload": "bank"}}}
    for key in ("polarizations", "antennas", "samples"):
        del again[key]
    source: dict[str, Any] = {"voltages": {"workload": "again"}}
    workloads = {"bank": bank, "again": again, "x": {"kind": "correlate", "input": source}}
    source["select"] = {"voltages": [":", ":", 0, ":", ":"]}
    with pytest.raises(StudyError) as raised:
        check_study(study_of(workloads))
    assert str(raised.value).startswith(
        "workloads.x.input.voltages: the product of again has 4 (polarization, antenna, time, "
        "fine_frequency) of shape"
    )
    assert str(raised.value).endswith(
        "; 'fine_frequency' is none of ['frequency', 'polarization', 'antenna', 'time'], so the "
        "axes would go by their place, and 'time' become 'antenna': drop 'fine_frequency' by an "
        "index in input.select, or name all axes in input.axes; with frequencies along both, and "
        "by their names in select, both are one"
    )
    source["select"]["voltages"] = {"frequency": 0, "fine_frequency": 0}
    check_study(study_of(workloads))
    # Of a triangle no index makes matrices.
    pairs = {"kind": "correlate", "form": "triangle", "input": dict(source)}
    image = {
        "kind": "image", "directions": {"n": 8, "field_of_view_deg": 10.0},
        "input": {"covariances": {"workload": "pairs"}},
    }  # fmt: skip
    with pytest.raises(StudyError, match="; `form: full` makes matrices of the pairs"):
        check_study(study_of({**workloads, "pairs": pairs, "image": image}))
    # Beams stand where antennas do, and all else where it was: nothing is to be said.
    beams = {"kind": "correlate", "input": {"voltages": {"workload": "beams"}}}
    check_study(study_of({"beams": BEAMS, "x": beams}))


def test_circles_through_operands() -> None:
    def reads(other: str) -> dict[str, Any]:
        return {"kind": "dft", "axis": -1, "input": {"samples": {"workload": other}}}

    with pytest.raises(StudyError, match=r"input\.samples\.workload: these read each other's prod"):
        check_study(study_of({"a": reads("c"), "b": reads("a"), "c": reads("b")}))


def test_a_mistake_at_the_beginning_is_said_once() -> None:
    """The workloads that follow from it have no size, and no line of their own."""
    wrong = {**CHAIN["spectra"], "axis": "nothing"}
    with pytest.raises(StudyError) as raised:
        check_study(study_of({**CHAIN, "spectra": wrong}))
    assert [line.split(":")[0] for line in str(raised.value).splitlines()] == [
        "workloads.spectra.axis"
    ]


@pytest.mark.parametrize("samples", [15, 16])
def test_an_inverse_takes_the_entry_of_0_first(tmp_path: Path, samples: int) -> None:
    """Of entries with 0 in their middle it would turn the sign of every other sample."""
    put(tmp_path / "x.h5", x=np.ones((2, samples), np.complex64))
    source = {"file": str(tmp_path / "x.h5"), "samples": "x", "axes": ["beam", "time"]}
    spectra = {"kind": "dft", "axis": "time", "input": {**source, "sample_rate_hz": 3.0}}
    back = {"kind": "dft", "inverse": True, "axis": "frequency",
            "input": {"samples": {"workload": "spectra"}}}  # fmt: skip
    check_study(study_of({"spectra": spectra, "back": back}))
    shifted = {"spectra": {**spectra, "shift": True}, "back": back}
    with pytest.raises(StudyError, match="Hz with 0 in their middle, as `shift: true` orders them"):
        check_study(study_of(shifted))
    check_study(study_of({**shifted, "back": {**back, "inverse": False}}))
    drawn = {"beams": BEAMS, "spectra": {**CHAIN["spectra"], "shift": True}}
    later = study_of({**drawn, "back": {**back, "axis": "time_frequency"}})
    check_study(later)  # whose times are not known before
    with pytest.raises(InputError, match="with 0 in their middle"):
        run(later, tmp_path)
