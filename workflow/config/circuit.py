"""A circuit as a config names it: a file, or a name with a number of qubits."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from workflow.config.model import Model

CircuitName = Literal["qft", "ghz", "random"]
MAX_QUBITS = 34
"""2^34 amplitudes are 128 GiB in complex64."""
MAX_GATES = 100_000
"""Gates of a circuit, before fusion: a file of them is read and checked in two seconds."""
MAX_UPDATES = 1 << 46
"""Gates of a circuit times amplitudes of its state: 4096 gates on 34 qubits, all on 29."""


class Circuit(Model):
    """A circuit: a file, or a name with a number of qubits."""

    file: Path | None = Field(
        None,
        description="OpenQASM 2 file, or what qiskit-qasm3-import reads of OpenQASM 3, and "
        "constants and loops over them, without classical control, or Qiskit's QPY of one circuit, "
        "from Qiskit 1.3 on; a relative path starts where Snakemake runs. Matrices are Qiskit's, "
        "up to a phase of the whole state; under modifiers `U`, `u2` and `u3` have the phases of "
        "OpenQASM 3.0 and 3.1. A `PauliEvolutionGate` is its synthesis, a Trotter product. Delays "
        "are left out, also beside noise.",
    )
    name: CircuitName | None = Field(None, description="A circuit that is built here.")
    qubits: int | None = Field(None, ge=1, le=MAX_QUBITS, description="Qubits of a named circuit.")
    depth: int = Field(20, ge=1, le=10_000, description="Layers of a random circuit.")
    seed: int | None = Field(
        None, ge=0, description="Seed of a random circuit; the study's where not given."
    )

    @model_validator(mode="after")
    def _one_circuit(self) -> Circuit:
        if (self.file is None) == (self.name is None):
            raise ValueError("circuit must have either file or name")
        if self.name is not None and self.qubits is None:
            raise ValueError(f"circuit.qubits must be given for the named circuit {self.name!r}")
        for key in ("depth", "seed"):
            if key in self.model_fields_set and self.name != "random":
                raise ValueError(f"circuit.{key} must be given for a random circuit only")
        if self.file is not None and self.qubits is not None:
            raise ValueError(
                "circuit.qubits must not be given beside circuit.file: the file says it"
            )
        return self
