"""A filter of stdin to stdout: QPY or OpenQASM 3 to OpenQASM 2, by Qiskit within limits.

A file may say that it holds 2^32 qubits, or a gate of the library that takes hours to build, and
nothing tells so before Qiskit has done it. It does it here, with so much memory, time and output.
"""

from __future__ import annotations

import gc
import io
import json
import math
import re
import resource
import sys
import traceback
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openqasm3 import ast
    from qiskit import QuantumCircuit
    from qiskit.circuit import Bit, Register

    from workflow.circuits.matrix_gates import Matrices

MEMORY_BYTES = 1 << 30
CPU_SECONDS = 60
NAMES = "// names of registers: "
"""Beginning of the first line of the output; JSON of the names of qubits and bits follows."""
PLAIN = ("qubits_", "bits_")
"""Beginnings of the names of registers there, of qubits and of bits; their number follows."""
SAID = "// what it says of itself: "
"""Beginning of the second line; JSON of the name and the metadata of QPY follows, each a text.
The third is that of `matrix_gates`."""
FAILED = 3
"""Exit status where stderr ends with a line that says what Qiskit could not do."""
_WORDS = {"barrier", "c3sx", "if", "measure", "pi", "reset"}
"""Names, beside Qiskit's for OpenQASM 2, of gates of a file that would be taken for others."""
_MAX_SAID = 1 << 16
"""Characters of a name or of metadata; what is longer is left out."""
_MAX_BITS = 4096
"""Qubits and, apart, classical bits, as for a text in OpenQASM 2."""
Parts = list[tuple[str, int]]
"""Names of registers, "" where bits have none, and how many bits each has."""
Declared = tuple[list[str], list[str]]
"""Names of registers and single qubits, and of those of bits, as OpenQASM 3 declares them."""


def main(form: str, most_bytes: int) -> int:
    """Write the one circuit of a file; its measurements and barriers too, its global phase not."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    gc.disable()  # trees of a parser are of many objects without cycles: a quarter of its time
    sys.path.insert(0, str(Path(__file__).parents[2]))  # of this very `workflow`
    try:
        sys.stdout.write(as_text(sys.stdin.buffer.read(), form))
        sys.stdout.flush()
    except BaseException as error:  # a panic in Rust is no Exception
        sys.stderr.write(f"\n{reason(error)}\n")
        return FAILED
    return 0


def as_text(content: bytes, form: str) -> str:
    """Return the one circuit of a file in OpenQASM 2, behind lines of its names."""
    from qiskit import qasm2

    from workflow.circuits.matrix_gates import Matrices

    _write_angles_exactly()
    declared: Declared = ([], [])
    if form == "qpy":
        circuit = _from_qpy(content)
    else:
        circuit, declared = _from_text(content)
    _check(circuit)
    parts = [
        _parts(circuit.qregs, circuit.qubits, declared[0]),
        _parts(circuit.cregs, circuit.clbits, declared[1]),
    ]
    matrices = Matrices()
    text = qasm2.dumps(_in_plain_registers(circuit, parts, matrices))
    said = _name_and_metadata(circuit) if form == "qpy" else {}
    names = [[name for name, _ in own] for own in parts]
    lines = f"{NAMES}{json.dumps(names)}", f"{SAID}{json.dumps(said)}", matrices.line()
    return "\n".join([*lines, text])


def _write_angles_exactly() -> None:
    """Have this process's Qiskit write numbers as they are, not pi for what is within 1e-12."""
    from qiskit.qasm2 import export

    rounded = export.pi_check

    def written(angle: object, **options: Any) -> str:
        if not isinstance(angle, Real):
            return str(rounded(angle, **options))
        if not math.isfinite(angle):
            raise ValueError(f"a parameter of a gate must be a finite number, got {angle}")
        return repr(float(angle))

    export.pi_check = written


def _from_qpy(content: bytes) -> QuantumCircuit:
    from qiskit import QiskitError, QuantumCircuit, qpy

    try:
        programs = qpy.load(io.BytesIO(content))
    except (TypeError, QiskitError) as error:
        if isinstance(error, qpy.QpyError):
            raise
        # As of Isometry and UCGate, which are written without some of their arguments.
        raise ValueError(
            f"{error}; decompose() takes such a gate apart before it is written"
        ) from error
    if len(programs) != 1 or not isinstance(programs[0], QuantumCircuit):
        raise ValueError(f"it must hold one circuit, it holds {len(programs)} programs")
    return programs[0]


def _from_text(content: bytes) -> tuple[QuantumCircuit, Declared]:
    import openqasm3
    from openqasm3 import ast

    from workflow.circuits.qasm3_constants import write_constants
    from workflow.circuits.qasm3_conversion import converted
    from workflow.circuits.qasm3_indices import write_indices
    from workflow.circuits.qasm3_instances import write_instances
    from workflow.circuits.qasm3_modifiers import write_modified
    from workflow.circuits.qasm3_program import check_control, check_divisions, order_parameters

    program = openqasm3.parse(content.decode("utf-8", "replace"))
    write_constants(program)
    check_control(program)
    check_divisions(program)
    write_instances(program)
    write_modified(program)
    order_parameters(program)
    write_indices(program)
    qubits, bits = [], []
    for one in program.statements:
        if isinstance(one, ast.QubitDeclaration):
            qubits.append(one.qubit.name)
        elif isinstance(one, ast.ClassicalDeclaration):
            bits.append(one.identifier.name)
    return converted(program), (qubits, bits)


def _check(circuit: QuantumCircuit) -> None:
    """Raise ValueError for too many bits, classical control, and parameters without a value."""
    from qiskit.circuit import ControlFlowOp

    from workflow.circuits.qasm3_program import control_in_words

    for bits, what in ((circuit.num_qubits, "qubits"), (circuit.num_clbits, "classical bits")):
        if bits > _MAX_BITS:
            raise ValueError(f"it declares more than {_MAX_BITS} {what}")
    for instruction in circuit.data:
        if isinstance(instruction.operation, ControlFlowOp):
            name = instruction.operation.name
            raise ValueError(control_in_words(name, name))
    if names := [one.name for one in circuit.parameters]:
        shown = ", ".join(names[:6]) + ", ..." * (len(names) > 6)
        raise ValueError(
            f"parameters without a value: {shown}; write numbers in their place, as "
            "QuantumCircuit.assign_parameters does"
        )


def _in_plain_registers(
    circuit: QuantumCircuit, parts: list[Parts], matrices: Matrices
) -> QuantumCircuit:
    """Return the same circuit in registers whose names OpenQASM 2 has for nothing else.

    They are the ``parts`` of its qubits and of its classical bits: Qiskit writes a qubit that is in
    several registers (``let`` of OpenQASM 3) as qubits of each.
    """
    from qiskit import ClassicalRegister, QuantumCircuit, QuantumRegister, qasm2

    from workflow.circuits.matrix_gates import NAMED
    from workflow.circuits.qiskit_gates import name_apart, take_apart

    one = QuantumCircuit(
        *(QuantumRegister(size, f"{PLAIN[0]}{n}") for n, (_, size) in enumerate(parts[0])),
        *(ClassicalRegister(size, f"{PLAIN[1]}{n}") for n, (_, size) in enumerate(parts[1])),
    )
    one.compose(circuit, inplace=True)
    take_apart(one, matrices, {})
    known = {*_WORDS, *(gate.name for gate in qasm2.LEGACY_CUSTOM_INSTRUCTIONS)}
    name_apart(one, lambda name: name in known or name.startswith((*PLAIN, NAMED)), {})
    return one


def _name_and_metadata(circuit: QuantumCircuit) -> dict[str, str]:
    """Return a circuit's name, and its metadata as JSON, where it has them."""
    metadata = json.dumps(circuit.metadata, ensure_ascii=False) if circuit.metadata else ""
    found = {"name": circuit.name or "", "metadata": metadata}
    return {key: text for key, text in found.items() if 0 < len(text) <= _MAX_SAID}


def _parts(registers: Sequence[Register], bits: Sequence[Bit], declared: list[str]) -> Parts:
    """Return the registers that bits are in, one after the other.

    A bit in several registers counts for the first: ``let`` of OpenQASM 3 makes further ones. A
    single bit of OpenQASM 3 has its name among those ``declared``, which are in order; neighbouring
    bits of QPY that are in no register are one part. All bits are one part without a name where
    those of a register do not follow each other in its order.
    """
    first: dict[Bit, Register] = {}
    for register in registers:
        for bit in register:
            first.setdefault(bit, register)
    found: Parts = []
    place = 0
    while place < len(bits):
        own = first.get(bits[place])
        size = 1 if own is None else len(own)
        if own is not None and list(own) != list(bits[place : place + size]):
            return [("", len(bits))]
        found.append(("" if own is None else own.name, size))
        place += size
    if len(declared) == len(found):
        return [(name, size) for name, (_, size) in zip(declared, found, strict=True)]
    joined: Parts = []
    for name, size in found:
        if not name and joined and not joined[-1][0]:
            size += joined.pop()[1]
        joined.append((name, size))
    return joined


def reason(error: BaseException) -> str:
    """Return the message of Qiskit in one line, with the place in a text if the parser knows it."""
    token = getattr(next(iter(getattr(error.__cause__, "args", ())), None), "offendingToken", None)
    if token is not None:  # of ANTLR, which says nothing itself
        return f"line {token.line}, column {token.column}: unexpected {token.text!r:.60}"
    # Colours and frames that a reader draws around what it says are not part of that.
    said = re.sub("\x1b\\[[0-9;]*m|[\u2500-\u257f]", "", str(next(iter(error.args), "")))
    said = " ".join(said.split()) or type(error).__name__
    if not (place := re.match(r"L?(\d+)[,:]C?(\d+): ", said)) and (span := _span(error)):
        return f"line {span.start_line}, column {span.start_column}: {said}"[:300]
    return (
        f"line {place[1]}, column {place[2]}: {said[place.end() :]}"[:300] if place else said[:300]
    )


def _span(error: BaseException) -> ast.Span | None:
    """Return the place of the innermost node of OpenQASM 3 that was being read, if one was."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    nodes = [frame.f_locals.get("node") for frame in reversed(frames)]
    return next((found for node in nodes if (found := getattr(node, "span", None))), None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
