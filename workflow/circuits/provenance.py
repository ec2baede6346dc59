"""Provenance of a circuit's file in certificates: path, SHA-256, registers and comments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workflow.circuits.registers import registers_of
from workflow.inputs.provenance import file_attributes
from workflow.inputs.source_attributes import ATTRIBUTES, kept_text
from workflow.versions import versions_of

if TYPE_CHECKING:
    from qiskit import QuantumCircuit

_FIRST_BYTES = 1 << 16
"""Bytes of a text in which comments before its first declaration are searched for."""
_BEFORE = re.compile(
    r"(?:\s++|//[^\n]*+|/\*.*?\*/|OPENQASM\s[^;/]*+;"
    r"|include\s*+(?:\"[^\"\n]*+\"|'[^'\n]*+')\s*+;)*+",
    re.DOTALL,
)
_COMMENT = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|//([^\n]*)|/\*(.*?)\*/", re.DOTALL)
"""A comment; or the name of a file, which may have the letters of one."""


def with_circuit(
    attributes: Mapping[str, Any], path: Path, circuit: QuantumCircuit
) -> dict[str, Any]:
    """Return the attributes of what is staged with those of a circuit and its file.

    Among them are the versions of Qiskit and its importer, whose matrices those of the gates are.
    """
    found = {**attributes, **file_attributes("circuit", path)}
    found["circuit_read_by"] = "; ".join(versions_of(("qiskit", "qiskit-qasm3-import")))
    own = (circuit.metadata or {}).get("said", {})
    said = {key: kept_text(text) for key, text in own.items()}
    if comments := leading_comments(path):
        said["comments"] = comments
    if said:
        found[ATTRIBUTES] = {**attributes.get(ATTRIBUTES, {}), "circuit": said}
    return found | registers_of(circuit)


def leading_comments(path: Path) -> str:
    """Return the comments of OpenQASM before the first declaration, a line each.

    They say what a circuit is of; those beside gates are left out. QPY has none.
    """
    with path.open("rb") as file:
        text = file.read(_FIRST_BYTES).decode("utf-8", "replace")
    before = _BEFORE.match(text)
    found = _COMMENT.findall(before[0] if before else "")
    lines = "\n".join(line or block for line, block in found).splitlines()
    return kept_text("\n".join(line.strip() for line in lines if line.strip()))
