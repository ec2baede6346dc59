"""Constants, arithmetic and loops over constants in OpenQASM 3, and those that are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from qiskit import QuantumCircuit

from tests.workflow.circuits.test_qasm3 import HEAD, loaded, same
from workflow.circuits.qiskit_circuits import CircuitError, gates_of, load_circuit


def test_constants_and_arithmetic(tmp_path: Path) -> None:
    """Powers, remainders, functions, and names for numbers, in angles, indices and sizes."""
    found = loaded(
        tmp_path / "one.qasm",
        """
        OPENQASM 3.0;
        const uint[8] n = 2**2 - 1;
        include "stdgates.inc";
        const float third = pi / n;
        const bool yes = true;
        const int minus = -7 % 4;
        qubit[n] q;
        bit[n - yes] c;
        gate turn(third, t) a { rx(third * n) a; rz(t / 2**2) a; }
        rx(third) q[n - 1]; ry(pi/2*3) q[2**0]; rz(-third/2**n) q[n % 2];
        p(sin(pi/6) + arccos(0.5)) q[0]; rx(sqrt(2)/2 + exp(0) + log(euler)) q[{0, n - 2}];
        rx(2**3 * mod(7.5, 2) + floor(2.5) - ceiling(2.5)) q[-n:minus + 2];
        turn(0.5, third) q[1]; ctrl @ turn(n, -third) q[0], q[2]; pow(n - 1) @ t q[1];
        gphase(third * n**2);
        c[0:n - 2] = measure q[1:n - 1];
        """,
    )
    third = np.pi / 3
    expected = QuantumCircuit(3)
    expected.rx(third, 2)
    expected.ry(np.pi / 2 * 3, 1)
    expected.rz(-third / 8, 1)
    expected.p(0.5 + np.pi / 3, 0)
    expected.rx(np.sqrt(2) / 2 + 2, [0, 1])
    expected.rx(8 * 1.5 + 2 - 3, [0, 1, 2])
    turn = QuantumCircuit(1)
    turn.rx(1.5, 0)
    turn.rz(third / 4, 0)
    expected.append(turn.to_gate(), [1])
    expected.crx(9, 0, 2)
    expected.crz(-third / 4, 0, 2)
    expected.p(np.pi / 2, 1)
    assert same(found, expected)
    assert found.num_clbits == 2


def test_loops_over_constants(tmp_path: Path) -> None:
    """A Fourier transform by loops, a set, a range that descends and one without a number."""
    found = loaded(
        tmp_path / "one.qasm",
        """
        OPENQASM 3.0;
        include "stdgates.inc";
        const int n = 4;
        qubit[n] q;
        for uint i in [0:n - 1] {
            const int j = n - 1 - i;
            h q[j];
            for int k in [j - 1:-1:0] { cp(pi/2**(j - k)) q[k], q[j]; }
        }
        for int i in {0, n/2} rx(0.25*i) q[i];
        for int i in [2:1] { x q[i]; }
        for int n in [0:2:3] { ctrl @ rz(n) q[n], q[n + 1]; }
        gate turns(t, n) a { for int k in [1:2] { rx(k*t + n) a; } }
        turns(0.5, n) q[1];
        """,
    )
    expected = QuantumCircuit(4)
    for j in (3, 2, 1, 0):
        expected.h(j)
        for k in range(j - 1, -1, -1):
            expected.cp(np.pi / 2 ** (j - k), k, j)
    expected.rx(0, 0)
    expected.rx(0.5, 2)
    expected.crz(0, 0, 1)
    expected.crz(2, 2, 3)
    expected.rx(9.5, 1)  # both turns
    assert same(found, expected)


REFUSED = (
    ("for int i in [0:2] { break; }", "line 4, column 0: for_loop is classical control"),
    ("gate g(n) a { for int i in [0:n] { x a; } }", "line 4, column 14: for_loop is classical"),
    ("for float f in {0.5} { rx(f) q; }", "line 4, column 0: for_loop is classical"),
    ("for int i in [0:m] { h q[i]; }", "line 4, column 0: for_loop is classical control"),
    ("for int i in [0:2] { if (true) { x q[i]; } }", "line 4, column 21: if_else is"),
    ("for int i in [0:3] { h q[i]; }", "line 4, column 25: index 3 is beyond its"),
    ("for int i in [0:99999999999] {}", "line 4, column 0: loops must do at most 100000"),
    ("for int i in [1:999] { for int j in [1:999] {} }", "column 23: loops must do at"),
    ("for int i in [0:2] { const int n = 2; } rx(n) q[0];", "column 43: Undefined symbol 'n'"),
    ("const angle a = pi/4;", "line 4, column 0: constant a must be an int, a uint"),
    ("const int[4] n = 8;", "line 4, column 0: constant n cannot be 8 in its type"),
    ("const uint n = -1;", "constant n cannot be -1 in its type"),
    ("const int n = 1.5;", "constant n cannot be 1.5 in its type"),
    ("const float a = 1e999;", "line 4, column 0: constant a is beyond the numbers of its type"),
    ("const float[16] a = 1e9;", "line 4, column 0: constant a is beyond the numbers of its type"),
    ("const int[1.5] n = 0;", "constant n cannot be 0 in its type"),
    ("for uint i in [-1:1] { rx(i) q[0]; }", "line 4, column 0: i cannot be -1 in its type"),
    ("for int[4] i in {1, 8} { rx(i) q[0]; }", "line 4, column 0: i cannot be 8 in its type"),
    ("for int x in [0:1] { x q[0]; }", "line 4, column 21: 'x' is a number there"),
    ("for int q in [0:1] { x q[q]; }", "line 4, column 23: 'q' is a number there"),
    ("gate g a { x a; } const int g = 1;", "line 4, column 18: 'g' is already declared"),
    ("const int n = m; const int m = 1;", "must be made of numbers and constants before"),
    ("const int q = 1;", "line 4, column 0: 'q' is already declared"),
    ("const int n = 1; bit n;", "line 4, column 17: 'n' is already declared"),
    ("const float x = 1.0;", "line 4, column 0: 'x' is already declared"),
    ("const float w = 3/4;", "line 4, column 16: 3/4 is 0 in OpenQASM 3, which divides"),
    ("const int n = 3; rx(n/2*pi) q[0];", "line 4, column 20: 3/2 is 1 in OpenQASM 3"),
    ("rx(2**-1) q[0];", "line 4, column 3: **: 2**-1 is no integer; write 2.0**-1"),
    ("rx(9**9**9) q[0];", "**: an integer has at most 64 bits"),
    ("rx(9.0**999) q[0];", "**: (34, 'Numerical result out of range')"),
    ("rx((-1.0)**0.5) q[0];", "**: the result is no finite real number"),
    ("rx(5%0) q[0];", "%: integer modulo by zero"),
    ("rx(log(0)) q[0];", "log: "),
    ("rx(sqrt(-1)) q[0];", "sqrt: "),
    ("rx(sin(1, 2)) q[0];", "line 4, column 3: sin: it takes 1, got 2"),
)


@pytest.mark.parametrize(
    ("text", "message"),
    [REFUSED[0], *(pytest.param(*one, marks=pytest.mark.exhaustive) for one in REFUSED[1:])],
    ids=[text for text, _ in REFUSED],
)
def test_what_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "one.qasm"
    path.write_text(HEAD + text)
    with pytest.raises(CircuitError) as error:
        gates_of(load_circuit(path), 3)
    assert message in str(error.value)
