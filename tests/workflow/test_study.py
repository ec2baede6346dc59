"""Reading a study: defaults, sweeps, names, and one clear message for each mistake."""

from pathlib import Path
from typing import Any, ClassVar, Literal

import h5py
import numpy as np
import pytest
import yaml
from pydantic import Field, model_validator

from workflow.config.file_input import DatasetRef, FileInput, WorkloadInput
from workflow.config.model import Model
from workflow.storage.inputs import InputError, describe_operand
from workflow.study import StudyError, check_study, load_study, main, workload_from_json
from workflow.workloads import KINDS, Case, Workload


class NamedCircuit(Model):
    name: Literal["qft", "ghz"]
    qubits: int = Field(4, ge=1, le=30)


class CircuitFile(Model):
    file: Path


class ToyInput(FileInput):
    a: DatasetRef
    b: DatasetRef | None = None


class ToyCase(Case):
    kind: Literal["toy"]
    m: int = Field(8, ge=1, le=4096, description="Rows of the product.")
    k: int | None = Field(None, ge=1)
    scale: float = Field(1.0, gt=0)
    op_a: Literal["N", "T", "C"] = "N"
    alpha: tuple[float, float] = (1.0, 0.0)
    sources: list[tuple[float, float]] = Field(default_factory=list)
    window: str = "hann"
    flag: bool = False
    circuit: NamedCircuit | CircuitFile | None = None
    input: ToyInput | WorkloadInput | None = None

    @model_validator(mode="after")
    def _cross(self) -> "ToyCase":
        if self.window == "none" and self.m > 100:
            raise ValueError("m must be at most 100 where the window is none, got 101")
        return self


class Toy(Workload):
    kind: ClassVar[str] = "toy"
    case_type: ClassVar[type[Case]] = ToyCase
    reads: ClassVar[tuple[str, ...]] = ("toy",)
    stage = shape = argand = baselines = reference = assess = product = picture = None

    def check(self) -> None:
        if isinstance(self.case.input, ToyInput):
            describe_operand(self.case.input, "a", rank=2, axes=("m", "k"))

    def depends_on(self):
        return self.case.input.workload if isinstance(self.case.input, WorkloadInput) else None


Toy.__abstractmethods__ = frozenset()


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setitem(KINDS, "toy", Toy)


def study(*, settings: dict[str, Any] | None = None, **workloads):
    full = {
        name: {"kind": "toy", **parameters} if isinstance(parameters, dict) else parameters
        for name, parameters in workloads.items()
    }
    return load_study({**(settings or {}), "workloads": full})


def mistakes(**arguments) -> list[str]:
    with pytest.raises(StudyError) as told:
        study(**arguments)
    return str(told.value).splitlines()


def mistake(**arguments) -> str:
    (line,) = mistakes(**arguments)
    return line


class TestDefaults:
    def test_of_the_study_reach_the_workloads(self):
        loaded = study(
            settings={"precisions": ["fp32", "fp16"], "baselines": ["numpy"], "seed": 7},
            one={},
            two={"precisions": ["fp64"], "baselines": "none"},
        )
        assert loaded.workloads["one"].precisions == ("fp32", "fp16")
        assert loaded.workloads["one"].baselines == ("numpy",)
        assert loaded.workloads["two"].precisions == ("fp64",)
        assert loaded.workloads["two"].baselines == "none"
        assert loaded.workload("two").seed == 7

    def test_without_any(self):
        loaded = study(one={})
        assert (loaded.device, loaded.baselines, loaded.keep_runs) == ("auto", "auto", False)
        assert loaded.workloads["one"].precisions == (
            "fp64", "fp32", "tf32", "3xtf32", "3xfp16", "fp16", "bf16",
        )  # fmt: skip


def test_overrides_replace_keys_of_the_study():
    config = {"device": "cuda", "seed": 3, "workloads": {"x": {"kind": "toy"}}}
    loaded = load_study(config, {"device": "cpu"})
    assert (loaded.device, loaded.seed, loaded.names) == ("cpu", 3, ("x",))
    with pytest.raises(StudyError, match="devise: unknown key; did you mean 'device'"):
        load_study(config, overrides={"devise": "cpu"})
    assert config["device"] == "cuda"


class TestSweeps:
    def test_make_named_cases_the_first_field_slowest(self):
        loaded = study(one={"k": [64, 2], "m": [1, 2]}, two={})
        assert loaded.names == ("one-m1-k64", "one-m1-k2", "one-m2-k64", "one-m2-k2", "two")
        assert (loaded.workloads["one-m2-k64"].m, loaded.workloads["one-m2-k64"].k) == (2, 64)

    @pytest.mark.parametrize(
        ("key", "values", "names"),
        [
            ("m", [1024], ["x-m1024"]),
            ("op_a", ["N", "C"], ["x-op_aN", "x-op_aC"]),
            ("scale", [0.5, 1e20], ["x-scale0.5", "x-scale1e20"]),
            ("alpha", [[1, 0], [-0.5, 2]], ["x-alpha1_0", "x-alpha-0.5_2"]),
            ("flag", [True, False], ["x-flagtrue", "x-flagfalse"]),
            ("window", ["hann", "black man"], ["x-windowhann", "x-windowblackman"]),
            ("precision", ["fp32", "auto"], ["x-precisionfp32", "x-precisionauto"]),
        ],
    )
    def test_of_each_type(self, key, values, names):
        loaded = study(x={key: values})
        assert loaded.names == tuple(names)
        got = [getattr(loaded.workloads[name], key) for name in names]
        assert got == [tuple(v) if isinstance(v, list) else v for v in values]

    def test_nested(self):
        loaded = study(x={"circuit": {"name": "qft", "qubits": [8, 10]}})
        assert loaded.names == ("x-qubits8", "x-qubits10")
        assert loaded.workloads["x-qubits10"].circuit == NamedCircuit(name="qft", qubits=10)

    def test_lists_that_are_none(self):
        loaded = study(
            x={
                "precisions": ["fp32"],
                "baselines": ["numpy"],
                "alpha": [0, 1],
                "sources": [[1, 2], [3, 4]],
                "rounding": {"3xtf32": ["toward_zero", "nearest_even"]},
            }
        )
        assert loaded.names == ("x",)

    def test_an_expanded_case_is_the_same_as_a_plain_one(self):
        swept = study(x={"m": [16, 32]}).case_json("x-m16")
        plain = load_study({"workloads": {"x-m16": {"kind": "toy", "m": 16}}}).case_json("x-m16")
        assert swept == plain

    def test_mistakes(self):
        assert "x.m: must be a value or a list of values" in mistake(x={"m": []})
        assert mistake(x={"m": [4, 4]}).endswith("each value of a sweep once, got 4 twice")
        assert mistakes(x={"m": [4, 5000, 0], "k": [1, 2]}) == [
            "workloads.x.m: must be at least 1 and at most 4096, got 5000",
            "workloads.x.m: must be at least 1 and at most 4096, got 0",
        ]
        with pytest.raises(StudyError, match="there are two workloads of the name 'x-m4'"):
            load_study(
                {"workloads": {"x": {"kind": "toy", "m": [4]}, "x-m4": {"kind": "toy", "m": 4}}}
            )


ONE_MISTAKE = [
    ({"mm": 1}, "x.mm: unknown key; did you mean 'm'? (known: kind, precisions, precision,"),
    ({"presicions": 1}, "x.presicions: unknown key; did you mean 'precisions'? (known: "),
    ({"zzzzzz": 1}, "x.zzzzzz: unknown key; (known: "),
    ({"m": "64"}, "x.m: must be a whole number, got '64' (this is text; write a number"),
    ({"m": 6.5}, "x.m: must be a whole number, got 6.5"),
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
    ({"precisions": ["fp8"]}, "x.precisions: must be one of ['fp64', 'fp32', 'tf32', '3xtf32', "),
    ({"precisions": ["fp32", "fp32"]}, "x.precisions: each precision once"),
    ({"precisions": []}, "x.precisions: must be a list of at least 1, got []"),
    ({"precisions": "fp32"}, "x.precisions: must be a list, got 'fp32'"),
    ({"precision": "fp8"}, "x.precision: must be one of ['auto', 'fp64', "),
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
    ({"circuit": "qft"}, "x.circuit: must be a mapping of keys to values, got 'qft'"),
    ({"input": {"file": "a.h5"}}, "x.input.a: missing; it is needed: path of a dataset"),
    ({"input": {"file": "a.h5", "a": 3}}, "x.input.a: must be text or a mapping"),
    ({"input": {"file": "a.h5", "a": {"real": "/r"}}}, "x.input.a.imag: missing; it is needed"),
    ({"input": {"file": "a.h5", "a": "/x", "c": "/y"}}, "x.input.c: unknown key; (known: file, "),
    ({"input": {"file": "a.h5", "a": "/x", "select": {"c": [":"]}}}, "x.input.select.c must be on"),
    ({"input": {"file": "a.h5", "a": "/x", "select": {"a": ["x"]}}}, "x.input.select.a.0: must be"),
    ({"input": {"workload": 3}}, "x.input.workload: must be text, got 3"),
]


@pytest.mark.parametrize(("parameters", "message"), ONE_MISTAKE, ids=lambda x: str(x)[:40])
def test_a_mistake_in_a_workload_is_one_line(parameters, message):
    lines = mistakes(x=parameters)
    assert lines[0].startswith(f"workloads.{message}")
    assert len(lines) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"devise": "cpu"}, "devise: unknown key; did you mean 'device'? (known: device, seed, "),
        ({"workload": {}}, "workload: unknown key; did you mean 'workloads'?"),
        ({"device": "gpu"}, "device: must be one of ['auto', 'cpu', 'cuda'], got 'gpu'"),
        ({"seed": -1}, "seed: must be at least 0, got -1"),
        ({"seed": "x"}, "seed: must be a whole number, got 'x'"),
        ({"precisions": ["half"]}, "precisions: must be one of ['fp64', 'fp32', 'tf32', "),
        ({"keep_runs": "no"}, "keep_runs: must be true or false, got 'no'"),
        ({"baselines": 1}, "baselines: must be one of ['auto', 'none'] or a list, got 1"),
    ],
)
def test_a_mistake_in_the_settings_is_one_line(settings, message):
    assert mistake(settings=settings, x={}).startswith(message)


def test_all_mistakes_are_told_at_once():
    told = mistakes(settings={"seed": -1}, x={"m": 0}, y={"kind": "gem"}, z=3)
    assert [line.split(":")[0] for line in told] == [
        "seed", "workloads.x.m", "workloads.y.kind", "workloads.z",
    ]  # fmt: skip


def test_kinds_and_names():
    assert mistake(x={"kind": "toi"}).startswith("workloads.x.kind: must be one of [")
    assert mistake(x={"kind": "toi"}).endswith("got 'toi'; did you mean 'toy'?")
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


class TestJson:
    def test_is_stable_and_has_an_inverse(self):
        parameters = {"m": 5, "alpha": [0.1, 2], "circuit": {"name": "qft"}, "k": 3}
        one = study(x=parameters, other={"m": 7})
        two = study(x=dict(reversed(parameters.items())), other={"m": 8})
        assert one.case_json("x") == two.case_json("x")
        assert one.case_json("other") != two.case_json("other")
        again = workload_from_json(one.case_json("x"))
        assert isinstance(again, Toy)
        assert (again.name, again.seed) == ("x", one.seed)
        assert again.case == one.workloads["x"]
        assert again.case.model_fields_set == one.workloads["x"].model_fields_set

    @pytest.mark.parametrize(
        ("settings", "x"), [({"seed": 8}, {}), ({"precisions": ["fp64"]}, {}), ({}, {"m": 9})]
    )
    def test_changes_with_what_matters(self, settings, x):
        assert study(x={}).case_json("x") != study(settings=settings, x=x).case_json("x")

    def test_an_unknown_name(self):
        with pytest.raises(StudyError, match=r"workload must be one of \['x'\], got 'y'"):
            study(x={}).case_json("y")


class TestCheck:
    @pytest.fixture
    def path(self, tmp_path):
        with h5py.File(tmp_path / "in.h5", "w") as file:
            file["a"] = np.zeros((3, 4), np.complex64)
            file["cube"] = np.zeros((2, 3, 4), np.complex64)
        return tmp_path / "in.h5"

    @staticmethod
    def told(loaded) -> list[str]:
        with pytest.raises(StudyError) as told:
            check_study(loaded)
        return str(told.value).splitlines()

    def test_nothing_wrong(self, path):
        loaded = study(x={"input": {"file": str(path), "a": "/a"}}, y={"input": {"workload": "x"}})
        check_study(loaded)
        assert loaded.input_files("x") == (path,)
        assert loaded.input_files("y") == ()
        assert (loaded.upstream("x"), loaded.upstream("y")) == (None, "x")

    def test_files(self, path):
        loaded = study(
            gone={"input": {"file": str(path) + "x", "a": "/a"}},
            name={"input": {"file": str(path), "a": "/aa"}},
            rank={"input": {"file": str(path), "a": "/cube"}},
        )
        gone, name, rank = self.told(loaded)
        assert gone.startswith(f"workloads.gone.input.file: there is no file {path}x")
        assert name.endswith("has no dataset /aa; did you mean /a? (it has: /a, /cube)")
        assert name.startswith("workloads.name.input.a: ")
        assert rank.startswith("workloads.rank.input.a must have at least 1 and at most 2 axes")

    def test_an_unknown_upstream(self):
        loaded = study(beams={}, x={"input": {"workload": "baems"}})
        assert self.told(loaded) == [
            "workloads.x.input.workload: must be one of ['beams'] (kind toy), got 'baems'; "
            "did you mean 'beams'?"
        ]

    def test_an_upstream_of_another_kind(self):
        loaded = load_study(
            {
                "workloads": {
                    "product": {"kind": "gemm", "m": 1, "n": 1, "k": 1},
                    "x": {"kind": "toy", "input": {"workload": "product"}},
                }
            }
        )
        assert self.told(loaded) == [
            "workloads.x.input.workload: must be one of [] (kind toy), got 'product'"
        ]

    def test_itself_and_in_a_circle(self):
        (told,) = self.told(study(x={"input": {"workload": "x"}}, y={}))
        assert told.startswith("workloads.x.input.workload: must be one of ['y'] (kind toy), got ")
        (told,) = self.told(study(x={"input": {"workload": "y"}}, y={"input": {"workload": "x"}}))
        assert "these read each other's products: " in told

    def test_cuda_without_a_gpu(self, monkeypatch):
        monkeypatch.setattr("argand.device.gpus", list)
        loaded = study(settings={"device": "cuda"}, x={})
        assert self.told(loaded)[0].startswith("device: cuda was asked for, but no GPU answers")
        check_study(study(settings={"device": "auto"}, x={}))
        check_study(loaded, device_here=False)  # a cluster's submit host

    def test_on_the_command_line(self, monkeypatch, tmp_path, capsys):
        monkeypatch.setattr("argand.device.gpus", list)
        path = tmp_path / "study.yaml"
        path.write_text("device: cuda\nworkloads: {x: {kind: toy}}\n")
        monkeypatch.setattr("sys.argv", ["study", str(path)])
        with pytest.raises(SystemExit, match="no GPU answers"):
            main()
        monkeypatch.setattr("sys.argv", ["study", "--elsewhere", str(path)])
        main()
        assert capsys.readouterr().out == f"{path}: 1 workloads (x)\n"

    def test_input_error_is_a_value_error(self):
        assert issubclass(InputError, ValueError)


class TestFiles:
    def load(self, tmp_path, text):
        path = tmp_path / "study.yaml"
        path.write_text(text)
        return load_study(path)

    def told(self, tmp_path, text) -> str:
        with pytest.raises(StudyError) as told:
            self.load(tmp_path, text)
        return str(told.value)

    def test_scalars_mean_what_an_editor_shows(self, tmp_path):
        text = "workloads: {no: {kind: toy, scale: 1e-5, window: 1:30, m: 0x10, flag: true}}"
        case = self.load(tmp_path, text).workloads["no"]
        assert (case.scale, case.window, case.m, case.flag) == (1e-5, "1:30", 16, True)
        assert yaml.safe_load(text)["workloads"][False]["window"] == 90  # what is avoided

    def test_merge_keys(self, tmp_path):
        text = "workloads:\n  a: &a {kind: toy, m: 3, k: 4}\n  b: {<<: *a, m: 5}\n"
        case = self.load(tmp_path, text).workloads["b"]
        assert (case.m, case.k) == (5, 4)

    def test_a_syntax_error_has_its_line(self, tmp_path):
        told = self.told(tmp_path, "workloads:\n  a: {kind: toy\n  b: 3\n")
        assert told.startswith(f"{tmp_path}/study.yaml, line 3, column ")
        assert "not valid YAML" in told
        assert "line 2, column 1: not valid YAML" in self.told(tmp_path, "a:\n\tb: 1\n")

    def test_a_key_given_twice(self, tmp_path):
        told = self.told(tmp_path, "workloads:\n  a: {kind: toy}\n  a: {kind: toy, m: 2}\n")
        assert told == f"{tmp_path}/study.yaml, line 3: 'a' stands in line 2 too"

    def test_a_key_that_is_no_text(self, tmp_path):
        assert "line 1: a key must be text, got '3'" in self.told(tmp_path, "3: {kind: toy}")

    def test_other_things_than_a_mapping(self, tmp_path):
        assert "must be a mapping of keys to values" in self.told(tmp_path, "- a\n- b\n")
        assert "workloads: the study is empty" in self.told(tmp_path, "# nothing yet\n")
        assert "not plain data" in self.told(tmp_path, "workloads: {a: {kind: toy, m: &m [*m]}}")

    def test_no_file_and_no_text(self, tmp_path):
        with pytest.raises(StudyError, match=r"none\.yaml: cannot be read"):
            load_study(tmp_path / "none.yaml")
        (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
        with pytest.raises(StudyError, match=r"binary\.yaml: cannot be read"):
            load_study(tmp_path / "binary.yaml")
