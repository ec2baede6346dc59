"""Each mistake in a study is one clear line with its key, and all are reported at once."""

import json

import pytest

from tests.workflow.config.toy_kind import Toy, mistake, mistakes
from workflow.config.mistakes import StudyError
from workflow.preflight.loading import load_study
from workflow.workloads.base import KINDS


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setitem(KINDS, "toy", Toy)


COORDINATES = (
    "start, step, step_s, step_hz, step_m, units, replace; or dataset, units, axis, column; or "
    "values, units, axis, replace"
)
ONE_MISTAKE = [
    ({"mm": 1}, "x.mm: unknown key; did you mean 'm'? (known: kind, precisions, precision,"),
    ({"presicions": 1}, "x.presicions: unknown key; did you mean 'precisions'? (known: "),
    ({"zzzzzz": 1}, "x.zzzzzz: unknown key (known: "),
    ({"m": "64"}, "x.m: must be a whole number, got '64' (this is text; write a number"),
    ({"m": 6.5}, "x.m: must be a whole number, got 6.5"),
    ({"m": 64.0}, "x.m: must be a whole number, got 64.0 (write 64)"),
    ({"m": True}, "x.m: must be a whole number, got true"),
    ({"m": None}, "x.m: must be a whole number, got nothing"),
    ({"m": {"a": 1}}, "x.m: must be a whole number, got a mapping with a"),
    ({"m": 0}, "x.m: must be at least 1 and at most 4096, got 0"),
    ({"m": 4097}, "x.m: must be at least 1 and at most 4096, got 4097"),
    ({"k": 0}, "x.k: must be at least 1, got 0"),
    ({"scale": 0}, "x.scale: must be above 0, got 0"),
    ({"scale": "1e-5x"}, "x.scale: must be a number, got '1e-5x'"),
    ({"scale": float("nan")}, "x.scale: must be a finite number, got nan"),
    ({"flag": 1}, "x.flag: must be true or false, got 1"),
    ({"window": 3}, "x.window: must be text, got 3"),
    ({"op_a": "H"}, "x.op_a: must be one of ['N', 'T', 'C'], got 'H'"),
    ({"alpha": [1]}, "x.alpha"),
    ({"alpha": [1, 2, 3]}, "x.alpha: must be a list of at most 2, got [1, 2, 3]"),
    ({"alpha": [1, "a"]}, "x.alpha.1: must be a number, got 'a'"),
    ({"sources": [[1, 2], [3, "b"]]}, "x.sources.1.1: must be a number, got 'b'"),
    ({"precisions": ["fp7"]}, "x.precisions: must be one of ['fp64', 'fp32', 'tf32', '3xtf32', "),
    ({"precisions": ["fp32", "fp32"]}, "x.precisions: must name each precision once"),
    ({"precisions": []}, "x.precisions: must be a list of at least 1, got []"),
    ({"precisions": "fp32"}, "x.precisions: must be a list, got 'fp32'"),
    ({"precision": "fp7"}, "x.precision: must be one of ['auto', 'fp64', "),
    (
        {"precision": "fp16", "precisions": ["fp32"]},
        "x.precision: must be auto or one of the workload's precisions ['fp32'], got 'fp16'",
    ),
    ({"tolerance": -1}, "x.tolerance: must be above 0, got -1"),
    ({"rounding": {"tf23": "toward_zero"}}, "x.rounding: must be one of ['fp64', "),
    ({"rounding": {"tf32": "up"}}, "x.rounding for tf32 must be 1 of ['toward_zero', "),
    ({"baselines": "some"}, "x.baselines: must be one of ['auto', 'none'] or a list, got 'some'"),
    ({"window": "none", "m": 101}, "x.m must be at most 100 where the window is none, got 101"),
    ({"circuit": {"name": "qff"}}, "x.circuit.name: must be one of ['qft', 'ghz'], got 'qff'"),
    ({"circuit": {"name": "qft", "qubits": 31}}, "x.circuit.qubits: must be at least 1 and at "),
    ({"circuit": {"name": "qft", "qbits": 3}}, "x.circuit.qbits: unknown key; did you mean 'qubi"),
    ({"circuit": {"flie": "a"}}, "x.circuit.flie: unknown key; did you mean 'file'?"),
    ({"circuit": "qft"}, "x.circuit: must be a mapping of keys to values (name, qubits, "),
    ({"input": {"file": "a.h5"}}, "x.input.a: missing; it is needed: path of a dataset"),
    ({"input": {"file": "a.h5", "a": 3}}, "x.input.a: must be text or a mapping"),
    ({"input": {"file": "a.h5", "a": {"imag": "/i"}}}, "x.input.a.real: missing; it is needed"),
    ({"input": {"file": "a.h5", "a": "/x", "c": "/y"}}, "x.input.c: unknown key (known: file, "),
    ({"input": {"file": "a.h5", "a": "/x", "select": {"c": [":"]}}}, "x.input.select.c must be on"),
    ({"input": {"file": "a.h5", "a": "/x", "select": {"a": ["x:"]}}}, "x.input.select.a.0: must b"),
    (
        {"input": {"file": "a.h5", "a": {"real": "/x", "workload": "w"}}},
        "x.input.a.workload: must not be given beside real (together: real, imag; or int4x2; or w",
    ),
    ({"precisions": [1]}, "x.precisions.0: must be text, got 1"),
    ({"input": {"workload": 3}}, "x.input.workload: must be text, got 3"),
    (
        {"input": {"file": "a.h5", "a": "/x", "coordinates": {"m": {"step_s": 0, "step_hz": 1}}}},
        "x.input.coordinates.m: a coordinate must have dataset, values or one of ['step', "
        "'step_s', 'step_hz', 'step_m'], which must not be 0, got step_s: 0, step_hz: 1",
    ),
    *(
        (
            {"input": {"file": "a.h5", "a": "/x", "coordinates": {"m": given}}},
            f"x.input.coordinates.m.{said}{COORDINATES})",
        )
        for given, said in (
            (
                {"step_s": 1, "dataset": "/t"},
                "dataset: must not be given beside step_s (together: ",
            ),
            ({"start": 1, "values": [1]}, "values: must not be given beside start (together: "),
            ({"step_m": 1, "axis": "k"}, "axis: must not be given beside step_m (together: "),
            ({"from": 1}, "from: unknown key (known: "),
        )
    ),
]


@pytest.mark.parametrize(("parameters", "message"), ONE_MISTAKE, ids=lambda x: str(x)[:40])
def test_a_mistake_in_a_workload_is_one_line(parameters, message):
    lines = mistakes(x=parameters)
    assert lines[0].startswith(f"workloads.{message}")
    assert len(lines) == 1


def test_a_workload_may_have_the_name_of_a_parameter():
    text = "m must be at most 100 where the window is none, got 101"
    assert mistakes(m={"window": "none", "m": 101}) == [f"workloads.m.{text}"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"devise": "cpu"}, "devise: unknown key; did you mean 'device'? (known: device, seed, "),
        ({"workload": {}}, "workload: unknown key; did you mean 'workloads'?"),
        (
            {"device": "gpu"},
            "device: must be one of ['auto', 'cpu', 'cuda'], got 'gpu'; did you mean 'cuda'",
        ),
        ({"seed": -1}, "seed: must be at least 0, got -1"),
        ({"seed": "x"}, "seed: must be a whole number, got 'x'"),
        ({"precisions": ["half"]}, "precisions: must be one of ['fp64', 'fp32', 'tf32', "),
        ({"keep_runs": "no"}, "keep_runs: must be true or false, got 'no'"),
        ({"baselines": 1}, "baselines: must be one of ['auto', 'none'] or a list, got 1"),
    ],
)
def test_a_mistake_in_the_settings_is_one_line(settings, message):
    assert mistake(settings=settings, x={}).startswith(message)


def test_all_mistakes_are_reported_at_once():
    message = mistakes(settings={"seed": -1}, x={"m": 0}, y={"kind": "gem"}, z=3)
    assert [line.split(":")[0] for line in message] == [
        "seed", "workloads.x.m", "workloads.y.kind", "workloads.z",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("more", "end"),
    [
        ({"precisions": ["float32"]}, "got 'float32'; did you mean 'fp32'?"),
        ({"precisions": ["fp32", "tf23"]}, "got 'tf23'; did you mean 'tf32'?"),
        ({"precisions": ["half", "tf-32"]}, "got 'half', 'tf-32'; did you mean 'tf32'?"),
        ({"precision": "3xfp61"}, "got '3xfp61'; did you mean '3xfp16'?"),
        ({"precision": "half"}, "got 'half'"),
    ],
)
def test_a_precision_that_is_near_is_suggested(more, end):
    assert mistake(x=more).endswith(end)


def test_a_tolerance_that_nothing_would_be_held_to():
    said = mistake(x={"precision": "fp32", "tolerance": 1e-12})
    needed = "it needs precision: auto"
    assert said == f"workloads.x.tolerance: does nothing at precision: fp32; {needed}"
    swept = mistake(x={"precision": ["fp32", "bf16"], "tolerance": 1e-12})
    assert swept == f"workloads.x.tolerance: does nothing at precision: fp32, bf16; {needed}"
    for fine in ({"precision": "auto", "tolerance": 1e-3}, {"tolerance": 1e-3}):
        assert load_study({"workloads": {"x": {"kind": "toy", **fine}}}).case_json("x")


def test_a_spread_of_numbers_that_are_not_lognormal():
    product = {"kind": "gemm", "m": 2, "n": 2, "k": 2, "phi": 2.0}
    needed = "it needs init: lognormal"
    assert mistake(x=product) == f"workloads.x.phi: does nothing at init: normal; {needed}"
    swept = mistake(x={**product, "init": ["uniform", "integer"], "phi": [1, 2]})
    assert swept == f"workloads.x.phi: does nothing at init: uniform, integer; {needed}"
    said = mistakes(x={**product, "input": {"file": "f.h5", "a": "a", "b": "b"}})
    assert said == ["workloads.x.m must not be given beside input: the data are there"]
    study = load_study({"workloads": {"x": {**product, "init": ["normal", "lognormal"]}}})
    assert load_study(json.loads(study.as_read())).as_read() == study.as_read()


def test_a_sweep_of_auto_and_a_precision_is_read_again():
    toy = {"kind": "toy", "precision": ["fp32", "auto"], "tolerance": 1e-3}
    study = load_study({"workloads": {"x": toy}})
    assert load_study(json.loads(study.as_read())).as_read() == study.as_read()


def test_kinds_and_names():
    assert mistake(x={"kind": "toi"}).startswith("workloads.x.kind: must be one of [")
    assert mistake(x={"kind": "toi"}).endswith("got 'toi'; did you mean 'toy'?")
    assert mistake(x={"kind": "TOY"}).endswith("got 'TOY'; did you mean 'toy'?")
    assert mistake(x={"kind": ["toy"]}).endswith("got ['toy']")
    with pytest.raises(StudyError, match=r"x\.kind: must be one of \[.*\] \(it is missing\)"):
        load_study({"workloads": {"x": {"m": 1}}})
    for name in ("a/b", ".x", "", "-a", "ä", "a b"):
        assert "a name must begin with a letter or digit" in mistake(**{name: {}})


@pytest.mark.parametrize("config", [{}, {"workloads": None}, {"workloads": {}}])
def test_an_empty_study(config):
    with pytest.raises(StudyError, match=r"^workloads: the study is empty"):
        load_study(config)


def test_workloads_that_are_a_list():
    with pytest.raises(StudyError, match=r"^workloads: must be a mapping of names to workloads"):
        load_study({"workloads": ["gemm"]})


@pytest.mark.parametrize(
    ("case", "line"),
    [
        (
            {"kind": "statevector", "circuit": {"file": "a"}, "observables": ["ZZA"]},
            "observables.0: must be text such as 'ZIX' of the letters I, X, Y and Z or a mapping",
        ),
        (
            {
                "kind": "dft",
                "input": {"file": "a", "samples": "x", "select": {"samples": ["::-1"]}},
            },
            "input.select.samples.0: must be a whole number or text such as '0:4096', '::2' of a "
            "step from 1 on, the name 'DE603' or a list, got '::-1'",
        ),
    ],
)
def test_forms_of_text_are_said(case, line):
    with pytest.raises(StudyError) as raised:
        load_study({"workloads": {"x": case}})
    assert str(raised.value).startswith(f"workloads.x.{line}")


@pytest.mark.parametrize("qam", [5, "46", {"a": 1}])
def test_a_choice_among_numbers(qam):
    """They are not quoted, as words of a choice are; it was an IndexError."""
    sizes = {"receivers": 4, "transmitters": 2, "subcarriers": 8, "symbols": 3}
    with pytest.raises(StudyError, match=r"w\.qam: must be one of \[4, 16, 64, 256, 1024\], got"):
        load_study({"workloads": {"w": {"kind": "mimo", **sizes, "qam": qam}}})
