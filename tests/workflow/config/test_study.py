"""Reading a study: defaults, sweeps, files, and what Snakemake reads of it."""

import pytest
import yaml
from argand import PRECISIONS

from tests.workflow.config.toy_kind import NamedCircuit, Toy, mistake, mistakes, study
from workflow.config.mistakes import StudyError
from workflow.preflight.loading import load_study
from workflow.study import workload_from_json
from workflow.workloads.base import KINDS


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setitem(KINDS, "toy", Toy)


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

    def test_an_empty_list_of_baselines_is_none_of_them(self):
        loaded = study(settings={"baselines": []}, one={}, two={"baselines": ["numpy"]})
        assert loaded.workloads["one"].baselines == "none"
        assert loaded.workloads["two"].baselines == ("numpy",)
        assert study(one={"baselines": []}).workloads["one"].baselines == "none"

    def test_exact_integers_of_the_study_reach_products_alone(self):
        pulses = {"antennas": 2, "beams": 2, "samples": 4}
        workloads = {
            "product": {"kind": "gemm", "m": 2, "n": 2, "k": 2},
            "system": {"kind": "solve", "n": 2},
            "spectrum": {"kind": "dft", "length": 4},
            "beams": {"kind": "beamforming", **pulses},
            "power": {"kind": "beamforming", **pulses, "detect": "power"},
        }
        names = ("fp32", "7xint8")
        loaded = load_study({"precisions": list(names), "workloads": workloads})
        have = {name for name, case in loaded.workloads.items() if case.precisions == names}
        assert have == {"product", "system", "beams"}
        assert all(loaded.workloads[one].precisions == ("fp32",) for one in ("spectrum", "power"))

    def test_a_kind_that_has_none_of_the_studys(self):
        with pytest.raises(StudyError) as error:
            study(
                settings={"precisions": ["7xint8"]}, one={"m": [1, 2]}, two={"precisions": ["fp32"]}
            )
        assert error.value.mistakes == [
            f"workloads.{name}.precisions: must be given: those of the study are none of "
            f"{list(PRECISIONS)}, which it has"
            for name in ("one-m1", "one-m2")
        ]
        assert error.value.wrong == ["one"]
        assert list(error.value.rest.workloads) == ["two"]

    def test_without_any(self):
        loaded = study(one={})
        assert (loaded.device, loaded.baselines, loaded.keep_runs) == ("auto", "auto", False)
        assert loaded.workloads["one"].precisions == tuple(PRECISIONS)


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
        with pytest.raises(StudyError, match="of the name 'x-m4', by the sweep of 'x'; "):
            load_study(
                {"workloads": {"x": {"kind": "toy", "m": [4]}, "x-m4": {"kind": "toy", "m": 4}}}
            )


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


class TestFiles:
    def load(self, tmp_path, text):
        path = tmp_path / "study.yaml"
        path.write_text(text)
        return load_study(path)

    def error_of(self, tmp_path, text) -> str:
        with pytest.raises(StudyError) as raised:
            self.load(tmp_path, text)
        return str(raised.value)

    def test_scalars_mean_what_an_editor_shows(self, tmp_path):
        text = "workloads: {no: {kind: toy, scale: 1e-5, window: 1:30, m: 0x10, flag: true}}"
        case = self.load(tmp_path, text).workloads["no"]
        assert (case.scale, case.window, case.m, case.flag) == (1e-5, "1:30", 16, True)
        assert yaml.safe_load(text)["workloads"][False]["window"] == 90  # what is avoided

    def test_merge_keys(self, tmp_path):
        text = "workloads:\n  a: &a {kind: toy, m: 3, k: 4}\n  b: {<<: *a, m: 5}\n"
        case = self.load(tmp_path, text).workloads["b"]
        assert (case.m, case.k) == (5, 4)

    @pytest.mark.parametrize(
        ("text", "place", "advice"),
        [
            ("a:\n\tb: 1\n", "2, column 1", "indent with spaces"),
            ("a:\n  kind:gemm\n  m: 1\n", "3, column 4", "a colon and a space"),
            ("a:\n    b: 1\n   m: 4\n", "3, column 4", "begin in the same column"),
            ("a: 1\n---\nb: 1\n", "2, column 1", "one document"),
        ],
    )
    def test_a_syntax_error_says_what_to_do(self, tmp_path, text, place, advice):
        message = self.error_of(tmp_path, text)
        assert message.startswith(f"{tmp_path}/study.yaml, line {place}: not valid YAML")
        assert advice in message

    def test_a_key_given_twice(self, tmp_path):
        message = self.error_of(tmp_path, "workloads:\n  a: {kind: toy}\n  a: {kind: toy, m: 2}\n")
        assert message == f"{tmp_path}/study.yaml, line 3: the key 'a' is in line 2 too"

    def test_a_key_that_is_no_text(self, tmp_path):
        assert "line 1: a key must be text, got '3'" in self.error_of(tmp_path, "3: {kind: toy}")

    def test_other_things_than_a_mapping(self, tmp_path):
        assert "must be a mapping of keys to values" in self.error_of(tmp_path, "- a\n- b\n")
        assert "workloads: the study is empty" in self.error_of(tmp_path, "# nothing yet\n")
        assert "not plain data" in self.error_of(
            tmp_path, "workloads: {a: {kind: toy, m: &m [*m]}}"
        )

    def test_no_file_and_no_text(self, tmp_path):
        with pytest.raises(StudyError, match=r"there is no file .*none\.yaml"):
            load_study(tmp_path / "none.yaml")
        (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
        with pytest.raises(StudyError, match=r"binary\.yaml: is not UTF-8 .*; save it as"):
            load_study(tmp_path / "binary.yaml")
