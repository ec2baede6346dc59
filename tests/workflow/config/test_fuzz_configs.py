"""Thousands of configs, near right ones and far from them: only a StudyError comes out."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from tests.covers import examples
from tests.workflow.nested_places import places
from workflow.config.mistakes import StudyError
from workflow.config.study_file import read_study_file
from workflow.preflight.check import check_study
from workflow.preflight.loading import load_study
from workflow.schemas.generated import ROOT
from workflow.study import Study
from workflow.workloads import KINDS

# Derandomized: the same cases every time, so that a failure is the change's own. No deadline: other
# tests run beside. No database: nothing is kept between runs.
CASES = settings(
    derandomize=True, deadline=None, database=None, max_examples=examples(1000),
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
GHZ = {"kind": "statevector", "circuit": {"name": "ghz", "qubits": 4}}
READOUTS = [
    {"shots": 100},
    {"observables": ["ZZII", {"pauli": "XYZI", "coefficient": -0.5}]},
    {"probabilities": [0, 2]},
    {"shots": 10, "noise": {"depolarising": 0.01, "damping": 0.1}},
]
FILES = [
    "config/test.yaml", "config/observatory.yaml", "examples/mimo.yaml", "examples/spectra.yaml",
]  # fmt: skip
GIVEN = {
    name: case for file in FILES for name, case in read_study_file(ROOT / file)["workloads"].items()
} | {f"readout-{i}": GHZ | readout for i, readout in enumerate(READOUTS)}
MISSING = set(KINDS) - {case["kind"] for case in GIVEN.values()}
VALID = {
    "workloads": GIVEN
    | {f"small-{kind}": {"kind": kind, **KINDS[kind].small} for kind in sorted(MISSING)}
}
WRITTEN = yaml.safe_dump(VALID).encode()
WORDS = sorted(
    {name for kind in KINDS.values() for name in kind.case_type.model_fields}
    | {"workloads", "device", "seed", "file", "name", "select", "input", "external", "real"}
    | {
        *KINDS, "fp32", "auto", "none", "qft", "/x", ":", "0:4", "../x", "x" * 300, "\0", "1e3",
        "{x}",
    }
)  # fmt: skip
NUMBERS = (
    st.integers() | st.floats() | st.sampled_from([0, -1, 2**31, 2**63, 2**64, 10**300, 1e308])
)
SCALARS = st.none() | st.booleans() | NUMBERS | st.sampled_from(WORDS) | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


@st.composite
def mutations_of(draw: st.DrawFn, valid: dict[str, Any]) -> dict[str, Any]:
    """A study with some values replaced, removed, or added."""
    config = copy.deepcopy(valid)
    for place in draw(st.lists(st.sampled_from(places(valid)), min_size=1, max_size=3)):
        holder: Any = config
        try:
            for key in place[:-1]:
                holder = holder[key]
            how = draw(st.sampled_from(["replace", "remove", "add"]))
            if how == "replace":
                holder[place[-1]] = draw(VALUES)
            elif how == "remove":
                del holder[place[-1]]
            elif isinstance(holder, dict):
                holder[draw(st.sampled_from(WORDS) | st.text(max_size=4))] = draw(VALUES)
        except (KeyError, IndexError, TypeError):
            continue  # an earlier mutation took the place away
    return config


def read_config(config: Any) -> Study | None:
    """The study that a config is, or None where it is refused with lines that say something."""
    try:
        return load_study(config)
    except StudyError as raised:
        say_something(raised)
        return None


def say_something(error: StudyError) -> None:
    lines = str(error).splitlines()
    assert len(lines) == len(error.mistakes) > 0
    assert all(len(line) > 10 and line.isprintable() for line in lines)


def is_safe(study: Study) -> None:
    """Names of files stay names of files, and a job receives what was read."""
    folder = Path("results/staged").resolve()
    for name in study.names:
        assert (folder / f"{name}.h5").resolve().parent == folder
        assert name in study.case_json(name)


def test_every_kind_and_answer_is_mutated() -> None:
    study = load_study(VALID)
    assert {case.kind for case in study.workloads.values()} == set(KINDS)


@CASES
@given(mutations_of(VALID))
def test_mutated_studies(config: dict[str, Any]) -> None:
    if (study := read_config(config)) is not None:
        is_safe(study)


@CASES
@given(VALUES | st.fixed_dictionaries({"workloads": VALUES}))
def test_arbitrary_mappings(config: Any) -> None:
    if isinstance(config, dict):
        read_config(config)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "study.yaml"


TOKENS = st.sampled_from(
    [
        *"[]{}:,-?&*!|>'\"%@`#~", "\n", " ", "  ", ": ", "- ", "&a", "*a", "<<: *a", "!!int ",
        "!!python/object/apply:os.system ", "!!binary ", "!!set ", "!!str ", "\\ud800", "---\n",
        "workloads", "x", "{kind: gemm, m: 4, n: 4, k: 4}", "1e5", "0x", "1_0", ".nan", "\t", "\0",
        "__use_yte__: true\n", "é", "\u2028", "\ufeff",
    ]
)  # fmt: skip


@CASES
@given(st.lists(TOKENS, max_size=30).map("".join))
def test_arbitrary_text(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    read_config(file)


@CASES
@given(st.data())
def test_flipped_bytes_of_a_study(file: Path, data: st.DataObject) -> None:
    content = bytearray(WRITTEN)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    file.write_bytes(content)
    read_config(file)


@settings(CASES, max_examples=examples(150))
@given(mutations_of(VALID))
def test_checks_of_mutated_studies(config: dict[str, Any]) -> None:
    """The check of files and circuits, which is slower."""
    study = read_config(config)
    if study is None:
        return
    circuits = [case.circuit for case in study.workloads.values() if case.kind == "statevector"]
    if all((circuit.qubits or 0) <= 8 for circuit in circuits):
        try:
            check_study(study)
        except StudyError as raised:
            say_something(raised)


def numbers_of(kind: str) -> list[tuple[str, ...]]:
    """The places of a kind's keys that take a number which is not whole, within mappings too."""

    def within(model: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for name, field in model.model_fields.items():
            kinds = {field.annotation, *get_args(field.annotation)}
            if float in kinds:
                yield (*path, name)
            for one in kinds:
                if isinstance(one, type) and issubclass(one, BaseModel):
                    yield from within(one, (*path, name))

    return list(within(KINDS[kind].case_type, ()))


@pytest.mark.each_value
@pytest.mark.parametrize("number", [5e-324, 1e-300, 1e300, 1.7e308])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_numbers_at_the_ends_of_their_type(kind: str, number: float) -> None:
    """Each is refused, or its study is checked without a warning of NumPy's."""
    for *path, name in numbers_of(kind):
        case = {"kind": kind, **copy.deepcopy(KINDS[kind].small)}
        holder: Any = case
        for key in path:
            holder = holder.setdefault(key, {})
        holder[name] = number
        try:
            check_study(load_study({"workloads": {"w": case}}))
        except StudyError as raised:
            say_something(raised)
