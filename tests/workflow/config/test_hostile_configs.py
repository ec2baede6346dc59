"""Configs that would cost or reach more than they show: each is one clear line, at once."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from workflow.config.mistakes import StudyError
from workflow.config.sweeps import MAX_CASES
from workflow.preflight import loading
from workflow.preflight.check import check_study
from workflow.preflight.loading import load_study
from workflow.study import LONGEST_NAME

GEMM = "{kind: gemm, m: 4, n: 4, k: 4}"
NINE = range(9)


def error_of(folder: Path, text: str) -> str:
    """The mistakes of a study of this text."""
    path = folder / "study.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(StudyError) as error:
        check_study(load_study(path))
    return str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "a0: &a0 [x]\n"
        + "".join(f"a{i + 1}: &a{i + 1} [{', '.join([f'*a{i}'] * 9)}]\n" for i in NINE),
        "a0: &a0 {x: 1}\n"
        + "".join(f"a{i + 1}: &a{i + 1} {{<<: [{', '.join([f'*a{i}'] * 9)}]}}\n" for i in NINE),
    ],
    ids=["aliases", "merge keys"],
)
def test_aliases_that_stand_for_gigabytes(tmp_path: Path, text: str) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(text)
    code = "import sys; from pathlib import Path\n"
    code += "from workflow.preflight.loading import load_study\n"
    code += "load_study(Path(sys.argv[1]))"
    limit = 4 << 30
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=60,
        check=False, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )  # fmt: skip
    assert "a config may hold 100000 values, got" in done.stderr


@pytest.mark.parametrize(
    "value", ["[" * 5000 + "]" * 5000, "{a: " * 900 + "1" + "}" * 900, "- " * 5000]
)
def test_deep_values(tmp_path: Path, value: str) -> None:
    assert "line 2: values may be nested 32 deep" in error_of(tmp_path, f"workloads:\n {value}")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("!!python/object/apply:os.system ['touch pwned']", "got 'python/object/apply:os.system'"),
        ("!!python/name:os.system", "got 'python/name:os.system'"),
        ("!!binary aGVsbG8=", "got 'binary'"),
        ("!!timestamp 2001-99-99", "got 'timestamp'"),
        ("!!set {a, b}", "got 'set'"),
        ("!!int abc", "got 'int'"),
        ("!!float abc", "got 'float'"),
        ("!!bool abc", "got 'bool'"),
        ("!local x", "got '!local'"),
        ("{? !!str [a] : b}", "got 'str'"),
    ],
)
def test_tags_that_are_not_of_plain_data(tmp_path: Path, value: str, found: str) -> None:
    assert found in error_of(tmp_path, f"device: cpu\nseed: {value}\n")
    assert "line 2: the tag of a value must be one of" in error_of(
        tmp_path, f"device: cpu\nseed: {value}"
    )
    assert not Path("pwned").exists()


def test_tags_that_say_what_is_there_are_let_through(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(
        f"seed: !!int 5\nworkloads: !!map {{!!str x: {GEMM}, y: {GEMM[:-1]}, beta: !!float 2}}}}"
    )
    assert load_study(path).seed == 5


def test_numbers_and_text_that_python_cannot_hold(tmp_path: Path) -> None:
    assert "a number may have 400 digits" in error_of(tmp_path, f"seed: {'9' * 5000}")
    assert r"'\ud800' is not Unicode text" in error_of(tmp_path, r'device: "\ud800"')
    assert "special characters are not allowed" in error_of(tmp_path, "device: \x07")


def test_a_config_larger_than_any(tmp_path: Path) -> None:
    assert "a config may have 1048576 bytes" in error_of(tmp_path, "#" * (1 << 20) + "\n" + GEMM)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "study.yaml")
    for path in (tmp_path / "study.yaml", Path("/dev/null")):
        with pytest.raises(StudyError, match=r"cannot be read \(a pipe or a device"):
            load_study(path)
    for name in (tmp_path / "study.yaml", "/dev/zero"):
        given = {"x": {"kind": "gemm", "input": {"file": str(name), "a": "a", "b": "b"}}}
        with pytest.raises(StudyError, match="is a pipe or a device, not a file"):
            check_study(load_study({"workloads": given}))


def test_keys_that_are_no_text(tmp_path: Path) -> None:
    assert error_of(tmp_path, "? [1, 2]\n: 3").endswith("a key must be text, got a sequence")
    assert error_of(tmp_path, "null: 3").endswith("a key must be text, got 'null'")


def test_sweeps_that_multiply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = list(range(1, 601))
    swept = f"{{kind: gemm, m: {values}, n: {values}, k: {values}}}"
    assert error_of(tmp_path, f"workloads: {{x: {swept}}}") == (
        f"workloads.x: its sweeps make 216000000 cases; a study may have {MAX_CASES}"
    )
    monkeypatch.setattr(loading, "MAX_CASES", 100)
    swept = f"{{kind: gemm, m: {values[:10]}, n: 1, k: {values[:6]}}}"
    assert "a study may have 100 cases" in error_of(
        tmp_path, f"workloads: {{x: {swept}, y: {swept}}}"
    )


def test_names_that_a_file_system_does_not_take(tmp_path: Path) -> None:
    name = "x" * (LONGEST_NAME - 1)
    assert f"a name may have {LONGEST_NAME} characters" in error_of(
        tmp_path, f"workloads: {{{name}: {{kind: gemm, m: [1, 2], n: 1, k: 1}}}}"
    )
    assert "there is no file" in error_of(
        tmp_path, f"workloads: {{x: {{kind: gemm, input: {{file: {'a' * 5000}, a: a, b: b}}}}}}"
    )


@pytest.mark.parametrize("name", ["../x", "/x", "..", "a/../../b", "a\\0b", "a\\nb", "{x}", "~"])
def test_names_that_lead_elsewhere(tmp_path: Path, name: str) -> None:
    message = "a name must begin with a letter or digit and go on with letters, digits"
    assert message in error_of(tmp_path, f'workloads: {{"{name}": {GEMM}}}')


def test_parameters_of_a_window_that_scipy_stumbles_over(tmp_path: Path) -> None:
    for window in ("[general_cosine, 1]", "[kaiser, x]", "[gaussian]", "[taylor, -1]", "[dpss, 4]"):
        text = f"workloads: {{x: {{kind: dft, length: 8, window: {window}}}}}"
        assert "x.window: must be a window of scipy.signal, got " in error_of(tmp_path, text)
