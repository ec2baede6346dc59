"""OpenQASM texts that reach or cost more than they show."""

from __future__ import annotations

from pathlib import Path

import pytest

from workflow.config.check import check_study
from workflow.config.loading import load_study
from workflow.config.mistakes import StudyError

HEAD = 'OPENQASM 2.0;\ninclude "qelib1.inc";\n'
DOUBLING = "gate g0 a {h a;}\n" + "".join(
    f"gate g{i + 1} a {{g{i} a; g{i} a;}}\n" for i in range(50)
)
WIDE = [f"q[{i}]" for i in range(30)]


def check(path: Path) -> None:
    check_study(
        load_study({"workloads": {"x": {"kind": "statevector", "circuit": {"file": str(path)}}}})
    )


def told(path: Path, text: str) -> str:
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
        (HEAD + DOUBLING + "qreg q[2]; g50 q[0];", "gates or more; 1000000 are allowed"),
        (HEAD + f"qreg q[1]; rx({'(' * 999}1{')' * 999}) q[0];", "nests more than 64 parentheses"),
        (HEAD + "qreg q[1]; rx(10^1000) q[0];", "circuit: gate rx has no matrix: "),
        (HEAD + "qreg q[1]; rx(1/0) q[0];", "cannot divide by zero"),
        (HEAD + "opaque o a; qreg q[1]; o q[0];", "gate o has no matrix"),
        (
            HEAD + f"gate w {','.join(f'a{i}' for i in range(30))} {{h a0;}}\n"
            f"qreg q[30]; creg c[30]; measure q->c; w {','.join(WIDE)};",
            "acts on the measured qubit 0; whether it keeps it",
        ),
        ('include "/etc/passwd";', "only files beside it or below may be included"),
        ('include "../secret";', "only files beside it or below may be included"),
        ('include "link";', "includes link, which leads to "),
        ('include "gone.inc";', "includes gone.inc, which is not in "),
        ('include "one.qasm";', "includes one.qasm again"),
        ('include "two.inc";', "includes one.qasm again"),
    ],
    ids=lambda text: text[-40:],
)
def test_is_refused_at_once(path: Path, text: str, message: str) -> None:
    (path.parent.parent / "secret").write_text("planted x\n")
    (path.parent / "link").symlink_to("../secret")
    (path.parent / "two.inc").write_text('include "one.qasm";')
    text = text if text.startswith("OPENQASM") else "OPENQASM 2.0;\n" + text + "qreg q[1];"
    found = told(path, text)
    assert found.startswith("workloads.x.circuit")
    assert message in found
    assert "planted" not in found


def test_what_a_text_may_do(path: Path) -> None:
    (path.parent / "own").mkdir()
    (path.parent / "own" / "gates.inc").write_text("gate twice a {h a; h a;} // x\n")
    path.write_text(HEAD + 'include "own/gates.inc";\nqreg q[3]; // qreg r[99999];\ntwice q;')
    check(path)


def test_fused_gates_beyond_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workflow.methods.circuits.machine_memory", lambda: 1 << 20)
    circuit = {"name": "random", "qubits": 12, "depth": 4}
    study = {"workloads": {"x": {"kind": "statevector", "circuit": circuit, "fuse": 10}}}
    with pytest.raises(StudyError, match=r"need .* of memory, this machine has 1 MiB; lower fuse"):
        check_study(load_study(study))
