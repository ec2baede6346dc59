"""From QPY or OpenQASM 3 on stdin to OpenQASM 2 on stdout, by Qiskit, in a process within limits.

A file may say that it holds 2^32 qubits, or a gate of the library that takes hours to build, and
nothing tells so before Qiskit has done it. It does it here, with so much memory, time and output.
"""

from __future__ import annotations

import gc
import io
import json
import re
import resource
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openqasm3 import ast
    from qiskit import QuantumCircuit
    from qiskit.circuit import Bit, Register

MEMORY_BYTES = 1 << 30
CPU_SECONDS = 60
NAMES = "// names of registers: "
"""Beginning of the first line of the output; JSON of the names of qubits and bits follows."""
PLAIN = ("qubits_", "bits_")
"""Beginnings of the names of registers there, of qubits and of bits; their number follows."""
SAID = "// what it says of itself: "
"""Beginning of the second line; JSON of the name and the metadata of QPY follows, each a text."""
OF_FILE = "_of_the_file"
"""End of the names of gates that a file defines under a name of the library's."""
FAILED = 3
"""Exit status where stderr ends with a line that says what Qiskit could not do."""
_MOST_SAID = 1 << 16
"""Characters of a name or of metadata; what is longer is left out."""
_MOST_BITS = 4096
"""Qubits and, apart, classical bits, as of a text in OpenQASM 2."""


def main(form: str, most_bytes: int) -> int:
    """Write the one circuit of a file; its measurements and barriers too, its global phase not."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    gc.disable()  # trees of a parser are of many objects without cycles: a quarter of its time
    from qiskit import qasm2

    try:
        content = sys.stdin.buffer.read()
        circuit = _from_qpy(content) if form == "qpy" else _from_text(content)
        text = qasm2.dumps(_in_plain_registers(circuit))
        said = _said(circuit) if form == "qpy" else {}
        first = f"{NAMES}{json.dumps(_named(circuit))}\n{SAID}{json.dumps(said)}\n"
        sys.stdout.write(first + text)
        sys.stdout.flush()
    except BaseException as error:  # a panic in Rust is no Exception
        sys.stderr.write(f"\n{_reason(error)}\n")
        return FAILED
    return 0


def _from_qpy(content: bytes) -> QuantumCircuit:
    from qiskit import QuantumCircuit, qpy

    programs = qpy.load(io.BytesIO(content))
    if len(programs) != 1 or not isinstance(programs[0], QuantumCircuit):
        raise ValueError(f"it must hold one circuit, it holds {len(programs)} programs")
    return programs[0]


def _from_text(content: bytes) -> QuantumCircuit:
    import openqasm3
    import qiskit_qasm3_import

    program = openqasm3.parse(content.decode("utf-8", "replace"))
    _order_parameters(program)
    _check_divisions(program)
    return qiskit_qasm3_import.convert(program)


def _order_parameters(program: ast.Program) -> None:
    """Rename parameters of gates that it defines so that alphabetical order is that of a call.

    qiskit-qasm3-import 0.6.0 takes the angles of a call for the parameters in alphabetical order:
    of ``gate g(theta, phi)`` it gives the first angle to phi.
    """
    from openqasm3 import ast

    for gate in program.statements:
        if isinstance(gate, ast.QuantumGateDefinition):
            names = [parameter.name for parameter in gate.arguments]
            if names != sorted(names):
                renamed = {name: f"parameter_{place:06}" for place, name in enumerate(names)}
                _rename([gate.arguments, gate.body], renamed)


def _rename(part: object, names: dict[str, str]) -> None:
    """Give identifiers below ``part`` other names, but for those of gates that are called."""
    from openqasm3 import ast

    if isinstance(part, ast.Identifier):
        part.name = names.get(part.name, part.name)
    elif isinstance(part, ast.QuantumGate):
        _rename([part.modifiers, part.arguments], names)
    elif isinstance(part, ast.QASMNode):
        _rename(list(vars(part).values()), names)
    elif isinstance(part, list):
        for one in part:
            _rename(one, names)


def _check_divisions(part: object) -> None:
    """Raise ValueError where angles of gates have a quotient of integers that is none.

    OpenQASM 3 drops the remainder, so that ``3/4*pi`` is 0, and OpenQASM 2 does not.
    """
    from openqasm3 import ast

    if isinstance(part, ast.Expression):
        _whole(part)
    elif isinstance(part, ast.QuantumGate | ast.QuantumPhase):
        _check_divisions([vars(part).get(name) for name in ("modifiers", "arguments", "argument")])
    elif isinstance(part, ast.QuantumGateModifier):
        _check_divisions(part.argument)
    elif isinstance(part, ast.QuantumGateDefinition):
        _check_divisions(part.body)
    elif isinstance(part, ast.Program):
        _check_divisions(part.statements)
    elif isinstance(part, list):
        for one in part:
            _check_divisions(one)


def _whole(node: object) -> int | None:
    """Return the value of an expression of integers, None of any other. See `_check_divisions`."""
    from openqasm3 import ast

    if isinstance(node, ast.IntegerLiteral):
        return node.value
    if isinstance(node, ast.UnaryExpression):
        value = _whole(node.expression)
        return value if value is None or node.op.name != "-" else -value
    if isinstance(node, ast.FunctionCall):
        _check_divisions(node.arguments)
    if not isinstance(node, ast.BinaryExpression):
        return None
    one, other = _whole(node.lhs), _whole(node.rhs)
    if one is None or other is None or node.op.name not in "+-*/":
        return None
    if node.op.name == "/":
        if other and one % other:
            place = f"{node.span.start_line},{node.span.start_column}: " if node.span else ""
            raise ValueError(
                f"{place}{one}/{other} is {int(one / other)} in OpenQASM 3, which divides integers "
                f"without a remainder; for a fraction write {one}.0/{other}"
            )
        return one // other if other else None
    return {"+": one + other, "-": one - other, "*": one * other}[node.op.name]


def _in_plain_registers(circuit: QuantumCircuit) -> QuantumCircuit:
    """Return the same circuit in registers whose names OpenQASM 2 has for nothing else.

    Those are the circuit's own where each bit is in one of them. Else its qubits are in one
    register and its bits in another: a qubit may be in several (``let`` of OpenQASM 3), and Qiskit
    writes each of them as qubits of its own.
    """
    from qiskit import ClassicalRegister, QuantumCircuit, QuantumRegister, qasm2
    from qiskit.circuit import ControlFlowOp

    for bits, what in ((circuit.num_qubits, "qubits"), (circuit.num_clbits, "classical bits")):
        if bits > _MOST_BITS:
            raise ValueError(f"it declares more than {_MOST_BITS} {what}")
    for instruction in circuit.data:
        if isinstance(instruction.operation, ControlFlowOp):
            name = instruction.operation.name
            raise ValueError(f"{name} is classical control, which is not a unitary evolution")
    if _named(circuit):
        one = QuantumCircuit(
            *(QuantumRegister(len(own), f"{PLAIN[0]}{n}") for n, own in enumerate(circuit.qregs)),
            *(ClassicalRegister(len(own), f"{PLAIN[1]}{n}") for n, own in enumerate(circuit.cregs)),
        )
    else:
        one = QuantumCircuit(circuit.num_qubits, circuit.num_clbits)
    one.compose(circuit, inplace=True)
    known = {"c3sx", *(known.name for known in qasm2.LEGACY_CUSTOM_INSTRUCTIONS)}
    _name_apart(one, known, {})
    return one


def _name_apart(circuit: QuantumCircuit, known: set[str], done: dict[int, object]) -> None:
    """Rename gates, and those within, that are not the library's but have a name that is known.

    Qiskit writes a gate of such a name without its definition, as if it were the library's. Those
    in ``done``, by their identity, have had their turn.
    """
    for place, instruction in enumerate(circuit.data):
        if instruction.is_standard_gate():
            continue
        gate = instruction.operation
        home = str(getattr(gate, "base_class", type(gate)).__module__)
        if id(gate) in done or home.startswith("qiskit.circuit.library"):
            continue
        done[id(gate)] = gate
        if (definition := getattr(gate, "definition", None)) is None:
            continue
        _name_apart(definition, known, done)
        if gate.name in known:
            named = gate.copy(name=f"{gate.name}{OF_FILE}")
            circuit.data[place] = instruction.replace(operation=named)


def _said(circuit: QuantumCircuit) -> dict[str, str]:
    """Return a circuit's name, and its metadata as JSON, where it has them."""
    metadata = json.dumps(circuit.metadata, ensure_ascii=False) if circuit.metadata else ""
    found = {"name": circuit.name or "", "metadata": metadata}
    return {key: text for key, text in found.items() if 0 < len(text) <= _MOST_SAID}


def _named(circuit: QuantumCircuit) -> list[list[str]]:
    """Return the names of registers of qubits and of bits, where each bit is in one of them."""
    if not _are_apart(circuit.qregs, circuit.qubits) or not _are_apart(
        circuit.cregs, circuit.clbits
    ):
        return []
    return [[one.name for one in registers] for registers in (circuit.qregs, circuit.cregs)]


def _are_apart(registers: Sequence[Register], bits: Sequence[Bit]) -> bool:
    """Return whether registers have all bits in their order, each once, and none is empty."""
    sizes = [len(register) for register in registers]
    if not all(sizes) or sum(sizes) != len(bits):
        return False
    return [bit for register in registers for bit in register] == list(bits)


def _reason(error: BaseException) -> str:
    """Return the message of Qiskit in one line, with the place in a text if the parser knows it."""
    token = getattr(next(iter(getattr(error.__cause__, "args", ())), None), "offendingToken", None)
    if token is not None:  # of ANTLR, which says nothing itself
        return f"line {token.line}, column {token.column}: unexpected {token.text!r:.60}"
    # Colours and frames that a reader draws around what it says are not part of that.
    said = re.sub("\x1b\\[[0-9;]*m|[\u2500-\u257f]", "", str(next(iter(error.args), "")))
    said = " ".join(said.split()) or type(error).__name__
    return re.sub(r"^L?(\d+)[,:]C?(\d+): ", r"line \1, column \2: ", said)[:300]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
