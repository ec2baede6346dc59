"""OpenQASM texts that reach or cost more than they show."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.covers import examples
from workflow.circuits import qasm_cost
from workflow.circuits.qiskit_circuits import CircuitError, load_circuit
from workflow.config.mistakes import StudyError
from workflow.preflight.check import check_study
from workflow.preflight.loading import load_study

HEAD = 'OPENQASM 2.0;\ninclude "qelib1.inc";\n'
DOUBLING = "gate g0 a {h a;}\n" + "".join(
    f"gate g{i + 1} a {{g{i} a; g{i} a;}}\n" for i in range(50)
)
DEEP = "gate d0 a {h a;}\n" + "".join(f"gate d{i + 1} a {{d{i} a;}}\n" for i in range(99))
WIDE = [f"q[{i}]" for i in range(30)]
INCLUDES = (
    'include "/etc/passwd";', "include '/etc/passwd';", "include\n'/etc/passwd';",
    "include // of others\n\t'../secret'\r;", "include'../secret';",
    "qreg r[2];include '../secret';", 'include "link";', "include 'one.qasm';",
    "include '/dev/zero';", "include 'doubling.inc';", "gate g a { include '/etc/passwd'; }",
    "include;",
)  # fmt: skip


def check(path: Path) -> None:
    check_study(
        load_study({"workloads": {"x": {"kind": "statevector", "circuit": {"file": str(path)}}}})
    )


def error_of(path: Path, text: str) -> str:
    path.write_text(text)
    with pytest.raises(StudyError) as error:
        check(path)
    return str(error.value)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "circuits").mkdir()
    return tmp_path / "circuits" / "one.qasm"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "qreg q[4000000000];", "declares more than 4096 qubits"),
        (HEAD + f"qreg q[{'9' * 5000}];", "declares more than 4096 qubits"),
        (HEAD + "qreg q[1]; creg c[4000000000];", "declares more than 4096 classical bits"),
        (HEAD + "".join(f"qreg q{i}[4000];" for i in range(9)), "more than 4096 qubits"),
        (HEAD + "qreg q[40]; h q;", "has 40 qubits; there must be 1 to 34"),
        (HEAD + DOUBLING + "qreg q[2]; g50 q[0];", "gates or more; 100000 are allowed"),
        (HEAD + f"qreg q[1]; rx({'(' * 999}1{')' * 999}) q[0];", "may nest 64 parentheses"),
        (HEAD + f"qreg q[1]; rx({'-' * 999}1) q[0];", "may have 256 signs and powers"),
        (HEAD + DEEP + "qreg q[1]; d99 q[0];", "definitions may be 64 deep"),
        (HEAD + f"qreg q[1]; h q[{'9' * 30}];", "a number may have 18 digits there"),
        (HEAD + "qreg q[34]; " + "h q;\n" * 2942, "100000 are allowed"),
        (HEAD + "qreg q[34]; " + "h q;\n" * 200, "are 1.2e+14 updates; 7e+13 are allowed"),
        (HEAD + "qreg q[1]; rx(10^1000) q[0];", "circuit: gate rx has no matrix: "),
        (HEAD + "qreg q[1]; rx(1/0) q[0];", "cannot divide by zero"),
        (HEAD + "opaque o a; qreg q[1]; o q[0];", "gate o has no matrix"),
        (HEAD + "gate r a { r a; } qreg q[1]; r q[0];", "'r' is not defined in this scope"),
        (HEAD + "gate s a { r a; } gate r a { s a; } qreg q[1];", "'r' is not defined"),
        (HEAD + "qreg q[1]; rx(9^9^9^9) q[0];", "must be finite, got inf"),
        (
            HEAD + f"gate w {','.join(f'a{i}' for i in range(30))} {{h a0;}}\n"
            f"qreg q[30]; creg c[30]; measure q->c; w {','.join(WIDE)};",
            "acts on the measured qubit 0; whether it keeps it",
        ),
        *((text, "only 'qelib1.inc' may be included") for text in INCLUDES),
        ("include 'one.qasm", "begins no word, number or symbol"),
        ("/* a comment of C */ x q;", "line 2: '/' begins no statement; a comment begins with //"),
        ("qreg r[1]; h r[0];", 'before definition; include "qelib1.inc"; defines it'),
        ("rx('/etc/passwd') q;", "is a file's name in no include"),
        ("if(c==1) include '/etc/passwd';", "is a file's name in no include"),
    ],
    ids=lambda text: text[-40:],
)
def test_is_refused_at_once(path: Path, text: str, message: str) -> None:
    (path.parent.parent / "secret").write_text("planted x\n")
    (path.parent / "link").symlink_to("../secret")
    (path.parent / "doubling.inc").write_text(DOUBLING)
    text = text if text.startswith("OPENQASM") else "OPENQASM 2.0;\n" + text + "qreg q[1];"
    began = time.process_time()
    found = error_of(path, text)
    assert time.process_time() - began < 5
    assert found.startswith("workloads.x.circuit")
    assert message in found
    assert "planted" not in found


@pytest.mark.parametrize("text", INCLUDES)
def test_no_file_is_opened_where_the_check_has_a_gap(
    path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path.parent.parent / "secret").write_text("planted x\n")
    (path.parent / "link").symlink_to("../secret")
    (path.parent / "doubling.inc").write_text(DOUBLING)
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr(qasm_cost._Reader, "_check_include", lambda self, tokens: None)
    monkeypatch.setattr(qasm_cost._Reader, "_call", lambda self, tokens: (1, 1))
    found = error_of(path, "OPENQASM 2.0;\ncreg c[1];\n" + text + "qreg q[1];")
    assert "is not OpenQASM 2" in found
    assert "planted" not in found


def test_a_file_that_is_no_circuit_is_not_quoted(path: Path) -> None:
    for text in ("planted x;\n", ""):
        expected = "one.qasm: it must begin with OPENQASM 2.0; or OPENQASM 3.0;"
        assert error_of(path, text).endswith(expected)


def test_what_a_text_may_do(path: Path) -> None:
    path.write_text(
        "// a circuit\nOPENQASM 2.0;include // its gates\n\t'qelib1.inc'\r\n;\n"
        "gate twice a {h a; h a;} // '\nqreg q[3]; /"
        "/ qreg r[99999];\ncreg c[3];twice q;u0(1000000000) q[0];measure q->c;"
    )
    check(path)
    assert [one.operation.name for one in load_circuit(path).data[:4]] == 3 * ["twice"] + ["id"]


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_a_text_of_an_editor_for_windows(path: Path, version: str) -> None:
    """It begins with a byte-order mark, which nobody sees, and its lines end in two characters."""
    declared = "qreg q[2];" if version == "2.0" else "qubit[2] q;"
    library = "qelib1.inc" if version == "2.0" else "stdgates.inc"
    text = f'OPENQASM {version};\r\ninclude "{library}";\r\n{declared}\r\nh q[0];\r\n'
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    check(path)
    assert [one.operation.name for one in load_circuit(path).data] == ["h"]


def test_a_message_names_the_line_of_the_file(path: Path) -> None:
    found = error_of(path, HEAD + "// one\n\nqreg q[1];\nh r;")
    assert found.endswith("is not OpenQASM 2: line 6: 'r' is not defined in this scope")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rx q[0];", "line 4: gate rx takes 1 parameter in parentheses behind its name, got none"),
        ("U q[0];", "line 4: gate U takes 3 parameters"),
        ("gate g(a, b) x {rx(a) x;}\ng q[0];", "line 5: gate g takes 2 parameters"),
        ("gate g x {rz x;}", "line 4: gate rz takes 1 parameter"),
    ],
)
def test_a_gate_without_its_parameters(path: Path, text: str, message: str) -> None:
    """Qiskit makes such a gate, and fails at the first look at it."""
    assert message in error_of(path, f"{HEAD}qreg q[1];\n{text}")


def test_another_version(path: Path) -> None:
    assert "line 1: it is OPENQASM 4.0; 2.0 and 3.0 are read" in error_of(path, "OPENQASM 4.0;")


@settings(max_examples=examples(300), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.sampled_from(
            [
                *("include", "'qelib1.inc'", '"qelib1.inc"', "'/etc/passwd'", "//", "\n", ";"),
                *("qreg", "q", "[", "3", "]", "h", "gate", "g", "a", "{", "}", "if", "(", "c"),
                *("==", ")", "->", "creg", "measure", "'", '"', "U", "pi", ",", "/", " ", "\r"),
                *("opaque", "barrier"),
            ]
        ),
        max_size=30,
    )
)
def test_counts_are_of_what_is_parsed(path: Path, parts: list[str]) -> None:
    """Whatever Qiskit builds of a text has as many qubits as were counted, and no more gates."""
    path.write_text("OPENQASM 2.0;" + "".join(parts))
    try:
        circuit, counted = load_circuit(path), qasm_cost.parsable(path)
    except CircuitError:
        return
    assert circuit.num_qubits == counted.qubits
    assert circuit.size() <= counted.gates


@pytest.mark.parametrize("kind", ["named", "file"])
def test_a_large_circuit_is_checked_at_once(path: Path, kind: str) -> None:
    began = time.process_time()
    if kind == "file":
        path.write_text(HEAD + "qreg q[28]; " + "cu1(pi/4) q[1],q[2];\n" * 20_000)
        check(path)
    else:
        circuit = {"name": "random", "qubits": 34, "depth": 10_000}
        case = {"kind": "statevector", "circuit": circuit}
        with pytest.raises(StudyError, match=r"it has 505000 gates on 34 qubits; 100000 gates"):
            check_study(load_study({"workloads": {"x": case}}))
    assert time.process_time() - began < 6


def test_fused_gates_beyond_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workflow.circuits.qiskit_circuits.machine_memory", lambda: 1 << 20)
    circuit = {"name": "random", "qubits": 12, "depth": 4}
    study = {"workloads": {"x": {"kind": "statevector", "circuit": circuit, "fuse": 10}}}
    with pytest.raises(StudyError, match=r"need .* of memory, this machine has 1 MiB; lower fuse"):
        check_study(load_study(study))
