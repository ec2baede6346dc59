"""Gates of QPY and OpenQASM 3 that are given by a matrix, for which OpenQASM 2 has no word.

Qiskit writes gates in their place that only approach it: of two qubits, what is within some 1e-5 of
a simpler gate becomes that (`TwoQubitWeylDecomposition`), such as a short step in time the
identity. So the text calls an opaque gate for each matrix, and a comment has the numbers.
"""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from qiskit.circuit import AnnotatedOperation, ControlledGate, Gate, Operation
from qiskit.circuit.library import UnitaryGate
from qiskit.qasm2 import CustomInstruction
from qiskit.quantum_info import Operator

Matrix = npt.NDArray[Any]

NAMED = "matrix_"
"""Beginning of the names of these gates; a number follows."""
LINE = "// matrices: "
"""Beginning of the comment; JSON of matrices in complex128, each as base64 by its gate's name."""
MAX_QUBITS = 10
"""Qubits of a matrix that is kept, those of the widest gate (16 MiB)."""


class MatrixGate(Gate):
    """A gate of a matrix (2^n, 2^n), which Qiskit's operators are made of."""

    def __init__(self, name: str, matrix: Matrix) -> None:
        super().__init__(name, len(matrix).bit_length() - 1, [])
        self._matrix = matrix

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Matrix:
        """Return a copy of the matrix."""
        return np.array(self._matrix, dtype)


class Matrices:
    """The matrices of a circuit, equal ones once, by the names of their gates."""

    def __init__(self) -> None:
        self._names: dict[bytes, str] = {}

    def gate(self, matrix: Matrix) -> MatrixGate:
        """Return the gate of a matrix."""
        own = np.ascontiguousarray(matrix, np.complex128)
        name = self._names.setdefault(own.tobytes(), f"{NAMED}{len(self._names)}")
        return MatrixGate(name, own)

    def line(self) -> str:
        """Return the comment that has them."""
        texts = {name: base64.b64encode(data).decode() for data, name in self._names.items()}
        return f"{LINE}{json.dumps(texts)}"


def matrices_in(line: str) -> dict[str, Matrix]:
    """Return the matrices of a comment, by the names of their gates."""
    found = {}
    for name, text in json.loads(line.removeprefix(LINE)).items():
        numbers = np.frombuffer(base64.b64decode(text), np.complex128)
        order = 1 << (numbers.size.bit_length() // 2)
        found[name] = numbers.reshape(order, order)
    return found


def instructions_of(matrices: Mapping[str, Matrix]) -> list[CustomInstruction]:
    """Return what Qiskit's parser makes of calls of these gates."""

    def one(name: str, matrix: Matrix) -> CustomInstruction:
        qubits = len(matrix).bit_length() - 1
        return CustomInstruction(name, 0, qubits, lambda: MatrixGate(name, matrix), builtin=True)

    return [one(name, matrix) for name, matrix in matrices.items()]


def matrix_of(operation: Operation) -> Matrix | None:
    """Return the matrix of a `UnitaryGate`, also where it is controlled or annotated, else None.

    None stands for operations whose definitions are exact. Raises ValueError for more qubits than
    `MAX_QUBITS`.
    """
    if not _has_matrix(operation):
        return None
    _check_width(operation.name, operation.num_qubits)
    if isinstance(operation, UnitaryGate):
        return np.asarray(operation.to_matrix())
    if isinstance(operation, ControlledGate):
        return controlled_matrix(
            operation.base_gate, operation.num_ctrl_qubits, operation.ctrl_state
        )
    return (
        np.asarray(Operator(operation).data) if isinstance(operation, AnnotatedOperation) else None
    )


def controlled_matrix(gate: UnitaryGate, controls: int, state: int | None) -> Matrix:
    """Return the matrix under controls, which are the lower qubits and have the bits of ``state``.

    None stands for ones. Raises ValueError as `matrix_of`.
    """
    _check_width(gate.name, gate.num_qubits + controls)
    return np.asarray(gate.control(controls, ctrl_state=state, annotated=True).to_matrix())


def _check_width(name: str, qubits: int) -> None:
    if qubits > MAX_QUBITS:
        raise ValueError(
            f"{name} is of a matrix and has {qubits} qubits with its "
            f"controls; {MAX_QUBITS} are allowed, because Qiskit's gates in its place would be "
            "others; make it of such gates before it is written"
        )


def _has_matrix(operation: Operation) -> bool:
    """Return whether an operation is a `UnitaryGate`, or controls or annotates one."""
    if isinstance(operation, AnnotatedOperation):
        return _has_matrix(operation.base_op) or is_made_of_matrices(operation.base_op)
    if isinstance(operation, ControlledGate):
        return isinstance(operation.base_gate, UnitaryGate)
    return isinstance(operation, UnitaryGate)


def is_made_of_matrices(operation: Operation) -> bool:
    """Return whether a gate that is not the library's calls a `UnitaryGate`."""
    if is_of_library(operation):
        return False
    definition = getattr(operation, "definition", None)
    return definition is not None and any(
        _has_matrix(one.operation) or is_made_of_matrices(one.operation) for one in definition.data
    )


def is_of_library(operation: Operation) -> bool:
    """Return whether Qiskit's library has an operation, whose definition may take long to make."""
    home = str(getattr(operation, "base_class", type(operation)).__module__)
    return home.startswith("qiskit.circuit.library")
