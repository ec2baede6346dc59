"""The schema and the keys in config/README.md: what they hold; tests/tools has them in step."""

import json

import jsonschema
import pytest
from argand import PRECISIONS
from pydantic import BaseModel

from workflow.config.annotations import models_within
from workflow.config.mistakes import StudyError
from workflow.config.study_file import read_study_file
from workflow.preflight.loading import load_study
from workflow.schemas.generated import ROOT, SCHEMA
from workflow.schemas.key_tables import fill_tables
from workflow.study import Settings
from workflow.workloads import KINDS

CONFIGS = sorted((ROOT / "config").glob("*.yaml"))
EXAMPLES = sorted(set((ROOT / "examples").glob("*.yaml")) - {ROOT / "examples" / "sources.yaml"})


def test_marks_that_are_wrong_are_errors():
    with pytest.raises(ValueError, match="no mark"):
        fill_tables("# The config\n")
    with pytest.raises(KeyError, match="kind"):
        fill_tables("<!-- keys: kind -->\n<!-- end -->\n")


@pytest.fixture(scope="module")
def schema():
    loaded = json.loads(SCHEMA.read_text())
    jsonschema.Draft7Validator.check_schema(loaded)
    return jsonschema.Draft7Validator(loaded)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
class TestConfigs:
    def test_fits_schema_and_models(self, path, schema):
        schema.validate(read_study_file(path))
        assert load_study(path).workloads

    def test_tells_editors_its_schema(self, path):
        mark = "# yaml-language-server: $schema="
        first = path.read_text().splitlines()[0]
        assert first.startswith(mark)
        assert (path.parent / first.removeprefix(mark)).resolve() == SCHEMA


def test_studies_have_every_kind():
    """The default study has some at every precision; the others are in examples."""
    cases = load_study(ROOT / "config" / "config.yaml").workloads.values()
    found = {case.kind for case in cases if set(case.precisions or ()) == set(PRECISIONS)}
    assert len(found) >= 5
    for path in EXAMPLES:
        found |= {example.kind for example in load_study(path).workloads.values()}
    assert found == set(KINDS)


def models_of(model: type[BaseModel]) -> set[type[BaseModel]]:
    inner = {m for f in model.model_fields.values() for m in models_within(f.annotation)}
    return {model}.union(*map(models_of, inner))


@pytest.mark.parametrize("model", [Settings, *(kind.case_type for kind in KINDS.values())])
def test_every_key_says_what_it_is(model):
    silent = [
        f"{part.__name__}.{name}"
        for part in models_of(model)
        for name, field in part.model_fields.items()
        if not field.description and name != "kind"
    ]
    assert not silent


def test_the_readme_has_every_key_of_every_kind():
    tables = (ROOT / "config" / "README.md").read_text()
    for kind, workload in KINDS.items():
        assert f"### {kind}\n" in tables, f"{kind} is not there: run python -m tools.docs"
        section = tables.split(f"### {kind}\n")[1].split("\n### ")[0]
        section += tables.split("## Shards")[0] + tables.split("### Mappings of")[1].split("###")[0]
        for model in models_of(workload.case_type):
            for name in model.model_fields:
                known = name in ("real", "imag", "int4x2", "workload") or f"| `{name}` |" in section
                assert known, f"{kind}: {name}"


GEMM = {"kind": "gemm", "m": 4, "n": 4, "k": 4}
WRONG = [
    {},
    {"devise": "cpu"},
    {"workloads": {}},
    {"workloads": {"a/b": GEMM}},
    {"workloads": {"a": {**GEMM, "kind": "gem"}}},
    {"workloads": {"a": {"m": 4}}},
    {"workloads": {"a": {**GEMM, "mm": 4}}},
    {"workloads": {"a": {**GEMM, "m": "4"}}},
    {"workloads": {"a": {**GEMM, "m": 0}}},
    {"workloads": {"a": {**GEMM, "m": []}}},
    {"workloads": {"a": {**GEMM, "op_a": "H"}}},
    {"workloads": {"a": {**GEMM, "alpha": [1, 2, 3]}}},
    {"workloads": {"a": {**GEMM, "precisions": ["fp7"]}}},
    {"workloads": {"a": {**GEMM, "precision": "fp7"}}},
    {"workloads": {"a": {**GEMM, "beams": 3}}},
    {"workloads": {"a": {"kind": "dft", "length": 8, "input": {"workload": "b"}}}},
    {"precisions": ["half"], "workloads": {"a": GEMM}},
]
RIGHT = [
    {"workloads": {"a": GEMM}},
    {"workloads": {"a": {**GEMM, "m": [4, 8], "op_a": ["N", "C"]}}},
    {"workloads": {"a": {**GEMM, "alpha": 2}}},
    {"workloads": {"a": {**GEMM, "alpha": [[1, 0], [0, 1]]}}},
    {"workloads": {"a": {**GEMM, "precision": ["fp32", "auto"]}}},
    {"workloads": {"a": {"kind": "statevector", "circuit": {"name": "qft", "qubits": [4, 5]}}}},
    {
        "workloads": {
            "a": {
                "kind": "gemm",
                "input": {
                    "file": "x.h5",
                    "a": "/a",
                    "b": {"real": "/re", "imag": "/im"},
                    "select": {"a": [":", "1:2", 3, [1, 2]]},
                },
            }
        }
    },
]


@pytest.mark.parametrize("config", WRONG, ids=str)
def test_editors_refuse_what_the_study_refuses(config, schema):
    assert not schema.is_valid(config)
    with pytest.raises(StudyError):
        load_study(config)


@pytest.mark.parametrize("config", RIGHT, ids=str)
def test_editors_allow_what_the_study_allows(config, schema):
    schema.validate(config)
    load_study(config)
