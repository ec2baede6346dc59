"""Mistakes with the real kinds: those in their files are reported before any job starts."""

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.covers import examples
from workflow.config.mistakes import StudyError
from workflow.preflight.check import check_study
from workflow.preflight.loading import load_study
from workflow.study import workload_from_json
from workflow.workloads import KINDS


@pytest.fixture
def path(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["a"] = np.zeros((3, 4), np.complex64)
        file["b"] = np.zeros((5, 6), np.complex64)
        file["w"] = np.zeros((1, 2, 8, 16), np.complex64)
        file["v"] = np.zeros((3, 2, 16, 99), [("r", "i2"), ("i", "i2")])
        file["re"] = np.zeros((16, 99), "f4")
        file["hann"] = np.zeros(5, "f4")
        file["state"] = np.zeros(3, np.complex64)
    return tmp_path / "in.h5"


def error_of(parameters) -> str:
    with pytest.raises(StudyError) as error:
        check_study(load_study({"device": "cpu", "workloads": {"x": parameters}}))
    (line,) = str(error.value).splitlines()
    return line


def test_the_example_of_the_readme():
    line = error_of({"kind": "beamforming", "beams": 4, "antenas": 8, "samples": 9, "antennas": 1})
    assert line.startswith(
        "workloads.x.antenas: unknown key; did you mean 'antennas'? (known: kind, precisions, "
    )


def test_mistakes_within_a_list():
    sizes = {"beams": 4, "antennas": 8, "samples": 9}
    line = error_of({"kind": "beamforming", **sizes, "sources": [{"l": 0, "m": 0, "powr": 1}]})
    assert line.startswith("workloads.x.sources.0.powr: unknown key; did you mean 'power'? (known:")
    line = error_of({"kind": "beamforming", **sizes, "sources": [{"l": 0, "m": 2}]})
    assert line == "workloads.x.sources.0.m: must be at least -1 and at most 1, got 2"
    line = error_of({"kind": "dft", "length": 8, "tones": [{"amplitude": 1}]})
    assert line.startswith("workloads.x.tones.0.frequency: missing; it is needed")
    line = error_of({"kind": "dft", "length": 8, "tones": [0.1]})
    assert line == "workloads.x.tones.0: must be a mapping of keys to values, got 0.1"


ATOMS = st.none() | st.booleans() | st.integers(-3, 70) | st.floats() | st.text(max_size=4)
VALUES = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["file", "a", "b", "c", "real", "imag", "select", "workload", "name"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
KEYS = sorted({key for kind in KINDS.values() for key in kind.case_type.model_fields} - {"kind"})


@given(
    kind=st.sampled_from(sorted(KINDS)),
    parameters=st.dictionaries(st.sampled_from([*KEYS, "presicion"]), VALUES, max_size=4),
)
@settings(max_examples=examples(300), deadline=None)
def test_any_config_is_a_study_or_mistakes_with_their_place(kind, parameters):
    try:
        loaded = load_study({"workloads": {"x": {"kind": kind, **parameters}}})
    except StudyError as error:
        lines = str(error).splitlines()
        assert lines
        assert all(line.startswith("workloads.x") for line in lines)
    else:
        for name in loaded.names:
            assert workload_from_json(loaded.case_json(name)).case == loaded.workloads[name]


def test_a_size_that_is_missing():
    assert error_of({"kind": "gemm", "m": 4, "n": 4}).startswith("workloads.x.k must be given")


@pytest.mark.parametrize(
    ("kind", "operands", "parts"),
    [
        (
            "gemm",
            {"a": "/a", "b": "/b"},
            ["a (batch 1, m 3, k 4)", "do not fit: k is 4 of a and 5 of b; for another order"],
        ),
        ("gemm", {"a": "/w", "b": "/b"}, ["workloads.x.input.a must have", "at most 3 axes"]),
        ("gemm", {"a": "/a", "b": "/c"}, ["workloads.x.input.b: ", "no dataset /c", "/hann"]),
        ("gemm", {"a": "/a", "b": "/re"}, ["input.b: /re must be complex64", "float32"]),
        (
            "beamforming",
            {"weights": "/w", "samples": "/b"},
            ["do not fit: antenna is 16 of weights and 5 of samples", "input.axes"],
        ),
        ("dft", {"samples": "/a"}, ["input.samples has 2 axes", "which of them", "`axis: -1`"]),
        ("softmax", {"x": "/a"}, ["workloads.x.input.x: /a must be real", "complex64"]),
    ],
)
def test_data_that_do_not_fit(path, kind, operands, parts):
    line = error_of({"kind": kind, "input": {"file": str(path), **operands}})
    assert line.startswith("workloads.x")
    assert all(part in line for part in parts), line


def test_data_that_fit(path):
    inputs = {
        "gemm": {"a": "/a", "b": "/b", "select": {"b": ["1:", ":"]}},
        "beamforming": {"weights": "/w", "samples": "/v"},
        "dft": {"samples": "/b"},
        "softmax": {"x": "/re"},
    }
    workloads = {
        kind: {"kind": kind, "input": {"file": str(path), **operands}}
        | ({"axis": -1} if kind == "dft" else {})
        for kind, operands in inputs.items()
    }
    check_study(load_study({"device": "cpu", "workloads": workloads}))


def test_a_circuit_that_is_not_there(tmp_path):
    line = error_of({"kind": "statevector", "circuit": {"file": str(tmp_path / "none.qasm")}})
    assert line.startswith("workloads.x.circuit.file")
    assert "none.qasm" in line


def test_a_state_of_another_length(path):
    line = error_of(
        {
            "kind": "statevector",
            "circuit": {"name": "ghz", "qubits": 3},
            "input": {"file": str(path), "state": "/state"},
        }
    )
    assert line.startswith("workloads.x.input.state must have 8 amplitudes")


def test_a_baseline_that_there_is_not(tmp_path):
    workloads = {"x": {"kind": "gemm", "m": 2, "n": 2, "k": 2, "baselines": ["numpyy"]}}
    with pytest.raises(StudyError, match=r"workloads\.x\.baselines: must be auto, .*'numpy'"):
        check_study(load_study({"device": "cpu", "workloads": workloads}))


@pytest.mark.parametrize(
    ("key", "value"), [("kernels", {"tf32": "wgmma"}), ("rounding", {"tf32": "toward_zero"})]
)
def test_a_choice_for_a_precision_that_is_not_measured(key, value):
    """The choice would do nothing, and nobody would know."""
    product = {"kind": "gemm", "m": 2, "n": 2, "k": 2, key: value}
    study = {"device": "cpu", "workloads": {"x": product}}
    check_study(load_study(study))
    with pytest.raises(StudyError, match=rf"x\.{key}\.tf32: must be of the .*\['fp32'\], got 'tf3"):
        check_study(load_study({**study, "precisions": ["fp32"]}))


def test_exact_integers_are_for_products():
    product = {"kind": "gemm", "m": 8, "n": 9, "k": 10, "precisions": ["fp64", "7xint8"]}
    study = load_study({"workloads": {"x": product | {"precision": "7xint8"}}})
    assert study.workloads["x"].precisions == ("fp64", "7xint8")
    spectrum = {"kind": "dft", "length": 12, "batch": 3, "precisions": ["7xint8"]}
    with pytest.raises(StudyError, match=r"precisions: must be one of \['fp64', .*'7xint8'"):
        load_study({"workloads": {"x": spectrum}})
