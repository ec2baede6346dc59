"""Gates of OpenQASM 3 under modifiers, so that Qiskit gives them the language's meaning.

Without a modifier the phase of a gate is one of the whole state, which nobody observes. Under
``ctrl``, ``negctrl`` and a fractional ``pow`` it is observed, and there Qiskit 2.6.2 differs:

- ``U``, ``u2`` and ``u3`` have other phases than in OpenQASM 3.0 and 3.1.
- ``inv @ ctrl @ cu`` loses the last angle of ``cu``.
- A fractional power of a rotation or a phase scales its angle, so that ``p(t)`` and
  ``p(t + 2*pi)``, which are one matrix, have different powers.
- A gate of the file under a name that Qiskit knows is controlled as Qiskit's gate.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from workflow.circuits.qasm3_arithmetic import number_of
from workflow.circuits.qasm3_program import whole

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from openqasm3 import ast

OF_FILE = "_of_the_file"
"""End of the names of gates that a file defines under a name of the library's."""
OPERATIONS = frozenset({"pauli_product_measurement", "pauli_product_rotation", "store"})
"""Names by which Qiskit takes any gate, also one that a file defines, for its own operation."""
OF_LANGUAGE = "_of_the_language"
"""End of the names of gates that stand for those of the language and of its library."""
_PHASED = {
    "U": "(a, b, c) q { gphase(a/2); U(a, b, c) q; }",
    "u2": "(b, c) q { gphase(-(b + c)/2); u2(b, c) q; }",
    "u3": "(a, b, c) q { gphase(-(b + c)/2); u3(a, b, c) q; }",
    "cu": "(a, b, c, d) q, r { p(d) q; ctrl @ U(a, b, c) q, r; }",
}
"""Definitions of the gates of OpenQASM 3.0 and 3.1 by those that Qiskit has under the names."""
_WIDTHS = {
    1: "p x y z h s sdg t tdg sx rx ry rz phase id u1",
    2: "cx cy cz cp crx cry crz ch swap CX cphase",
    3: "ccx cswap",
}
_LIBRARY = {name: width for width, names in _WIDTHS.items() for name in names.split()}
"""The other gates of stdgates.inc, and on how many qubits each is."""
LIBRARY_GATES = {*_LIBRARY, *_PHASED}


def write_modified(program: ast.Program) -> None:
    """Rename calls under modifiers, and those in definitions, to gates with the right phases.

    Their definitions are put before. A program without modifiers stays as it is, except for gates
    named as ``OPERATIONS``.
    """
    from openqasm3 import ast

    _name_apart(program, OPERATIONS)
    calls = list(_calls(program))
    if not any(call.modifiers for call, _ in calls):
        return
    given = set(LIBRARY_GATES) if _place_of_library(program) else {"U"}
    given -= _name_apart(program, _known(program))
    before = program.statements[: _place_of_library(program)]
    needed: dict[str, str] = {}
    for call, is_inner in calls:
        if isinstance(call, ast.QuantumGate) and (call.modifiers or is_inner):
            name = call.name.name
            if name not in given or (not is_inner and _is_inverse(call)):
                continue
            if not is_inner and "cu" in given and call not in before and _as_cu(call):
                continue
            if name in _PHASED:
                needed[name] = _PHASED[name]
            elif any(map(_is_fractional, call.modifiers)):
                needed[name] = _forwarding_definition(name, len(call.arguments))
            else:
                continue
            call.name.name += OF_LANGUAGE
    if needed:
        _define(program, needed)


def _calls(program: ast.Program) -> Iterator[tuple[ast.QuantumGate | ast.QuantumPhase, bool]]:
    """Yield calls of gates, and whether each is part of a definition."""
    from openqasm3 import ast

    for statement in program.statements:
        if isinstance(statement, ast.QuantumGateDefinition):
            for one in statement.body:
                if isinstance(one, ast.QuantumGate | ast.QuantumPhase):
                    yield one, True
        elif isinstance(statement, ast.QuantumGate | ast.QuantumPhase):
            yield statement, False


def _known(program: ast.Program) -> set[str]:
    """Return the names that Qiskit has for gates of its own, without those of an included library.

    A second definition of a gate of the library is left, for Qiskit to refuse.
    """
    from qiskit.circuit.equivalence_library import SessionEquivalenceLibrary

    # The library has keys(), but no iterator.
    known = {key.name for key in SessionEquivalenceLibrary.keys()}  # noqa: SIM118
    return known - LIBRARY_GATES if _place_of_library(program) else known


def _name_apart(program: ast.Program, taken: Collection[str]) -> set[str]:
    """Rename gates of the file whose names are ``taken``, and their calls.

    Returns the names of all gates of the file, as they are then.
    """
    from openqasm3 import ast

    gates = [one for one in program.statements if isinstance(one, ast.QuantumGateDefinition)]
    renamed = {gate.name.name for gate in gates}.intersection(taken)
    calls = [call for call, _ in _calls(program) if isinstance(call, ast.QuantumGate)]
    for name in [*(gate.name for gate in gates), *(call.name for call in calls)]:
        if name.name in renamed:
            name.name += OF_FILE
    return {gate.name.name for gate in gates}


def _is_fractional(modifier: ast.QuantumGateModifier) -> bool:
    """Return whether a modifier is a power that is not written as an integer."""
    return modifier.modifier.name == "pow" and whole(modifier.argument, is_angle=False) is None


def _is_inverse(call: ast.QuantumGate) -> bool:
    """Return whether the modifiers of a call are only ``inv``, under which a phase is not seen."""
    return all(modifier.modifier.name == "inv" for modifier in call.modifiers)


def _as_cu(call: ast.QuantumGate) -> bool:
    """Write U, u2 or u3 with one control as Qiskit's cu, which is read twice as fast.

    The last angle of cu is the phase of the gate in OpenQASM 3 beside that of Qiskit's U. Returns
    whether the call is written so, which takes one ``ctrl`` alone and angles made of numbers.
    """
    from openqasm3 import ast

    one = [(modifier.modifier.name, modifier.argument) for modifier in call.modifiers]
    angles = [number_of(argument, {}) for argument in call.arguments]
    numbers = [angle for angle in angles if angle is not None]
    name, count = call.name.name, len(numbers)
    if one != [("ctrl", None)] or count < len(angles):
        return False
    if (name, count) == ("u2", 2):
        call.arguments.insert(0, ast.FloatLiteral(math.pi / 2))
    elif (name, count) not in {("U", 3), ("u3", 3)}:
        return False
    phase = numbers[0] / 2 if name == "U" else -(numbers[-2] + numbers[-1]) / 2
    call.arguments.append(ast.FloatLiteral(phase))
    call.name.name, call.modifiers = "cu", []
    return True


def _forwarding_definition(name: str, angles: int) -> str:
    """Return the definition of a gate that is only called by the same name."""
    parameters = ", ".join(f"a{place}" for place in range(angles))
    qubits = ", ".join(f"q{place}" for place in range(_LIBRARY[name]))
    given = f"({parameters})" * bool(angles)
    return f"{given} {qubits} {{ {name}{given} {qubits}; }}"


def _define(program: ast.Program, needed: dict[str, str]) -> None:
    """Put definitions behind the library, that of U, which is of the language, before all."""
    import openqasm3

    at = _place_of_library(program)
    for name, definition in needed.items():
        made = openqasm3.parse(f"gate {name}{OF_LANGUAGE}{definition}").statements
        place = 0 if name == "U" else at
        program.statements[place:place] = made
        at += 1


def _place_of_library(program: ast.Program) -> int:
    """Return how many statements end with that which includes the library, 0 where none does."""
    from openqasm3 import ast

    places = [n for n, one in enumerate(program.statements) if isinstance(one, ast.Include)]
    return places[0] + 1 if places else 0
