"""OpenQASM texts that mean harm: refused at once, without a word of what they reach for."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.attack.campaign import Attempt, require
from benchmarks.attack.isolation import isolated
from workflow.preflight.check import check_study
from workflow.preflight.loading import load_study

_HEAD = 'OPENQASM 2.0;\ninclude "qelib1.inc";\n'
_SECRET = "argandsecret"
_DOUBLING = "gate g0 a {h a;}\n" + "".join(
    f"gate g{i + 1} a {{g{i} a; g{i} a;}}\n" for i in range(50)
)


def _including(name: str) -> list[str]:
    """Return the ways to write an include that readers of OpenQASM differ in."""
    forms = [f'include "{name}";', f"include '{name}';", f"include'{name}';", f'include"{name}";']
    forms += [f'include // x\n "{name}";', f"include\t\n'{name}' ;", f'include "{name}" ;']
    return [f"OPENQASM 2.0;\n{form}\nqreg q[1];" for form in forms]


REFUSED: tuple[str, ...] = (
    *(text for name in ("/etc/passwd", "../secret", "link", "pipe", "gone.inc", "one.qasm")
      for text in _including(name)),
    *_including("/dev/zero"), *_including("two.inc"),
    _HEAD + _DOUBLING + "qreg q[2]; g50 q[0];",
    "OPENQASM 2.0;\ninclude 'doubling.inc';\nqreg q[1]; g50 q[0];",
    _HEAD + "gate r a { r a; }\nqreg q[1]; r q[0];",
    _HEAD + "gate s a { t1 a; } gate t1 a { s a; }\nqreg q[1]; s q[0];",
    _HEAD + "qreg q[4000000000];", _HEAD + f"qreg q[{'9' * 5000}];",
    _HEAD + "qreg q[1]; creg c[4000000000];",
    _HEAD + "".join(f"qreg q{i}[4000];" for i in range(9)),
    _HEAD + "qreg q[40]; h q;", _HEAD + f"qreg q[1]; rx({'(' * 2000}1{')' * 2000}) q[0];",
    _HEAD + "qreg q[1]; rx(10^1000) q[0];", _HEAD + "qreg q[1]; rx(1/0) q[0];",
    _HEAD + "qreg q[1]; rx(9^9^9^9) q[0];",
    "", "OPENQASM 3.0;\nqubit[20000000] q;", "\0" * 1000, "OPENQASM 2.0;\n" + "/*" * 1000,
)  # fmt: skip
_PIECES = ("'", '"', ";", "{", "}", "(", ")", "include ", "gate ", "qreg q[99];", "//", "\0", "^")


def circuits(attempt: Attempt) -> None:
    """Read one of `REFUSED`, then a right text with random pieces put into it."""
    folder = attempt.folder / "circuits"
    folder.mkdir()
    (attempt.folder / "secret").write_text(f"{_SECRET} x\n")
    (folder / "link").symlink_to("../secret")
    (folder / "two.inc").write_text("include 'one.qasm';")
    (folder / "doubling.inc").write_text('include "qelib1.inc";\n' + _DOUBLING)
    os.mkfifo(folder / "pipe")
    mutated = attempt.number >= len(REFUSED)
    text = _mutated(attempt) if mutated else REFUSED[attempt.number]
    path = folder / "one.qasm"
    path.write_text(text)
    found = isolated(lambda: _check(path), memory=1 << 30, seconds=20)
    shown = repr(text if len(text) < 90 else f"{text[:90]}...")
    require(found.how != "ended", f"{shown}: {found}")
    output = found.text + str(found.value)
    leaked = [word for word in (_SECRET, "root:", "daemon:") if word in output]
    require(not leaked, f"{shown}: the message has {leaked}")
    if found.how == "returned":
        require(mutated, f"{shown} is accepted")
    else:
        require(found.error.endswith("StudyError"), f"{shown}: {found}")


def _check(path: Path) -> str:
    case = {"kind": "statevector", "circuit": {"file": str(path)}}
    check_study(load_study({"workloads": {"x": case}}))
    return "accepted"


def _mutated(attempt: Attempt) -> str:
    rng = attempt.rng
    text = _HEAD + "gate two(t) a,b { rx(t/2) a; cx a,b; }\nqreg q[3]; creg c[3];\n"
    text += "h q; two(pi/4) q[0],q[1];\nbarrier q; u3(0.1,-0.2,3e-1) q[2]; measure q -> c;\n"
    for _ in range(int(rng.integers(1, 5))):
        place, gone = int(rng.integers(len(text))), int(rng.integers(0, 8))
        text = text[:place] + str(rng.choice(_PIECES)) + text[place + gone :]
    return text
